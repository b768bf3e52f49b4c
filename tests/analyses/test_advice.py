"""Advice: only what is meant for the program of the trace."""

from dataclasses import asdict

import pytest

from tests.analyses.builders import tables, trace
from traceviz.analyses.advice import fit_advice, inapplicable
from traceviz.analyses.derived.likely_frameworks import likely_frameworks
from traceviz.analyses.input.tfdata import take_advice
from traceviz.analyses.run import analyze
from traceviz.report import Finding, Severity

NAMES = "Spread it. TensorFlow: MirroredStrategy; PyTorch: DDP; JAX: shards."


def advice(*steps, unwanted):
    finding = Finding("TV101", "x", Severity.INFO, "", (), steps, 0)
    return fit_advice(finding, unwanted).advice


@pytest.mark.parametrize(
    ("framework", "producer", "unwanted"),
    [
        ("tensorflow", "TensorFlow profiler", {"PyTorch", "JAX", "Nsight Systems"}),
        ("jax", "JAX profiler", {"PyTorch", "TensorFlow", "Nsight Systems"}),
        ("pytorch tensorflow jax", "NVIDIA Nsight Systems", set()),
        ("pytorch tensorflow jax", None, set()),
        ("", None, {"PyTorch", "TensorFlow", "JAX"}),
    ],
)
def test_a_trace_leaves_out_up_to_3_names_it_has_nothing_to_do_with(framework, producer, unwanted):
    assert inapplicable(framework.split(), producer) == unwanted


@pytest.mark.parametrize(
    ("kernel", "process", "likely"),
    [
        ("void at::native::vectorized<4>(int)", "a.out", {"pytorch"}),
        ("void tensorflow::BiasNHWC(int)", None, {"tensorflow"}),
        ("jacobi(float*)", "python3.8", {"pytorch", "tensorflow", "jax"}),
        ("jacobi(float*)", None, {"pytorch", "tensorflow", "jax"}),
        ("jacobi(float*)", "jacobi", set()),
        ("my_at::native::f()", "jacobi", set()),
    ],
)
def test_kernels_and_processes_tell_of_frameworks_where_the_trace_states_none(kernel, process, likely):
    assert likely_frameworks(trace(kernels=[(0, 5, kernel)], processes=[(0, process)])) == likely


def test_a_program_without_a_framework_gets_advice_for_none_and_marks_of_its_own_language():
    view = trace(
        kernels=[(i * 100, 20, "ab"[i % 2]) for i in range(10)],
        os_calls=[(i * 100 + 20, 79, "poll") for i in range(10)],
        processes=[(0, "solver")],
        run={"format": "nsys", "producer": "NVIDIA Nsight Systems"},
    )
    report = analyze(view.tables)
    assert [finding.code for finding in report.findings] == ["TV209"]
    texts = repr(asdict(report))
    assert not any(name in texts for name in ("PyTorch:", "TensorFlow:", "JAX:", "torch.", "nvtx.annotate"))
    assert "nvtxRangePush and nvtxRangePop" in report.verdict.sentence


@pytest.mark.parametrize(("frames", "asks"), [([], True), ([(0, 1_000, "a.py(3): main", "python")], False)])
def test_frames_of_python_that_were_recorded_are_not_asked_for(frames, asks):
    kernels = [(i * 100, 20, "ab"[i % 2]) for i in range(10)]
    run = {"framework": "PyTorch", "format": "kineto"}
    operators = [(0, 1_000, "aten::mm", "op")]
    report = analyze(tables(kernels=kernels, host_ops=[*frames, *operators], cuda_api=[], run=run))
    (bound,) = [finding for finding in report.findings if finding.code == "TV205"]
    assert "the operators with the most host time say what is slow" in bound.advice[1]
    assert ("with_stack=True" in repr(asdict(report))) == asks


@pytest.mark.parametrize(
    ("unwanted", "left"),
    [
        ((), NAMES),
        (("PyTorch", "JAX"), "Spread it. TensorFlow: MirroredStrategy."),
        (("TensorFlow", "PyTorch"), "Spread it. JAX: shards."),
        (("TensorFlow",), "Spread it. PyTorch: DDP; JAX: shards."),
        (("TensorFlow", "PyTorch", "JAX"), "Spread it."),
    ],
)
def test_of_three_parts_those_for_others_are_left_out(unwanted, left):
    assert advice(NAMES, unwanted=unwanted) == (left,)


def test_of_two_lines_the_one_for_others_goes_and_a_last_one_stays():
    assert advice("PyTorch: a.", "b.", unwanted=("PyTorch",)) == ("b.",)
    assert advice("PyTorch: a.", unwanted=("PyTorch",)) == ("PyTorch: a.",)


def test_the_report_of_a_tensorflow_capture_gives_no_advice_for_2_other_frameworks():
    steps = [(i * 100_000, 100_000, i) for i in range(4)]
    memory = [(0, "alloc", 99, {"address": 1, "in_use_bytes": 99, "available_bytes": 1, "memory": "device"})]
    kernels = [(i * 100_000, 40_000, "volta_sgemm_128x64_nn") for i in range(4)]
    run = {"framework": "TensorFlow", "producer": "TensorFlow profiler"}
    report = analyze(tables(steps=steps, kernels=kernels, memory_events=memory, host_ops=[], run=run))
    assert len(report.findings) >= 2
    words = " ".join(line for finding in report.findings for line in finding.advice)
    assert not any(name in words for name in ("PyTorch:", "JAX:", "Nsight Systems:"))


def test_a_batch_that_jax_waits_for_gets_0_lines_about_tf_data():
    assert advice(*take_advice("data loading"), "JAX: a thread.", unwanted=("TensorFlow",)) == ("JAX: a thread.",)
