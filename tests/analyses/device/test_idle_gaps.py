"""Idle gaps of devices, and the host's work in them."""

from tests.analyses.builders import trace
from traceviz.analyses.device.idle_gaps import IdleGapsAnalysis
from traceviz.report import Skipped

GAPS = IdleGapsAnalysis(min_gap_ns=0)


def test_gaps_take_the_cause_that_covers_most_of_them():
    view = trace(
        kernels=[(0, 10, "k"), (110, 10, "k"), (220, 10, "k"), (330, 10, "k")],
        cuda_api=[(12, 60, "cudaMalloc"), (80, 20, "cudaLaunchKernel"), (125, 90, "cudaDeviceSynchronize")],
        os_calls=[(240, 80, "poll")],
    )
    gaps = GAPS.run(view)
    assert [(g.start_ns, g.dur_ns, g.cause) for g in sorted(gaps.largest, key=lambda g: g.start_ns)] == [
        (10, 100, "allocation"),
        (120, 100, "synchronisation"),
        (230, 100, "host_blocked"),
    ]


def test_time_before_the_first_and_after_the_last_work_is_named_so():
    gaps = GAPS.run(trace(kernels=[(50, 10, "k")], span_ns=100))
    assert gaps.by_cause == {"before_first_work": (1, 50), "after_last_work": (1, 40)}


def test_profiler_overhead_is_a_cause_of_its_own():
    view = trace(
        kernels=[(0, 10, "k"), (110, 10, "k")], overhead=[(15, 90, "flush")], cuda_api=[(12, 95, "cudaMalloc")]
    )
    assert GAPS.run(view).by_cause == {"profiler_overhead": (1, 100)}


def test_a_gap_while_another_device_of_the_process_works_is_not_the_hosts():
    other = {"device_id": 1}
    view = trace(
        kernels=[(0, 10, "k"), (110, 10, "k"), (5, 110, "k", other)], overhead=[], cuda_api=[(20, 50, "cudaMalloc")]
    )
    gaps = {gap.device: gap.cause for gap in GAPS.run(view).largest if gap.dur_ns == 100}
    assert gaps == {"GPU 0": "other_device_busy"}


def test_short_gaps_are_not_counted():
    view = trace(kernels=[(0, 10, "k"), (9_010, 10, "k"), (30_000, 10, "k")])
    assert IdleGapsAnalysis().run(view).gaps == 1


def test_a_gap_knows_the_innermost_range_around_it():
    view = trace(nvtx=[(0, 100, "epoch"), (20, 60, "evaluate")], kernels=[(0, 20, "k"), (80, 20, "k")])
    assert GAPS.run(view).largest[0].range == "evaluate"


def test_a_device_of_which_a_window_leaves_an_instant_has_no_gaps_and_stops_nothing():
    assert isinstance(GAPS.run(trace(kernels=[(10, 0, "a")], span_ns=100)), Skipped)
    view = trace(kernels=[(10, 0, "a"), (20, 30, "b", {"device_id": 1})], span_ns=100)
    assert GAPS.run(view).gaps == 2
