"""Not recorded is not zero: sections for a capture that could not show something."""

import pytest

from tests.analyses.builders import tables, trace
from traceviz.analyses.derived.host.classes import measured
from traceviz.analyses.device.copies import CopiesAnalysis
from traceviz.analyses.run import analyze
from traceviz.report import Prose

CALLS = [(i * 10, 5, "cudaLaunchKernel") for i in range(30)]
LOST = ("profiler-diagnostic", "warning", "nvprof: 2 records have invalid timestamps")
NOTHING_OF_A_DEVICE = {"kernels": [], "memcpy": [], "memset": [], "devices": [(0, "GPU A", {"sm_count": 108})]}
OF_DEVICES = ("kernels", "copies", "device_use", "gpu_efficiency", "idle_gaps", "precision", "communication")


def skipped(report):
    return {outcome.slug: outcome.reason for outcome in report.skipped}


def test_launches_whose_work_was_lost_leave_no_section_with_zeros():
    report = analyze(tables(**NOTHING_OF_A_DEVICE, cuda_api=CALLS))
    assert {slug: skipped(report)[slug] for slug in OF_DEVICES} == dict.fromkeys(
        OF_DEVICES, "no device work was captured"
    )
    assert skipped(report)["launch"] == "no device work was captured: only the calls are known"
    assert report.fact("devices", "visible") == 1
    assert report.fact("devices", "computing") is None
    (device,) = report.rows("devices")
    assert (device["kernels"], device["kernel_ns"], device["sm_count"]) == (None, None, 108)


def test_a_capture_without_calls_of_the_api_has_no_share_of_it():
    report = analyze(tables(**NOTHING_OF_A_DEVICE, cuda_api=[], os_calls=[(0, 9, "poll")]))
    assert skipped(report)["cuda_api"] == "no call of the device's API was captured"


def test_lost_kernels_are_no_idle_device():
    copies = [(0, 5, "h2d", "pageable", "device", 8), (900, 5, "d2h", "device", "pageable", 8)]
    report = analyze(tables(kernels=[], memcpy=copies, notes=[LOST]))
    assert {"device_use", "idle_gaps", "kernels"} <= skipped(report).keys()
    assert [finding.code for finding in report.findings] == ["TV901"]
    assert "busy" not in report.verdict.sentence
    assert report.fact("copies", "exposed_ns") is None
    assert [row["exposed_ns"] for row in report.rows("copies")] == [None, None]
    alone = analyze(tables(kernels=[], memcpy=copies))  # a program that only copies
    assert "TV201" in [finding.code for finding in alone.findings]


@pytest.mark.parametrize(("sees", "devices"), [(True, 0), (False, None)])
def test_devices_that_could_not_be_recorded_are_not_counted_as_unused(sees, devices):
    recorded = {"kernels": []} if sees else {}
    report = analyze(tables(os_calls=[(0, 9, "poll")], **recorded))
    assert (report.fact("capture", "devices"), report.fact("capture", "device_events")) == (devices, devices)


def test_classes_of_device_work_are_unseen_where_none_was_captured():
    steps = [(i * 100, 100, i) for i in range(4)]
    view = trace(steps=steps, kernels=[], cuda_api=CALLS, nvtx=[(0, 5, "a")])
    assert measured(view) == {"host_compute", "synchronisation", "allocation", "kernel_launch", "compilation"}
    prose = [block.text for block in analyze(view.tables).blocks("breakdown") if isinstance(block, Prose)]
    assert prose[-1].startswith("Not recorded by this capture: device compute, communication, copy device to host")


@pytest.mark.parametrize(
    ("calls", "seen"),
    [
        (["hipModuleLaunchKernel", "hipMemcpyDtoDAsync"], {"kernel_launch"}),
        (["hipLaunchKernel", "hipStreamSynchronize", "hipMalloc"], {"kernel_launch", "synchronisation", "allocation"}),
        (["cuLaunchKernel"], {"kernel_launch", "synchronisation", "allocation", "compilation"}),
    ],
)
def test_calls_that_xlas_profiler_does_not_pass_on_for_rocm_are_not_seen(calls, seen):
    api = [(i * 10, 5, name) for i, name in enumerate(calls)]
    view = trace(cuda_api=api, kernels=[(0, 5, "k")], run={"format": "xplane"})
    assert measured(view) & {"kernel_launch", "synchronisation", "allocation", "compilation"} == seen


def test_copies_of_unknown_kind_may_be_to_the_host_or_to_the_device():
    copies = {kind: [(0, 5, kind, "unknown", "unknown", 8)] for kind in ("unknown", "d2d")}
    seen = {kind: measured(trace(memcpy=rows)) & {"copy_d2h", "copy_h2d"} for kind, rows in copies.items()}
    assert seen == {"unknown": set(), "d2d": {"copy_d2h", "copy_h2d"}}


def test_copies_of_unknown_size_have_no_bandwidth():
    view = trace(memcpy=[(0, 10, "d2d", "device", "device", None), (20, 10, "d2d", "device", "device", None)])
    section = analyze(view.tables)
    assert section.fact("copies", "bytes") is None
    (row,) = section.rows("copies")
    assert [row[name] for name in ("bytes", "bandwidth", "mean_bytes", "small_calls")] == [None] * 4
    known = CopiesAnalysis().run(trace(memcpy=[(0, 10, "d2d", "device", "device", 0)]))
    assert (known.by_memory["bytes"].to_list(), known.by_memory["bandwidth"].to_list()) == ([0], [0.0])
