"""Plots of series: every point in its place, changes marked, nothing wider than asked."""

import pytest

from traceviz.render.terminal.plot import HEIGHT, plot
from traceviz.report import Level, Point, Series


def series(*values, levels=(), unit="ns"):
    return Series("", unit, tuple(Point(str(number), value) for number, value in enumerate(values)), levels)


def test_the_largest_is_above_and_the_smallest_below():
    lines = plot(series(1e6, 2e6, 3e6), 40)
    assert len(lines) == HEIGHT + 2
    assert lines[0] == "3.00 ms ┤" + " " * 30 + "•"
    assert lines[7] == "1.00 ms ┤•"


def test_a_change_is_marked_in_every_row_and_named_below():
    lines = plot(series(1.0, 1.0, 1.0, 2.0, 2.0, 2.0, levels=(Level(0, 1.0), Level(3, 2.0))), 40)
    assert sum("┊" in line for line in lines) == HEIGHT
    assert lines[-2].index("┴") == lines[0].index("┊")
    assert lines[-1].index("▲") == lines[0].index("┊")
    assert "▲ 3" in lines[-1]
    assert "─•─" in lines[0]


def test_equal_values_are_a_single_row():
    assert plot(series(5.0, 5.0, 5.0, unit="number"), 30)[0].count("•") == 3
    rounded = plot(series(4_360_000.0, 4_360_000.0, levels=(Level(0, 4_360_000.0000000047),)), 30)
    assert len(rounded) == 3


def test_what_was_not_measured_leaves_a_gap():
    (row, *_) = plot(series(5.0, None, 5.0, unit="number"), 30)
    assert row.count("•") == 2


def test_values_of_many_sizes_are_on_a_logarithmic_scale_that_says_so():
    lines = plot(series(1e3, 1e5, 1e7, 1e10), 40)
    rows = [row for place in (39, 29, 19, 9) for row, line in enumerate(lines) if line[place : place + 1] == "•"]
    assert rows == [0, 3, 5, 7]
    assert lines[4] == "1.00 ms ┤"
    assert lines[-1].split() == ["log", "0", "3"]


@pytest.mark.parametrize("even", [series(1.0, 49.0), series(0.0, 1e9), series(0.001, 0.9, unit="ratio")])
def test_other_values_are_on_an_even_scale(even):
    assert "log" not in plot(even, 40)[-1]


@pytest.mark.parametrize("empty", [series(), series(None, None)])
def test_nothing_measured_is_nothing_drawn(empty):
    assert plot(empty, 80) == []


def test_there_is_no_plot_where_there_is_no_room():
    assert plot(series(1.0, 2.0), 15) == []


@pytest.mark.parametrize("count", [2, 30, 1000])
def test_no_line_is_wider_than_asked(count):
    levels = tuple(Level(start, 1.0) for start in range(0, count, max(count // 9, 1)))
    assert max(map(len, plot(series(*range(count), levels=levels), 60))) <= 60


def test_levels_outside_the_points_are_refused():
    with pytest.raises(ValueError, match="start at"):
        series(1.0, levels=(Level(1, 1.0),))
