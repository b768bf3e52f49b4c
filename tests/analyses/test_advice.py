"""Advice: only what is meant for the program of the trace."""

import pytest

from tests.analyses.builders import tables
from traceviz.analyses.advice import fit_advice, inapplicable
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
        ("TensorFlow", "TensorFlow profiler", {"PyTorch", "JAX", "Nsight Systems"}),
        ("JAX", "JAX profiler", {"PyTorch", "TensorFlow", "Nsight Systems"}),
        (None, "NVIDIA Nsight Systems", set()),
        (None, None, set()),
    ],
)
def test_a_trace_leaves_out_up_to_3_names_it_has_nothing_to_do_with(framework, producer, unwanted):
    assert inapplicable(framework, producer) == unwanted


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
