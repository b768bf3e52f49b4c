"""The section on steps: their times, and its text if there are no steps."""

import pytest

from tests.analyses.builders import trace
from traceviz.analyses.derived.steps.search import count_lost_steps, training_steps
from traceviz.analyses.options import AnalysisOptions
from traceviz.analyses.steps.steps import StepAnalysis
from traceviz.report import Prose, Skipped


def test_medians_leave_the_warm_up_out():
    ranges = [(0, 5000, "step 0")] + [(5000 + i * 100, 100, f"step {1 + i}") for i in range(9)]
    result = StepAnalysis().run(trace(nvtx=ranges))
    assert (result.warmup, result.median_ns, result.p95_ns) == (1, 100.0, 100.0)


def test_a_run_of_no_framework_and_0_steps_is_told_of_step_range_and_of_a_time_to_record():
    skipped = StepAnalysis().run(trace(samples=[(0, "program CPU", 1.0)], run={"format": "run"}))
    assert isinstance(skipped, Skipped)
    assert "traceviz.step_range(number)" in skipped.reason
    assert "--duration" in skipped.reason
    assert "NVTX" not in skipped.reason


def test_without_steps_the_section_is_skipped_and_says_how_to_mark_them():
    result = StepAnalysis().run(trace(nvtx=[(0, 10, "once")]))
    assert isinstance(result, Skipped)
    assert "--step-marker" in result.reason


def test_a_marker_with_too_few_matches_says_how_many():
    view = trace(nvtx=[(i * 100, 100, f"step {i}") for i in range(4)], options=AnalysisOptions(step_marker="step [12]"))
    result = StepAnalysis().run(view)
    assert result.reason.startswith("--step-marker 'step [12]' matches 2 ranges of the capture; at least 3")


@pytest.mark.parametrize(
    ("message", "steady", "lost"),
    [
        ("The profiler: Detected GPU events dropped on [host]: Profiler has collected 9 driver events", 3, 3),
        ("Nsight Systems: No NVTX events collected. Does the process use NVTX?", 6, 0),
    ],
)
def test_of_6_steps_those_whose_device_work_was_lost_are_left_out(message, steady, lost):
    view = trace(
        steps=[(i * 100, 100, i) for i in range(6)],
        kernels=[(i * 100 + 10, 80, "k") for i in range(4)],
        notes=[("profiler-diagnostic", "warning", message)],
    )
    section = StepAnalysis().describe(StepAnalysis().run(view))
    assert (training_steps(view).steady.height, count_lost_steps(view)) == (steady, lost)
    prose = [block.text for block in section.blocks if isinstance(block, Prose)]
    assert any("3 later steps left out of all figures" in text for text in prose) == (lost == 3)


TWO = [(0, 5, "k"), (9, 5, "m")]
"""More than a benchmark of one kernel."""


@pytest.mark.parametrize("framework", ["PyTorch", "TensorFlow", None])
def test_profilers_that_see_only_nvtx_ask_for_nvtx_whatever_the_framework_is(framework):
    """torch.profiler's and TensorFlow's own annotations would not be in such a trace."""
    skipped = StepAnalysis().run(trace(kernels=TWO, run={"format": "nvprof", "framework": framework}))
    assert "nvtx.annotate('step')" in skipped.reason
    assert "prof.step()" not in skipped.reason
