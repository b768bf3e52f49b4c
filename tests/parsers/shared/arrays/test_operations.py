"""Operations on columns: what they give, and that the compiled ones agree with those in NumPy on anything."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceviz.parsers.shared.arrays.native import SCANNER_VARIABLE, library
from traceviz.parsers.shared.arrays.nesting import Links, Spans, depths, enclosing, nearest, nest, spread
from traceviz.parsers.shared.arrays.operations import by_key, by_start, inverted, joined, nanoseconds, take, used

needs_compiled = pytest.mark.skipif(library is None, reason="built without the compiled scanner")

NUMBERS = st.integers(-(2**63), 2**63 - 1)
SMALL = st.integers(0, 12)


def same(function: Callable[[], object]) -> list[object]:
    """Return the result of ``function`` in C, as lists; in NumPy it is the same, types included."""
    compiled = arrays(function())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SCANNER_VARIABLE, "protobuf")
        plain = arrays(function())
    assert [array.dtype for array in compiled] == [array.dtype for array in plain]
    assert [array.tolist() for array in compiled] == [array.tolist() for array in plain]
    return [array.tolist() for array in compiled]


def arrays(given_: object) -> tuple[np.ndarray, ...]:
    return given_ if isinstance(given_, tuple) else (given_,)


def int32(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def int64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


@pytest.mark.parametrize("scanner", [pytest.param("compiled", marks=needs_compiled), "protobuf"])
def test_what_the_operations_give(monkeypatch, scanner):
    monkeypatch.setenv(SCANNER_VARIABLE, scanner)
    assert take(int64(10, 20, 30), int32(2, -1, 0), 7).tolist() == [30, 7, 10]
    assert used(int32(3, -1, 1, 3), 5).tolist() == [False, True, False, True, False]
    assert inverted(int32(2, 0), 4).tolist() == [1, -1, 0, -1]
    assert by_start(int64(5, 9, 5, 0), np.array([True, True, True, False])).tolist() == [0, 2, 1]
    assert [part.tolist() for part in by_key(int32(1, 0, 1), 3)] == [[0, 1, 3, 3], [1, 0, 2]]
    assert [part.tolist() for part in joined(int64(7, 8, 7), int64(7, 7, 9), 64)] == [[0, 0, 2, 2], [0, 1, 0, 1]]
    assert [part.size for part in joined(int64(7, 7), int64(7, 7), 2)] == [0, 0]
    times = nanoseconds(int64(1_999, -1), int64(2, -5), int32(0, 1), int64(100, 200))
    assert [part.tolist() for part in times] == [[101, 199], [1, 0]]
    assert depths(int32(-1, 0, 1, 0)).tolist() == [0, 1, 2, 1]
    assert depths(int32(1, 2, -1)).tolist() == [2, 1, 0]


@needs_compiled
@given(st.lists(st.integers(-1, 8), max_size=30), st.sampled_from([np.int8, np.int32, np.int64, bool]))
def test_taking_marking_and_inverting_are_the_same_in_c(positions, kind):
    index, values = int32(*positions), np.arange(9).astype(kind)
    assert len(same(lambda: take(values, index, 0))[0]) == len(positions)
    assert len(same(lambda: used(index, 9))[0]) == 9
    distinct = int32(*dict.fromkeys(place for place in positions if place >= 0))
    assert sorted(set(same(lambda: inverted(distinct, 9))[0]) - {-1}) == list(range(distinct.size))


@needs_compiled
@given(st.lists(st.tuples(NUMBERS | SMALL, st.booleans()), max_size=60))
def test_the_order_by_start_is_the_same_in_c(rows):
    start, kept = int64(*(start for start, _ in rows)), np.array([kept for _, kept in rows], dtype=bool)
    expected = sorted((place for place, (_, kept) in enumerate(rows) if kept), key=lambda place: rows[place][0])
    assert same(lambda: by_start(start, kept)) == [expected]


@needs_compiled
@pytest.mark.parametrize("most", [1, 3_000, 2**40, 2**63 - 1])
def test_1000_rows_in_no_order_are_sorted_by_digits_as_by_numpy(most):
    random = np.random.default_rng(7)
    start, kept = random.integers(-most, most, 1_000), random.random(1_000) < 0.9
    assert len(same(lambda: by_start(start, kept))[0]) == kept.sum()


@needs_compiled
@given(st.lists(SMALL, max_size=40), st.lists(SMALL | NUMBERS, max_size=40), st.integers(1, 5))
def test_sorting_by_key_and_joining_are_the_same_in_c(left, right, most):
    assert len(same(lambda: by_key(int32(*left), 13))[1]) == len(left)
    pairs = [(i, j) for i, key in enumerate(left) for j, other_key in enumerate(right) if key == other_key]
    pairs = [(i, j) for i, j in pairs if left.count(left[i]) < most or right.count(left[i]) < most]
    assert list(zip(*same(lambda: joined(int64(*left), int64(*right), most)), strict=True)) == pairs


@needs_compiled
@given(st.lists(st.tuples(NUMBERS, NUMBERS, st.integers(0, 1)), max_size=20), NUMBERS)
def test_times_are_the_same_in_c_where_they_leave_64_bits(rows, base):
    start, duration, line = (
        np.array(column, np.int64) for column in (zip(*rows, strict=True) if rows else ([], [], []))
    )
    times = same(lambda: nanoseconds(start, duration, line.astype(np.int32), int64(base, 0)))
    assert [len(column) for column in times] == [len(rows)] * 2


SPANS = st.lists(st.tuples(st.integers(0, 2), SMALL, st.integers(-2, 9)), max_size=40)


def columns_of(rows: list[tuple[int, int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return line, start and duration, in order of line and, with a few exceptions, of start."""
    line, start, duration = np.array(rows, np.int64).reshape(-1, 3).T
    return line.astype(np.int32), np.ascontiguousarray(start), np.ascontiguousarray(duration)


