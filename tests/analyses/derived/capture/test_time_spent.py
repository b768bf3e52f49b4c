"""Use of the time in a capture that cannot be judged: the innermost name that has nearly all of it."""

from tests.analyses.builders import trace
from traceviz.analyses.derived.capture.time_spent import time_spent

FRAMES = [
    (0, 990, "run.py(3): main", "python"),
    (5, 595, "video.py(9): preprocess", "python"),
    (10, 350, "image.py(7): resize", "python"),
    (600, 380, "model.py(1): forward", "python"),
]


def test_before_the_first_work_the_innermost_frame_with_nearly_all_of_it_is_named():
    view = trace(host_ops=FRAMES, kernels=[(600, 370, "k")], span_ns=1_000)
    assert time_spent(view) == (
        "Before the first device work, 600 ns of the 1.00 µs captured pass, 595 ns of them in preprocess (video.py)."
    )


def test_between_work_the_range_in_which_the_device_was_idle_is_named():
    # idle 100 to 500 and 600 to 900 of 1000 ns, 650 of them in "log"
    view = trace(
        nvtx=[(100, 400, "log"), (650, 250, "log"), (0, 100, "a")],
        kernels=[(0, 100, "k"), (500, 100, "k"), (900, 100, "k")],
    )
    assert time_spent(view) == "While it was idle, the host was mostly in log (65.0 % of the captured time)."


def test_half_of_the_time_is_enough_where_no_name_has_more():
    view = trace(nvtx=[(0, 300, "a"), (300, 600, "b"), (900, 100, "c")])
    assert time_spent(view) == "Of the 1.00 µs captured, 60.0 % were spent in b."


def test_where_no_thread_leads_the_call_with_most_time_is_named():
    calls = [(0, 300, "poll"), (0, 200, "sem_wait", {"thread_id": 1}), (500, 200, "sem_wait", {"thread_id": 1})]
    assert time_spent(trace(os_calls=calls, span_ns=1_000)) == (
        "Most of the recorded time of its threads is in sem_wait (400 ns)."
    )


def test_a_busy_device_is_told_by_its_kernel_with_most_time():
    view = trace(kernels=[(0, 600, "void gemm<8>(int)"), (600, 300, "relu")], span_ns=1_000)
    assert time_spent(view) == "The kernel with most of its time is gemm (66.7 %)."


def test_where_no_name_has_half_of_the_idle_time_its_largest_class_is_said():
    # idle 900 of 1000 ns, 675 of them in the 750 ns of three steady steps: 150 in synchronisation, 135 in ranges
    steps = [(i * 250, 250, i) for i in range(4)]
    view = trace(
        steps=steps,
        kernels=[(i * 250, 25, "k") for i in range(4)],
        cuda_api=[(i * 250 + 30, 50, "cudaStreamSynchronize") for i in range(4)],
        nvtx=[(i * 250 + 100, 45, "abcd"[i]) for i in range(4)],
        span_ns=1_000,
    )
    assert time_spent(view) == "It was idle in 90.0 % of the captured time, mostly unexplained (57.8 %)."


def test_work_without_a_length_begins_nothing():
    assert time_spent(trace(kernels=[(10, 0, "a")], nvtx=[(0, 90, "x")], span_ns=100)) == (
        "While it was idle, the host was mostly in x (90.0 % of the captured time)."
    )


def test_what_encloses_all_of_the_capture_says_nothing():
    work = [(0, 1, "k"), (999, 1, "k")]
    said = {length: time_spent(trace(kernels=work, nvtx=[(5, length, "main")])) for length in (949, 960)}
    assert said == {949: "While it was idle, the host was mostly in main (94.9 % of the captured time).", 960: ""}


def test_nothing_is_said_where_nothing_tells():
    assert time_spent(trace()) == ""
    assert time_spent(trace(kernels=[(0, 1, "k"), (999, 1, "k")])) == ""
    lost = [("profiler-diagnostic", "warning", "2 records were lost")]
    assert (
        time_spent(
            trace(kernels=[], memcpy=[(900, 100, "h2d", "pinned", "device", 8)], nvtx=[(0, 900, "a")], notes=lost)
        )
        == ""
    )


MS = 1_000_000


def test_a_first_call_that_takes_all_of_the_capture_is_named_with_what_it_does():
    """A range that encloses the capture does not count; a call that takes as long does."""
    calls = [(0, 970 * MS, "cudaMalloc"), (980 * MS, 10_000, "cudaLaunchKernel", {"correlation_id": 1})]
    kernels = [(999 * MS, MS, "k", {"correlation_id": 1})]
    view = trace(nvtx=[(0, 1_000 * MS, "main")], cuda_api=calls, kernels=kernels)
    assert time_spent(view) == "Most of it is in cudaMalloc, which creates the context of the device."


def test_the_profiler_that_holds_up_the_first_launch_is_said():
    calls = [(0, 970 * MS, "cudaLaunchKernel", {"correlation_id": 1})]
    kernels = [(999 * MS, MS, "k", {"correlation_id": 1})]
    view = trace(cuda_api=calls, kernels=kernels, overhead=[(20 * MS, 900 * MS, "Instrumentation")])
    assert time_spent(view) == "Most of it is in cudaLaunchKernel, and 900 ms are the work of the profiler."
