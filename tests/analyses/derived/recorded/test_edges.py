"""The profiler's own start and stop are excluded from the captured time if no part of the program runs in them."""

import pytest

from tests.analyses.builders import trace
from traceviz.analyses.derived.host.classes import host_classes
from traceviz.analyses.derived.judged_time import judged_time

START, STOP = (0, 9_000, "$profiler.py:101 start_trace"), (9_700, 300, "$profiler.py:213 stop_trace")
WORK = (9_100, 500, "gemm")


def test_captured_time_begins_after_the_start_of_the_profiler_and_ends_before_its_stop():
    view = trace(kernels=[WORK], overhead=[START, STOP], span_ns=10_000)
    assert (view.span_ns, view.program_window, view.device_window) == (10_000, (9_000, 9_700), (9_000, 9_700))
    assert view.idle_of(0).total == 700 - 500


def test_without_device_work_the_captured_time_is_judged():
    view = trace(host_ops=[(9_200, 100, "loss")], overhead=[START, STOP], span_ns=10_000)
    assert judged_time(view, 0).total == 700


@pytest.mark.parametrize(
    ("events", "window"),
    [
        ({"kernels": [(4_000, 10, "of another process"), WORK]}, (4_000, 9_700)),
        ({"kernels": [WORK, (9_650, 200, "still running")]}, (9_000, 9_850)),
        ({"kernels": [WORK], "nvtx": [(8_000, 1_500, "step 0", {"thread_id": 1})]}, (8_000, 9_700)),
        ({"kernels": [WORK], "steps": [(9_100, 800, 0)]}, (9_000, 9_900)),
    ],
)
def test_nothing_of_the_program_is_cut_off(events, window):
    assert trace(**events, overhead=[START, STOP], span_ns=10_000).program_window == window


@pytest.mark.parametrize(
    "events",
    [
        {"cuda_api": [(500, 20, "cuInit"), (9_720, 200, "cudaDeviceSynchronize")]},
        {"host_ops": [(500, 20, "metadata"), (9_720, 200, "write")]},
        {"host_ops": [(0, 10_000, "train.py(1): <module>", "python"), (600, 5, "CollectGarbage", "runtime")]},
        {"os_calls": [(0, 10_000, "poll", {"thread_id": 1})]},
    ],
)
def test_what_the_profiler_does_in_its_own_calls_and_who_called_it_is_no_work_of_the_program(events):
    assert trace(kernels=[WORK], **events, overhead=[START, STOP], span_ns=10_000).program_window == (9_000, 9_700)


def test_overhead_in_the_middle_is_captured_time():
    middle = [(4_000, 2_000, "flush"), (7_000, 900, "flush")]
    assert trace(kernels=[WORK], overhead=middle, span_ns=10_000).program_window == (0, 10_000)


@pytest.mark.parametrize(("start", "begin"), [(1_000, 2_000), (1_001, 0)])
def test_overhead_lies_at_an_edge_if_it_is_no_shorter_than_the_time_between_them(start, begin):
    view = trace(kernels=[WORK], overhead=[(start, 1_000, "start")], span_ns=10_000)
    assert view.program_window == (begin, 10_000)


def test_a_capture_of_nothing_but_the_profiler_is_left_whole():
    assert trace(overhead=[(0, 10_000, "start")], span_ns=10_000).program_window == (0, 10_000)


def test_of_merged_sources_the_edges_are_those_of_the_source_that_saw_the_device():
    view = trace(
        kernels=[(6_000, 500, "gemm")],
        windows=[(0, 10_000, "samples"), (4_000, 4_000, "kernels")],
        overhead=[(4_000, 1_000, "start_trace"), (7_500, 500, "stop_trace")],
        span_ns=10_000,
    )
    assert (view.program_window, view.device_window) == ((0, 10_000), (5_000, 7_500))


def test_the_profiler_takes_time_that_would_be_the_hosts_but_none_that_has_a_class_already():
    overhead = [
        (100, 50, "flush", {"thread_id": None}),  # holds up every thread: 10 of it in the call
        (300, 20, "flush"),
        (400, 30, "flush", {"thread_id": 1}),  # of a thread that no other thread waits for
    ]
    view = trace(
        steps=[(0, 1_000, 0)], kernels=[(500, 100, "k")], cuda_api=[(140, 60, "cudaMalloc")], overhead=overhead
    )
    sets = host_classes(view)[0].sets
    assert (sets["profiler"].total, sets["allocation"].total) == (40 + 20, 60)
    assert sets["host_compute"].total == 1_000 - 100 - 60 - 60


PROCESS = {"thread_id": None}
RUN = [(0, 1_000, "program", "program", PROCESS), (300, 700, "unsampled", "stacks", PROCESS)]


@pytest.mark.parametrize(
    ("phases", "events", "window"),
    [
        (RUN, {}, (0, 300)),
        (RUN[:1], {}, (0, 1_000)),
        (RUN, {"kernels": [(100, 10, "gemm")]}, (0, 1_000)),  # something else was recorded
        ([*RUN, (0, 1_000, "program", "program", {"thread_id": None, "process_id": 1})], {}, (0, 1_000)),
        ([*RUN, (0, 1_000, "program", "worker", {"thread_id": None, "process_id": 1})], {}, (0, 300)),
    ],
)
def test_where_only_stacks_were_sampled_the_captured_time_ends_with_their_samples(phases, events, window):
    assert trace(phases=phases, **events, span_ns=1_000).program_window == window
