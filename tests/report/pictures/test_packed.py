"""A timeline as two texts of a page, by hand and back again."""

import json
import math
import zlib
from base64 import b64decode

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.unpacking import unpacked
from traceviz.core.sanitize import visible
from traceviz.report.pictures.packed import Packed, packed
from traceviz.report.pictures.values import Arrows, Curve, Detail, Family, Lane, Level, Place, Row, Timeline


def array(*values):
    return np.array(values, np.int64)


def timeline(*lanes, **more):
    start, end = more.pop("start_ns", 0), more.pop("end_ns", 1000)
    names = more.pop("names", ("gemm", "copy"))
    families = more.pop("families", (Family("op", "Operators"),))
    family_of = more.pop("family_of", np.zeros(len(names), np.int64))
    return Timeline(start, end, names, families, family_of, lanes, **more)


def lane(*rows, levels=(), **texts):
    known = {"key": "stream-0", "label": "stream 7", "kind": "device", "group": "cuda:0", **texts}
    return Lane(known["key"], known["label"], known["kind"], known["group"], rows, levels)


def stored(texts, place):
    begin, length = json.loads(texts.header)["columns"][place]
    return list(zlib.decompress(b64decode(texts.data), -15)[begin : begin + length])


def same(one, other):
    """Return whether values that hold arrays are equal."""
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if hasattr(one, "__slots__"):
        return all(same(getattr(one, name), getattr(other, name)) for name in one.__slots__)
    return one == other


def test_spans_are_gaps_durations_names_and_differences_of_events():
    row = Row(array(100, 110, 500), array(10, 300, 0), array(0, 1, 0), array(5, 4, 204))
    texts = packed(timeline(lane(row), start_ns=90))
    header = json.loads(texts.header)
    assert header["lanes"][0]["rows"] == [{"count": 3, "columns": [0, 1, 2, 3], "levels": []}]
    assert stored(texts, 0) == [10, 0, 90]
    assert stored(texts, 1) == [10, 0xAC, 0x02, 0]
    assert stored(texts, 2) == [0, 1, 0]
    assert stored(texts, 3) == [10, 1, 0x90, 0x03]
    assert header["columns"] == [[0, 3], [3, 4], [7, 3], [10, 4]]


def test_cells_are_differences_and_targets_are_counted_from_their_source():
    row = Row(array(0), array(1000), array(0), array(0))
    level = Level(100, array(0, 3, 4), array(0, 0, 1), array(255, 1, 128))
    arrows = Arrows("launch", array(7, 3), array(7, 5))
    texts = packed(timeline(lane(row, levels=((level,),)), arrows=(arrows,)))
    header = json.loads(texts.header)
    (seen,) = header["lanes"][0]["rows"][0]["levels"]
    assert (seen["width"], seen["count"]) == (100, 3)
    assert [stored(texts, place) for place in seen["columns"]] == [[0, 3, 1], [0, 0, 1], [0xFF, 1, 1, 0x80, 1]]
    assert header["arrows"][0]["kind"] == "launch"
    assert [stored(texts, place) for place in header["arrows"][0]["columns"]] == [[14, 7], [0, 4]]


def test_values_of_curves_keep_four_digits_and_what_is_not_measured_is_null():
    curve = Curve("cpu", "CPU", "rank 0", "ratio", array(0, 50, 150, 160), np.array([0.123456, math.nan, 8e9, 1.0]))
    header = json.loads(packed(timeline(curves=(curve,))).header)
    assert header["curves"][0]["values"] == [0.1235, None, 8_000_000_000, 1]
    assert stored(packed(timeline(curves=(curve,))), 0) == [0, 50, 100, 10]


def test_times_are_exact_up_to_2_to_the_53():
    row = Row(array(0, 2**52), array(1, 2**52), array(0, 0), array(0, 1))
    back, _ = unpacked(packed(timeline(lane(row), end_ns=2**53)))
    assert back.lanes[0].rows[0].starts.tolist() == [0, 4503599627370496]
    assert back.lanes[0].rows[0].durations.tolist() == [1, 4503599627370496]


def test_no_text_ends_the_script_element_or_hides_anything():
    names = ("</script><script>alert(1)</script>", "<!--", "a\u202eb", "x\u2028y", "&amp;", "\ud800")
    texts = packed(timeline(names=names), [Place("TV101", 0, 1, "", "]]></script>")])
    assert not set("<>&\u2028\u2029\u202e") & set(texts.header)
    header = json.loads(texts.header)
    assert header["names"][0] == "</script><script>alert(1)</script>"
    assert header["names"][2] == "a�b"
    assert header["places"][0]["label"] == "]]></script>"
    texts.header.encode("utf-8")


