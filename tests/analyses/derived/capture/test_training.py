"""A program that trains on nothing has no input to wait for: what shows that one trains, and what does not."""

import polars as pl
import pytest

from tests.analyses.builders import trace
from traceviz.analyses.derived.capture.training import (
    GRADIENTS_ALONE,
    NOTHING_RECORDED,
    TRAINING_EVENT,
    TRAINING_KERNEL,
    trains,
    why_nothing_trains,
)
from traceviz.analyses.input.input_pipeline import InputPipelineAnalysis
from traceviz.analyses.options import AnalysisOptions

UNIT = (("pack", 0, 100), ("solve", 100, 200), ("exchange", 300, 100))


def repeating(*more, **tables):
    """Return five unmarked repeats of 1000 ns: three kernels each, and 600 ns of unknown work on the host."""
    kernels = [(i * 1000 + at, ns, name) for i in range(5) for name, at, ns in (*UNIT, *more)]
    return trace(kernels=kernels, cuda_api=[(i * 1000, 10, "cudaLaunchKernel") for i in range(5)], **tables)


def test_a_simulation_gets_no_input_verdict():
    result = InputPipelineAnalysis().run(repeating())
    assert (result.verdict.value, result.reason.text) == (
        "cannot judge",
        f"{NOTHING_RECORDED}, so nothing shows that the program trains",
    )
    assert "--input-range" in result.unranged
    assert InputPipelineAnalysis().judge(result) == ()


@pytest.mark.parametrize(
    "view",
    [
        repeating(("sgemm_dgrad_nn", 400, 10)),
        repeating(host_ops=[(0, 10, "autograd::engine::evaluate_function: MulBackward0", "op")]),
        repeating(host_ops=[(0, 10, "next", "input")]),
        repeating(nvtx=[(0, 10, "optimizer.step")]),
        repeating(nvtx=[(i * 1000, 400, f"step {i}") for i in range(5)]),
        repeating(options=AnalysisOptions(input_range="poll")),
    ],
    ids=["kernel", "autograd", "input", "range", "marked", "user"],
)
def test_a_backward_pass_an_optimizer_input_or_marked_steps_show_a_program_that_trains(view):
    assert trains(view)
    assert InputPipelineAnalysis().run(view).reason != why_nothing_trains(view)


@pytest.mark.parametrize(("process", "trained"), [("python3", True), (None, True), ("jacobi", False)])
def test_marked_steps_show_training_only_of_programs_that_may_use_a_framework(process, trained):
    marks = [(i * 1000, 1000, f"iteration {i}") for i in range(5)]
    view = repeating(nvtx=marks, processes=[(0, process)])
    assert trains(view) == trained
    assert trains(repeating(nvtx=[*marks, (0, 10, "load batch")], processes=[(0, process)]))


def gradients(**tables):
    """Return a compiled function that computes gradients and no more, over and over."""
    return repeating(("fmha_bwd_kernel", 400, 10), **tables)


def test_gradients_without_an_optimizer_of_a_program_that_takes_nothing_are_a_benchmark():
    result = InputPipelineAnalysis().run(gradients(memcpy=[(50, 10, "d2h", "device", "pinned", 8)]))
    assert (result.verdict.value, result.reason.text) == (
        "cannot judge",
        f"{GRADIENTS_ALONE}, so nothing shows that the program trains",
    )


@pytest.mark.parametrize(
    "tables",
    [
        {},  # copies were not recorded
        {"memcpy": [(50, 10, "h2d", "pinned", "device", 8)]},
        {"memcpy": [(50, 10, "unknown", "unknown", "unknown", 8)]},
        {"memcpy": [], "host_ops": [(0, 5, "BufferFromHostBuffer", "transfer")]},
        {"memcpy": [], "nvtx": [(0, 10, "optimizer.step")]},
    ],
    ids=["not recorded", "copied", "unknown", "transfer", "optimizer"],
)
def test_gradients_of_a_program_that_may_take_something_or_updates_are_training(tables):
    assert trains(gradients(**tables))


def test_modules_of_python_are_imported_by_programs_that_infer_as_well():
    view = repeating(host_ops=[(0, 10, "torch/autograd/grad_mode.py(80): backward", "python")])
    assert not trains(view)


@pytest.mark.parametrize(
    "name",
    [
        *("ConvolutionBackward0, seq = 5", "AddmmBackward", "## backward ##", "loss.backward", "optimizer", "train"),
        *("Optimizer.step#Adam.step", "EagerExecute: __inference_train_function_12", "PjitFunction(train_step)"),
        *("gradient_tape/sequential/conv2d/Conv2DBackpropFilter", "RegisterPostBackwardFunction, seq = 4"),
    ],
)
def test_names_of_training(name):
    assert pl.Series([name]).str.contains(TRAINING_EVENT)[0]


@pytest.mark.parametrize(
    "name",
    [
        *("collective-pipeliner-backward", "gather_optimizer", "meta_optimizer", "optimizer-tpu-spmd-collectives"),
        *("pretrained_model", "constrain", "strain_kernel", "forward", "PjitFunction(forward_3d_conv)", "MPI_Recv"),
    ],
)
def test_passes_of_compilers_and_other_names_are_no_training(name):
    assert not pl.Series([name]).str.contains(TRAINING_EVENT)[0]


def test_kernels_of_a_forward_pass_are_no_training():
    names = pl.Series(["fprop_implicit_gemm", "softmax_warp_forward", "wgrad_alg0_engine", "multi_tensor_apply_kernel"])
    assert names.str.contains(TRAINING_KERNEL).to_list() == [False, False, True, True]
