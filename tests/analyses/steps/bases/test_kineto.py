"""Step time by the classes of PyTorch's TensorBoard plugin: which time counts as what, in which steps."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analyses.builders import tables, trace
from traceviz import api
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.options import AnalysisOptions
from traceviz.analyses.run import analyze
from traceviz.analyses.steps.bases.kineto import CLASSES, kineto_steps
from traceviz.analyses.steps.bases.kineto_section import recommendations
from traceviz.analyses.steps.breakdown import BreakdownAnalysis
from traceviz.report import Skipped
from traceviz.trace.selection import Selection
from traceviz.trace.slicing import select

pytestmark = pytest.mark.process

KINETO = {"format": "kineto"}
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
OPTIONS = AnalysisOptions(basis="kineto")


def view(**literals):
    return trace(run=KINETO, options=OPTIONS, **literals)


def steps(**literals):
    return kineto_steps(view(**literals)).frame.to_dicts()


def classes(**literals):
    """Step time and classes with time, of the only step."""
    (step,) = steps(**literals)
    return {key: step[key] for key in ("step_ns", *(c.key for c in CLASSES)) if step[key]}


def extents(**literals):
    """Return start and end of each step by its number."""
    return {row["step"]: (row["start_ns"], row["start_ns"] + row["step_ns"]) for row in steps(**literals)}


def call(start, dur, correlation, name="cudaLaunchKernel", **more):
    return (start, dur, name, {"correlation_id": correlation, **more})


def kernel(start, dur, correlation=None, **more):
    return (start, dur, "sgemm", {"correlation_id": correlation, **more})


ONE_STEP = {
    "steps": [(0, 1000, 7)],
    "host_ops": [
        (0, 1000, "ProfilerStep#7", "step"),
        (0, 300, LOADER, "input"),
        (400, 300, "aten::conv2d", "op"),
        (700, 100, "Optimizer.step#SGD.step", "annotation"),
        (850, 50, "nccl:all_reduce", "annotation"),
        (100, 800, "train.py(12): step", "python"),
    ],
    "cuda_api": [
        call(450, 30, 1),
        call(500, 40, 2, "cudaMemcpyAsync"),
        call(600, 10, 3, "cuLaunchKernel", domain="driver"),
    ],
    "kernels": [kernel(500, 200, 1), (860, 90, "ncclKernel", {"op": "nccl:all_reduce"})],
    "memcpy": [(690, 30, "h2d", "pinned", "device", 64, {"correlation_id": 2})],
    "memset": [(720, 10, 64)],
}


def test_each_class_takes_what_those_before_it_left():
    assert classes(**ONE_STEP) == {
        "step_ns": 1000,
        "kernel": 200,
        "memcpy": 20,  # 700 to 720: before, a kernel runs
        "memset": 10,
        "communication": 100,  # the operator from 850 on, its kernel to 950
        "runtime": 30,  # the call of the copy is hidden by the kernel, that of the driver counts as nothing
        "data_loader": 300,
        "cpu_exec": 50 + 20 + 70,  # convolution 400-450 and 480-500, optimizer 730-800
        "other": 100 + 50 + 50,  # between the loader, the convolution, the collective and the end
    }


def test_python_frames_count_as_nothing():
    host = [(0, 100, "ProfilerStep#0", "step"), (0, 100, "train.py(12): step", "python")]
    assert classes(steps=[(0, 100, 0)], host_ops=host) == {"step_ns": 100, "other": 100}


def test_steps_include_the_device_work_that_their_calls_launched():
    literals = {
        "steps": [(0, 100, 0), (100, 100, 1)],
        "host_ops": [(0, 200, "aten::mm", "op")],
        "cuda_api": [call(10, 5, 1), call(150, 5, 2)],
        "kernels": [kernel(20, 120, 1), kernel(160, 90, 2)],
    }
    assert extents(**literals) == {"0": (0, 140), "1": (140, 250)}


def test_the_first_step_begins_after_device_work_that_was_launched_before_it():
    literals = {
        "steps": [(100, 100, 0)],
        "cuda_api": [call(50, 5, 1), call(110, 5, 2)],
        "kernels": [kernel(60, 70, 1), kernel(140, 90, 2)],
    }
    assert extents(**literals) == {"0": (130, 230)}
    literals["kernels"][0] = kernel(60, 80, 1)  # ends when the first step's work starts, not before
    assert extents(**literals) == {"0": (100, 230)}


def test_a_first_step_that_launched_nothing_begins_with_its_mark():
    literals = {
        "steps": [(100, 100, 0), (200, 100, 1)],
        "cuda_api": [call(50, 5, 1), call(210, 5, 2)],
        "kernels": [kernel(60, 70, 1), kernel(240, 90, 2)],
    }
    assert extents(**literals) == {"0": (100, 200), "1": (200, 330)}


def test_a_call_that_crosses_the_end_of_a_step_belongs_to_none():
    literals = {
        "steps": [(0, 100, 0), (100, 100, 1)],
        "cuda_api": [call(10, 5, 1), call(95, 10, 2), call(150, 5, 3)],
        "kernels": [kernel(20, 10, 1), kernel(110, 300, 2), kernel(160, 90, 3)],
    }
    assert extents(**literals) == {"0": (0, 100), "1": (100, 250)}


@pytest.mark.parametrize(("kernels_of_last", "kept"), [(3, ["0"]), (4, ["0", "1"])])
def test_a_last_step_with_less_than_four_fifths_of_the_device_work_is_dropped(kernels_of_last, kept):
    launched = [*range(5), *(100 + n for n in range(kernels_of_last))]
    literals = {
        "steps": [(0, 100, 0), (100, 100, 1)],
        "cuda_api": [call(n, 1, n) for n in launched],
        "kernels": [kernel(n + 1, 1, n) for n in launched],
    }
    assert list(extents(**literals)) == kept


def test_steps_at_the_end_without_device_work_are_dropped():
    literals = {
        "steps": [(0, 100, 0), (100, 100, 1), (200, 100, 2)],
        "cuda_api": [call(10, 1, 1)],
        "kernels": [kernel(20, 10, 1)],
    }
    assert extents(**literals) == {"0": (0, 100)}


def test_steps_of_a_cpu_stay_where_they_are():
    host = [(0, 60, LOADER, "input"), (60, 30, "aten::mm", "op"), (110, 70, "aten::mm", "op")]
    outcome = kineto_steps(view(steps=[(0, 100, 0), (110, 90, 1)], host_ops=host))
    assert outcome.frame.select("step", "data_loader", "cpu_exec", "other").rows() == [
        ("0", 60, 30, 10),
        ("1", 0, 70, 20),
    ]
    assert [c.label for c in outcome.classes] == ["DataLoader", "CPU Exec", "Other"]


def test_operators_are_one_step_where_none_is_marked():
    literals = {
        "host_ops": [(10, 50, "aten::mm", "op"), (200, 50, "aten::mm", "op"), (0, 300, LOADER, "input")],
        "cuda_api": [call(20, 1, 1)],
        "kernels": [kernel(240, 60, 1)],
    }
    assert extents(**literals) == {"0": (10, 300)}
    text = api.to_text(analyze(tables(run=KINETO, **literals), sections=["breakdown"], options=OPTIONS))
    assert "marks no steps" in " ".join(text.split())


def test_without_operators_the_section_says_so():
    skipped = BreakdownAnalysis().run(view(kernels=[kernel(0, 10)]))
    assert isinstance(skipped, Skipped)
    assert "neither steps nor operators" in skipped.reason


def test_traces_of_other_profilers_are_skipped_with_the_reason():
    skipped = BreakdownAnalysis().run(trace(options=OPTIONS, **ONE_STEP))
    assert isinstance(skipped, Skipped)
    assert "PyTorch" in skipped.reason


def test_every_rank_has_its_own_steps():
    ranks = [{"process_id": process, "thread_id": process} for process in (0, 1)]
    marks = [(10 * n, 100, 0, own) for n, own in enumerate(ranks)]
    ops = [(10 * n, 40, "aten::mm", "op", own) for n, own in enumerate(ranks)]
    outcome = kineto_steps(view(steps=marks, host_ops=ops))
    assert outcome.frame.select("process_id", "start_ns", "cpu_exec").rows() == [(0, 0, 40), (1, 10, 40)]


def test_steps_that_a_time_window_cuts_are_left_out():
    whole = tables(run=KINETO, steps=[(n * 100, 100, n) for n in range(4)], host_ops=[(0, 400, "aten::mm", "op")])
    cut = select(whole, Selection(50, 350))
    assert kineto_steps(TraceView(cut)).frame["step"].to_list() == ["1", "2"]


def test_figures_of_a_gpu_are_those_from_the_first_to_the_last_step():
    shape = {"blocks_per_sm": 0.5, "achieved_occupancy": 0.25}
    literals = {
        "steps": [(0, 100, 0)],
        "host_ops": [(0, 100, "aten::mm", "op")],
        "cuda_api": [call(0, 1, 1)],
        "kernels": [kernel(20, 40, 1, **shape), (200, 50, "late", {"blocks_per_sm": 9.0, "achieved_occupancy": 1.0})],
    }
    (gpu,) = kineto_steps(view(**literals)).gpus
    assert (gpu.utilisation, gpu.efficiency.sm_efficiency, gpu.efficiency.occupancy) == (0.4, 0.2, 0.25)
    assert gpu.tensor_core_share == 0.0


def test_an_occupancy_stated_as_0_lowers_the_mean_as_in_the_original():
    stated = [0.5, 0.0]
    kernels = [kernel(10 * n, 10, n, achieved_occupancy=value) for n, value in enumerate(stated)]
    calls = [call(0, 1, n) for n in range(2)]
    (gpu,) = kineto_steps(view(steps=[(0, 100, 0)], cuda_api=calls, kernels=kernels)).gpus
    assert gpu.efficiency.occupancy == 0.25
    assert gpu.efficiency.sm_efficiency is None  # no blocks per SM are stated


def recommended(**literals):
    return " ".join(recommendations(kineto_steps(view(**literals))))


@pytest.mark.parametrize(("loading", "says"), [(50, ""), (51, "5.1% of the step time is in DataLoader")])
def test_loading_is_mentioned_above_a_twentieth_of_step_time(loading, says):
    text = recommended(steps=[(0, 1000, 0)], host_ops=[(0, loading, LOADER, "input"), (100, 800, "aten::mm", "op")])
    assert (says in text) if says else text == ""


@pytest.mark.parametrize(("time", "says"), [(100, ""), (101, "10.1% of the step time is in communication")])
def test_communication_is_mentioned_above_a_tenth(time, says):
    text = recommended(steps=[(0, 1000, 0)], host_ops=[(0, time, "gloo:all_reduce", "annotation")])
    assert (says in text) if says else text == ""


@pytest.mark.parametrize(("busy", "says"), [(500, ""), (499, "GPU 0 has low utilization")])
def test_low_utilisation_is_mentioned_below_one_half(busy, says):
    text = recommended(steps=[(0, 1000, 0)], cuda_api=[call(0, 1, 1)], kernels=[kernel(100, busy, 1)])
    assert (says in text) if says else text == ""


@pytest.mark.parametrize(
    ("name", "capability", "says"),
    [
        ("sgemm_128", "7.0", True),
        ("h1688gemm", "7.0", False),  # tensor cores are used
        ("sgemm_128", "6.1", False),
        ("sgemm_128", None, False),
    ],
)
def test_mixed_precision_is_advised_where_no_kernel_uses_tensor_cores(name, capability, says):
    view_ = tables(
        run=KINETO,
        steps=[(0, 1000, 0)],
        cuda_api=[call(0, 1, 1), call(2, 1, 2)],
        kernels=[
            (10, 600, name, {"correlation_id": 1, "op": "aten::mm"}),
            (650, 200, "add", {"correlation_id": 2, "op": "aten::add"}),
        ],
        devices=[(0, "V100", {"ordinal": 0, "compute_capability": capability})],
    )
    text = " ".join(recommendations(kineto_steps(TraceView(view_))))
    assert ("Kernels with 75% time are launched by Tensor Cores eligible operators." in text) == says


@pytest.mark.parametrize(("peak", "says"), [(900, False), (901, True)])
def test_full_memory_is_mentioned_above_nine_tenths(peak, says):
    trace_tables = tables(
        run=KINETO,
        steps=[(0, 1000, 0)],
        memory_events=[(1, "alloc", 8, {"in_use_bytes": peak})],
        devices=[(0, "V100", {"ordinal": 0, "memory_bytes": 1000})],
    )
    text = " ".join(recommendations(kineto_steps(TraceView(trace_tables))))
    assert ("(90.1% of 0.0GB on GPU0)" in text) == says


def test_data_parallel_is_mentioned_on_several_gpus_only():
    kernels = [kernel(0, 900, 1), kernel(0, 900, 2, device_id=1)]
    literals = {
        "steps": [(0, 1000, 0)],
        "host_ops": [(0, 1000, "DataParallel.forward", "annotation")],
        "cuda_api": [call(0, 1, 1), call(0, 1, 2)],
    }
    assert "use DistributedDataParallel instead" in recommended(**literals, kernels=kernels)
    assert recommended(**literals, kernels=kernels[:1]) == ""


def test_the_report_shows_averages_steps_and_recommendations():
    report = analyze(tables(run=KINETO, **ONE_STEP), sections=["breakdown"], options=OPTIONS)
    blocks = json.loads(api.to_text(report, "json"))["sections"][0]["blocks"]
    facts = {fact["key"]: fact["value"] for fact in blocks[0]["facts"]}
    assert (facts["basis"], facts["steps"], facts["average_step_ns"], facts["kernel_share"]) == ("kineto", 1, 1000, 0.2)
    (row,) = next(block["rows"] for block in blocks if block.get("title") == "Steps")
    assert (row["stepnum"], row["kernel_ns"], row["data_loader_ns"], row["other_ns"]) == ("7", 200, 300, 200)
    text = " ".join(api.to_text(report).split())
    assert "30.0% of the step time is in DataLoader" in text
    assert "calls of the CUDA driver API and Python frames count as nothing" in text


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 80), st.integers(0, 3)), max_size=25))
def test_classes_add_up_to_every_step(events):
    kinds = {
        "host_ops": lambda n, s, d: (s, d, ("aten::mm", LOADER)[n % 2], ("op", "input")[n % 2]),
        "kernels": lambda n, s, d: kernel(s, d, n),
        "memcpy": lambda n, s, d: (s, d, "h2d", "pinned", "device", 8, {"correlation_id": n}),
        "cuda_api": lambda n, s, d: call(s, d, n),
    }
    literals = {
        name: [make(n, start, dur) for n, (start, dur, kind) in enumerate(events) if kind == which]
        for which, (name, make) in enumerate(kinds.items())
    }
    frame = kineto_steps(view(steps=[(0, 100, 0), (150, 100, 1), (260, 50, 2)], **literals)).frame
    assert np.array_equal(frame.select(c.key for c in CLASSES).sum_horizontal().to_numpy(), frame["step_ns"].to_numpy())
