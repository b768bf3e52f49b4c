"""Several curves in one plot of characters, bars of several sides with one legend, and plots of series."""

from __future__ import annotations

import pytest
from rich.text import Text

from traceviz.render.figures.values import Axis, CurvePoint, Curves, Line, Panel, Part, StackedBars, StackedRow
from traceviz.render.palette import SERIES
from traceviz.render.terminal.figures import curves_lines, stacked_lines
from traceviz.render.terminal.plot import HEIGHT, plot
from traceviz.report import Level, Point, Series


def line(label, *points, style="line"):
    return Line(label, label, tuple(CurvePoint(*point) for point in points), style)


def curves(*lines, log=False, unit="per_second", x=None):
    return Curves("", "", x or Axis("batch", log=log), (Panel(Axis("speed", unit), lines),))


def drawn(figure, width=60):
    return [text.plain.rstrip() for text in curves_lines(figure, width, color=False)]


def test_2_curves_have_marks_of_their_own_and_a_legend():
    lines = drawn(curves(line("torch", (8, 100.0), (16, 200.0)), line("mxnet", (8, 50.0), (16, 100.0))))
    assert lines[0] == "  • torch   × mxnet"
    assert lines[1].startswith("  200/s ┤")
    assert lines[1].endswith("•")
    assert lines[9] == "    0/s ┤"
    assert (sum("•" in row for row in lines[1:]), sum("×" in row for row in lines[1:])) == (2, 2)
    assert lines[-1].split() == ["8", "16"]


def test_points_of_curves_at_one_place_stand_beside_each_other():
    lines = drawn(curves(line("a", (1, 5.0), (9, 5.0)), line("b", (1, 5.0), (9, 5.0))))
    assert "•×" in lines[1] or "×•" in lines[1] or "• ×" in lines[1]


def test_equal_factors_are_equally_far_apart_on_a_logarithmic_axis():
    lines = drawn(curves(line("a", (1, 1.0), (10, 1.0), (100, 1.0)), log=True))
    first, middle, last = (at for at, letter in enumerate(lines[-2]) if letter == "┬")
    assert middle - first == last - middle
    assert lines[-1].split() == ["1", "10", "100"]


def test_intervals_are_strokes_and_an_arrow_says_that_one_goes_on():
    lines = drawn(curves(line("a", (1, 10.0, 5.0, 90.0), (2, 8.0, 7.0, 9.0))))
    assert lines[0] == "  │ 95 % interval"
    assert lines[1].startswith("  12.5/s ┤ ↑")
    assert sum("│" in row[9:] for row in lines[2:-2]) >= 3


def test_references_are_dashes_without_a_mark():
    lines = drawn(curves(line("a", (1, 1.0), (4, 2.0)), line("ideal", (1, 1.0), (4, 4.0), style="dashed")))
    assert lines[0] == "  ╌ ideal or by Amdahl's law"
    assert any("╌" in row for row in lines[1:])
    assert sum(row.count("•") for row in lines) == 2


def test_runs_that_end_leave_the_rest_empty():
    steps = [(place * 10, 1.0) for place in range(20)]
    lines = drawn(curves(line("long", *steps), line("short", *steps[:10]), x=Axis("time", "ns", 0, 200)), 80)
    assert lines[1].rstrip().endswith("•")
    assert lines[1].rindex("×") < 50
    assert lines[-1].split()[:2] == ["0", "s"]


def test_2_panels_have_a_heading_each_and_others_are_left_out():
    panels = tuple(Panel(Axis(name), (line("a", (0, 1.0), (1, 2.0)),), full="") for name in ("one", "two", "three"))
    lines = drawn(Curves("", "", Axis("x"), panels))
    assert [row for row in lines if row.strip() in {"one", "two", "three"}] == ["  one", "  two"]


@pytest.mark.parametrize("width", [40, 80, 100, 200])
def test_no_line_is_wider_than_asked_whatever_curves_are_called(width):
    names = ("名" * 90, "[bold]x[/x]", "a\nb\u202ec", "plain", *(f"side {n}" for n in range(9)))
    figure = curves(*(line(name, (1, 1.0, 0.5, 2.0), (1e9, 1e-9, None, None)) for name in names))
    lines = curves_lines(figure, width, color=True)
    assert lines
    assert max(text.cell_len for text in lines) <= width
    assert all(letter.isprintable() for text in lines for letter in text.plain)


@pytest.mark.parametrize("empty", [curves(), curves(line("a", (1, None))), curves(line("a", (1, 1.0)))])
def test_nothing_measured_or_no_room_is_nothing_drawn(empty):
    assert curves_lines(empty, 20, color=False) == []


def test_marks_have_colours_where_there_is_colour():
    (legend, *_) = curves_lines(curves(line("a", (1, 1.0)), line("b", (2, 1.0))), 60, color=True)
    assert isinstance(legend, Text)
    assert {str(span.style) for span in legend.spans} == {SERIES[0].dark, SERIES[1].dark}


def bars(*rows):
    parts = [(name, tuple(Part(key, key, value) for key, value in of.items())) for name, of in rows]
    return StackedBars("", "", Axis("share of time", "ratio", 0, 1), tuple(StackedRow(*row) for row in parts))


def test_3_sides_are_3_bars_with_one_legend():
    shares = [("base", {"free": 0.5, "init": 0.5}), ("new", {"free": 1.0}), ("other", {"init": 0.25, "sync": 0.75})]
    lines = [text.plain.rstrip() for text in stacked_lines(bars(*shares), 48, color=False)]
    assert lines == [
        "  share of time",
        "  base  " + "█" * 20 + "░" * 20,
        "  new   " + "█" * 40,
        "  other " + "░" * 10 + "▓" * 30,
        "  █ free  ░ init  ▓ sync",
    ]


def test_bars_of_nothing_are_not_drawn():
    assert stacked_lines(bars(("a", {"x": 0.0})), 80, color=False) == []


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
