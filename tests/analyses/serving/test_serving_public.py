"""The report on public captures of serving engines."""

import pytest

from tests.support.reports import report_of

VLLM_PREFILL = "AMD-AGI__TraceLens__eager_trace.json.gz"
VLLM_DECODE = "AMD-AGI__TraceLens__inference_vllm_decode_full__graph_execution.json.gz"
SGLANG_DECODE = "AMD-AGI__TraceLens__inference_sglang_decode__sglang_Qwen3-8B_decode.json.gz"


@pytest.fixture
def report(public_cases):
    return lambda name: report_of(public_cases / "kineto" / name)


def phase_of(document):
    (row,) = document.rows("serving")
    return row


def test_one_annotation_of_vllm_is_one_prefill_and_its_36_layers_are_no_steps(report):
    document = report(VLLM_PREFILL)
    assert document.verdict.code == "serving"
    assert "vLLM: 1 prefill step of 888 tokens, 87.4 ms; the device is busy in 13.3 %" in document.verdict.sentence
    phase = phase_of(document)
    assert (phase["phase"], phase["steps"], phase["requests"], phase["tokens"]) == ("prefill", 1, 1.0, 888)
    assert phase["host_gap_ns"] == pytest.approx(2.64e6, rel=0.01)


def test_where_vllm_runs_ahead_the_step_is_the_graph_that_it_launched(report):
    document = report(VLLM_DECODE)
    assert "1 decode step of 32 requests, 10.7 ms on the device" in document.verdict.sentence
    assert document.fact("serving", "host_ns") == 2_408_598
    assert document.fact("launch", "launches_per_step") == 5
    assert {finding.code for finding in document.findings}.isdisjoint({"TV101", "TV102", "TV408"})


def test_sglangs_step_begins_with_its_work_and_the_wait_before_it_is_said(report):
    document = report(SGLANG_DECODE)
    assert "SGLang: 1 decode step of 32 requests, 10.5 ms on the device" in document.verdict.sentence
    assert "the host is mostly in hipMemcpyWithStream (463 ms)" in document.verdict.sentence
    assert phase_of(document)["busy_share"] == pytest.approx(0.935, abs=0.001)
