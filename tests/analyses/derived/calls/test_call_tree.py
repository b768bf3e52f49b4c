"""Calls as a tree: which is around a moment, sums over what is inside."""

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from traceviz.analyses.derived.calls.call_tree import CallTree


def tree(*calls):
    """Return a tree of ``(start, duration, thread)``."""
    rows = [(number, start, start + dur, thread) for number, (start, dur, thread) in enumerate(calls)]
    return CallTree.of(pl.DataFrame(rows, ["op_id", "start_ns", "end_ns", "thread_id"], orient="row"))


NESTED = ((0, 100, 0), (10, 30, 0), (20, 5, 0), (60, 10, 0), (0, 50, 1))


def test_the_innermost_call_of_a_moment_begins_with_it_or_before_and_ends_after():
    rows = tree(*NESTED).around([0, 0, 0, 0, 0, 0, 1, 1, 2], [5, 20, 25, 40, 60, 100, 49, 50, 5])
    assert rows.tolist() == [0, 2, 1, 0, 3, -1, 4, -1, -1]


def test_totals_hold_all_that_is_inside_and_children_only_what_is_directly():
    calls = tree(*NESTED)
    own = np.array([1, 2, 4, 8, 16])
    assert calls.totals(own).tolist() == [15, 6, 4, 8, 16]
    assert calls.children(own).tolist() == [10, 4, 0, 0, 0]


def test_the_nearest_chosen_call_is_the_call_itself_or_around_it():
    selected = np.array([False, True, False, False, True])
    assert tree(*NESTED).nearest(selected).tolist() == [-1, 1, 1, -1, 4]


def test_of_equal_calls_the_first_is_around_the_other():
    calls = tree((5, 10, 0), (5, 10, 0))
    assert calls.calls["op_id"].to_list() == [0, 1]
    assert calls.parent.tolist() == [-1, 0]


def test_a_tree_without_calls_is_around_nothing():
    assert tree((0, 1, 0)).around([], []).tolist() == []
    empty = CallTree.of(pl.DataFrame(schema=dict.fromkeys(("op_id", "start_ns", "end_ns", "thread_id"), pl.Int64)))
    assert empty.around([0], [3]).tolist() == [-1]
    assert empty.totals(np.array([], np.int64)).tolist() == []


@st.composite
def nests(draw):
    """Return calls that nest: each lies in a random earlier one, or in none."""
    calls = [(0, 64, 0)]
    for _ in range(draw(st.integers(0, 8))):
        start, dur, _ = draw(st.sampled_from(calls))
        begin = draw(st.integers(start, start + dur))
        calls.append((begin, draw(st.integers(0, start + dur - begin)), 0))
    return calls


@given(nests(), st.integers(-1, 65))
def test_around_agrees_with_looking_at_every_call_where_calls_nest(calls, moment):
    kept = [calls[0]]
    for start, dur, thread in calls[1:]:  # partial overlaps are no nests
        end = start + dur
        if dur and all(
            end <= s or s + d <= start or (s <= start and end <= s + d) or (start <= s and s + d <= end)
            for s, d, _ in kept
        ):
            kept.append((start, dur, thread))
    nested = tree(*kept)
    (row,) = nested.around([0], [moment])
    lengths = [int(e - s) for s, e in zip(nested.starts, nested.ends, strict=True) if s <= moment < e]
    assert (int(nested.durations[row]) if row >= 0 else None) == min(lengths, default=None)
