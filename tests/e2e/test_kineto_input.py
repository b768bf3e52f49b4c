"""PyTorch traces from file to verdict: input, idle causes, communication and memory of public and shipped traces."""

import pytest

from tests.support.reports import report_of, tables_of
from traceviz.analyses.derived.host.classes import class_times
from traceviz.analyses.derived.view import TraceView
from traceviz.core.arrays.intervals import IntervalSet
from traceviz.report import Bars

HTA = "facebookresearch__HolisticTraceAnalysis__"
WORKER = "pytorch__kineto__worker0.1623143089861.pt.trace.json.gz"
WITH_DEVICE = (
    "AMD-AGI__TraceLens__Falconsai_nsfw_image_detection__1016002.json.gz",
    "AMD-AGI__TraceLens__gaunernst_bert-small-uncased__1016001.json.gz",
    "AMD-AGI__TraceLens__moe_01_many_experts_few_tokens.json.gz",
    f"{HTA}benchmark_result_2869224_1695835535_trace.json.gz",
    f"{HTA}benchmark_simple_add_trace.json.gz",
    f"{HTA}d80adeb__event_sync_trace.json.gz",
    f"{HTA}event_sync_trace.json.gz",
    f"{HTA}mi250_minitoy_train_ROCm6_2_kineto.json.gz",
    f"{HTA}nccl_data.json.gz",
    f"{HTA}sampled_rank-0.json.gz",
    f"{HTA}sampled_rank-1.json.gz",
    f"{HTA}trace_diff_control.json.gz",
    f"{HTA}triton_example.json.gz",
    "pytorch__kineto__2d19c63__worker0.pt.trace.json.gz",
    WORKER,
)


def codes(report):
    return [finding.code for finding in report.findings]


def test_the_single_process_loader_is_what_the_resnet_trace_waits_for(public_traces):
    report = report_of(public_traces / "kineto" / WORKER)
    assert report.verdict.code == "highly-input-bound"
    assert "in the single-process DataLoader (num_workers=0)" in report.verdict.sentence
    assert {"TV101", "TV108"} <= set(codes(report))
    stage = report.rows("input_pipeline")[0]
    # tb_plugin: 59,262 µs of DataLoader in the average of 6 steps, once what runs on the device is taken out
    assert stage["self_ns"] / 6 == pytest.approx(59_262_000, rel=0.01)
    assert report.fact("input_pipeline", "waiting_share") == pytest.approx(0.3337, abs=0.01)


@pytest.mark.parametrize(
    ("name", "share"), [(f"{HTA}trace_diff_control.json.gz", 0.038), (f"{HTA}rank_non_gpu.json.gz", 0.0155)]
)  # in "## load_batch ##" and "## wait_for_batch ##", and copies
def test_loaders_that_keep_up_are_not_input_bound(public_traces, name, share):
    report = report_of(public_traces / "kineto" / name)
    assert report.verdict.code == "not-input-bound"
    assert report.fact("input_pipeline", "input_share") == pytest.approx(share, abs=0.001)
    assert not {"TV101", "TV102", "TV108", "TV109"} & set(codes(report))


@pytest.mark.parametrize("name", WITH_DEVICE)
def test_classes_add_up_to_the_capture_and_causes_to_the_gaps(public_traces, name):
    tables = tables_of(public_traces / "kineto" / name)
    view = TraceView(tables)
    whole = {rank: IntervalSet.span(0, view.span_ns) for rank in view.ranks}
    assert sum(class_times(view, whole).values()) == view.span_ns * len(view.ranks) > 0
    report = report_of(public_traces / "kineto" / name)
    (bars,) = [block for block in report.section("idle_gaps").blocks if isinstance(block, Bars)]
    assert sum(bar.value for bar in bars.bars) == report.fact("idle_gaps", "idle_ns")


@pytest.mark.parametrize("name", WITH_DEVICE)
def test_at_least_99_percent_of_kernel_time_has_a_family(public_traces, name):
    assert report_of(public_traces / "kineto" / name).fact("kernels", "classified_share") >= 0.99


