"""Steps of a side: those of a job of several ranks, and of several runs."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from tests.compare.sections_of import kernels, run, section, table
from tests.compare.sides_of import side, steps
from traceviz.compare.attribution import attribute
from traceviz.compare.changes.by_name import compare_kernels
from traceviz.compare.effect import Outcome, effect
from traceviz.compare.judge import judge
from traceviz.compare.options import Limits
from traceviz.compare.sides.sides import Side, job_steps, of_the_job
from traceviz.report import Report, Verdict
from traceviz.report.verdicts import VerdictCode


def test_steps_of_2_runs_are_counted_together_and_a_run_without_any_is_told():
    both = side("base", [100, 200, 300, 400], [10, 20], [])
    assert (both.rank_steps, both.rank_steps_by_run, both.steps, both.stepless, both.ranks) == (6, (4, 2, 0), 6, 1, 1)
    assert both.median_ns == pytest.approx((250 * 15) ** 0.5)


def test_a_unit_of_work_takes_its_part_of_a_step():
    whole = side("base", [100, 250])
    parts = type(whole)(whole.label, whole.reports, Fraction(5, 2))
    assert [run.tolist() for run in whole.runs] == [[100, 250]]
    assert [run.tolist() for run in parts.runs] == [[40.0, 100.0]]


def job(rows, names="step process dur_ns wait compute", *sections):
    """Return a report of ranks: rows of the grid of steps."""
    breakdown = section("breakdown", table("By step", names, *rows))
    return Report((), Verdict(VerdictCode.PARTIAL, ""), (breakdown, *sections))


@pytest.mark.parametrize(
    ("process", "step", "expected"),
    [
        ([7, 7, 7], [0, 1, 1], [0, 1, 2]),  # one process: every row is a step
        ([0, 1, 0, 1], [5, 5, 6, 6], [0, 0, 1, 1]),
        ([0, 0, 1, 1], [5, 6, 5, 6], [0, 1, 0, 1]),  # in any order
        ([0, 0, 0, 1, 1], [4, 5, 6, 5, 6], [0, 1, 2, 1, 2]),  # a rank starts later
        ([0, 0, 0, 0, 1, 1, 1, 1], [0, 1, 0, 1] * 2, [0, 1, 2, 3] * 2),  # a second epoch counts from 0 again
        ([0, 1, 0, 1], [100, 0, 101, 1], [0, 0, 1, 1]),  # numbers that never meet: the n-th of each
        ([70, 100, 70, 100], [100, 0, 101, 1], [0, 0, 1, 1]),  # for any numbers of processes
    ],
)
def test_rows_of_the_same_number_are_one_step(process, step, expected):
    assert job_steps(np.array(process), np.array(step)).tolist() == expected


def test_no_rows_are_no_steps():
    assert job_steps(np.array([], np.int64), np.array([], np.int64)).size == 0


def test_a_step_of_the_job_is_the_mean_of_its_ranks():
    index = np.array([0, 0, 1, 1, 2])
    assert of_the_job(np.array([10, 30, 5, 6, 7]), index).tolist() == [20, 5.5, 7]
    assert of_the_job(np.array([[1, 2], [3, 4]]), np.array([0, 0])).tolist() == [[2, 3]]


def test_two_steps_of_four_ranks_are_two_and_not_enough():
    rows = [(step, rank, 100, 40, 60) for step in range(2) for rank in range(4)]
    ranks = Side("ranks", (job(rows),))
    assert (ranks.steps, ranks.rank_steps) == (2, 8)
    judgement = judge(ranks, ranks, Limits())
    assert (judgement.outcome, judgement.why) == (Outcome.UNKNOWN, "ranks has 2 steady steps, and 5 are needed")


def test_steps_of_a_report_without_classes_are_of_the_job_too():
    every = table("Every step", "step start_ns dur_ns warmup process")
    rows = tuple((step, 0, 100 + rank, step == 0, rank) for rank in range(2) for step in range(4))
    report = Report(
        (),
        Verdict(VerdictCode.PARTIAL, ""),
        (section("steps", table(every.title, "step start_ns dur_ns warmup process", *rows)),),
    )
    assert [times.tolist() for times in Side("old", (report,)).runs] == [[100.5] * 3]


def test_classes_of_ranks_add_up_and_sums_are_per_step_of_a_rank():
    ran = kernels(("gemm", "gemm", 8, 4001))
    single = Side(
        "one", (job([(step, 0, 1000, 400, 600) for step in range(4)], "step process dur_ns wait compute", ran),)
    )
    rows = [(step, rank, 700 + rank, 100 + rank, 600) for step in range(4) for rank in range(2)]
    double = Side("two", (job(rows, "step process dur_ns wait compute", ran),))
    attribution = attribute(single, double)
    # two ranks: 700.5 = 100.5 + 600, rounded to even, and what is missing by largest remainder
    assert (attribution.base_ns, attribution.new_ns, attribution.difference_ns) == (1000, 700, -300)
    assert [(part.key, part.base_ns, part.new_ns) for part in attribution.classes] == [
        ("wait", 400, 100),
        ("compute", 600, 600),
    ]
    (change,) = compare_kernels(single, double).changes
    assert (change.base_calls, change.new_calls) == (Fraction(2), Fraction(1))
    assert (change.base_ns, change.new_ns) == (1000, 500)


@pytest.mark.parametrize("pairs", [20, pytest.param(100, marks=pytest.mark.slow)])
def test_ranks_that_wait_for_one_another_are_no_more_evidence_than_one_of_them(pairs):
    """Eight ranks of equals, each rank's steps after those of the one before: half of the pairs would differ."""
    generator, alarms = np.random.default_rng(0), {"job": 0, "ranks": 0}

    def ranks():
        together = steps(generator, 30, 1e7, 0.05)
        apart = np.exp(0.003 * generator.standard_normal((8, 30)))
        rows = [
            (step, rank, int(time), 0, int(time))
            for rank in range(8)
            for step, time in enumerate(together * apart[rank])
        ]
        return Side("ranks", (job(rows),))

    for _ in range(pairs):
        sides = ranks(), ranks()
        one_by_one = ([np.array([row[2] for row in one.reports[0].sections[0].blocks[0].rows])] for one in sides)
        for name, measured in (("job", effect(*(one.runs for one in sides))), ("ranks", effect(*one_by_one))):
            alarms[name] += not measured.low_ns <= 0 <= measured.high_ns
    assert alarms["job"] <= 0.05 * pairs + 3 * math.sqrt(pairs * 0.05 * 0.95)
    assert alarms["ranks"] > pairs / 4


def test_a_run_without_steps_takes_nothing_from_the_others():
    ran = kernels(("gemm", "gemm", 8, 4000))
    whole = run(4, ran, host_compute=[1000] * 4)
    without = Report((), Verdict(VerdictCode.PARTIAL, ""), (kernels(("gemm", "gemm", 3, 3)),))
    side = Side("base", (whole, without))
    assert (side.steps, side.stepless, side.classes["host_compute"].tolist()) == (4, 1, [1000] * 4)
    assert side.events("kernels")["gemm"].calls == 8 / 4
