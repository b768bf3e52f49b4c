"""Serving: the report on an engine's steps, without statements on its input."""

import pytest

from tests.analyses.builders import tables, trace
from traceviz.analyses.derived.capture.training import trains
from traceviz.analyses.options import AnalysisOptions
from traceviz.analyses.run import analyze
from traceviz.analyses.serving.serving import NO_ENGINE, ServingAnalysis
from traceviz.gates.gates import Candidate
from traceviz.gates.metrics import METRICS
from traceviz.report import Prose, Skipped

DECODE = "execute_context_0(0)_generation_4(4)"


def annotated(*names, every=100, lasts=80, **more):
    calls = [(every * i, lasts, name, "annotation") for i, name in enumerate(names)]
    return tables(host_ops=calls, **more)


def launch(at, correlation):
    return (at, 5, "cudaLaunchKernel", {"correlation_id": correlation})


def phases_of(report):
    return {row["phase"]: row for row in report.rows("serving")}


def test_the_first_sentence_says_engine_phases_tokens_and_how_busy_the_device_is():
    view = annotated(
        "execute_context_1(888)_generation_0(0)",
        *[DECODE] * 3,
        cuda_api=[launch(10, 1), launch(110, 2)],
        kernels=[(20, 40, "gemm", {"correlation_id": 1}), (120, 40, "gemm", {"correlation_id": 2})],
    )
    verdict = analyze(view).verdict
    assert verdict.code == "serving"
    assert verdict.sentence.startswith(
        "Serving with vLLM: 1 prefill step of 888 tokens (80 ns) and 3 decode steps of 4 requests (240 ns); "
        "the device is busy in 25.0 % of that time. Unexplained: in 68.8 % of steady step time the device idles"
    )


def test_one_step_of_one_phase_is_said_with_its_time():
    view = annotated("step[EXTEND bs=2 toks=512]", span_ns=80)
    sentence = "Serving with SGLang: 1 prefill step of 512 tokens, 80 ns. Only one step was captured."
    assert analyze(view).verdict.sentence == sentence


def test_steps_of_which_the_name_states_no_tokens_have_none():
    report = analyze(annotated("step[MIXED bs=3]", "step[DECODE bs=3]"))
    assert [(row["phase"], row["tokens"], row["tokens_per_s"]) for row in report.rows("serving")] == [
        ("mixed", None, None),
        ("decode", 3, pytest.approx(3 / 80 * 1e9)),
    ]


@pytest.mark.parametrize(("span", "said"), [(160, False), (161, True)])
def test_where_steps_take_less_than_half_of_the_capture_the_rest_is_said(span, said):
    sentence = analyze(annotated("step[DECODE bs=1]", span_ns=span)).verdict.sentence
    assert ("Steps take 49.7 % of the captured time." in sentence) == said


@pytest.mark.parametrize(("waits", "named"), [(159, False), (160, True)])
def test_a_function_that_fills_half_of_the_time_outside_of_steps_is_named(waits, named):
    view = annotated("step[DECODE bs=1]", span_ns=400, cuda_api=[(80, waits, "cudaStreamSynchronize")])
    assert ("the host is mostly in cudaStreamSynchronize (160 ns)" in analyze(view).verdict.sentence) == named


def test_the_input_of_a_serving_program_is_not_judged_and_nothing_is_found_of_it():
    slow = [(100 * i, 50, "data loading") for i in range(8)]
    calls = [(100 * i + 60, 30, DECODE, "annotation") for i in range(8)]
    report = analyze(tables(nvtx=slow, host_ops=calls, os_calls=[(0, 800, "read")]))
    assert report.fact("input_pipeline", "verdict") == "not judged"
    assert report.fact("input_pipeline", "input_share") is None
    assert {finding.code for finding in report.findings}.isdisjoint({"TV101", "TV102"})
    assert report.verdict.code == "serving"


def test_an_input_share_of_a_serving_program_is_unknown_to_gates():
    metric = next(metric for metric in METRICS if metric.name == "input_share")
    reading = metric.read(Candidate((analyze(annotated(*[DECODE] * 4)),)))
    assert reading.value is None
    assert "not judged" in reading.why


def test_a_trace_without_an_engine_says_what_it_looked_for():
    outcome = ServingAnalysis().run(trace(nvtx=[(100 * i, 90, f"step {i}") for i in range(4)]))
    assert isinstance(outcome, Skipped)
    assert outcome.reason == NO_ENGINE


def test_steps_of_the_engine_stay_where_the_user_names_others():
    ranges = [(100 * i, 80, f"tick {i}") for i in range(4)]
    calls = [(100 * i + 10, 50, DECODE, "annotation") for i in range(4)]
    report = analyze(tables(nvtx=ranges, host_ops=calls), AnalysisOptions(step_marker="^tick"))
    assert report.fact("steps", "marker") == "^tick"
    assert phases_of(report)["decode"]["steps"] == 4


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ("step[DECODE bs=2]", "on 2 ranks, each: 1 decode step of 2 requests, 95.0 ns."),
        ("step[DECODE bs=4]", "on 2 ranks, in all: 2 decode steps of 3 requests, 190 ns."),
    ],
)
def test_steps_of_ranks_that_do_the_same_are_counted_once_in_the_sentence(second, said):
    own = {"process_id": 1, "thread_id": 1}
    report = analyze(tables(nvtx=[(0, 100, "step[DECODE bs=2]"), (0, 90, second, own)]))
    assert report.verdict.sentence == f"Serving with SGLang {said} Only 2 steps were captured."
    assert phases_of(report)["decode"]["total_ns"] == 190


def test_a_step_of_device_work_is_said_to_be_that_and_what_was_before_it_is_not_known():
    us = 1000
    calls = [launch(100 * us, 1), launch(101 * us, 2)]
    kernels = [(500 * us, 90 * us, "gemm", {"correlation_id": 1}), (600 * us, 400 * us, "gemm", {"correlation_id": 2})]
    report = analyze(tables(nvtx=[(100 * us, 5 * us, DECODE)], cuda_api=calls, kernels=kernels))
    prose = [block.text for block in report.section("serving").blocks if isinstance(block, Prose)]
    assert [text.partition(":")[0] for text in prose] == ["The host runs ahead of the device"]
    assert report.fact("serving", "host_ns") == 5 * us
    assert "1 decode step of 4 requests, 500 µs on the device" in report.verdict.sentence


@pytest.mark.parametrize(("span", "named"), [(160, None), (161, "cudaStreamSynchronize")])
def test_what_is_outside_of_steps_is_named_where_it_is_most_of_the_capture(span, named):
    view = annotated("step[DECODE bs=1]", span_ns=span, cuda_api=[(80, 80, "cudaStreamSynchronize")])
    report = analyze(view)
    facts = {fact.key: fact.value for fact in report.facts("serving")}
    assert facts.get("outside") == named
    assert facts["covered_share"] == pytest.approx(80 / span)


def test_a_program_that_serves_does_not_train_whatever_it_loads():
    loading = [(100 * i, 50, "data loading") for i in range(4)]
    calls = [(100 * i + 60, 30, DECODE, "annotation") for i in range(4)]
    assert trains(trace(nvtx=loading, host_ops=[]))
    assert not trains(trace(nvtx=loading, host_ops=calls))
