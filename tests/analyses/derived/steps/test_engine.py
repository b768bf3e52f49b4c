"""Steps of serving engines: their annotations, or the device work that they launched if the host queues work."""

import polars as pl

from tests.analyses.builders import trace
from traceviz.analyses.derived.judged_time import host_time
from traceviz.analyses.derived.steps.engine import engine_steps
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.options import AnalysisOptions
from traceviz.analyses.run import analyze
from traceviz.report import IN_STEPS

PREFILL, DECODE = "execute_context_1(100)_generation_0(0)", "execute_context_0(0)_generation_1(1)"


def launch(at, correlation):
    return (at, 5, "cudaLaunchKernel", {"correlation_id": correlation})


def work(start, dur, correlation, stream=7):
    return (start, dur, "gemm", {"correlation_id": correlation, "stream": stream})


def bounds_of(view):
    return list(training_steps(view).frame.select("start_ns", "end_ns").iter_rows())


def test_one_engine_step_is_enough_and_lasts_as_long_as_its_annotation():
    kernels = [work(10 * i, 5, i, stream=7) for i in range(2, 9)]
    view = trace(
        host_ops=[(0, 100, PREFILL, "annotation")],
        kernels=kernels,
        cuda_api=[launch(10 * i - 2, i) for i in range(2, 9)],
    )
    steps = training_steps(view)
    assert (steps.source, steps.marker, steps.confidence) == ("serving", "vLLM", 1.0)
    assert bounds_of(view) == [(0, 100)]


def test_time_between_two_engine_steps_belongs_to_neither():
    view = trace(nvtx=[(0, 100, PREFILL), (500, 20, DECODE), (900, 20, DECODE)])
    assert bounds_of(view) == [(0, 100), (500, 520), (900, 920)]
    assert training_steps(view).frame["warmup"].to_list() == [False, False, False]


def test_a_step_ends_with_the_last_work_that_it_launched_unless_the_next_begins():
    view = trace(
        nvtx=[(0, 100, PREFILL), (150, 100, DECODE), (400, 100, DECODE)],
        cuda_api=[launch(10, 1), launch(160, 2), launch(410, 3)],
        kernels=[work(20, 110, 1), work(170, 300, 2), work(470, 20, 3)],
    )
    assert bounds_of(view) == [(0, 130), (150, 400), (400, 500)]


def test_where_the_host_runs_ahead_a_step_is_the_work_that_it_launched():
    view = trace(
        nvtx=[(0, 20, DECODE), (30, 20, DECODE)],
        cuda_api=[launch(1, 1), launch(5, 2), launch(31, 3), launch(35, 4)],
        kernels=[work(100, 30, 1), work(140, 60, 2), work(210, 40, 3), work(250, 50, 4)],
    )
    assert bounds_of(view) == [(100, 200), (210, 300)]
    found = engine_steps(view).frame
    assert found["ahead"].to_list() == [True, True]
    assert found["call_ns"].to_list() == [0, 30]
    assert found["work_ns"].to_list() == [100, 210]


def test_work_on_a_stream_that_only_prepares_does_not_begin_a_step():
    view = trace(
        nvtx=[(0, 20, DECODE)],
        cuda_api=[launch(1, 1), launch(5, 2)],
        kernels=[work(3, 4, 1, stream=2), work(140, 60, 2)],
    )
    assert bounds_of(view) == [(140, 200)]


def test_the_host_runs_ahead_from_half_of_the_device_work_on():
    def view(after):
        kernels = [work(10, 100 - after, 1), work(110, after, 2)]
        return trace(nvtx=[(0, 110, DECODE)], cuda_api=[launch(1, 1), launch(5, 2)], kernels=kernels)

    assert engine_steps(view(49)).frame["ahead"].to_list() == [False]
    assert engine_steps(view(50)).frame["ahead"].to_list() == [True]


def test_sglang_nests_its_annotations_and_the_outermost_is_the_step():
    outer = "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk9sqsq32sqsk9)"
    view = trace(host_ops=[(0, 100, outer, "annotation"), (10, 80, "step[DECODE bs=32]", "annotation")])
    assert bounds_of(view) == [(0, 100)]
    assert engine_steps(view).engine == "SGLang"
    assert engine_steps(view).frame.select("phase", "running", "new_tokens").row(0) == ("decode", 32, 32)


def test_steps_of_tensorrt_llm_are_read_from_nvtx():
    names = [
        f"[Executor] _forward_step {i}: {int(not i)} ctx reqs, {512 * int(not i)} ctx tokens, {i} gen reqs"
        for i in range(3)
    ]
    view = trace(nvtx=[(100 * i, 50, name) for i, name in enumerate(names)])
    found = engine_steps(view)
    assert found.engine == "TensorRT-LLM"
    assert found.frame["phase"].to_list() == ["prefill", "decode", "decode"]
    assert found.frame["prompt_tokens"].to_list() == [512, 0, 0]


def test_layers_of_one_engine_step_are_no_steps():
    names = ["norm", "attention", "gemm", "act"] * 10
    kernels = [(10 * i, 9, name) for i, name in enumerate(names)]
    assert training_steps(trace(kernels=kernels)).source == "kernel_cycle"
    annotated = trace(kernels=kernels, host_ops=[(0, 400, PREFILL, "annotation")])
    assert training_steps(annotated).source == "serving"


def test_an_engine_within_a_program_that_trains_makes_no_serving_trace():
    engine, training = (0, 50, DECODE, "annotation"), (60, 20, "Optimizer.step#AdamW.step", "annotation")
    assert engine_steps(trace(host_ops=[engine])) is not None
    assert engine_steps(trace(host_ops=[engine, training])) is None


def test_steps_that_the_user_names_come_before_those_of_the_engine():
    ranges = [(100 * i, 80, f"tick {i}") for i in range(4)]
    calls = [(100 * i + 10, 50, DECODE, "annotation") for i in range(4)]
    view = trace(nvtx=ranges, host_ops=calls, options=AnalysisOptions(step_marker="^tick"))
    assert training_steps(view).source == "nvtx"


def test_steps_of_the_processes_of_one_engine_are_their_own():
    own = {"process_id": 1, "thread_id": 1}
    view = trace(nvtx=[(0, 100, DECODE), (5, 90, DECODE, own)])
    assert engine_steps(view).frame.select("process_id", "start_ns").rows() == [(0, 0), (1, 5)]
    assert isinstance(engine_steps(view).frame, pl.DataFrame)


def test_calls_of_the_host_belong_to_the_step_that_they_launched():
    view = trace(
        nvtx=[(50, 20, DECODE), (80, 20, DECODE)],
        cuda_api=[launch(1, 9), launch(51, 1), launch(55, 2), launch(81, 3), launch(150, 8)],
        kernels=[work(130, 30, 1), work(170, 30, 2), work(210, 90, 3)],
    )
    assert bounds_of(view) == [(130, 200), (210, 300)]
    assert list(zip(host_time(view)[0].starts, host_time(view)[0].ends, strict=True)) == [(50, 70), (80, 100)]
    report = analyze(view.tables)
    assert report.fact("launch", "launches_per_step") == 1.5
    (row,) = report.rows("cuda_api")
    assert (row["startup_ns"], row["steady_ns"]) == (5, 20)
    in_steps = next(grid for grid in report.grids("cuda_api") if grid.title == IN_STEPS)
    assert in_steps.rows == (("cudaLaunchKernel", "runtime", 3, 15),)
