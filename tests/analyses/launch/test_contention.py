"""Launches while other threads prepare input."""

import pytest

from tests.analyses.builders import trace
from traceviz.analyses.launch.contention import LaunchContentionAnalysis
from traceviz.report import Skipped


def contended(launch_ns, *, pipeline=True, thread="tf_Compute", category="pipeline"):
    """Return four steps of 1000 ns: a launch call of ``launch_ns`` while an iterator runs, then a kernel."""
    calls, kernels, ops = [], [], [(0, 1, "a:Mul")]
    for i in range(4):
        begin = 1000 * i
        calls += [(begin, launch_ns, "cuLaunchKernel", {"correlation_id": i})]
        kernels += [(begin + launch_ns, 1000 - launch_ns, "k", {"correlation_id": i})]
        ops += [(begin + (0 if pipeline else 500), 400, "Iterator::Root::Map", category, {"thread_id": 1})]
    threads = [(0, 0, thread), (1, 0, "tf_data_iterator")]
    return trace(
        steps=[(1000 * i, 1000, i, {"thread_id": 0}) for i in range(4)],
        cuda_api=calls,
        kernels=kernels,
        host_ops=ops,
        threads=threads,
    )


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (contended(30), ["TV406"]),
        (contended(29), []),
        (contended(200), ["TV406"]),
        (contended(200, pipeline=False), []),
        (contended(200, thread="tf_gpu_private_0"), []),
    ],
)
def test_launches_are_held_up_where_the_pipeline_runs_beside_3_percent_of_launching(view, expected):
    analysis = LaunchContentionAnalysis()
    assert [finding.code for finding in analysis.judge(analysis.run(view))] == expected


def test_launching_is_overlaid_with_the_pipeline():
    result = LaunchContentionAnalysis().run(contended(450))
    assert (result.launch_ns, result.contended_ns, result.pipeline_ns, result.step_ns) == (1800, 1600, 1600, 4000)


def test_a_trace_without_input_pipeline_is_skipped_with_the_reason():
    outcome = LaunchContentionAnalysis().run(contended(30, category="runtime"))
    assert outcome == Skipped("launch_contention", "the trace shows no input pipeline (tf.data)")
