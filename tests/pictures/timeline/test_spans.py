"""Rows of spans that overlap or nest."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from traceviz.pictures.timeline.spans import Spans, row_numbers


def rows_of(*spans, most=200):
    starts, ends = np.array(spans, np.int64).reshape(-1, 2).T
    return row_numbers(starts, ends, most).tolist()


def one_by_one(spans):
    """First fit, span by span."""
    free, rows = [], []
    for start, end in spans:
        row = next((number for number, until in enumerate(free) if until <= start), len(free))
        free[row : row + 1] = [end]
        rows.append(row)
    return rows


def test_spans_one_after_the_other_are_one_row():
    assert rows_of((0, 10), (10, 20), (25, 30)) == [0, 0, 0]


def test_a_kernel_that_begins_before_another_ends_is_in_the_next_row_and_the_first_row_goes_on():
    assert rows_of((0, 10), (5, 15), (10, 20), (15, 16)) == [0, 1, 0, 1]


def test_calls_that_nest_are_in_the_row_of_their_depth():
    assert rows_of((0, 100), (0, 40), (10, 20), (50, 90), (60, 61)) == [0, 1, 2, 1, 2]


def test_marks_without_length_take_no_room():
    assert rows_of((5, 5), (5, 5), (5, 8), (6, 6)) == [0, 0, 0, 1]


def test_nothing_has_no_rows():
    assert rows_of() == []


def test_what_overlaps_beyond_the_last_row_has_none():
    assert rows_of((0, 9), (1, 9), (2, 9), (9, 10), most=2) == [0, 1, -1, 0]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 20)), max_size=40))
def test_rows_are_those_of_first_fit(given_spans):
    spans = sorted(((start, start + length) for start, length in given_spans), key=lambda one: (one[0], -one[1]))
    assert rows_of(*spans) == one_by_one(spans)


def test_of_spans_that_begin_together_the_longest_comes_first():
    def columns(*values):
        return np.array(values, np.int64)

    spans = Spans(columns(5, 5, 0), columns(1, 9, 2), np.array([0, 1, 2], np.int32), columns(7, 8, 9))
    assert spans.in_order().durations.tolist() == [2, 9, 1]
    assert spans.in_order().origins.tolist() == [9, 8, 7]