@needs_compiled
@given(SPANS, SPANS, st.data(), st.booleans())
def test_events_and_regions_are_nested_alike_in_c(events, regions, data, is_sorted):
    for rows in (events, regions):
        rows.sort(key=lambda row: (row[0], row[1], -row[2]) if is_sorted else row[0])
    own = np.array(data.draw(st.lists(st.booleans(), min_size=len(events), max_size=len(events))), dtype=bool)

    def parents() -> tuple[np.ndarray, ...]:
        written = tuple(np.empty(len(rows), np.int32) for rows in (events, regions))
        nest(Spans(*columns_of(events), 5, written[0]), Spans(*columns_of(regions), 100, written[1]), own)
        return written

    above_events, above_regions = same(parents)
    assert all(above == -1 for above, takes_part in zip(above_events, own, strict=True) if not takes_part)
    assert len(above_regions) == len(regions)


@needs_compiled
@given(SPANS, st.data())
def test_ancestors_are_the_same_in_c(rows, data):
    rows.sort(key=lambda row: (row[0], row[1], -row[2]))
    parent = enclosing(*columns_of(rows))
    marked = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))), dtype=bool)
    assert max(same(lambda: nearest(parent, marked))[0], default=-1) < max(marked.sum(), 1)
    expected = [sum(1 for _ in ancestors(parent.tolist(), place)) for place in range(len(rows))]
    assert same(lambda: depths(parent)) == [expected]


def ancestors(parent: list[int], place: int):
    """Yield events above one, nearest first."""
    while (place := parent[place]) >= 0:
        yield place


@needs_compiled
@given(st.data())
def test_roots_claim_the_same_in_c(data):
    nodes = data.draw(st.integers(1, 30))
    pairs = data.draw(st.lists(st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)), max_size=60))
    near, far = np.array(pairs, dtype=np.int32).reshape(-1, 2).T
    roots = int32(*data.draw(st.permutations(range(nodes)))[: data.draw(st.integers(0, nodes))])
    levels = int32(*data.draw(st.lists(st.integers(1, 2), min_size=roots.size, max_size=roots.size)))
    children, parents = Links.between(nodes, near, far), Links.between(nodes, far, near)
    for every in (False, True):
        owners = same(lambda every=every: spread(children, parents, roots, levels, every=every))
        assert len(owners[0]) == nodes


@needs_compiled
def test_columns_that_do_not_fit_each_other_are_refused():
    narrow, wide, none = int32(0), int64(0), int32()
    spans = (narrow, wide, wide, 0, int32(0))
    wrong = [
        lambda: library.take(wide, 8, int32(1), 0, int64(0)),
        lambda: library.take(wide, 8, narrow, 0, int64(0, 0)),
        lambda: library.take(wide, 2, narrow, 0, int64(0)),
        lambda: library.mark(int32(1), np.zeros(1, np.uint8)),
        lambda: library.invert(int32(1), int32(0)),
        lambda: library.order(wide, np.zeros(2, np.uint8), int32(0)),
        lambda: library.order(wide, np.zeros(1, np.uint8), int32(0)),
        lambda: library.sort(int32(-1), int64(0, 0), int32(0)),
        lambda: library.nanoseconds(wide, wide, int32(1), wide, int64(0), int64(0)),
        lambda: library.nearest(int32(1), np.zeros(1, np.uint8), int32(0)),
        lambda: library.nest(spans, (none, int64(), int64(), 0, int32()), np.zeros(0, np.uint8)),
        lambda: library.nest(
            (narrow, narrow, wide, 0, int32(0)), (none, int64(), int64(), 1, int32()), np.zeros(0, np.uint8)
        ),
        lambda: library.spread(int64(0, 1), narrow, int64(0, 1), int32(1), narrow, narrow, False, int32(0)),
        lambda: library.spread(int64(0, 2), narrow, int64(0, 1), narrow, narrow, narrow, False, int32(0)),
        lambda: library.spread(int64(0, 1), narrow, int64(0, 1), narrow, int32(-1), narrow, False, int32(0)),
        lambda: library.spread(int64(0, 1), narrow, int64(0, 1), narrow, narrow, none, False, int32(0)),
    ]
    refused = 0
    for call in wrong:
        with pytest.raises(ValueError, match="do not fit"):
            call()
        refused += 1
    assert refused == 16


@needs_compiled
def test_parents_in_a_circle_end_the_search():
    numbers = int32(9, 9, 9)
    library.nearest(int32(1, 0, 0), np.zeros(3, np.uint8), numbers)
    assert numbers.tolist() == [-1, -1, -1]