def test_a_name_of_a_megabyte_keeps_2000_characters():
    header = json.loads(packed(timeline(names=("x" * 1_000_000,))).header)
    assert 1900 < len(header["names"][0]) <= 2000


def test_spans_that_overlap_are_refused():
    row = Row(array(0, 5), array(10, 10), array(0, 0), array(0, 1))
    with pytest.raises(ValueError, match="overlap"):
        packed(timeline(lane(row)))


def test_a_timeline_of_nothing_has_no_columns():
    back, places = unpacked(packed(timeline()))
    assert (back.lanes, back.events, places) == ((), 0, ())


SMALL = st.integers(0, 2**20)
TEXT = st.text(max_size=20).map(visible)


@st.composite
def rows(draw):
    spans = draw(st.lists(st.tuples(st.integers(0, 2**40), st.integers(0, 2**40), SMALL, SMALL), max_size=30))
    starts, durations, now = [], [], -50
    for gap, duration, _, _ in spans:
        starts.append(now + gap)
        durations.append(duration)
        now = starts[-1] + duration
    numbers = [array(*(span[place] for span in spans)) for place in (2, 3)]
    return Row(array(*starts), array(*durations), *numbers)


@st.composite
def levels(draw):
    cells = sorted(draw(st.sets(SMALL, max_size=20)))
    covered = draw(st.lists(st.integers(1, 255), min_size=len(cells), max_size=len(cells)))
    return Level(draw(st.integers(1, 2**50)), array(*cells), array(*range(len(cells))), array(*covered))


@st.composite
def lanes(draw):
    own = tuple(draw(st.lists(rows(), max_size=3)))
    seen = tuple(tuple(draw(st.lists(levels(), max_size=2))) for _ in own)
    return Lane(draw(TEXT), draw(TEXT), "api", draw(TEXT), own, seen)


@st.composite
def curves(draw):
    times = sorted(draw(st.lists(st.integers(-50, 2**50), max_size=10)))
    value = st.one_of(st.just(math.nan), st.integers(-9999, 9999))
    values = draw(st.lists(value, min_size=len(times), max_size=len(times)))
    return Curve(draw(TEXT), draw(TEXT), draw(TEXT), "bytes", array(*times), np.array(values, np.float64))


@st.composite
def arrows(draw):
    pairs = draw(st.lists(st.tuples(SMALL, SMALL), max_size=20))
    return Arrows("launch", array(*(pair[0] for pair in pairs)), array(*(pair[1] for pair in pairs)))


@st.composite
def timelines(draw):
    return Timeline(
        -50,
        draw(st.integers(-50, 2**53)),
        tuple(draw(st.lists(TEXT, max_size=5))),
        (Family("op", "Operators"),),
        array(*draw(st.lists(SMALL, max_size=5))),
        tuple(draw(st.lists(lanes(), max_size=3))),
        tuple(draw(st.lists(curves(), max_size=2))),
        tuple(draw(st.lists(arrows(), max_size=2))),
        draw(SMALL),
        draw(SMALL),
        tuple(draw(st.lists(st.builds(Detail, SMALL, SMALL, TEXT), max_size=2))),
    )


@given(timelines(), st.lists(st.builds(Place, TEXT, SMALL, SMALL, TEXT, TEXT), max_size=3))
def test_what_was_packed_comes_back_as_it_was(given_timeline, places):
    texts = packed(given_timeline, places)
    back, back_places = unpacked(Packed(texts.header, texts.data))
    assert same(back, given_timeline)
    assert list(back_places) == places


def test_columns_longer_than_what_is_coded_at_once_come_back():
    starts = np.arange(600_000, dtype=np.int64) * 1000
    row = Row(starts, starts % 997, starts % 3, np.arange(600_000, dtype=np.int64))
    back, _ = unpacked(packed(timeline(lane(row, levels=((),)))))
    assert same(back.lanes[0].rows[0], row)
    assert back.lanes[0].rows[0].durations.sum() == (starts % 997).sum() > 298_000_000


@pytest.mark.parametrize(
    ("names", "length", "kept"), [(3, 2_500, 2_000), (999, 2_001, 2_000), (1_100, 2_001, 1_000), (20_000, 150, 120)]
)
def test_many_long_names_lose_their_middle_so_that_the_header_stays_small(names, length, kept):
    texts = tuple(f"{number:06}{'a' * (length - 10)}end{number % 10}" for number in range(names))
    shown = json.loads(packed(Timeline(0, 1, texts, (), np.zeros(names, np.int64), ())).header)["names"]
    assert max(map(len, shown)) <= kept
    assert sum(map(len, shown)) <= 2_400_000
    assert (shown[1][:6], shown[1][-4:]) == ("000001", "end1")
