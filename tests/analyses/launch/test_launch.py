"""Launch calls, queue delay and kernels, joined on process and correlation."""

from tests.analyses import sections
from tests.analyses.builders import trace
from traceviz.analyses.launch.launch import LaunchAnalysis
from traceviz.report import Prose, Skipped


def facts(view):
    return sections.facts(LaunchAnalysis(), view)


def call(start, dur, correlation, name="cudaLaunchKernel", **extra):
    return (start, dur, name, {"correlation_id": correlation, **extra})


def kernel(start, dur, correlation, **extra):
    return (start, dur, "k", {"correlation_id": correlation, **extra})


def test_queue_is_from_the_end_of_the_call_to_the_start_of_the_kernel():
    view = trace(cuda_api=[call(0, 10, 1), call(20, 10, 2)], kernels=[kernel(15, 3, 1), kernel(50, 7, 2)])
    values = facts(view)
    assert (values["launches"], values["api_ns"], values["api_median_ns"]) == (2, 20, 10.0)
    assert (values["queued"], values["queue_median_ns"], values["queue_p95_ns"]) == (2, 12.5, 20.0)
    assert values["kernel_median_ns"] == 5.0


def test_a_kernel_that_begins_before_its_call_returns_has_no_queue_delay():
    view = trace(cuda_api=[call(0, 10, 1), call(20, 10, 2)], kernels=[kernel(5, 3, 1), kernel(34, 3, 2)])
    assert (facts(view)["queued"], facts(view)["queue_median_ns"]) == (1, 4.0)


def test_equal_correlation_ids_of_two_processes_are_two_launches():
    other = {"process_id": 1, "thread_id": 1}
    view = trace(
        cuda_api=[call(0, 10, 1), call(100, 10, 1, **other)],
        kernels=[kernel(10, 5, 1), kernel(130, 5, 1, process_id=1)],
    )
    assert (facts(view)["launches"], facts(view)["queue_p95_ns"]) == (2, 20.0)
    assert facts(view)["kernels_without_launch"] == 0


def test_a_graph_launch_is_one_call_with_many_kernels_and_the_queue_of_the_first():
    graph = call(0, 10, 9, "cudaGraphLaunch")
    view = trace(cuda_api=[graph], kernels=[kernel(16, 4, 9), kernel(20, 8, 9), kernel(28, 6, 9)])
    row = sections.grids(LaunchAnalysis(), view)[0][0]
    assert (row["name"], row["calls"], row["kernels"], row["kernel_total_ns"]) == ("cudaGraphLaunch", 1, 3, 18)
    assert (row["queue_median_ns"], row["kernel_median_ns"]) == (6.0, 6.0)


def test_driver_launches_count_and_other_calls_do_not():
    calls = [call(0, 5, 1, "cuLaunchKernel"), call(5, 5, 2, "cudaMemcpyAsync"), call(10, 5, 3, "cuLaunchKernelEx")]
    assert facts(trace(cuda_api=calls, kernels=[kernel(20, 1, 1)]))["launches"] == 2


def test_kernels_without_a_launch_call_are_counted_and_said():
    view = trace(cuda_api=[call(0, 5, 1)], kernels=[kernel(6, 1, 1), kernel(9, 1, 77), kernel(10, 1, None)])
    assert facts(view)["kernels_without_launch"] == 2
    blocks = LaunchAnalysis().describe(LaunchAnalysis().run(view)).blocks
    text = next(block.text for block in blocks if isinstance(block, Prose))
    assert text.startswith("2 of 3 kernels have no launch call")


def test_launches_per_step_count_those_of_steady_steps_only():
    steps = [(i * 1_000, 1_000, i) for i in range(10)]
    calls = [call(i * 1_000 + j * 100, 10, 10 * i + j) for i in range(10) for j in range(3)]
    kernels = [kernel(i * 1_000 + j * 100 + 20, 1, 10 * i + j) for i in range(10) for j in range(3)]
    view = trace(steps=steps, cuda_api=calls, kernels=kernels)
    assert facts(view)["launches_per_step"] == 3.0


def test_a_capture_without_launch_calls_is_skipped_with_the_reason():
    outcome = LaunchAnalysis().run(trace(cuda_api=[(0, 1, "cudaMalloc")], kernels=[]))
    assert outcome == Skipped("launch", "the capture has no kernel launch calls")


def test_a_kernel_whose_call_was_recorded_under_another_name_has_a_call():
    view = trace(
        cuda_api=[call(0, 10, 1), call(20, 30, 2, "hipStreamWaitEvent"), call(70, 5, 3, "hipStreamWaitEvent")],
        kernels=[kernel(15, 3, 1), kernel(60, 7, 2), kernel(80, 4, 2)],
    )
    result = LaunchAnalysis().run(view)
    assert result.without_call == 0
    assert result.by_name.select("name", "calls", "total_ns", "queue_median_ns", "kernels").rows() == [
        ("hipStreamWaitEvent", 1, 30, 10.0, 2),  # the one that launched, of two
        ("cudaLaunchKernel", 1, 10, 5.0, 1),
    ]
