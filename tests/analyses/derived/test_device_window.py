"""Devices are judged in the time in which their work was recorded, which may be a part of the capture."""

import pytest

from tests.analyses.builders import tables, trace
from traceviz.analyses.derived.judged_time import judged_time
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.device.idle_gaps import IdleGapsAnalysis
from traceviz.analyses.device.use import DeviceUseAnalysis
from traceviz.analyses.launch.cuda_api import CudaApiAnalysis
from traceviz.analyses.run import analyze
from traceviz.cutting import select
from traceviz.selection import Selection

SECOND = 10**9


def profiled(window=(10, 2), seconds=60, **more):
    """A run in which one source saw ranges all along, and another saw the device, 95 % busy, for some seconds."""
    begin, length = window
    work = [(begin * SECOND + n * SECOND // 10, 95 * SECOND // 1000, "gemm") for n in range(length * 10)]
    steps = [(n * SECOND // 10, SECOND // 10, f"step {n}") for n in range(seconds * 10)]
    shown = [(begin * SECOND, length * SECOND, "kernels"), (0, seconds * SECOND, "nvtx")]
    return {"kernels": work, "nvtx": steps, "windows": shown, "span_ns": seconds * SECOND, **more}


def test_a_device_seen_for_2_of_60_seconds_is_not_idle_for_the_rest():
    (device,) = DeviceUseAnalysis().run(trace(**profiled())).devices
    assert (device.span_ns, device.busy_ns) == (2 * SECOND, 19 * SECOND // 10)
    assert device.idle_ns == SECOND // 10


def test_without_windows_it_is_idle_for_the_rest():
    (device,) = DeviceUseAnalysis().run(trace(**profiled(windows=[]))).devices
    assert (device.span_ns, device.idle_ns) == (60 * SECOND, 581 * SECOND // 10)


def test_no_finding_calls_it_idle():
    report = analyze(tables(**profiled()))
    assert {finding.code for finding in report.findings}.isdisjoint({"TV201"})
    facts = {fact.key: fact.value for fact in report.section("device_use").blocks[0].facts}
    assert facts["utilisation"] == pytest.approx(0.95)


def test_gaps_before_and_after_the_window_are_none():
    gaps = IdleGapsAnalysis(min_gap_ns=0).run(trace(**profiled()))
    assert gaps.idle_ns == SECOND // 10


def test_steps_outside_the_window_are_not_judged():
    view = trace(**profiled())
    assert training_steps(view).frame.height == 20
    assert judged_time(view, 0).total == 2 * SECOND


def test_steps_outside_the_window_count_where_no_device_works():
    assert training_steps(trace(**profiled(kernels=[]))).frame.height == 600


def test_the_timeline_shows_the_window():
    result = DeviceUseAnalysis(slices=2).run(trace(**profiled()))
    assert result.window == (10 * SECOND, 12 * SECOND)
    assert result.devices[0].timeline == pytest.approx((0.95, 0.95))


def test_calls_are_shares_of_the_window():
    calls = [(10 * SECOND, SECOND, "cudaDeviceSynchronize")]
    shares = CudaApiAnalysis().run(trace(**profiled(cuda_api=calls))).by_name
    assert shares["share_of_wall"].to_list() == [0.5]


def test_a_selection_moves_the_window_with_the_clock():
    part = select(tables(**profiled()), Selection(start_ns=11 * SECOND, end_ns=30 * SECOND))
    assert TraceView(part).device_window == (0, SECOND)


def test_several_sources_of_device_work_make_one_window():
    view = trace(kernels=[(5, 1, "a")], windows=[(4, 3, "kernels"), (6, 3, "memcpy"), (0, 50, "host_ops")], span_ns=50)
    assert view.device_window == (4, 9)


def test_a_launcher_of_which_only_samples_are_known_is_no_rank():
    view = trace(
        host_ops=[(0, 5, "op", "op", {"process_id": 1, "thread_id": 0})],
        samples=[(0, "cpu", 1.0, {"process_id": 0, "device_id": None})],
    )
    assert view.ranks == (1,)


def test_processes_are_ranks_where_no_threads_are_known():
    view = trace(samples=[(0, "cpu", 1.0, {"process_id": 3, "device_id": None})])
    assert view.ranks == (3,)
