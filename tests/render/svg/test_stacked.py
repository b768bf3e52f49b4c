"""Bars of parts: their lengths add up, and their texts are those of the terminal."""

from itertools import pairwise

import pytest

from tests.render.svg.drawn import rectangles, texts, titles
from traceviz.core.units import format_value
from traceviz.render.figures.values import Axis, Part, StackedBars, StackedRow
from traceviz.render.svg.draw import svg

MS = 1_000_000


def part(key, ms, share=None):
    return Part(key, key.replace("_", " "), ms * MS, share)


THREE = StackedBars(
    "Time of every step, by class",
    "3 steady steps of slow.json",
    Axis("step time", "ns"),
    (
        StackedRow("1", (part("input_wait", 60, 0.6), part("host_compute", 40, 0.4))),
        StackedRow("2", (part("input_wait", 20, 0.25), part("host_compute", 60, 0.75))),
        StackedRow("3", (part("input_wait", 0, 0.0), part("host_compute", 50, 1.0))),
    ),
    rows_label="step",
    upright=True,
)
LYING = StackedBars("Classes", "", Axis("mean step", "ns"), THREE.rows)


def test_heights_of_the_parts_of_3_steps_are_as_their_times():
    drawn = rectangles(svg(THREE))
    heights = [round(bar.height, 1) for bar in drawn]
    per_ms = drawn[0].height / 60
    assert len(drawn) == 5
    assert sorted(heights) == [round(ms * per_ms, 1) for ms in (20, 40, 50, 60, 60)]


def test_a_bar_of_100_ms_ends_at_the_tick_of_100_ms_and_parts_stand_on_each_other():
    drawn = rectangles(svg(THREE))
    wait, compute = (next(bar for bar in drawn if f"step 1: {name}" in bar.said) for name in ("input", "host"))
    assert wait.y == pytest.approx(compute.y + compute.height, abs=0.02)
    assert wait.height + compute.height == pytest.approx(wait.y + wait.height - compute.y, abs=0.02)
    assert "100" in texts(svg(THREE))


def test_widths_of_lying_bars_are_as_their_times():
    drawn = rectangles(svg(LYING))
    per_ms = [bar.width / ms for bar, ms in zip(drawn, (60, 20, 40, 60, 50), strict=True)]
    assert per_ms == pytest.approx([per_ms[0]] * 5, rel=1e-3)


def test_parts_say_what_the_terminal_prints_of_them():
    assert titles(svg(THREE))[1] == f"step 1: input wait {format_value(60 * MS, 'ns')} (60.0 %)"
    assert titles(svg(LYING))[2] == "2: input wait 20.0 ms (25.0 %)"


def test_few_bars_have_their_sums_above_them():
    assert {"100 ms", "80.0 ms", "50.0 ms"} <= set(texts(svg(THREE)))


def test_the_legend_has_the_share_of_each_class():
    whole = (part("input_wait", 80, 80 / 230), part("host_compute", 150, 150 / 230))
    figure = StackedBars("t", "", Axis("", "ns"), THREE.rows, upright=True, whole=whole)
    assert {"input wait 34.8 %", "host compute 65.2 %"} <= set(texts(svg(figure)))


def test_each_of_120_bars_says_all_of_its_parts_at_once_and_the_file_stays_below_60_kb():
    rows = tuple(StackedRow(str(n), tuple(part(key, 1 + n % 7) for key in "abcdef"), most=50 * MS) for n in range(120))
    drawn = svg(StackedBars("t", "", Axis("", "ns"), rows, "step", upright=True))
    assert len(rectangles(drawn)) == 120
    assert titles(drawn)[1].startswith("step 0: 6.00 ms · the longest 50.0 ms · a 1.00 ms, b 1.00 ms, ")
    assert len(drawn) < 60_000


def test_bars_of_one_group_have_one_name_and_a_gap_to_the_next_group():
    rows = tuple(StackedRow(step, (part("step", 10),), f"of rank {rank}", group=step) for step in "78" for rank in "01")
    drawn = svg(StackedBars("t", "", Axis("", "ns"), rows, "step", upright=True))
    lefts = [bar.x for bar in rectangles(drawn)]
    apart = [after - before for before, after in pairwise(lefts)]
    assert texts(drawn).count("7") == 1
    assert apart[1] == pytest.approx(1.7 * apart[0], rel=0.01)
    assert rectangles(drawn)[3].said == "step 8 of rank 1: step 10.0 ms"
