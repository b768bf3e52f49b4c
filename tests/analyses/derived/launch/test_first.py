"""Calls that take long because they are the first: they create a context, or load code."""

import pytest

from tests.analyses.builders import trace
from traceviz.analyses.derived.host.classes import host_classes
from traceviz.analyses.derived.launch.first import first_calls

US, MS = 1_000, 1_000_000


def firsts(**tables):
    """Return ``(name, what, ms)`` of the first calls of a trace."""
    found = first_calls(trace(**tables))
    times = ((found["end_ns"] - found["start_ns"]) / MS).to_list()
    return list(zip(found["name"].cast(str).to_list(), found["what"].to_list(), times, strict=True))


def launched(*durations, kernels=None):
    """Return launches of these durations in µs, one after the other, of kernels with these names."""
    names = kernels or ["gemm"] * len(durations)
    begins = [sum(durations[:n]) * US for n in range(len(durations))]
    key = [{"correlation_id": n} for n in range(len(durations))]
    calls = zip(begins, durations, key, strict=True)
    return {
        "cuda_api": [(begin, us * US, "cudaLaunchKernel", k) for begin, us, k in calls],
        "kernels": [(b + us * US, US, n, k) for b, us, n, k in zip(begins, durations, names, key, strict=True)],
    }


def test_the_first_launch_of_a_kernel_loads_its_code():
    kernels = ["gemm", "gemm", "add", "add", "gemm"]
    assert firsts(**launched(2_000, 5, 17_000, 5, 5, kernels=kernels)) == [
        ("cudaLaunchKernel", "code", 2.0),
        ("cudaLaunchKernel", "code", 17.0),
    ]


@pytest.mark.parametrize(("us", "found"), [(999, 0), (1_000, 1)])
def test_a_launch_that_loads_code_takes_a_millisecond_at_least(us, found):
    assert len(firsts(**launched(us, 5, 5))) == found


def test_a_kernel_that_is_launched_slowly_every_time_loads_nothing():
    assert firsts(**launched(7_000, 5, 7_000, 5, 5, kernels=["slow", "gemm", "slow", "gemm", "gemm"])) == []


def test_a_launch_of_a_kernel_that_ran_before_is_no_first_one():
    assert firsts(**launched(5, 9_000, 5, 5)) == []


def test_all_launches_of_a_short_trace_may_load_code():
    assert len(firsts(**launched(17_400, 17_700, kernels=["gemm", "add"]))) == 2


def test_without_kernels_the_first_launch_of_its_name_is_the_first():
    calls = launched(3_000, 5, 4_000, 5)["cuda_api"]
    assert firsts(cuda_api=calls) == [("cudaLaunchKernel", "code", 3.0)]


@pytest.mark.parametrize(
    ("name", "others", "found"),
    [
        ("cudaStreamCreateWithFlags", [20 * US], 1),
        ("cudaStreamCreateWithFlags", [9 * MS, 9 * MS], 0),  # streams of this program take that long
        ("cudaDeviceGetStreamPriorityRange", [], 1),
        ("cuDevicePrimaryCtxRetain", [], 1),
        ("cudaProfilerStart", [], 0),
        ("predictor_executor::run", [], 0),  # not of the driver
        ("cudaDeviceSynchronize", [US], 0),  # waits
        ("cudaMemcpy", [US], 0),
        ("cudaFree", [300 * US], 1),
    ],
)
def test_the_first_call_of_its_name_that_takes_far_longer_creates_the_context(name, others, found):
    calls = [(0, 80 * MS, name), *((n * 100 * MS, dur, name) for n, dur in enumerate(others, 1))]
    assert firsts(cuda_api=calls) == [(name, "context", 80.0)][:found]


def test_memory_takes_its_own_time_once_there_is_a_context():
    free, big = (0, 90 * MS, "cudaFree"), (100 * MS, 50 * MS, "cudaHostAlloc")
    launch = (200 * MS, 5 * US, "cudaLaunchKernel")
    assert firsts(cuda_api=[free, big, launch]) == [("cudaFree", "context", 90.0)]
    assert firsts(cuda_api=[(0, 5 * US, "cudaLaunchKernel"), big]) == []
    init = (0, 12 * MS, "cuInit")  # starts the driver, and creates no context
    assert [name for name, _, _ in firsts(cuda_api=[init, (20 * MS, 90 * MS, "cudaMalloc")])] == [
        "cuInit",
        "cudaMalloc",
    ]


def test_a_trace_without_calls_has_no_first_ones():
    assert firsts(kernels=[(0, 10, "gemm")]) == []
    assert firsts(cuda_api=[]) == []


def test_first_calls_are_compilation_and_neither_allocation_nor_launch():
    calls = [(0, 80 * MS, "cudaFree"), (90 * MS, 2 * MS, "cudaFree"), (100 * MS, 5 * MS, "cudaLaunchKernel")]
    calls += [(200 * MS + n * US, US, "cudaLaunchKernel") for n in range(5)]
    sets = host_classes(trace(cuda_api=calls, kernels=[(300 * MS, US, "gemm")]))[0].sets
    times = {key: sets[key].total for key in ("compilation", "allocation", "kernel_launch")}
    assert times == {"compilation": 85 * MS, "allocation": 2 * MS, "kernel_launch": 5 * US}


@pytest.mark.parametrize(("ms", "busy", "found"), [(600, 0, 1), (99, 0, 0), (600, 1, 0)])
def test_a_library_begins_with_a_call_that_frees_nothing_and_loads_its_code(ms, busy, found):
    """Calls that free memory take long if they wait for the device, which works at the same time."""
    calls = [(0, 5 * US, "cudaLaunchKernel"), *((n * 10 * MS, MS, "cudaFree") for n in (1, 2, 3, 4))]
    calls += [(100 * MS, ms * MS, "cudaFree")]
    kernels = [(0, US, "gemm"), (90 * MS, (20 if busy else 1) * MS, "gemm"), (900 * MS, US, "gemm")]
    assert firsts(cuda_api=calls, kernels=kernels) == [("cudaFree", "code", float(ms))][:found]
