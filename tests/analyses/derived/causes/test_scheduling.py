"""Time without events, divided by what the scheduler recorded of the leading thread."""

import polars as pl

from tests.analyses.builders import trace
from traceviz.analyses.derived.causes.attribution import host_causes

GPU = [(0, 100, "gemm", {"correlation_id": 1}), (900, 100, "gemm", {"correlation_id": 2})]
CALLS = [(0, 10, "cudaLaunchKernel", {"correlation_id": 1}), (880, 10, "cudaLaunchKernel", {"correlation_id": 2})]


def times(**tables):
    """Return the time of 800 ns without device work by kind, but not that of launches."""
    every = host_causes(trace(kernels=GPU, cuda_api=CALLS, **tables))
    assert every["time_ns"].sum() == 800
    sums = every.group_by("kind").agg(pl.col("time_ns").sum())
    return {kind: time for kind, time in sums.iter_rows() if not kind.startswith("launch")}


def test_time_on_a_core_is_work_that_was_not_sampled_and_other_time_a_wait():
    """
    device     |gemm|                            |gemm|
    on a core  |------|        |---|           |------|
    """
    assert times(scheduling=[(0, 150), (300, 200), (850, 150)]) == {"running": 280, "wait": 500}


def test_before_the_first_and_after_the_last_row_nothing_is_known():
    assert times(scheduling=[(300, 200), (700, 50)]) == {"running": 250, "wait": 200, "unexplained": 330}


def test_an_event_explains_its_time_whether_the_thread_runs_or_not():
    found = times(scheduling=[(0, 150), (850, 150)], nvtx=[(110, 760, "build")])
    assert found == {"range": 760, "running": 20}


def test_other_threads_show_nothing_of_the_leading_thread():
    assert times(scheduling=[(0, 900, {"thread_id": 5})]) == {"unexplained": 780}


def test_without_the_scheduler_time_stays_unexplained():
    assert times() == {"unexplained": 780}
