"""Inferred steps that cover little of a capture are listed, and nothing is judged by them."""

import pytest

from tests.analyses.builders import trace
from traceviz.analyses.derived.judged_time import steady_time
from traceviz.analyses.derived.steps.search import covered_by_steps, found_steps, training_steps
from traceviz.analyses.run import analyze
from traceviz.compare.sides.sides import Side

REPEATS = [(100 * step + 30 * part, 20, name) for step in range(7) for part, name in enumerate("abc")]
"""Kernels from 0 to 680; six repeats that end at 600, in which devices work for 360 of 420."""
COPIES = [(100 * step + 5, 5, "h2d", "pinned", "device", 64) for step in range(7)]
"""A copy of input in each repeat, while a kernel runs."""


def others(*durations):
    """Return kernels that run once, one after another from 1000 on."""
    starts = [1000 + sum(durations[:place]) for place in range(len(durations))]
    return [(start, dur, f"once {start}") for start, dur in zip(starts, durations, strict=True)]


def test_repeats_that_cover_360_of_1420_of_the_device_work_are_not_judged():
    view = trace(kernels=REPEATS + others(700, 300), memcpy=COPIES)
    covered = covered_by_steps(view)
    assert (covered.work, covered.time) == (360 / 1420, 600 / 2000)
    assert found_steps(view).frame.height == 6
    assert training_steps(view).source == "none"
    assert steady_time(view) == {}


def test_repeats_in_a_third_of_the_time_are_not_judged_though_they_do_most_of_the_work():
    view = trace(kernels=[*REPEATS, (1790, 10, "last")])
    covered = covered_by_steps(view)
    assert (covered.work, covered.time) == (360 / 430, 600 / 1800)
    assert training_steps(view).source == "none"


@pytest.mark.parametrize(("other", "steps"), [(73, 6), (75, 0)])
def test_repeats_are_steps_if_7_of_them_would_be_85_percent_of_the_device_work(other, steps):
    view = trace(kernels=REPEATS + others(other), memcpy=COPIES)
    assert covered_by_steps(view).work == 360 / (420 + other)
    assert training_steps(view).frame.height == steps


@pytest.mark.parametrize(("span", "steps"), [(6000, 6), (6010, 0)])
def test_repeats_of_less_than_10_percent_of_the_capture_are_not_judged(span, steps):
    report = analyze(trace(kernels=REPEATS, cuda_api=[(0, 1, "cudaMalloc")], span_ns=span).tables)
    assert training_steps(trace(kernels=REPEATS, cuda_api=[(0, 1, "cudaMalloc")], span_ns=span)).frame.height == steps
    assert ("what repeats covers 10.0 % of the captured time" in report.verdict.sentence) == (not steps)


def test_marked_steps_may_cover_little():
    view = trace(kernels=REPEATS + others(5000), nvtx=[(100 * step, 90, f"step {step}") for step in range(5)])
    assert covered_by_steps(view) is None
    assert training_steps(view).source == "nvtx"


def test_a_report_on_repeats_that_cover_25_percent_cannot_judge_and_lists_them():
    report = analyze(trace(kernels=REPEATS + others(700, 300), memcpy=COPIES).tables)
    assert report.verdict.code == "cannot-judge"
    assert "what repeats covers 25.4 % of the device work" in report.verdict.sentence
    assert "inferred" not in report.verdict.sentence
    facts = {fact.key: fact.value for fact in report.facts("steps")}
    assert (facts["repeats"], facts["repeat_median_ns"], facts["source"]) == (6, 100, "inferred from repeating kernels")
    assert "median_ns" not in facts
    assert Side("slight", (report,)).steps == 0
