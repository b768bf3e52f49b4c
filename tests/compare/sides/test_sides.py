"""The contents of a side: the steps of its runs."""

from fractions import Fraction

import pytest

from tests.compare.sides_of import side


def test_steps_of_2_runs_are_counted_together_and_a_run_without_any_is_told():
    both = side("base", [100, 200, 300, 400], [10, 20], [])
    assert (both.rank_steps, both.rank_steps_by_run, both.steps, both.stepless, both.ranks) == (6, (4, 2, 0), 6, 1, 1)
    assert both.median_ns == pytest.approx((250 * 15) ** 0.5)


def test_a_unit_of_work_takes_its_part_of_a_step():
    whole = side("base", [100, 250])
    parts = type(whole)(whole.label, whole.reports, Fraction(5, 2))
    assert [run.tolist() for run in whole.runs] == [[100, 250]]
    assert [run.tolist() for run in parts.runs] == [[40.0, 100.0]]