def test_inference_that_launches_all_the_time_is_not_suspected_of_loading(public_traces):
    report = report_of(public_traces / "kineto" / WITH_DEVICE[0])
    assert "TV102" not in codes(report)
    assert "TV202" in codes(report)


def test_collectives_have_the_sizes_that_the_trace_states(public_traces):
    tables = tables_of(public_traces / "kineto" / f"{HTA}nccl_data.json.gz")
    first = tables.arrow("collectives").filter(tables.arrow("collectives")["in_elements"].is_valid()).to_pylist()
    sizes = {(row["name"], row["in_elements"], row["out_elements"], row["group"]) for row in first}
    assert ("allreduce", 2_049_000, 2_049_000, "0") in sizes
    report = report_of(public_traces / "kineto" / f"{HTA}nccl_data.json.gz")
    grid = report.section("communication").blocks[-1]
    names = [column.name for column in grid.columns]
    rows = [dict(zip(names, row, strict=True)) for row in grid.rows]
    (allreduce,) = [row for row in rows if row["name"] == "allreduce"]
    # 15 calls of (6637568 + 2431040 + 2049000 + 7875584 + 6563840) / 5 floats each, 2 ranks: bus factor 1
    assert (allreduce["calls"], allreduce["mean_bytes"]) == (15, 4 * 25_557_032 / 5)
    assert allreduce["algorithm_bandwidth"] == pytest.approx(3 * 4 * 25_557_032 * 1e9 / allreduce["total_ns"])
    assert allreduce["bus_bandwidth"] == allreduce["algorithm_bandwidth"]


def test_exposed_communication_of_the_recommendation_model_is_a_finding(public_traces):
    report = report_of(public_traces / "kineto" / f"{HTA}trace_diff_control.json.gz")
    (finding,) = [finding for finding in report.findings if finding.code == "TV504"]
    assert finding.share == pytest.approx(0.189, abs=0.001)


def test_copies_of_hip_are_no_communication(public_traces):
    report = report_of(public_traces / "kineto" / f"{HTA}mi250_minitoy_train_ROCm6_2_kineto.json.gz")
    assert (report.fact("communication", "busy_ns"), report.fact("communication", "overlap_share")) == (0, None)
    assert report.fact("copies", "calls") == 2


def test_reserved_memory_is_held_against_what_the_device_has(public_traces):
    report = report_of(public_traces / "kineto" / WITH_DEVICE[0])
    (pool,) = [row for row in report.rows("memory") if row["reserved_bytes"]]
    assert pool["reserved_bytes"] >= pool["peak_bytes"] >= 216_081_408
    assert 0 < pool["used_share"] < 0.01
    assert pool["unused_reserved"] == pool["reserved_bytes"] - pool["peak_bytes"]


@pytest.mark.parametrize(
    ("sample", "verdict", "findings"),
    [
        ("kineto/slow.pt.trace.json.gz", "highly-input-bound", ["TV101", "TV108", "TV606"]),
        ("kineto/workers.pt.trace.json.gz", "highly-input-bound", ["TV101", "TV109", "TV606"]),
        ("kineto/repaired.pt.trace.json.gz", "not-input-bound", ["TV606"]),
        ("synthetic/torch_healthy.pt.trace.json.gz", "not-input-bound", []),
        ("synthetic/torch_input_bound_single.pt.trace.json.gz", "highly-input-bound", ["TV101", "TV108"]),
        ("synthetic/torch_input_bound_workers.pt.trace.json.gz", "highly-input-bound", ["TV101", "TV109"]),
        ("synthetic/torch_item_in_steps.pt.trace.json.gz", "not-input-bound", ["TV203"]),
        ("synthetic/torch_pageable_copies.pt.trace.json.gz", "highly-input-bound", ["TV101", "TV302"]),
        ("synthetic/torch_memory_nearly_full.pt.trace.json.gz", "not-input-bound", ["TV402"]),
    ],
)
def test_shipped_pytorch_samples_get_1_verdict_and_what_explains_it(samples, sample, verdict, findings):
    report = report_of(samples / sample)
    assert (report.verdict.code, codes(report)) == (verdict, findings)
