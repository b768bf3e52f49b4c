"""Copy calls that wait for their copy, and the start of the wait: by their behavior, not by their name."""

import pytest

from tests.analyses.builders import trace
from traceviz.analyses.derived.host.classes import host_classes
from traceviz.analyses.derived.host.copy_calls import asked_waits, copy_calls, unasked_waits, waiting_copies

US = 1_000
LAUNCHES = [(n * 10 * US, 5 * US, "cudaLaunchKernel") for n in range(10)]


def copied(name, call, copy, kind="d2h", memory=("device", "pinned"), *, launches=LAUNCHES):
    """Return a trace of one copy, with start and end in µs of its call and of the copy itself."""
    (begin, end), (start, done) = call, copy
    return trace(
        cuda_api=[*launches, (begin * US, (end - begin) * US, name, {"correlation_id": 1})],
        memcpy=[(start * US, (done - start) * US, kind, *memory, 4, {"correlation_id": 1})],
        span_ns=2_000 * US,
    )


def wait(view):
    """Return the start of the wait of the last copy call, in µs; ``None`` if it does not wait."""
    wait_ns = copy_calls(view).sort("start_ns")["wait_ns"][-1]
    return None if wait_ns is None else wait_ns / US


TO_PAGEABLE, FROM_PAGEABLE = ("device", "pageable"), ("pageable", "device")


@pytest.mark.parametrize(
    ("name", "times", "kind", "memory", "begins"),
    [
        ("cudaMemcpyAsync", ((200, 900), (890, 892)), "d2h", TO_PAGEABLE, 205),  # tensor.item() behind a kernel
        ("cudaMemcpyAsync", ((200, 212), (206, 208)), "d2h", TO_PAGEABLE, 205),  # and on an idle device
        ("cudaMemcpyAsync", ((200, 220), (210, 230)), "h2d", FROM_PAGEABLE, 205),  # four launches
        ("cudaMemcpyAsync", ((200, 219), (210, 230)), "h2d", FROM_PAGEABLE, None),  # small: staged at once
        ("cudaMemcpyAsync", ((200, 900), (890, 950)), "h2d", ("pinned", "device"), None),  # held up by something else
        ("hipMemcpyAsync", ((200, 900), (890, 892)), "d2h", ("device", "unknown"), 205),  # returns when it is done
        ("hipMemcpyAsync", ((200, 215), (206, 208)), "d2h", ("device", "unknown"), None),  # done before it could return
        ("hipMemcpyWithStream", ((200, 900), (890, 892)), "d2h", ("device", "unknown"), 200),
        ("cudaMemcpy", ((200, 900), (890, 892)), "d2h", TO_PAGEABLE, 200),
        ("cudaMemcpy", ((200, 206), (208, 210)), "h2d", FROM_PAGEABLE, 200),  # its data is staged before it returns
        ("cudaMemcpy", ((200, 206), (208, 210)), "d2d", ("device", "device"), None),  # within a device nothing waits
        ("cudaMemcpyPeer", ((200, 206), (208, 210)), "p2p", ("device", "device"), None),
        ("cudaMemcpy", ((200, 230), (208, 210)), "d2d", ("device", "device"), 200),  # seen to wait
    ],
)
def test_a_call_waits_by_what_it_does_and_not_by_its_name(name, times, kind, memory, begins):
    assert wait(copied(name, *times, kind, memory)) == begins


def test_a_call_that_fills_memory_returns_before_the_device_has_filled():
    filled = trace(
        cuda_api=[(0, 5, "cudaMemset", {"correlation_id": 1}), (10, 50, "cudaMemset", {"correlation_id": 2})],
        memset=[(20, 2, 4, {"correlation_id": 1}), (30, 2, 4, {"correlation_id": 2})],
    )
    assert copy_calls(filled).sort("start_ns").select("kind", "wait_ns").rows() == [("memset", None), ("memset", 10)]


def test_a_call_whose_copy_is_not_known_waits_by_its_name():
    calls = trace(cuda_api=[(0, 900 * US, "cudaMemcpyAsync"), (0, 900 * US, "cudaMemcpy")])
    assert waiting_copies(calls).select("name", "wait_ns", "kind", "copy_end_ns").rows() == [
        ("cudaMemcpy", 0, None, None)
    ]


