"""Use of the time in a capture that cannot be judged: the innermost name that has nearly all of it."""

import pytest

from tests.analyses.builders import trace
from traceviz.analyses.derived.capture.time_spent import (
    describe_time_around_work,
    describe_time_spent,
    share_with_device_work,
)

FRAMES = [
    (0, 990, "run.py(3): main", "python"),
    (5, 595, "video.py(9): preprocess", "python"),
    (10, 350, "image.py(7): resize", "python"),
    (600, 380, "model.py(1): forward", "python"),
]


IDLE_AT_ENDS = [(0, 1, "k"), (999, 1, "k")]
CASES = {
    "before the first work, the innermost frame with nearly all of it": (
        {"host_ops": FRAMES, "kernels": [(600, 370, "k")], "span_ns": 1_000},
        (
            "The first device work starts 600 ns (60.0 %) into the 1.00 µs captured, "
            "595 ns of it in preprocess (video.py)."
        ),
    ),
    "between work, the range in which the device was idle": (  # 100 to 500 and 600 to 900 of 1000 ns, 650 in "log"
        {
            "nvtx": [(100, 400, "log"), (650, 250, "log"), (0, 100, "a")],
            "kernels": [(0, 100, "k"), (500, 100, "k"), (900, 100, "k")],
        },
        "While it was idle, the host was mostly in log (65.0 % of the captured time).",
    ),
    "half of the time is enough if no name has more": (
        {"nvtx": [(0, 300, "a"), (300, 600, "b"), (900, 100, "c")]},
        "Of the 1.00 µs captured, 60.0 % were spent in b.",
    ),
    "if no thread leads, the call with most time": (
        {
            "os_calls": [
                *((0, 300, "poll"), (0, 200, "sem_wait", {"thread_id": 1})),
                (500, 200, "sem_wait", {"thread_id": 1}),
            ],
            "span_ns": 1_000,
        },
        (
            "Most of the recorded time of its threads is in sem_wait (400 ns), and nothing was recorded in 50.0 % of "
            "the captured time."
        ),
    ),
    "of a busy device, its kernel with most time": (
        {"kernels": [(0, 600, "void gemm<8>(int)"), (600, 300, "relu")], "span_ns": 1_000},
        "The kernel with most of its time is gemm (66.7 %).",
    ),
    # idle 900 of 1000 ns, 675 of them in the 750 ns of three steady steps: 150 in synchronisation, 135 in ranges
    "if no name has half of the idle time, its largest class": (
        {
            "steps": [(i * 250, 250, i) for i in range(4)],
            "kernels": [(i * 250, 25, "k") for i in range(4)],
            "cuda_api": [(i * 250 + 30, 50, "cudaStreamSynchronize") for i in range(4)],
            "nvtx": [(i * 250 + 100, 45, "abcd"[i]) for i in range(4)],
            "span_ns": 1_000,
        },
        "It was idle in 90.0 % of the captured time, mostly unexplained (57.8 %).",
    ),
    "work without a length begins nothing": (
        {"kernels": [(10, 0, "a")], "nvtx": [(0, 90, "x")], "span_ns": 100},
        "While it was idle, the host was mostly in x (90.0 % of the captured time).",
    ),
    "a range of 94.9 % of the capture": (
        {"kernels": IDLE_AT_ENDS, "nvtx": [(5, 949, "main")]},
        "While it was idle, the host was mostly in main (94.9 % of the captured time).",
    ),
    "a range of 96 % encloses the capture": ({"kernels": IDLE_AT_ENDS, "nvtx": [(5, 960, "main")]}, ""),
    "an empty trace": ({}, ""),
    "no events of the host": ({"kernels": IDLE_AT_ENDS}, ""),
    "kernels may have been lost": (
        {
            "kernels": [],
            "memcpy": [(900, 100, "h2d", "pinned", "device", 8)],
            "nvtx": [(0, 900, "a")],
            "notes": [("profiler-diagnostic", "warning", "2 records were lost")],
        },
        "",
    ),
}


