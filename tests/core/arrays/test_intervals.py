"""Interval algebra against sets of single nanoseconds."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceviz.core.arrays.intervals import IntervalSet, concurrency, exclusive, nesting, union_all

LAST = 40
moments = st.integers(-3, LAST)
raw = st.lists(st.tuples(moments, moments), max_size=8)
"""Any pairs: also empty and reversed ones, which contribute nothing."""


def of(pairs) -> IntervalSet:
    return IntervalSet.of([start for start, _ in pairs], [end for _, end in pairs])


def points(pairs) -> set[int]:
    return {moment for start, end in pairs for moment in range(start, end)}


def members(union: IntervalSet) -> set[int]:
    """Return the nanoseconds of ``found``, whose invariants are checked on the way."""
    assert (union.ends > union.starts).all()
    assert (union.starts[1:] > union.ends[:-1]).all()  # sorted, disjoint and not touching
    assert union.starts.dtype == union.ends.dtype == np.int64
    return points(zip(union.starts.tolist(), union.ends.tolist(), strict=True))


@given(raw)
def test_of_holds_exactly_the_nanoseconds_of_its_intervals(pairs) -> None:
    assert members(of(pairs)) == points(pairs)
    assert of(pairs).total == len(points(pairs))


@given(st.lists(raw, max_size=4))
def test_union_holds_what_any_set_holds(lists) -> None:
    sets = [of(pairs) for pairs in lists]
    expected = set().union(*map(points, lists))
    assert members(union_all(sets)) == expected
    assert members(IntervalSet.empty().union(*sets)) == expected


@given(raw, moments, moments)
def test_complement_and_clip_part_a_span(pairs, start, end) -> None:
    span = set(range(start, end))
    assert members(of(pairs).complement(start, end)) == span - points(pairs)
    assert members(of(pairs).clip(start, end)) == span & points(pairs)


@given(raw, raw)
def test_intersect_and_subtract_part_a_set(first, second) -> None:
    assert members(of(first).intersect(of(second))) == points(first) & points(second)
    assert members(of(first).subtract(of(second))) == points(first) - points(second)
    assert of(first).intersect(of(second)) == of(second).intersect(of(first))


@given(raw, st.lists(moments, max_size=6))
def test_before_counts_nanoseconds_before_each_moment(pairs, times) -> None:
    expected = [len({p for p in points(pairs) if p < moment}) for moment in times]
    assert of(pairs).before(times).tolist() == expected


@given(raw, st.lists(moments, max_size=6))
def test_contains_tells_membership_of_each_moment(pairs, times) -> None:
    assert of(pairs).contains(times).tolist() == [moment in points(pairs) for moment in times]


@given(raw, raw)
def test_overlap_counts_shared_nanoseconds_of_each_interval(pairs, queries) -> None:
    shared = of(pairs).overlap([start for start, _ in queries], [end for _, end in queries])
    assert shared.tolist() == [len(points(pairs) & set(range(start, end))) for start, end in queries]


@given(raw, raw)
def test_overlap_is_symmetric_and_at_most_the_smaller_set(first, second) -> None:
    left, right = of(first), of(second)
    shared = int(left.overlap(right.starts, right.ends).sum())
    assert shared == int(right.overlap(left.starts, left.ends).sum()) == left.intersect(right).total
    assert shared <= min(left.total, right.total)


@given(st.lists(raw, max_size=4), moments, moments)
def test_exclusive_gives_each_nanosecond_to_the_first_layer_and_sums_to_the_span(lists, start, end) -> None:
    layers = [(f"layer {number}", of(pairs)) for number, pairs in enumerate(lists)]
    owned = exclusive(layers, start, end, "rest")
    free = set(range(start, end))
    for number, pairs in enumerate(lists):
        assert members(owned[f"layer {number}"]) == free & points(pairs)
        free -= points(pairs)
    assert members(owned["rest"]) == free
    assert sum(part.total for part in owned.values()) == max(end - start, 0)


@given(raw, st.integers(1, 4))
def test_concurrency_counts_how_many_run_at_once(pairs, least) -> None:
    running = Counter(moment for start, end in pairs for moment in range(start, end))
    busy = concurrency([start for start, _ in pairs], [end for _, end in pairs], least)
    assert members(busy) == {moment for moment, count in running.items() if count >= least}


@given(raw, st.integers(-(10**15), 10**15))
def test_shifting_the_clock_shifts_the_result_and_nothing_else(pairs, shift) -> None:
    moved = of([(start + shift, end + shift) for start, end in pairs])
    assert np.array_equal(moved.starts, of(pairs).starts + shift)
    assert moved.total == of(pairs).total


@given(st.permutations([(0, 5), (3, 9), (20, 30), (30, 31), (25, 26)]))
def test_the_order_of_intervals_does_not_matter(pairs) -> None:
    assert of(pairs) == of([(0, 9), (20, 31)])


@st.composite
def nested(draw, start=0, end=LAST, depth=0):
    """Return properly nesting intervals ``(start, end, depth)`` within ``[start, end)``."""
    intervals = []
    while end - start >= 2 and depth < 4 and draw(st.booleans()):
        begin = draw(st.integers(start, end - 2))
        finish = draw(st.integers(begin + 1, end - 1))
        intervals.append((begin, finish, depth))
        intervals.extend(draw(nested(begin, finish, depth + 1)))
        start = finish
    return intervals


@given(st.lists(nested(), min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_nesting_finds_the_depth_and_the_parent_of_each_interval(groups, random) -> None:
    rows = [(begin, finish, group) for group, group_rows in enumerate(groups) for begin, finish, _ in group_rows]
    random.shuffle(rows)
    starts, ends, group = (np.array([row[i] for row in rows], dtype=np.int64) for i in range(3))
    depth, parent = nesting(starts, ends, group)
    for i in range(len(rows)):
        around = [j for j in range(len(rows)) if group[j] == group[i] and _inside(starts, ends, i, j)]
        assert depth[i] == len(around)
        assert parent[i] == (min(around, key=lambda j: (ends[j] - starts[j], -j)) if around else -1)


def _inside(starts, ends, inner: int, outer: int) -> bool:
    """Return whether ``inner`` lies in ``outer``; of two equal intervals, the later one does."""
    if (starts[inner], ends[inner]) == (starts[outer], ends[outer]):
        return outer < inner
    return starts[outer] <= starts[inner] and ends[inner] <= ends[outer]


def test_an_instant_nests_inside_the_interval_that_begins_with_it() -> None:
    depth, parent = nesting([10, 10, 12], [20, 10, 12], [0, 0, 0])
    assert depth.tolist() == [0, 1, 1]
    assert parent.tolist() == [-1, 0, 0]


def test_intervals_that_touch_are_siblings() -> None:
    depth, _ = nesting([0, 5, 5], [5, 10, 6], [0, 0, 0])
    assert depth.tolist() == [0, 0, 1]


def test_nesting_of_nothing_is_nothing() -> None:
    depth, parent = nesting([], [], [])
    assert depth.size == parent.size == 0


@pytest.mark.parametrize(("start", "end", "total"), [(3, 7, 4), (7, 3, 0), (5, 5, 0), (-4, -1, 3)])
def test_a_span_has_its_length_and_a_reversed_one_is_empty(start: int, end: int, total: int) -> None:
    assert IntervalSet.span(start, end).total == total


def test_sets_are_equal_by_value_and_cannot_be_hashed() -> None:
    assert IntervalSet.span(1, 2) == IntervalSet.of([1], [2])
    assert IntervalSet.span(1, 2) != IntervalSet.span(1, 3)
    assert IntervalSet.span(1, 2) != "[1, 2)"
    with pytest.raises(TypeError):
        hash(IntervalSet.span(1, 2))


def test_times_near_the_end_of_int64_do_not_overflow() -> None:
    late = 2**62
    union = IntervalSet.of([late, late + 5], [late + 10, late + 20])
    assert union.total == 20
    assert union.overlap([late + 15], [late + 30]).tolist() == [5]
