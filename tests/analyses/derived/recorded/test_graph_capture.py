"""Launches that a graph captures launch nothing: they are compilation, and no idle device is blamed on them."""

import pytest

from tests.analyses.builders import trace
from traceviz.analyses.derived.host.classes import host_classes
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.launch.launch import LaunchAnalysis
from traceviz.analyses.program.compilation import CompilationAnalysis
from traceviz.report import Skipped

NAMES = [
    ("cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaLaunchKernel"),
    ("cuStreamBeginCapture_v2", "cuStreamEndCapture_ptsz", "cuLaunchKernel"),
    ("hipStreamBeginCapture", "hipStreamEndCapture", "hipModuleLaunchKernel"),
    ("cudaStreamBeginCaptureToGraph", "cudaStreamEndCapture", "cudaLaunchKernelExC"),
]


def launch(start, number, name="cudaLaunchKernel", **more):
    return (start, 10, name, {"correlation_id": number, **more})


def captured(begin="cudaStreamBeginCapture", end="cudaStreamEndCapture", name="cudaLaunchKernel", **more):
    """Return a launch with work at 100, three that are captured from 200 to 600, the graph at 700."""
    calls = [
        launch(100, 1, name),
        (200, 10, begin, {"correlation_id": 90}),
        *(launch(300 + 100 * n, 2 + n, name) for n in range(3)),
        (590, 10, end, {"correlation_id": 91}),
        launch(700, 5, "cudaGraphLaunch"),
    ]
    kernels = [(120, 50, "k", {"correlation_id": 1}), (720, 100, "k", {"correlation_id": 5})]
    return {"cuda_api": calls, "kernels": kernels, "span_ns": 900, **more}


@pytest.mark.parametrize(("begin", "end", "name"), NAMES)
def test_calls_between_the_begin_and_the_end_of_a_capture_launch_nothing(begin, end, name):
    view = trace(**captured(begin, end, name))
    assert view.api_calls("launch")["start_ns"].to_list() == [100, 700]
    assert view.captured_calls("launch")["start_ns"].to_list() == [300, 400, 500]
    assert view.graph_captures.select("start_ns", "end_ns").rows() == [(200, 600)]


def test_a_capture_is_compilation_and_not_a_launch():
    sets = host_classes(trace(**captured()))[0].sets
    assert sets["compilation"].total == 400
    assert sets["kernel_launch"].total == 20 + 20  # 100 to 120, and 700 to 720


def test_the_launches_of_a_capture_are_named_and_not_counted_among_launches():
    analysis = LaunchAnalysis()
    section = analysis.describe(analysis.run(trace(**captured())))
    facts = {fact.key: fact.value for fact in section.blocks[0].facts}
    assert (facts["launches"], facts["launches_captured"]) == (2, 3)
    text = "Captured in a graph: 3 launch calls, which launched nothing and are not counted here."
    assert section.blocks[1].text == text


def test_a_program_that_only_captures_launches_nothing():
    calls = captured()["cuda_api"][1:-1]
    result = LaunchAnalysis().run(trace(cuda_api=calls, kernels=[], span_ns=900))
    assert isinstance(result, Skipped)
    assert result.reason == "all 3 launch calls were captured in graphs, and launched nothing"


def test_other_threads_launch_during_a_capture_where_their_calls_have_work():
    helper = {"thread_id": 9}  # the threads of autograd launch what the capturing thread asks for
    calls = captured()["cuda_api"]
    calls += [launch(350, 7, **helper), launch(450, 8, **helper), launch(650, 9, **helper)]
    calls.sort(key=lambda call: call[0])
    kernels = [*captured()["kernels"], (460, 20, "k", {"correlation_id": 8})]
    view = trace(**captured(cuda_api=calls, kernels=kernels))
    assert view.captured_calls("launch")["correlation_id"].to_list() == [2, 7, 3, 4]
    assert view.api_calls("launch")["correlation_id"].to_list() == [1, 8, 9, 5]


def test_waits_and_allocations_of_a_capture_stay_what_they_are():
    calls = captured()["cuda_api"]
    calls += [(320, 10, "cudaMalloc"), (340, 10, "cudaMallocAsync"), (360, 10, "cudaMemcpyAsync")]
    view = trace(**captured(cuda_api=sorted(calls, key=lambda call: call[0])))
    assert view.api_calls("allocation")["start_ns"].to_list() == [320]
    assert view.api_calls("pool_allocation", "async_copy").height == 0
    assert view.captured_calls("pool_allocation", "async_copy")["start_ns"].to_list() == [340, 360]


@pytest.mark.parametrize(
    ("left_out", "span"),
    [("cudaStreamBeginCapture", (0, 600)), ("cudaStreamEndCapture", (200, 900))],
)
def test_a_capture_that_is_cut_by_an_edge_of_the_trace_lasts_until_there(left_out, span):
    calls = [call for call in captured()["cuda_api"] if call[2] != left_out]
    assert trace(**captured(cuda_api=calls)).graph_captures.select("start_ns", "end_ns").rows() == [span]


def test_captures_of_several_threads_do_not_mix():
    other = {"thread_id": 9}
    calls = captured()["cuda_api"]
    calls += [(250, 10, "cudaStreamBeginCapture", other), (800, 10, "cudaStreamEndCapture", other)]
    calls += [(640, 10, "cudaStreamBeginCapture"), (660, 10, "cudaStreamEndCapture")]
    view = trace(**captured(cuda_api=sorted(calls, key=lambda call: call[0])))
    assert view.graph_captures.select("start_ns", "end_ns").rows() == [(200, 600), (250, 810), (640, 670)]


def test_launches_of_a_capture_do_not_end_what_is_judged():
    calls = [launch(10_000 * n, n + 1) for n in range(50)]
    calls += [(600_000, 10, "cudaStreamBeginCapture"), *(launch(610_000 + n, 100 + n) for n in range(30))]
    kernels = [(10_000 * n + 100, 5_000, "k", {"correlation_id": n + 1}) for n in range(50)]
    view = trace(cuda_api=calls, kernels=kernels, span_ns=900_000)
    assert view.device_windows[0].lacks_last == 0
    assert view.device_window == (0, 900_000)


def test_a_capture_is_listed_as_compilation_once_with_the_calls_around_it():
    view = trace(**captured(host_ops=[(0, 5, "a:Mul")]))
    result = CompilationAnalysis().run(view)
    assert result.by_name.select("name", "calls", "total_ns").rows() == [("graph capture", 1, 400)]


def test_the_first_step_that_captures_a_graph_is_warm_up():
    calls = [(100, 10, "cudaStreamBeginCapture"), launch(300, 1), (890, 10, "cudaStreamEndCapture")]
    steps = [(1_000 * n, 1_000, n) for n in range(5)]
    kernels = [(1_000 * n + 950, 40, "k") for n in range(5)]
    assert training_steps(trace(steps=steps, cuda_api=calls, kernels=kernels)).frame["warmup"].sum() == 1
