"""From file to first sentence: what is input, and what only looks like it."""

import pytest

from tests.parsers.kineto import files as k
from tests.support.reports import report_of
from traceviz import api

HTA = "facebookresearch__HolisticTraceAnalysis__"
OFFLOAD = "nsys/GindaChen__nsys-ai__h100_2gpu_1s.sqlite"


def offloaded_training():
    """Return ten steps of 10 ms: a batch of 1 ms, then three FSDP layers with 2 ms of fetch and 0.5 ms of compute."""
    events = []
    for n in range(10):
        begin, key = n * 10_000, 100 * n + 1  # 0 is no number of a call
        events += [
            k.step(n, begin, 10_000),
            k.annotation("## copy_batch_to_gpu ##", begin, 50),
            k.runtime("cudaMemcpyAsync", begin + 10, 20, correlation=key),
            k.copy(begin + 40, 1_000, correlation=key, size=20 << 20),
        ]
        for layer in range(3):
            at, number = begin + 1_500 + 2_700 * layer, key + 10 * (layer + 1)
            events += [
                k.annotation(f"FSDP::pre_forward (layers.{layer})", at, 60),
                k.runtime("cudaMemcpyAsync", at + 10, 20, correlation=number),
                k.copy(at + 40, 2_000, correlation=number, size=50 << 20),
                k.runtime("cudaLaunchKernel", at + 70, 10, correlation=number + 1),
                k.kernel("gemm", at + 2_050, 500, correlation=number + 1),
            ]
        events += [k.op("autograd::engine::evaluate_function: MmBackward0", begin + 9_700, 50)]
    return k.trace(events, header={"deviceProperties": [k.gpu(0, "NVIDIA H100")]})


def test_copies_of_parameters_lead_the_first_sentence_and_those_of_batches_are_the_input(tmp_path):
    path = tmp_path / "offload.pt.trace.json"
    path.write_bytes(offloaded_training())
    report = api.report_on(path)
    assert report.verdict.sentence.startswith("Parameter transfer")
    assert report.verdict.code == "moderately-input-bound"
    assert report.fact("input_pipeline", "input_share") == pytest.approx(0.1, abs=0.005)
    (finding,) = (finding for finding in report.findings if finding.code == "TV505")
    assert finding.share == pytest.approx(0.6, abs=0.01)
    assert finding.evidence[-1].value == "FSDP::pre_forward"


def test_a_programs_own_loader_is_input_where_stacks_were_recorded(tmp_path):
    """Ten steps of 10 ms: `get_batch` of the program takes 6 ms of each, and a kernel follows."""
    events = [k.op("autograd::engine::evaluate_function: MmBackward0", 9_000, 50)]
    for n in range(10):
        begin, key = n * 10_000, 100 * n + 1
        events += [
            k.step(n, begin, 10_000),
            k.frame("/home/me/train.py(116): get_batch", begin, 6_000),
            k.frame("numpy/memmap.py(12): get_data", begin + 100, 5_000),
            k.runtime("cudaLaunchKernel", begin + 6_010, 10, correlation=key),
            k.kernel("gemm", begin + 6_100, 3_800, correlation=key),
        ]
    path = tmp_path / "own_loader.pt.trace.json"
    path.write_bytes(k.trace(events, header={"deviceProperties": [k.gpu(0, "NVIDIA H100")]}))
    report = api.report_on(path)
    assert report.verdict.code == "highly-input-bound"
    assert report.fact("input_pipeline", "stage") == "get_batch (train.py:116)"
    assert report.fact("input_pipeline", "input_share") == pytest.approx(0.6, abs=0.01)


def test_parameter_offload_of_a_video_model_is_no_input(public_cases):
    """28.8 GB in the ranges FSDP::pre_forward, and as many bytes again of the same sizes called before the capture."""
    report = report_of(public_cases / OFFLOAD)
    assert report.verdict.code == "cannot-judge"
    assert report.verdict.sentence.startswith("Parameter transfer")
    assert "input-bound" not in report.verdict.sentence
    (finding,) = report.findings
    facts = {fact.key: fact.value for fact in finding.evidence}
    assert (finding.code, facts["parameter_place"]) == ("TV505", "FSDP::pre_forward")
    assert finding.share == pytest.approx(0.952, abs=0.001)


def test_annotations_in_hashes_say_what_a_rank_without_a_device_waits_for(public_cases):
    report = report_of(public_cases / f"kineto/{HTA}05cd72f__rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz")
    assert report.rows("input_pipeline")[0]["stage"] == "## data_load ##"
    assert report.fact("input_pipeline", "input_share") == pytest.approx(0.0015, abs=0.0005)


def test_a_benchmark_of_a_loss_gets_no_statement_on_its_input(public_cases):
    report = report_of(public_cases / "xplane/AMD-AGI__TraceLens__934987a2fc2f.xplane.pb")
    assert report.verdict.code == "cannot-judge"
    assert "0.0 %" not in report.verdict.sentence
    assert "no input, optimizer or copy to a device" in report.verdict.sentence
