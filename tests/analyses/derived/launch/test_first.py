"""Calls that take long because they are the first: they create a context, or load code."""

import polars as pl
import pytest

from tests.analyses.builders import tables, trace
from traceviz.analyses.derived.causes.attribution import describe_first_use, host_causes
from traceviz.analyses.derived.host.classes import host_classes
from traceviz.analyses.derived.launch.first import first_calls, first_uses
from traceviz.analyses.run import analyze

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


def operators(*durations, name="aten::attention", launch=True, inside=(), before=0):
    """Return a capture of calls of an operator that take these µs, each followed by its kernel of 10 µs."""
    begins = [(before + sum(durations[:n]) + 20 * n) * US for n in range(len(durations))]
    ends = [begin + us * US for begin, us in zip(begins, durations, strict=True)]
    key = [{"correlation_id": n} for n in range(len(durations))]
    return {
        "host_ops": [(begin, us * US, name, "op") for begin, us in zip(begins, durations, strict=True)],
        "cuda_api": [
            *((end - 4 * US, 3 * US, "cudaLaunchKernel", k) for end, k in zip(ends, key, strict=True) if launch),
            *((begins[0] + start * US, us * US, call) for start, us, call in inside),
        ],
        "kernels": [(end, 10 * US, "k", k) for end, k in zip(ends, key, strict=True)],
        "run": {"framework": "PyTorch"},
    }


@pytest.mark.parametrize(
    ("durations", "found"),
    [
        ((500_000, 100, 110, 90), 1),
        ((6_000, 500), 1),
        ((1_000, 90, 90), 1),
        ((999, 90, 90), 0),
        ((9_000, 901), 0),  # not ten times as long
        ((9_000, 100, 9_100, 100), 0),  # not most of its time
        ((9_000,), 0),  # nothing to compare it with
        ((100, 9_000, 100), 0),  # not the first
    ],
)
def test_the_first_use_of_an_operator_takes_most_of_its_time(durations, found):
    uses = first_uses(trace(**operators(*durations)))
    assert uses.height == found
    assert [row["end_ns"] - row["start_ns"] for row in uses.iter_rows(named=True)] == [durations[0] * US] * found


def test_an_operator_that_launches_nothing_may_compute_more_in_its_first_call():
    assert first_uses(trace(**operators(700_000, 100, 100, name="aten::randn", launch=False))).height == 0


def test_a_call_of_the_device_that_takes_the_time_of_a_first_use_is_its_cause():
    assert first_uses(trace(**operators(9_000, 100, 100, inside=[(10, 5_000, "cudaFree")]))).height == 1
    view = trace(**operators(90_000, 100, 100, inside=[(10, 80_000, "cudaFree")]))
    assert [call[0] for call in first_calls(view).select("name").rows()] == ["cudaFree"]
    assert first_uses(view).height == 0


def test_first_use_is_said_with_its_later_calls_and_leads():
    # The device works from 8,000 µs on: then the operator starts its library and searches for an algorithm.
    literals = operators(100_000, 100, 120, 110, name="aten::cudnn_convolution", before=100)
    literals["kernels"].append((0, 10 * US, "first", {"correlation_id": 90}))
    view = trace(**literals)
    causes = host_causes(view).filter(host_causes(view)["kind"] == "first_launch")
    assert causes.select("cause", "time_ns", "calls").rows() == [("aten::cudnn_convolution", 99_996 * US, 1)]
    words = "The first aten::cudnn_convolution takes 100 ms, later ones take 110 µs in the median."
    assert describe_first_use(view, causes) == words
    report = analyze(tables(**literals))
    assert "First use: in 99." in report.verdict.sentence
    assert words in report.verdict.sentence
    assert [f.code for f in report.findings if f.code in {"TV205", "TV208"}] == ["TV208"]
    assert words in next(f.message for f in report.findings if f.code == "TV208")


def test_waits_and_allocations_in_a_first_use_keep_their_own_kind():
    inside = [(1_000, 30_000, "cudaStreamSynchronize"), (40_000, 5_000, "cudaMalloc")]
    literals = operators(100_000, 100, 120, before=100, inside=inside)
    literals["kernels"].append((0, 10 * US, "first", {"correlation_id": 90}))
    literals["cuda_api"].append((10 * US, US, "cudaMalloc"))
    times = dict(host_causes(trace(**literals)).group_by("kind").agg(pl.col("time_ns").sum()).iter_rows())
    assert times["synchronisation"] == 30_000 * US
    assert times["allocation"] == 5_001 * US
    assert times["first_launch"] == (100_000 - 35_000 - 4) * US


def test_an_operator_that_is_as_slow_every_time_is_the_host():
    literals = operators(*[10_000] * 6, before=100)
    literals["kernels"].append((0, 10 * US, "first", {"correlation_id": 90}))
    assert "First use" not in analyze(tables(**literals)).verdict.sentence
