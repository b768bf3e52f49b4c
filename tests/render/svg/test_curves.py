"""Curves: points at their places, gaps without measurements, names at their ends."""

import re

import pytest

from tests.render.svg.drawn import found, said, texts
from traceviz.render.figures.values import Axis, CurvePoint, Curves, Line, Mark, Panel
from traceviz.render.svg.draw import svg

MS = 1_000_000


def points(*values, low=None):
    return tuple(CurvePoint(x, y, low, y) for x, y in enumerate(values, 1))


BATCH = Axis("batch")


def curves(*lines, x=BATCH, **options):
    return Curves("t", "", x, (Panel(Axis("step time", "ns"), lines),), **options)


def circles(drawn):
    return [(float(one.get("cx")), float(one.get("cy")), said(one)) for one in found(drawn, "circle")]


def test_3_equal_steps_are_equally_far_apart_and_say_their_values():
    drawn = circles(svg(curves(Line("a", "step", points(10 * MS, 20 * MS, 30 * MS)))))
    assert drawn[1][0] - drawn[0][0] == pytest.approx(drawn[2][0] - drawn[1][0], abs=0.02)
    assert drawn[0][1] - drawn[1][1] == pytest.approx(drawn[1][1] - drawn[2][1], abs=0.02)
    assert [told for *_, told in drawn] == [
        *("step · batch 1: 10.0 ms", "step · batch 2: 20.0 ms", "step · batch 3: 30.0 ms")
    ]


def test_a_point_that_was_not_measured_interrupts_the_line():
    drawn = svg(curves(Line("a", "a", points(1.0, 2.0, None, 3.0, 4.0))))
    assert len(circles(drawn)) == 4
    assert len([path for path in found(drawn, "path") if path.get("stroke-width") == "2"]) == 2


def test_few_points_have_whiskers_and_many_a_band():
    few = svg(curves(Line("a", "a", points(2.0, 3.0, low=1.0))))
    many = svg(curves(Line("a", "a", points(*map(float, range(2, 102)), low=1.0))))
    assert len([path for path in found(few, "path") if path.get("stroke-width") == "1.5"]) == 2
    assert len([path for path in found(many, "path") if path.get("fill-opacity") == "0.18"]) == 1


def test_names_of_2_curves_that_end_at_the_same_place_do_not_touch():
    drawn = svg(curves(Line("a", "first", points(1.0, 5.0)), Line("b", "second", points(2.0, 5.0))))
    heights = {text.text: float(text.get("y")) for text in found(drawn, "text")}
    assert abs(heights["first"] - heights["second"]) == pytest.approx(15)


def test_each_slice_of_use_holds_until_the_next_and_nothing_is_drawn_after_the_last():
    of = Line("device_compute", "GPU 0", (CurvePoint(0, 1.0), CurvePoint(50, 0.5), CurvePoint(100, None)), "area")
    figure = Curves("t", "", Axis("time", "ns", 0, 100), (Panel(Axis("GPU 0", "ratio", 0, 1), (of,)),))
    area = next(path.get("d") for path in found(svg(figure), "path") if path.get("fill-opacity") == "0.28")
    places = [float(place) for place in re.findall(r"H([\d.]+)", area)]
    assert places[1] == pytest.approx(2 * places[0], abs=0.2)
    assert places[2] == 0


def test_the_amount_of_the_full_height_stands_at_the_end_of_the_axis():
    of = Line("host_compute", "memory", (CurvePoint(0, 0.5), CurvePoint(10, None)), "area")
    figure = Curves("t", "", Axis("time", "ns", 0, 10), (Panel(Axis("memory", "ratio", 0, 1), (of,), "42.1 GB"),))
    assert [text for text in texts(svg(figure)) if text in {"42.1 GB", "memory", "100", "0"}] == [
        *("memory", "0", "42.1 GB", "0")
    ]


def test_a_change_is_a_line_through_the_figure_with_its_name():
    drawn = svg(curves(Line("a", "a", points(1.0, 5.0, 5.0)), marks=(Mark(1.5, "run 2: +400 %"),)))
    assert "run 2: +400 %" in texts(drawn)
    assert len([line for line in found(drawn, "line") if line.get("stroke-dasharray") == "2 3"]) == 1


def test_10_000_points_take_fewer_than_60_kb_and_keep_the_highest():
    values = [100.0 + n % 13 for n in range(10_000)]
    values[4_321] = 999.0
    drawn = svg(curves(Line("a", "a", points(*values))))
    path = next(one.get("d") for one in found(drawn, "path"))
    lowest = min(float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", path))
    assert len(drawn) < 60_000
    assert lowest < 10


def test_all_of_few_numbers_of_a_tag_are_named():
    axis = Axis("batch", log=True)
    figure = curves(Line("a", "a", tuple(CurvePoint(2**n, 1.0) for n in range(3, 10))), x=axis)
    assert {"8", "16", "32", "64", "128", "256", "512"} <= set(texts(svg(figure)))
