"""Statements about a difference, and its parts."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.compare.sides_of import report, side, steps
from traceviz.compare.attribution import attribute
from traceviz.compare.effect import Outcome
from traceviz.compare.judge import Judgement, judge
from traceviz.compare.options import Limits
from traceviz.compare.report.sentences import main_cause
from traceviz.compare.sides.sides import Side, apportion


def noisy(label, median, spread=0.02, count=40, seed=0):
    return side(label, steps(np.random.default_rng(seed), count, median, spread))


@pytest.mark.parametrize(
    ("median", "outcome"), [(0.9e7, Outcome.FASTER), (1.1e7, Outcome.SLOWER), (1e7, Outcome.NO_CHANGE)]
)
def test_the_outcome_follows_the_interval(median, outcome):
    assert judge(noisy("base", 1e7), noisy("new", median, seed=1), Limits()).outcome == outcome


def test_a_side_against_itself_is_no_change_and_zero():
    base = noisy("base", 1e7)
    judgement = judge(base, base, Limits())
    assert (judgement.outcome, judgement.effect.difference_ns) == (Outcome.NO_CHANGE, 0)


def test_the_order_of_steps_says_nothing():
    base = noisy("base", 1e7)
    shuffled = side("new", np.random.default_rng(2).permutation(base.runs[0]))
    judgement = judge(base, shuffled, Limits())
    assert (judgement.outcome, judgement.effect.difference_ns) == (Outcome.NO_CHANGE, 0)


def test_a_small_difference_is_no_change_however_sure():
    base, new = side("base", [1_000_000] * 40), side("new", [1_009_000] * 40)
    assert judge(base, new, Limits()).outcome == Outcome.NO_CHANGE
    assert judge(base, new, Limits(min_effect=0.005)).outcome == Outcome.SLOWER


def test_steps_are_surely_slower_by_less_than_is_a_difference():
    judgement = judge(side("base", [1_000_000] * 40), side("new", [1_009_000] * 40), Limits())
    assert judgement.outcome == Outcome.NO_CHANGE
    assert [judgement.is_slower_by(limit) for limit in (0.0, 0.005, 0.009, 0.0091)] == [True, True, True, False]
    assert not judge(noisy("base", 1e7), noisy("new", 1e7, seed=1), Limits()).is_slower_by(0.0)
    assert not judge(noisy("base", 1e7), noisy("new", 2e7), Limits(), "the batches differ").is_slower_by(0.0)


def test_a_wide_interval_is_no_verdict():
    judgement = judge(noisy("base", 1e7, 0.8, 12), noisy("new", 1e7, 0.8, 12, seed=1), Limits())
    assert judgement.outcome == Outcome.UNKNOWN
    assert "more steps" in judgement.why
    assert re.search(r"from −\d+\.\d % to \+\d+\.\d %", judgement.why)


@pytest.mark.parametrize(
    ("runs", "why"),
    [
        ([], "new has no steps"),
        ([[]], "new has no steps"),
        ([[5]], "new has 1 steady step, and 5 are needed"),
        ([[5] * 4], "new has 4 steady steps, and 5 are needed"),
        ([[0] * 9], "most steps of new last no time at all"),
    ],
)
def test_steps_that_cannot_be_judged_are_said(runs, why):
    judgement = judge(noisy("base", 1e7), side("new", *runs), Limits())
    assert (judgement.outcome, judgement.effect, judgement.why) == (Outcome.UNKNOWN, None, why)


def test_steps_that_do_not_compare_have_no_effect_of_any_size():
    judgement = judge(noisy("base", 1e7), noisy("new", 2e7), Limits(), "the batches differ")
    assert judgement == Judgement(Outcome.UNKNOWN, None, "the batches differ")
    assert judgement.speedup is None


def test_a_difference_that_may_be_chance_has_an_interval_and_no_speed_up():
    judgement = judge(noisy("base", 1e7, 0.8, 12), noisy("new", 1e7, 0.8, 12, seed=1), Limits())
    assert (judgement.outcome, judgement.speedup) == (Outcome.UNKNOWN, None)
    assert judgement.effect.interval[0] < -0.1 < 0.1 < judgement.effect.interval[1]
    assert judge(noisy("base", 1e7), noisy("new", 2e7), Limits()).speedup == pytest.approx(0.5, rel=0.02)


def test_classes_add_up_to_the_step_and_differences_to_its_difference():
    base = Side("base", (report([10, 11, 12], wait=[3, 3, 4], compute=[7, 8, 8]),))
    new = Side("new", (report([5, 6, 6, 6], copy=[1, 1, 1, 0], compute=[4, 5, 5, 6]),))
    attribution = attribute(base, new)
    # means: base 11 = 10/3 + 23/3, new 23/4 = 3/4 + 20/4, rounded to 6 by largest remainder
    assert (attribution.base_ns, attribution.new_ns) == (11, 6)
    assert {change.key: (change.base_ns, change.new_ns) for change in attribution.classes} == {
        "wait": (3, 0),
        "compute": (8, 5),
        "copy": (0, 1),
    }
    assert sum(change.difference_ns for change in attribution.classes) == attribution.difference_ns == -5


def test_what_one_side_does_not_measure_and_where_its_time_goes_instead_are_no_cause():
    """The base calls blocked what the new side knows to be a wait for input: nothing but a name has changed."""
    base = Side("base", (report([100] * 9, device_compute=[10] * 9, host_blocked=[70] * 9, host_compute=[20] * 9),))
    new = Side(
        "new",
        (report([110] * 9, device_compute=[20] * 9, input_wait=[68] * 9, host_blocked=[2] * 9, host_compute=[20] * 9),),
    )
    attribution = attribute(base, new)
    assert [(change.key, change.in_base, change.in_new, change.is_certain) for change in attribution.classes] == [
        ("device_compute", True, True, True),  # takes its time before the other
        ("input_wait", False, True, None),
        ("host_blocked", True, True, None),
        ("host_compute", True, True, None),
    ]
    assert main_cause(attribution) is None
    assert sum(change.difference_ns for change in attribution.classes) == attribution.difference_ns == 10


@pytest.mark.parametrize(("new_ns", "share"), [(1009, None), (1010, 1.0)])
def test_classes_have_shares_of_a_change_only_where_the_step_changed(new_ns, share):
    attribution = attribute(side("base", [1000] * 9), side("new", [new_ns] * 9))
    assert attribution.share(attribution.classes[0]) == share


def test_a_side_that_does_not_tell_of_classes_is_not_attributed():
    assert attribute(noisy("base", 1e7), Side("new", ())) is None


@given(st.lists(st.fractions(min_value=0, max_value=10**6), min_size=1, max_size=12))
def test_apportioned_numbers_add_up_and_are_near(parts):
    total = round(sum(parts, Fraction(0)))
    whole = apportion(parts, total)
    assert sum(whole) == total
    assert all(abs(number - part) < 1 for number, part in zip(whole, parts, strict=True))