@pytest.mark.parametrize(("us", "wait_us"), [(999, None), (1_000, 20), (85_000, 20)])
def test_an_asynchronous_call_whose_copy_is_not_known_waits_if_no_launch_takes_so_long(us, wait_us):
    view = trace(cuda_api=[(0, us * US, "cudaMemcpyAsync")], span_ns=100_000 * US)
    assert wait(view) == wait_us
    times = {key: owned.total // US for key, owned in host_classes(view)[0].sets.items() if owned.total}
    blocks = wait_us is not None
    assert times["kernel_launch"] == (20 if blocks else us)
    assert times.get("synchronisation", 0) == (us - 20 if blocks else 0)


def test_one_call_of_many_that_returns_late_was_held_up_by_chance():
    def calls(late):
        api = [(100 * US * n, (80 if n < late else 5) * US, "cudaMemcpyAsync", {"correlation_id": n}) for n in range(4)]
        copies = [(100 * US * n + 10 * US, US, "h2d", "pinned", "device", 8, {"correlation_id": n}) for n in range(4)]
        return waiting_copies(trace(cuda_api=[*LAUNCHES, *api], memcpy=copies)).height

    assert [calls(1), calls(2), calls(4)] == [0, 2, 4]


def test_the_launch_of_a_copy_takes_no_longer_than_launches_of_a_long_trace_do():
    slow = [(0, 9_000 * US, "cudaLaunchKernel")]  # the first launch of a program loads its code
    assert wait(copied("cudaMemcpyAsync", (200, 900), (890, 892), "d2h", TO_PAGEABLE, launches=slow)) == 220
    assert wait(copied("cudaMemcpyAsync", (200, 900), (890, 892), "d2h", TO_PAGEABLE, launches=[])) == 220


def test_a_copy_in_pieces_is_done_with_its_last_piece():
    pieces = trace(
        cuda_api=[*LAUNCHES, (200 * US, 700 * US, "hipMemcpyAsync", {"correlation_id": 1})],
        memcpy=[
            (300 * US, 10 * US, "h2d", "unknown", "device", 64, {"correlation_id": 1}),
            (880 * US, 10 * US, "h2d", "unknown", "device", 36, {"correlation_id": 1}),
        ],
    )
    assert waiting_copies(pieces).select("bytes", "copy_end_ns", "wait_ns").rows() == [(100, 890 * US, 205 * US)]


def test_a_program_waits_unasked_in_asynchronous_calls_and_where_it_reads_on_a_stream():
    names = ("cudaMemcpyAsync", "hipMemcpyWithStream", "cudaMemcpy", "cuMemcpyDtoHAsync_v2")
    views = [copied(name, (200, 900), (890, 892), "d2h", TO_PAGEABLE) for name in names]
    assert [unasked_waits(view).height for view in views] == [1, 1, 0, 1]
    assert [asked_waits(view).height for view in views] == [0, 0, 1, 0]
    to_device = copied("hipMemcpyWithStream", (200, 900), (890, 892), "h2d", FROM_PAGEABLE)
    assert (unasked_waits(to_device).height, asked_waits(to_device).height) == (0, 1)


def test_a_copy_that_blocks_is_synchronisation_after_its_launch():
    """The device idles until 290, computes until 490, and idles again until the copy at 590."""
    view = trace(
        kernels=[(290 * US, 200 * US, "gemm"), (700 * US, 100 * US, "gemm")],
        cuda_api=[*LAUNCHES, (200 * US, 400 * US, "cudaMemcpyAsync", {"correlation_id": 1})],
        memcpy=[(590 * US, 2 * US, "d2h", "device", "pageable", 4, {"correlation_id": 1})],
    )
    sets = host_classes(view)[0].sets
    assert sets["synchronisation"].total == (290 - 205 + 590 - 490 + 600 - 592) * US
    assert sets["kernel_launch"].total == 10 * 5 * US + 5 * US


def test_a_copy_within_a_device_is_launched():
    view = copied("cudaMemcpy", (200, 206), (208, 210), "d2d", ("device", "device"), launches=[])
    sets = host_classes(view)[0].sets
    assert (sets["synchronisation"].total, sets["kernel_launch"].total) == (0, 8 * US)  # until the copy starts


@pytest.mark.parametrize(("waits", "op"), [(90, []), (40, [(250 * US, 50 * US, "aten::mm", "op")])])
def test_a_copy_of_a_thread_that_launches_nothing_holds_up_only_a_program_that_does_nothing_else(waits, op):
    """The device idles from 210 to 300 µs, while a thread that saves results waits in a copy."""
    view = trace(
        kernels=[(200 * US, 10 * US, "gemm"), (800 * US, 10 * US, "gemm")],
        cuda_api=[*LAUNCHES, (150 * US, 150 * US, "cudaMemcpyAsync", {"correlation_id": 1, "thread_id": 1})],
        memcpy=[(300 * US, 500 * US, "d2h", "device", "pageable", 4, {"correlation_id": 1})],
        host_ops=op,
    )
    assert host_classes(view)[0].sets["synchronisation"].clip(200 * US, 900 * US).total == waits * US


def test_without_any_copy_only_calls_that_block_by_name_wait():
    calls = [(0, 5, "cudaMemcpyAsync", {"correlation_id": 1}), (10, 50, "cudaMemcpy", {"correlation_id": 2})]
    view = trace(cuda_api=calls)
    assert waiting_copies(view).select("start_ns", "wait_ns", "end_ns").rows() == [(10, 10, 60)]
    assert waiting_copies(view).equals(copy_calls(view).drop_nulls("wait_ns"))
