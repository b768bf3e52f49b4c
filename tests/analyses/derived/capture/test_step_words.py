"""Why there are no steps, in the words of what recorded the run."""

import pytest

from tests.analyses.builders import tables
from traceviz.analyses.run import analyze


@pytest.mark.parametrize(
    ("code", "message", "reason"),
    [
        (
            "run-killed",
            "The run was killed by signal 9; its tables may lack the end.",
            "the run was killed by signal 9",
        ),
        ("run-failed", "CUDA ran out", "cUDA ran out"),
    ],
)
def test_a_run_that_was_stopped_before_2_steps_says_so_without_its_consequences(code, message, reason):
    report = analyze(tables(run={"format": "run"}, kernels=[(0, 5, "k")], notes=[(code, "warning", message)]))
    (skipped,) = (skip for skip in report.skipped if skip.slug == "steps")
    assert skipped.reason.startswith(f"no steps were found, and {reason}")