@pytest.mark.parametrize(("tables", "sentence"), CASES.values(), ids=CASES)
def test_the_sentence_names_what_had_the_time(tables, sentence):
    assert describe_time_spent(trace(**tables)) == sentence


MS = 1_000_000


def test_a_first_call_that_takes_all_of_the_capture_is_named_with_what_it_does():
    """A range that encloses the capture does not count; a call that takes as long does."""
    calls = [(0, 970 * MS, "cudaMalloc"), (980 * MS, 10_000, "cudaLaunchKernel", {"correlation_id": 1})]
    kernels = [(999 * MS, MS, "k", {"correlation_id": 1})]
    view = trace(nvtx=[(0, 1_000 * MS, "main")], cuda_api=calls, kernels=kernels)
    assert describe_time_spent(view) == "Most of it is in cudaMalloc, which creates the context of the device."


def test_the_profiler_that_holds_up_the_first_launch_is_said():
    calls = [(0, 970 * MS, "cudaLaunchKernel", {"correlation_id": 1})]
    kernels = [(999 * MS, MS, "k", {"correlation_id": 1})]
    view = trace(cuda_api=calls, kernels=kernels, overhead=[(20 * MS, 900 * MS, "Instrumentation")])
    assert describe_time_spent(view) == "Most of it is in cudaLaunchKernel, and 900 ms are the work of the profiler."


def edges(first, last, **tables):
    """Return the sentence on a capture of 1 s with device work from ``first`` to ``last`` ms."""
    kernels = [(first * MS, MS, "k", {"correlation_id": 1}), ((last - 1) * MS, MS, "k", {"correlation_id": 2})]
    return describe_time_around_work(trace(kernels=kernels, span_ns=1_000 * MS, **tables))


def test_the_largest_parts_of_a_start_up_are_named():
    """Parts are exclusive: the call of the system within cudaFree is no part of its own."""
    said = edges(
        *(900, 950),
        overhead=[(200 * MS, 300 * MS, "CUDA profiling initialization")],
        cuda_api=[(0, 250 * MS, "cudaFree"), (890 * MS, MS, "cudaLaunchKernel", {"correlation_id": 1})],
        os_calls=[(50 * MS, 150 * MS, "ioctl"), (510 * MS, 160 * MS, "waitpid")],
    )
    assert said == "The largest known parts of that: the profiler's own work (300 ms) and cudaFree (200 ms)."


@pytest.mark.parametrize("name", ["waitpid", "wait4", "system"])
def test_waits_for_child_processes_are_said(name):
    said = edges(900, 950, os_calls=[(0, 300 * MS, name), (400 * MS, 50 * MS, "read")])
    assert said == f"The largest known part of that: waiting for child processes in {name} (300 ms)."


def test_calls_on_two_threads_at_once_count_once_for_a_part_of_the_start_up():
    calls = [(0, 300 * MS, "cudaFree", {"thread_id": thread}) for thread in (0, 1)]
    said = edges(900, 950, cuda_api=[*calls, (500 * MS, 120 * MS, "cudaMalloc")])
    assert said == "The largest known parts of that: cudaFree (300 ms) and cudaMalloc (120 ms)."


def test_the_time_after_the_last_work_is_said_if_it_is_most_of_the_idle_time():
    said = edges(1, 100, cuda_api=[(110 * MS, 700 * MS, "cuModuleUnload")])
    begin = "The last device work ends 900 ms (90.0 %) before the end of the 1.00 s captured, "
    assert said == f"{begin}700 ms of it in cuModuleUnload."


@pytest.mark.parametrize(("first", "last"), [(100, 900), (190, 1_000)])
def test_edges_that_are_little_of_the_capture_are_not_said(first, last):
    assert not edges(first, last)


@pytest.mark.parametrize(("last", "share"), [(950, 0.05), (1_000, 0.1)])
def test_the_share_with_device_work_runs_from_the_first_to_the_last(last, share):
    kernels = [(900 * MS, MS, "k"), ((last - 1) * MS, MS, "k")]
    assert share_with_device_work(trace(kernels=kernels, span_ns=1_000 * MS)) == share
