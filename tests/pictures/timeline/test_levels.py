"""Cells of rows that are seen from afar."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceviz.pictures.timeline import levels as module
from traceviz.pictures.timeline.levels import levels


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Levels of rows of a few spans: the coarsest has two cells."""
    monkeypatch.setattr(module, "CELLS", 2)
    monkeypatch.setattr(module, "PER_CELL", 1)


def of(*spans, begin=0, whole=80, most=1000):
    starts, durations, names = np.array(spans, np.int64).T
    found = levels(starts, durations, names.astype(np.int32), begin, whole, most)
    return [(one.width_ns, one.cells.tolist(), one.names.tolist(), one.covered.tolist()) for one in found]


def test_a_cell_has_the_name_that_takes_most_of_it_and_how_much_is_covered():
    fine, coarse = of((0, 3, 0), (4, 4, 1), (8, 2, 0), (40, 10, 2), (60, 1, 1), (62, 1, 1), (70, 3, 0), (75, 1, 0))
    assert fine == (10, [0, 4, 6, 7], [0, 2, 1, 0], [230, 255, 51, 102])  # 9, 10, 2, 4 of 10
    assert coarse == (40, [0, 1], [0, 2], [57, 102])  # 9 and 16 of 40


def test_a_span_over_several_cells_covers_each_of_them():
    spans = [(5, 60, 3), *((66 + at, 0, 1) for at in range(7))]
    fine, coarse = of(*spans)
    assert fine == (10, [0, 1, 2, 3, 4, 5, 6, 7], [3, 3, 3, 3, 3, 3, 3, 1], [128, 255, 255, 255, 255, 255, 128, 1])
    assert coarse == (40, [0, 1], [3, 3], [223, 159])


def test_what_has_no_length_is_never_nothing():
    assert of((79, 0, 4)) == [(40, [1], [4], [1])]


def test_cells_are_counted_from_the_begin_of_the_timeline():
    assert of((-40, 40, 0), begin=-40) == [(40, [0], [0], [255])]


def test_no_more_cells_than_are_allowed():
    spans = [(10 * at, 1, 0) for at in range(64)]
    assert [width for width, *_ in of(*spans, whole=640, most=10)] == [80, 320]
    assert [width for width, *_ in of(*spans, whole=640)] == [10 * 2, 80, 320]


def by_hand(spans, width, whole):
    """Return cells span by span and nanosecond by nanosecond."""
    times = {}
    for start, length, name in spans:
        for moment in range(start, start + max(length, 1)):
            known = times.setdefault(moment // width, {})
            known[name] = known.get(name, 0) + (length > 0)
    found = []
    for cell, known in sorted(times.items()):
        name = min(known, key=lambda one: (-known[one], one))
        covered = (sum(known.values()) * 255 + width // 2) // width
        found.append((cell, name, min(max(covered, 1), 255)))
    return found


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9), st.integers(0, 3)), min_size=1, max_size=40))
def test_every_level_is_what_its_cells_hold(given_spans):
    spans, now = [], 0
    for gap, length, name in given_spans:
        spans.append((now + gap, length, name))
        now += gap + length
    whole = max(now, 1)
    for width, cells, names, covered in of(*spans, whole=whole + 1):
        assert list(zip(cells, names, covered, strict=True)) == by_hand(spans, width, whole)


def test_spans_that_are_looked_at_in_pieces_give_the_same(monkeypatch):
    spans = [(7 * at, 5, at % 3) for at in range(50)]
    whole = of(*spans, whole=350)
    monkeypatch.setattr(module, "_AT_ONCE", 7)
    assert of(*spans, whole=350) == whole
    assert len(whole[0][1]) == 32
