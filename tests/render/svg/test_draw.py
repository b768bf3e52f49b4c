"""Properties of every figure: valid XML, the same text each time, small, with colours for light and dark."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.render.report_strategies import TEXTS
from tests.render.svg.drawn import found, parsed, rectangles, texts, titles
from traceviz.core.sanitize import visible
from traceviz.render.figures.values import (
    Axis,
    CurvePoint,
    Curves,
    Figure,
    Interval,
    Intervals,
    Line,
    Mark,
    Panel,
    Part,
    RankedBar,
    RankedBars,
    SignedBar,
    SignedBars,
    StackedBars,
    StackedRow,
)
from traceviz.render.palette import COLORS
from traceviz.render.svg.draw import svg
from traceviz.testing import HOSTILE_NAMES


def each_kind(name: str) -> tuple[Figure, ...]:
    """Return a figure of every kind in which everything is called ``name``."""
    row = StackedRow(name, (Part(name, name, 2.0, 0.5), Part("copy", name, 2.0, 0.5)), name, 5.0, name)
    line = Line(name, name, (CurvePoint(1, 2.0, 1.0, 3.0, name), CurvePoint(2, None), CurvePoint(3, 4.0)))
    other = Line("other", name, line.points, "area")
    named = Axis(name, "text", names=(name, name, name, name))
    return (
        StackedBars(name, name, Axis(name, "ns"), (row, row), name, upright=True, whole=row.parts, notes=(name,)),
        StackedBars(name, name, Axis(name, "ns"), (row, row)),
        RankedBars(name, name, Axis(name, "ratio"), (RankedBar(name, name, 0.5, None, 0.4, 0.6, name),)),
        Intervals(name, name, Axis(name, "ns"), (Interval(name, name, 2.0, 1.0, 3.0, name, name),), name, 1.0, name),
        SignedBars(name, name, Axis(name, "ns"), (SignedBar(name, name, -3.0, name, name),), "lower"),
        Curves(name, name, named, (Panel(Axis(name, "ns"), (line, other), name, name),), (Mark(1.5, name),), (name,)),
        Curves(name, name, Axis(name, "ns"), (Panel(Axis(name, "ratio", 0, 1), (other,)),) * 3, (Mark(2, name),)),
    )


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=lambda name: ascii(name[:20]))
def test_hostile_names_are_text_in_valid_xml_and_files_stay_below_100_kb(name):
    for figure in each_kind(name):
        drawn = svg(figure)
        assert [c for c in drawn if not c.isprintable() and c != "\n"] == []
        assert {element.tag.partition("}")[2] for element in parsed(drawn).iter()} <= {
            *("svg", "title", "desc", "style", "g", "text", "line", "rect", "path", "circle")
        }
        assert len(drawn) < 100_000


def test_a_bar_called_script_says_so_and_is_none():
    drawn = svg(each_kind("<script>alert(1)</script>")[2])
    assert "<script" not in drawn
    assert any(
        text == "<script>alert(1)</script>: 50.0 % · 40.0 % to 60.0 %"
        for text in (title.rpartition(" · ")[0] for title in titles(drawn))
    )


def test_nothing_of_a_name_of_a_million_characters_beyond_2_000_is_in_a_figure():
    assert re.search("x{2001}", svg(each_kind("x" * 1_000_000)[0])) is None


NUMBERS = st.floats(allow_nan=True, allow_infinity=True) | st.integers(-(2**62), 2**62)
MAYBE = st.none() | NUMBERS
UNITS = st.sampled_from(["ns", "bytes", "ratio", "count", "number", "factor", "per_second", "joule"])
AXES = st.builds(Axis, TEXTS, UNITS, log=st.booleans())
FIGURES = st.one_of(
    st.builds(
        StackedBars,
        *(TEXTS, TEXTS, AXES),
        st.lists(
            st.builds(
                StackedRow, TEXTS, st.lists(st.builds(Part, TEXTS, TEXTS, st.floats(0, 1e18)), max_size=4).map(tuple)
            ),
            max_size=60,
        ).map(tuple),
        TEXTS,
        st.booleans(),
    ),
    st.builds(
        RankedBars, TEXTS, TEXTS, AXES, st.lists(st.builds(RankedBar, TEXTS, TEXTS, MAYBE), max_size=5).map(tuple)
    ),
    st.builds(
        SignedBars, TEXTS, TEXTS, AXES, st.lists(st.builds(SignedBar, TEXTS, TEXTS, MAYBE), max_size=5).map(tuple)
    ),
    st.builds(
        Intervals,
        *(TEXTS, TEXTS, AXES),
        st.lists(st.builds(Interval, TEXTS, TEXTS, MAYBE, MAYBE, MAYBE), max_size=5).map(tuple),
        reference=MAYBE,
        reference_label=TEXTS,
    ),
    st.builds(
        Curves,
        *(TEXTS, TEXTS, AXES),
        st.lists(
            st.builds(
                Panel,
                AXES,
                st.lists(
                    st.builds(
                        Line,
                        *(TEXTS, TEXTS),
                        st.lists(st.builds(CurvePoint, NUMBERS, MAYBE, MAYBE, MAYBE), max_size=5).map(tuple),
                        st.sampled_from(["line", "dashed", "steps", "area", "points"]),
                    ),
                    max_size=8,
                ).map(tuple),
            ),
            max_size=3,
        ).map(tuple),
        st.lists(st.builds(Mark, NUMBERS, TEXTS), max_size=3).map(tuple),
    ),
)


@given(figure=FIGURES, width=st.integers(0, 2000), standalone=st.booleans())
@settings(max_examples=60)
def test_any_figure_is_valid_and_the_same_twice(figure, width, standalone):
    drawn = svg(figure, width, standalone=standalone)
    assert drawn == svg(figure, width, standalone=standalone)
    assert re.search(r"[ \"](nan|-?inf)[ \"]", drawn) is None
    parsed(drawn)


def test_a_figure_has_a_title_and_a_description_that_it_is_labelled_by():
    figure = each_kind("name")[2]
    root = parsed(svg(figure))
    ids = {element.get("id") for element in root if element.get("id")}
    assert set(root.get("aria-labelledby", "").split()) == ids
    assert len(ids) == 2
    assert root.get("role") == "img"
    assert found(svg(figure), "desc")[0].text == "name. name 50.0 %."


def test_alone_it_has_both_colours_and_in_a_page_those_of_the_page():
    figure = StackedBars("t", "", Axis("", "ns"), (StackedRow("a", (Part("input_wait", "input wait", 5.0),)),))
    alone, inside = svg(figure), svg(figure, standalone=False)
    waits = COLORS["input_wait"]
    assert f'fill="{waits.light}"' in alone
    assert f".tv-fill-input-wait{{fill:{waits.dark}}}" in alone
    assert f'fill="var(--tv-input-wait, {waits.light})"' in inside
    assert ("<style" in alone, "<style" in inside) == (True, False)
    assert len(rectangles(alone)) == len(rectangles(inside)) == 1


def test_keys_without_a_colour_of_their_own_take_the_first_colours_in_order():
    rows = (StackedRow("a", tuple(Part(key, key, 5.0) for key in ("mine", "input_wait", "yours"))),)
    inside = svg(StackedBars("t", "", Axis("", "ns"), rows), standalone=False)
    assert re.findall(r'fill="var\(--tv-(series-\d|input-wait), ', inside)[:3] == ["series-0", "input-wait", "series-1"]


def test_below_320_pixels_a_figure_stays_320_wide_and_a_height_is_kept():
    figure = each_kind("name")[0]
    assert parsed(svg(figure, 100)).get("width") == "320"
    assert abs(int(parsed(svg(figure, 720, height=500)).get("height", "0")) - 500) <= 2


def test_every_label_that_is_shortened_has_an_ellipsis_and_names_keep_their_ends():
    figure = RankedBars("t", "", Axis("x" * 300, "ns"), (RankedBar("x", f"{'x' * 300}_nt", 0.5),))
    name, axis = (text for text in texts(svg(figure)) if text.startswith("xxx"))
    assert axis.endswith("x…")
    assert name.endswith("x_nt")
    assert name.count("…") == 1


def test_names_of_kernels_are_short_and_whole_under_a_pointer():
    name = "void at::native::vectorized_elementwise_kernel<4, AddFunctor<float>>(int, char*)"
    drawn = svg(RankedBars("t", "", Axis("", "ratio"), (RankedBar(name, name, 0.5),)))
    assert visible("vectorized_elementwise_kernel<4, Add")[:20] in "".join(texts(drawn))
    assert f"{name}: 50.0 %" in titles(drawn)
