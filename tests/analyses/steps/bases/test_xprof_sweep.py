"""The sweep of the TensorFlow profiler: ties, precedence, instants; against a loop following the rules one by one."""

from itertools import pairwise

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

from traceviz.analyses.steps.bases.xprof_sweep import sweep


def swept(*events):
    """Return the time per kind of step 0 for events ``(start, end, kind)``."""
    spans = spans_of([(0, *event) for event in events])
    times = {}
    for _, start, end, kind in spans:
        times[kind] = times.get(kind, 0) + end - start
    return {kind: time for kind, time in times.items() if time}


def spans_of(events):
    columns = np.array(events, dtype=np.int64).reshape(-1, 4).T
    spans = sweep(columns[0], columns[1], columns[2], columns[3].astype(np.int8))
    return list(zip(*(a.tolist() for a in (spans.step, spans.starts, spans.ends, spans.kind)), strict=True))


def test_the_higher_kind_takes_the_time_that_two_share():
    assert swept((0, 10, 1), (4, 7, 2)) == {1: 7, 2: 3}


def test_a_lower_kind_that_starts_inside_a_higher_one_goes_on_after_it():
    assert swept((0, 5, 2), (3, 9, 1)) == {2: 5, 1: 4}


def test_time_that_no_event_covers_is_kind_0():
    assert swept((0, 2, 1), (6, 9, 1)) == {1: 5, 0: 4}


def test_where_one_ends_as_another_starts_no_time_is_shared():
    assert swept((0, 5, 2), (5, 9, 1)) == {2: 5, 1: 4}


def test_two_of_a_kind_count_once():
    assert swept((0, 6, 1), (4, 9, 1)) == {1: 9}


def test_an_instant_keeps_its_kind_current_until_something_changes_it():
    # the instant at 4 ends before it starts: kind 2 stays current although none of its events runs
    assert swept((0, 10, 1), (4, 4, 2)) == {1: 4, 2: 6}


def test_an_instant_in_idle_time_takes_the_time_up_to_the_end_of_the_next_of_its_kind():
    assert swept((0, 2, 1), (5, 5, 1), (7, 9, 1), (12, 13, 1)) == {1: 2 + 2 + 2 + 1, 0: 3 + 3}


def test_a_higher_event_that_comes_and_goes_ends_what_an_instant_left_behind():
    assert swept((0, 20, 1), (4, 4, 2), (8, 10, 3)) == {1: 4 + 10, 2: 4, 3: 2}


def test_an_instant_under_a_higher_kind_leaves_nothing_behind():
    assert swept((0, 8, 3), (4, 4, 2), (0, 12, 1)) == {3: 8, 1: 4}


def test_an_instant_while_its_kind_runs_changes_nothing():
    assert swept((0, 8, 2), (4, 4, 2), (0, 12, 1)) == {2: 8, 1: 4}


def test_steps_do_not_see_each_other():
    assert spans_of([(1, 0, 10, 1), (0, 2, 4, 2)]) == [(0, 2, 4, 2), (1, 0, 10, 1)]


def test_no_events_give_no_spans():
    assert spans_of([]) == []


EVENT = st.tuples(st.integers(0, 2), st.integers(0, 12), st.sampled_from([0, 0, 0, 1, 2, 5]), st.integers(1, 4))


@given(st.lists(EVENT, min_size=1, max_size=24))
def test_the_sweep_equals_the_rules_applied_one_boundary_at_a_time(events):
    given_events = [(step, start, start + dur, kind) for step, start, dur, kind in events]
    expected = [span for step in (0, 1, 2) for span in one_by_one(step, given_events)]
    assert spans_of(given_events) == expected


def one_by_one(step, events):
    """Return the state machine as it is stated: a current kind, and a count of running events per kind."""
    own = [(start, end, kind) for number, start, end, kind in events if number == step]
    boundaries = sorted(
        [(start, 1, -kind, kind) for start, _, kind in own] + [(end, 0, -kind, kind) for _, end, kind in own]
    )
    running, current, spans = [0] * 5, 0, []
    for (time, is_start, _, kind), following in pairwise(boundaries):
        running[kind] += 1 if is_start else -1
        if is_start:
            current = max(current, kind)
        elif kind == current and running[kind] == 0:
            current = max([lower for lower in range(kind) if running[lower] > 0], default=0)
        spans.append((step, time, following[0], current))
    return spans
