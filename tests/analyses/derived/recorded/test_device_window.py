"""Devices are judged in the time in which their work was recorded, which may be a part of the capture."""

import pytest

from tests.analyses.builders import tables, trace
from traceviz.analyses.capture.capture import Capture
from traceviz.analyses.derived.host.classes import host_classes
from traceviz.analyses.derived.judged_time import judged_time
from traceviz.analyses.derived.recorded.device_window import DeviceWindow
from traceviz.analyses.derived.steps.search import count_unseen_steps, training_steps
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.device.idle_gaps import IdleGapsAnalysis
from traceviz.analyses.device.use import DeviceUseAnalysis
from traceviz.analyses.launch.cuda_api import CudaApiAnalysis
from traceviz.analyses.run import analyze
from traceviz.trace.selection import Selection
from traceviz.trace.slicing import select

SECOND = 10**9


def profiled(window=(10, 2), seconds=60, **more):
    """Return a run in which one source saw ranges throughout, and another the device, 95 % busy, for some seconds."""
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


MS = 10**6


def joined(numbers, delay=10_000, every=MS, name="cudaLaunchKernel", **work):
    """Return a launch each millisecond, and kernels of 0.5 ms that start ``delay`` after their launch."""
    calls = [(every * n, 5_000, name, {"correlation_id": n + 1}) for n in numbers]
    kernels = [(every * n + delay, every // 2, "k", {"correlation_id": n + 1, **work}) for n in numbers]
    return calls, kernels


def window(calls, kernels, span=100 * MS, **more):
    return trace(cuda_api=calls, kernels=kernels, span_ns=span, **more).device_windows[0]


def test_a_capture_in_which_every_launch_has_work_is_judged_from_end_to_end():
    calls, kernels = joined(range(10, 90))
    assert window(calls, kernels) == DeviceWindow(0, 100 * MS)
    assert Capture().run(trace(cuda_api=calls, kernels=kernels, span_ns=100 * MS)).unseen is None


def test_before_work_that_was_launched_before_the_capture_devices_are_not_idle_and_steps_stay():
    calls, kernels = joined(range(10, 30))
    earlier = [(3 * MS, MS, "k", {"correlation_id": 900}), (5 * MS, MS, "k")]
    steps = [(10 * MS * n, 10 * MS, n) for n in range(3)]
    view = trace(cuda_api=calls, kernels=earlier + kernels, steps=steps, span_ns=30 * MS)
    assert view.device_windows == {0: DeviceWindow(3 * MS, 30 * MS, launched_before=2)}
    assert view.idle_of(0).starts[0] == 4 * MS
    assert IdleGapsAnalysis().run(view).by_cause["after_last_work"][0] == 1
    assert "before_first_work" not in IdleGapsAnalysis().run(view).by_cause
    assert training_steps(view).frame.height == 3
    (device,) = DeviceUseAnalysis().run(view).devices
    assert (device.span_ns, device.busy_ns, device.idle_ns) == (27 * MS, 12 * MS, 15 * MS)


def test_work_without_calls_among_the_rest_of_its_stream_was_not_launched_before_the_capture():
    calls, kernels = joined(range(10, 30))
    strays = [(3 * MS, MS, "triton"), (50 * MS, MS, "triton")]  # calls of the driver that were not recorded
    assert window(calls, strays + kernels).begin_ns == 0
    other = {"stream": 8}  # a stream without known calls
    assert window(calls, [*strays[:1], (50 * MS, MS, "nccl", other), *kernels]).begin_ns == 0
    assert window(calls, [(2 * MS, MS, "nccl", other), *strays[:1], *kernels]).begin_ns == 2 * MS


def test_work_of_which_no_call_was_recorded_bounds_nothing():
    assert window([(0, 5, "cudaFree")], [(3 * MS, MS, "k")]).begin_ns == 0


@pytest.mark.parametrize(
    ("wait_ns", "called_ns", "begin_ns"),
    [
        (40 * MS, 1 * MS, 41 * MS + 5_000),
        (999_999, 100_000, 0),  # devices take that long to wake up
        (2 * MS, 8 * MS, 0),  # waits for less than half of the time so far: it was launched late
    ],
)
def test_work_that_waits_while_nothing_recorded_runs_was_held_up_by_what_is_not_known(wait_ns, called_ns, begin_ns):
    call = [(called_ns, 5_000, "hipLaunchKernel", {"correlation_id": 1})]
    start = called_ns + 5_000 + wait_ns
    found = window(call, [(start, 10_000, "k", {"correlation_id": 1})])
    assert (found.begin_ns, found.held_up_ns) == (begin_ns, wait_ns if begin_ns else 0)


def test_a_short_piece_of_work_before_does_not_hide_that_the_rest_was_held_up():
    calls = [(1_000, 1_000, "hipLaunchKernel", {"correlation_id": n}) for n in (1, 2)]
    kernels = [(50_000, 4_000, "fill", {"correlation_id": 1, "stream": 2})]
    kernels += [(463 * MS, 10 * MS, "gemm", {"correlation_id": 2})]
    view = trace(cuda_api=calls, kernels=kernels, span_ns=473 * MS)
    assert view.device_window == (463 * MS, 473 * MS)
    assert judged_time(view, 0).total == 10 * MS
    (device,) = DeviceUseAnalysis().run(view).devices
    assert (device.busy_ns, device.idle_ns, device.extent_ns) == (10 * MS, 0, 10 * MS)
    sentence = "What the device did in the first 463 ms of the capture is not known."
    assert analyze(view.tables).verdict.sentence.endswith(sentence)


def test_a_wait_behind_recorded_work_is_no_hold_up():
    calls, kernels = joined((0, 1))
    kernels = [(10_000, 80 * MS, "long", {"correlation_id": 1}), (81 * MS, MS, "k", {"correlation_id": 2})]
    assert window(calls, kernels).begin_ns == 0


@pytest.mark.parametrize(("count", "lacks"), [(20, 20), (19, 0)])
def test_twenty_launches_without_work_at_the_end_of_the_capture_end_what_is_judged(count, lacks):
    calls, kernels = joined(range(80 + count))
    view = trace(cuda_api=calls, kernels=kernels[:80], steps=[(20 * MS * n, 20 * MS, n) for n in range(5)])
    found = view.device_windows[0]
    assert (found.lacks_last, found.end_ns) == (lacks, 79_510_000 if lacks else 100 * MS)
    assert count_unseen_steps(view) == (2 if lacks else 0)  # the fourth ends at 80 ms
    assert training_steps(view).frame.height == (3 if lacks else 5)


def test_launches_without_work_are_many_of_their_process():
    calls, kernels = joined(range(2_100), every=10_000, delay=1_000)
    assert window(calls, kernels[:2_080], span=21 * MS).lacks_last == 0  # 20 of 2,100 are less than 1 %
    assert window(calls, kernels[:2_079], span=21 * MS).lacks_last == 21


def test_steps_before_the_first_work_of_which_launches_have_work_are_not_judged():
    calls, kernels = joined(range(60))
    view = trace(cuda_api=calls, kernels=kernels[25:], steps=[(20 * MS * n, 20 * MS, n) for n in range(3)])
    assert view.device_windows[0].lacks_first == 25
    assert view.device_window == (25_010_000, 60 * MS)
    assert training_steps(view).frame["step"].to_list() == [2]
    text = " ".join(Capture().run(view).unseen.reasons)
    assert text.startswith("The first 25 launches have no device work: what the devices did until 25.0 ms")


def test_launches_of_a_function_without_any_recorded_work_say_nothing():
    calls, kernels = joined(range(40))
    graphs = [(50 * MS + n, 1, "cudaGraphLaunch", {"correlation_id": 500 + n}) for n in range(30)]
    assert window(calls + graphs, kernels) == DeviceWindow(0, 100 * MS)


def test_each_process_has_a_window_of_its_own():
    calls, kernels = joined(range(40))
    other = {"process_id": 1, "thread_id": 1}
    calls += [(MS * n, 5_000, "cudaLaunchKernel", {"correlation_id": n + 1, **other}) for n in range(40)]
    kernels += [
        (MS * n + 10_000, MS // 2, "k", {"correlation_id": n + 1, "process_id": 1, "device_id": 1}) for n in range(15)
    ]
    calls.sort(key=lambda call: call[0])
    kernels.sort(key=lambda kernel: kernel[0])
    view = trace(cuda_api=calls, kernels=kernels, span_ns=40 * MS)
    assert view.window_of(0) == (0, 40 * MS)
    assert view.window_of(1) == view.window_of_device(1) == (0, 14_510_000)
    assert view.device_window == (0, 40 * MS)
    (reason, _) = Capture().run(view).unseen.reasons
    assert reason.startswith("The last 25 launches of 1 of 2 processes have no device work")


def test_the_host_that_was_ahead_at_the_end_of_the_capture_leaves_nothing_unknown():
    calls = [(n * 10_000, 5_000, "cudaLaunchKernel", {"correlation_id": n + 1}) for n in range(60)]
    kernels = [(10_000 + n * MS, MS, "k", {"correlation_id": n + 1}) for n in range(30)]
    found = Capture().run(trace(cuda_api=calls, kernels=kernels)).unseen
    assert (found.without_work, found.sentence) == (30, "")
    assert found.reasons[0] == "The last 30 launches have no device work: it ran after the capture."


def test_shares_are_of_the_time_in_which_devices_were_seen():
    calls = [(1_000, 1_000, "hipLaunchKernel", {"correlation_id": 1})]
    view = trace(cuda_api=calls, kernels=[(463 * MS, 10 * MS, "gemm", {"correlation_id": 1})], span_ns=483 * MS)
    labels = {
        fact.label: fact.value for fact in DeviceUseAnalysis().describe(DeviceUseAnalysis().run(view)).blocks[0].facts
    }
    assert (labels["time seen"], labels["utilisation"]) == (20 * MS, 0.5)
    assert "captured time" not in labels


def test_the_edges_of_a_window_that_the_user_chose_are_no_news():
    calls = [(n * 10_000, 5_000, "cudaLaunchKernel", {"correlation_id": n + 1}) for n in range(60)]
    kernels = [(10_000 + n * 10_000_000, 10_000_000, "k", {"correlation_id": n + 1}) for n in range(60)]
    part = select(tables(cuda_api=calls, kernels=kernels), Selection(start_ns=0, end_ns=300 * MS))
    view = TraceView(part)
    assert view.device_windows[0].lacks_last == 30
    assert Capture().run(view).unseen is None


@pytest.mark.parametrize(("first_ns", "judged"), [(50, [0, 1, 2]), (52, [1, 2])])
def test_a_step_more_than_half_of_which_is_not_known_is_not_judged(first_ns, judged):
    calls, kernels = joined(range(100, 290))
    before = [(first_ns * MS, MS, "k"), (70 * MS, MS, "k")]  # launched before the capture
    steps = [(100 * MS * n, 100 * MS, n) for n in range(3)]
    view = trace(cuda_api=calls, kernels=before + kernels, steps=steps, span_ns=300 * MS)
    assert view.device_windows[0].launched_before == 2
    assert training_steps(view).frame["step"].to_list() == judged
    assert count_unseen_steps(view) == 3 - len(judged)


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
