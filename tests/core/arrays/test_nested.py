"""Compiled functions for nested calls return the same as NumPy, and refuse columns that do not fit."""

import numpy as np
import polars as pl
import pytest

from traceviz.analyses.derived.calls.call_tree import CallTree, innermost
from traceviz.core.arrays import nested, portable
from traceviz.core.arrays.intervals import IntervalSet, nesting

compiled = pytest.mark.skipif(nested.library is portable, reason="nothing is compiled")


def wide(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def narrow(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def answers(calls: pl.DataFrame, seed: int) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    tree = CallTree.of(calls)
    selected = random.random(calls.height) < 0.3
    segments, some = innermost(tree), innermost(tree, selected)
    part = IntervalSet.of(tree.starts[:4] * 2, tree.ends[:4] * 2)
    codes = (tree.starts % 3).astype(np.int32)
    threads = tree.calls["thread_id"].to_numpy().astype(np.int64)
    totals, own = np.zeros(4, np.int64), np.zeros(calls.height + 1, np.int64)
    part.add_overlap(tree.starts, tree.ends, codes - np.int32(1), totals)
    owners = None if seed % 2 else random.integers(0, calls.height + 1, calls.height)
    sum_of_own = nested.add_own(0, tree.parent, tree.durations, selected, owners, own)
    depth, parent = nesting(tree.ends, tree.starts + 7, threads % 2)
    return [
        *(depth, parent, tree.around(random.integers(-1, 4, 40), random.integers(-2, 20, 40))),
        *(tree.depth, tree.parent, np.array(tree.nests), tree.nearest(selected), tree.topmost(selected)),
        *(*nested.contexts(tree.parent, codes), tree.contexts(codes).parent, np.array(sum_of_own), own),
        *(segments.starts, segments.ends, segments.owner, some.starts, some.ends, some.owner),
        *(part.overlap(tree.ends, tree.starts + 3), part.overlap(tree.starts, tree.ends), totals),
        *(*nested.alike(codes, tree.depth.astype(np.int32)), nested.outer_alike(threads, tree.ends, codes)),
    ]


@pytest.fixture(params=["compiled", "numpy"])
def either_library(request, monkeypatch):
    """Compiled functions, or their NumPy versions."""
    if request.param == "numpy":
        monkeypatch.setattr(nested, "library", portable)


@compiled
@pytest.mark.parametrize("cross", [False, True])
def test_200_random_trees_are_the_same_compiled_and_by_numpy(monkeypatch, cross):
    for seed in range(200):
        # Up to 30 calls on three threads; if they do not cross, their ends are multiples of powers of two.
        random = np.random.default_rng(seed)
        count = int(random.integers(0, 30))
        start, length = random.integers(0, 12, count), random.integers(-1, 8, count)
        if not cross:
            level = random.integers(0, 4, count)
            start, length = (start >> level) << level, (1 << level) * (random.random(count) < 0.9)
        threads, ids = random.integers(0, 3, count).astype(np.int32), random.permutation(count)
        calls = pl.DataFrame({"thread_id": threads, "op_id": ids, "start_ns": start, "end_ns": start + length})
        expected = answers(calls, seed)
        with monkeypatch.context() as patched:
            patched.setattr(nested, "library", portable)
            found = answers(calls, seed)
        assert all(np.array_equal(one, other) for one, other in zip(expected, found, strict=True)), seed


@pytest.mark.usefixtures("either_library")
def test_a_call_in_a_call_takes_5_of_its_20_ns():
    columns = {"thread_id": [1, 1], "op_id": [0, 1], "start_ns": [0, 10], "end_ns": [20, 15]}
    segments = innermost(CallTree.of(pl.DataFrame(columns)))
    assert segments.starts.tolist() == [0, 10, 15]
    assert segments.ends.tolist() == [10, 15, 20]
    assert segments.owner.tolist() == [0, 1, 0]


@pytest.mark.usefixtures("either_library")
def test_two_rows_of_four_are_alike_in_both_columns():
    group, first = nested.alike(narrow(5, -1, 5, 5), narrow(1, 1, 2, 1))
    assert group.tolist() == [0, 1, 2, 0]
    assert first.tolist() == [0, 1, 2]


@pytest.mark.usefixtures("either_library")
@pytest.mark.parametrize("apart", [1, 700, 2**30])
def test_rows_are_alike_however_far_apart_their_values_are(apart):
    group, first = nested.alike(narrow(-apart, 0, -apart, apart, 0), narrow(apart, 0, apart, apart, 1))
    assert group.tolist() == [0, 1, 0, 2, 3]
    assert first.tolist() == [0, 1, 3, 4]


@pytest.mark.usefixtures("either_library")
def test_the_second_call_of_a_function_within_the_first_is_not_outer_but_that_of_thread_2_is():
    outer = nested.outer_alike(wide(1, 1, 1, 2), wide(9, 5, 6, 4), narrow(0, 0, 1, 0))
    assert outer.tolist() == [True, False, True, True]


@pytest.mark.usefixtures("either_library")
def test_the_third_call_has_the_context_of_the_second_and_the_same_function_elsewhere_has_another():
    context, first = nested.contexts(narrow(-1, 0, 0, -1, 3), narrow(7, 5, 5, 5, 5))
    assert context.tolist() == [0, 1, 1, 2, 3]
    assert first.tolist() == [0, 1, 3, 4]


@pytest.mark.usefixtures("either_library")
def test_40_000_calls_of_as_many_functions_that_come_twice_have_40_000_contexts():
    functions = np.tile(np.arange(40_000, dtype=np.int32), 2)
    context, first = nested.contexts(np.full(80_000, -1, np.int32), functions)
    assert np.array_equal(context, functions)
    assert np.array_equal(first, functions[:40_000])


@pytest.mark.usefixtures("either_library")
def test_the_outermost_of_two_selected_calls_is_around_the_inner_one_and_what_it_calls():
    selected = np.array([False, True, True, False, False])
    assert nested.topmost(narrow(-1, 0, 1, 2, 0), selected).tolist() == [-1, 1, 1, 1, -1]


@pytest.mark.usefixtures("either_library")
def test_a_call_of_20_ns_around_one_of_5_has_15_for_itself():
    total = np.zeros(4, np.int64)
    counted = np.array([True, False])
    assert nested.add_own(2, narrow(-1, 2), wide(20, 5), counted, None, total) == 15
    assert total.tolist() == [0, 0, 15, 0]
    assert nested.add_own(2, narrow(-1, 2), wide(20, 5), ~counted, narrow(0, 3), total) == 5
    assert total.tolist() == [0, 0, 15, 5]


def test_100_calls_that_start_together_in_the_wrong_order_are_ordered_by_numpy():
    groups, ends = np.zeros(100, np.int64), np.arange(100)
    order = nested.nesting_order(groups, groups, ends, groups)
    assert order is not None
    assert order.tolist() == list(range(99, -1, -1))


def test_the_order_of_calls_is_that_of_a_sort_by_four_keys():
    for seed in range(100):
        random = np.random.default_rng(seed)
        groups, ends, ties = (random.integers(0, 4, 30) for _ in range(3))
        starts = np.sort(random.integers(0, 6, 30)) if seed % 3 else random.integers(0, 6, 30)
        found = nested.nesting_order(groups, starts, ends, ties)
        expected = np.lexsort((ties, -ends, starts, groups))
        assert np.array_equal(np.arange(30) if found is None else found, expected), seed


@pytest.mark.parametrize(
    ("threads", "starts", "ends", "expected"),
    [
        ([1, 1, 1], [0, 1, 2], [9, 8, 3], None),
        ([1, 1, 2], [5, 5, 0], [6, 9, 1], [1, 0, 2]),
        ([2, 1, 2], [0, 1, 2], [9, 8, 3], [1, 0, 2]),
        ([1, 1, 1], [7, 1, 2], [9, 8, 3], [1, 2, 0]),
        ([1, 1 << 40], [0, 0], [1, 1], None),
    ],
)
def test_calls_are_ordered_as_by_four_keys_and_not_at_all_where_they_are(threads, starts, ends, expected):
    columns = [np.array(column, np.int64) for column in (threads, starts, ends)]
    order = nested.nesting_order(*columns, np.arange(len(threads)))
    assert (None if order is None else order.tolist()) == expected


@compiled
def test_moments_at_the_ends_of_64_bits_are_left_to_numpy():
    last = np.iinfo(np.int64).max
    assert nested.nested(wide(1), wide(last), wide(last)) is None
    assert nested.nested(wide(1, 1), wide(0, 5), wide(7, 9)) is None  # they cross
    assert nested.nested(wide(1, 1), wide(5, 0), wide(7, 9)) is None  # the later one first
    assert nested.crossing(wide(1, 1), wide(5, 0), wide(7, 9)) is None
    assert [column.tolist() for column in nested.crossing(wide(1), wide(last), wide(last))] == [[0], [-1]]


@pytest.mark.usefixtures("either_library")
def test_of_two_calls_that_cross_the_second_has_the_5_ns_of_both():
    columns = {"thread_id": [1, 1], "op_id": [0, 1], "start_ns": [0, 10], "end_ns": [15, 20]}
    tree = CallTree.of(pl.DataFrame(columns))
    segments = innermost(tree)
    assert (tree.nests, tree.depth.tolist(), tree.parent.tolist()) == (False, [0, 1], [-1, 0])
    assert segments.starts.tolist() == [0, 10, 15]
    assert segments.ends.tolist() == [10, 15, 20]
    assert segments.owner.tolist() == [0, 1, 1]


@compiled
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("nest", (wide(1), wide(1), wide(1, 2), False, narrow(0), narrow(0))),
        ("nest", (wide(1), wide(1), wide(1), False, wide(0), narrow(0))),
        ("nearest", (narrow(-1), np.zeros(2, np.uint8), narrow(0))),
        ("topmost", (narrow(-1), np.zeros(2, np.uint8), narrow(0))),
        ("topmost", (narrow(-1), np.zeros(1, np.uint8), wide(0))),
        ("contexts", (narrow(-1), narrow(1, 2), narrow(0), narrow(0))),
        ("contexts", (narrow(0), narrow(1), narrow(0), narrow(0))),
        ("contexts", (narrow(-2), narrow(1), narrow(0), narrow(0))),
        ("add_own", (0, narrow(-1, 0), wide(1), np.ones(1, np.uint8), narrow(), wide(0))),
        ("add_own", (0, narrow(-1), wide(1), np.ones(1, np.uint8), narrow(1), wide(0))),
        ("add_own", (0, narrow(1), wide(1), np.ones(1, np.uint8), narrow(0), wide(0))),
        ("add_own", (1, narrow(0), wide(1), np.ones(1, np.uint8), narrow(0), wide(0))),
        ("order", (wide(1), wide(0), wide(1), wide(0, 0), narrow(0))),
        ("outer", (wide(1), wide(1), narrow(3), 2, np.zeros(1, np.uint8))),
        ("outer", (wide(1), wide(1), narrow(-1), 2, np.zeros(1, np.uint8))),
        (
            "innermost",
            (wide(1), wide(0), wide(1), narrow(), narrow(0), np.empty(0, np.uint8), *[wide(0, 0)] * 2, narrow(0, 0)),
        ),
        (
            "innermost",
            (wide(1), wide(0), wide(1), narrow(), narrow(-1), np.empty(0, np.uint8), wide(0), wide(0, 0), narrow(0, 0)),
        ),
        (
            "innermost",
            (
                *(wide(1), wide(0), wide(1), narrow(0, 0), narrow(-1), np.empty(0, np.uint8)),
                *[wide(0, 0)] * 2,
                narrow(0, 0),
            ),
        ),
        ("running", (wide(1), wide(0), wide(1), narrow(-1), wide(1), wide(0, 1), narrow(0))),
        ("running", (wide(1), wide(0), wide(1), narrow(0), wide(1), wide(1), narrow(0))),
        ("alike", ((narrow(1, 2),), narrow(0), narrow(0))),
        ("alike", (tuple(narrow(1) for _ in range(17)), narrow(0), narrow(0))),
        ("add", (wide(1), wide(2), wide(0, 1), wide(1), wide(1), narrow(1), wide(0))),
    ],
)
def test_columns_that_do_not_fit_are_refused(name, arguments):
    with pytest.raises(ValueError, match="do not fit"):
        getattr(nested.library, name)(*arguments)
