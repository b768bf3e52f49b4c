"""Intervals in which every event is shown."""

import numpy as np

from tests.analyses.builders import trace
from traceviz.pictures.timeline.details import Chosen, details, joined
from traceviz.report.pictures.values import Detail, Place

EVENTS = np.arange(0, 10_000, 10, dtype=np.int64)
STARTS = (0, 1000, 2000, 3000, 4000, 5100, 6100, 7100, 8100, 9100)
"""Starts of steps that last until the next one starts: the fourth is the longest."""
STEPS = trace(steps=[(start, 900, step) for step, start in enumerate(STARTS)], span_ns=10_000)


def chosen(budget, *places, view=STEPS):
    return [(one.start_ns, one.end_ns, one.reason) for one in details(view, [EVENTS], budget, places)]


def test_the_slowest_the_median_and_the_first_steady_step_come_first():
    shown = chosen(320)
    reasons = " ".join(reason for *_, reason in shown)
    assert all(words in reasons for words in ("the slowest step, 4", "the median step", "the first steady step"))
    assert any(start <= 4000 and end >= 4800 for start, end, _ in shown)


def test_no_step_takes_more_than_a_quarter():
    shown = chosen(40)
    assert any(start == 4000 and end - start <= 100 for start, end, _ in shown)


def test_places_of_findings_are_shown_with_what_is_around_them():
    shown = chosen(400, Place("TV101", 8200, 8300, "classes-0", "the longest wait"))
    (place,) = (one for one in shown if "TV101: the longest wait" in one[2])
    assert place[0] <= 8190
    assert place[1] >= 8310


def test_steps_follow_the_first_steady_one_as_far_as_there_is_room():
    shown = chosen(900)
    assert sum(end - start for start, end, _ in shown) >= 8500
    assert any("steps from the first steady one on" in reason for *_, reason in shown)


def test_the_budget_is_kept():
    for budget in (1, 10, 100, 500, 999):
        shown = chosen(budget, Place("TV101", 0, 10_000, "", "all"))
        inside = sum(int(((start <= EVENTS) & (end > EVENTS)).sum()) for start, end, _ in shown)
        assert budget * 0.9 - 1 <= inside <= budget


def test_stretches_that_touch_are_one_with_all_reasons():
    parts = [Detail(10, 20, "b"), Detail(0, 10, "a"), Detail(30, 40, "c"), Detail(35, 50, "c"), Detail(12, 13, "b")]
    assert joined(parts) == (Detail(0, 20, "a; b"), Detail(30, 50, "c"))


def test_of_many_reasons_three_are_named():
    parts = [Detail(0, 10, word) for word in "abcde"]
    assert joined(parts)[0].reason == "a; b; c; 2 more"


def test_what_is_shown_already_costs_nothing():
    own = Chosen([EVENTS], 100)
    own.add(0, 500, "x")
    assert (own.spent, own.left, own.cost(0, 500), own.cost(400, 600)) == (50, 50, 0, 10)
