"""Traces of PyTorch's profiler become tables: every kind of event, every spelling, and what is wrong with a file."""

from __future__ import annotations

import json

import pytest

from tests.parsers.kineto import files as k
from tests.parsers.kineto.tables import TRAINING, notes, read, read_bytes, rows
from traceviz.core.errors import DamagedTraceError, UsageError

# Times, run, settings


def test_times_count_from_the_first_event_and_keep_the_last_nanosecond(tmp_path):
    trace = read(tmp_path, [k.op("b", "1623142623460111.251", "0.002"), k.op("a", 1623142623460110, 7)])
    assert rows(trace, "host_ops", "name", "start_ns", "dur_ns") == [("a", 0, 7_000), ("b", 1_251, 2)]
    assert trace.run_facts()["t0_unix_ns"] == 1_623_142_623_460_110_000
    assert trace.run_facts()["span_ns"] == 7_000


def test_wall_clock_adds_the_base_that_the_file_states(tmp_path):
    trace = read(tmp_path, [k.op("a", 2_000_000, 1)], {"baseTimeNanoseconds": 1_700_000_000_000_000_000})
    assert trace.run_facts()["t0_unix_ns"] == 1_700_000_002_000_000_000


def test_wall_clock_is_not_known_where_times_count_from_the_start_of_the_machine(tmp_path):
    assert read(tmp_path, [k.op("a", 4_458_676_522, 1)]).run_facts()["t0_unix_ns"] is None


def test_of_the_properties_of_operations_only_those_asked_for_are_read(tmp_path):
    operation = k.op("aten::add", 0, 9, external=5, shapes=[[2]], sequence=4)
    every = read(tmp_path, [operation])
    some = read(tmp_path, [operation], properties=frozenset({"Sequence number", "stage"}))
    assert rows(every, "op_args", "key", "integer", "text") == [
        *(("External id", 5, None), ("Sequence number", 4, None), ("Input Dims", None, "[[2]]"))
    ]
    assert rows(some, "op_args", "key", "integer") == [("Sequence number", 4)]


def test_span_leaves_out_the_frame_around_the_capture(tmp_path):
    trace = read(tmp_path, [k.span(0, 1_000), k.op("a", 100, 50), k.kernel("k", 160, 40)])
    assert trace.run_facts()["span_ns"] == 100_000
    assert trace.rows("host_ops") == 1


def test_run_states_versions_and_settings_keep_the_keys_of_the_file(tmp_path):
    header = {
        "cuda_runtime_version": 12_040,
        "cuda_driver_version": 12_090,
        "with_stack": 1,
        "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8},
        "traceName": "/home/someone/trace.json",
    }
    trace = read(tmp_path, TRAINING, header)
    run = trace.run_facts()
    assert (run["format"], run["producer"], run["framework"]) == ("kineto", "PyTorch profiler", "PyTorch")
    assert (run["cuda_version"], run["driver_version"], run["source_schema"]) == ("12.4", "12.9", "1")
    settings = dict(rows(trace, "settings", "key", "value"))
    assert settings["distributedInfo.world_size"] == "8"
    assert settings["with_stack"] == "1"
    assert "traceName" not in settings
    assert rows(trace, "processes", "pid", "rank") == [(100, 3)]
    private = read(tmp_path, TRAINING, header, keep_private=True)
    assert ("traceName", "/home/someone/trace.json") in rows(private, "settings", "key", "value")


# The host


def test_operations_nest_per_thread_across_all_categories(tmp_path):
    events = [
        k.frame("train.py(3): main", 0, 100),
        k.step(1, 5, 90),
        k.op("aten::linear", 10, 30),
        k.op("aten::addmm", 12, 20),
        k.op("aten::relu", 11, 5, tid=7),
    ]
    trace = read(tmp_path, events)
    assert rows(trace, "host_ops", "op_id", "name", "category", "depth", "parent_id") == [
        (0, "train.py(3): main", "python", 0, None),
        (1, "ProfilerStep#1", "step", 1, 0),
        (2, "aten::linear", "op", 2, 1),
        (3, "aten::relu", "op", 0, None),
        (4, "aten::addmm", "op", 3, 2),
    ]


@pytest.mark.parametrize(
    "events", [[k.op("outer", 0, 10), k.op("inner", 0, 10)], [k.op("inner", 0, 4), k.op("outer", 0, 10)]]
)
def test_of_events_that_begin_together_the_longer_then_the_earlier_in_the_file_is_the_parent(tmp_path, events):
    trace = read(tmp_path, events)
    assert rows(trace, "host_ops", "name", "parent_id") == [("outer", None), ("inner", 0)]


def test_events_that_overlap_in_part_are_siblings_and_counted(tmp_path):
    trace = read(tmp_path, [k.op("a", 0, 10), k.op("b", 5, 10)])
    assert rows(trace, "host_ops", "name", "depth") == [("a", 0), ("b", 0)]
    assert notes(trace)["events-overlapping"] == 1


def test_frame_that_opens_a_range_overlaps_it_by_nature(tmp_path):
    events = [k.frame("__enter__", 0, 10), k.annotation("range", 5, 50), k.frame("__exit__", 50, 10)]
    assert "events-overlapping" not in notes(read(tmp_path, events))


@pytest.mark.parametrize("category", ["Operator", "cpu_op", "user_annotation"])
def test_next_batch_of_a_loader_is_input_whatever_its_category(tmp_path, category):
    trace = read(tmp_path, [k.loader(0, 10, category=category)])
    assert rows(trace, "host_ops", "category") == [("input",)]


@pytest.mark.parametrize(
    ("event", "category"),
    [
        (k.op("aten::mm", 0, 1), "op"),
        (k.op("aten::mm", 0, 1, category="Operator"), "op"),
        (k.annotation("## forward ##", 0, 1), "annotation"),
        (k.annotation("inductor_compile (dynamo_timed)", 0, 1), "compile"),
        (k.op("_compile.compile_inner (dynamo_timed)", 0, 1), "compile"),
        (k.op("Torch-Compiled Region: 0/0", 0, 1), "op"),
        (k.frame("enumerate(DataLoader)#x.__next__", 0, 1), "python"),
        (k.complete("x", 0, 1, "new_category"), "runtime"),
    ],
)
def test_category_of_host_operations(tmp_path, event, category):
    assert rows(read(tmp_path, [event]), "host_ops", "category") == [(category,)]


def test_arguments_of_operations_are_kept_where_they_say_something(tmp_path):
    events = [
        k.op("aten::mm", 0, 5, external=9, shapes=[[2, 3], []], types=[], sequence=4, args={"Call stack": ""}),
        k.frame("a.py(1): f", 10, 2, number=1, args={"Python parent id": None}),
    ]
    trace = read(tmp_path, events)
    assert sorted(rows(trace, "op_args", "op_id", "key", "integer", "real", "text"), key=str) == [
        (0, "External id", 9, None, None),
        (0, "Input Dims", None, None, "[[2,3],[]]"),
        (0, "Sequence number", 4, None, None),
        (1, "Python id", 1, None, None),
    ]


def test_steps_come_from_the_host_only(tmp_path):
    events = [k.step(7, 0, 10), k.device_annotation("ProfilerStep#7", 3, 5), k.kernel("k", 3, 5)]
    trace = read(tmp_path, events)
    assert rows(trace, "steps", "step", "name", "marker", "start_ns", "dur_ns") == [
        (7, "ProfilerStep#7", "ProfilerStep", 0, 10_000)
    ]
    assert "device_ops" not in trace


def test_a_begin_and_an_end_at_1_time_are_an_event_of_0_ns_that_ended(tmp_path):
    mark = {"name": "a", "cat": "cpu_op", "pid": 1, "tid": 1, "ts": 5}
    trace = read(tmp_path, [{**mark, "ph": "B"}, {**mark, "ph": "E"}, {**mark, "ph": "B", "ts": 9}])
    assert rows(trace, "host_ops", "start_ns", "dur_ns") == [(0, 0), (4_000, None)]
    assert notes(trace)["events-never-ended"] == 1


def test_begins_and_ends_are_paired_per_thread_by_depth(tmp_path):
    def mark(phase: str, name: str, at: int, tid: int = 1) -> k.Event:
        return {"ph": phase, "name": name, "cat": "cpu_op", "pid": 1, "tid": tid, "ts": at}

    events = [
        mark("B", "a", 0),
        mark("B", "b", 2),
        mark("B", "other", 3, tid=2),
        mark("E", "b", 5),
        mark("B", "c", 6),
        mark("E", "c", 7),
        mark("E", "a", 9),
        mark("E", "?", 10),
        mark("E", "other", 13, tid=2),
        mark("B", "open", 20),
        mark("B", "child", 21),
        mark("E", "child", 30),
    ]
    trace = read(tmp_path, events)
    assert rows(trace, "host_ops", "name", "start_ns", "dur_ns", "parent_id") == [
        ("a", 0, 9_000, None),
        ("b", 2_000, 3_000, 0),
        ("other", 3_000, 10_000, None),
        ("c", 6_000, 1_000, 0),
        ("open", 20_000, None, None),
        ("child", 21_000, 9_000, 4),
    ]
    assert notes(trace)["ends-without-begin"] == 1
    assert notes(trace)["events-never-ended"] == 1


def test_calls_lose_the_version_of_their_name_and_have_a_domain(tmp_path):
    events = [
        *TRAINING,
        k.runtime("hipMemcpyWithStream", 90, 1, correlation=80),
        k.runtime("old", 95, 1, category="Runtime"),
    ]
    assert rows(read(tmp_path, events), "cuda_api", "name", "domain", "correlation_id", "dur_ns") == [
        ("cudaLaunchKernel", "runtime", 70, 3_000),
        ("cudaMemcpyAsync", "runtime", 71, 5_000),
        ("cuMemsetD8Async", "driver", 72, 2_000),
        ("hipMemcpyWithStream", "runtime", 80, 1_000),
        ("old", "runtime", None, 1_000),
    ]


def test_calls_of_the_profiler_are_its_overhead(tmp_path):
    profiler = "torch/profiler/profiler.py"
    frames = [
        k.frame("train.py(3): train", 0, 100),
        k.frame(f"{profiler}(821): step", 10, 8),
        k.frame(f"{profiler}(199): start_trace", 11, 5),
        k.frame("my/profiler.py(1): start_trace", 30, 5),  # of the program
        k.frame("torch/autograd/profiler.py(789): __exit__", 40, 5),  # of a record_function
        k.frame(f"{profiler}(235): stop_trace", 90, 5),
    ]
    trace = read(tmp_path, frames)
    assert rows(trace, "overhead", "start_ns", "dur_ns", "process_id", "thread_id") == [
        (10_000, 8_000, 0, 0), (11_000, 5_000, 0, 0), (90_000, 5_000, 0, 0),
    ]  # fmt: skip
    assert trace.rows("host_ops") == 6


def test_what_cuda_takes_without_a_profiler_too_is_no_overhead(tmp_path):
    names = ("Lazy Function Loading", "Runtime Triggered Module Loading", "Activity Buffer Request", "Resource")
    events = [k.complete(name, 10 * i, 5, "overhead", pid=-1, tid=0) for i, name in enumerate(names)]
    trace = read(tmp_path, [*events, k.op("aten::mm", 0, 50)])
    assert rows(trace, "overhead", "name") == [("Activity Buffer Request",), ("Resource",)]


def test_overhead_belongs_to_its_thread_where_the_file_knows_it(tmp_path):
    events = [
        *TRAINING,
        k.complete("Buffer Flush", 50, 2, "overhead", pid=-1, tid=0),
        k.complete("Instrumentation", 60, 2, "overhead"),
    ]
    assert rows(read(tmp_path, events), "overhead", "name", "process_id", "thread_id", "dur_ns") == [
        ("Buffer Flush", 0, None, 2_000),
        ("Instrumentation", 0, 0, 2_000),
    ]


# Spellings of 2020, and other programs


def test_first_spellings_give_the_same_tables(tmp_path):
    old = {"tid": "stream 7"}
    events = [
        k.op("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 5, category="Operator", tid="101"),
        k.op("ProfilerStep#2", 0, 50, category="Operator", tid="101"),
        k.runtime("cudaLaunchKernel", 10, 2, correlation=1, category="Runtime", tid="101"),
        {**k.kernel("k", 20, 5, correlation=1, category="Kernel"), **old},
        {**k.copy(30, 5, category="Memcpy"), **old},
        {**k.fill(40, 5, category="Memset"), **old},
    ]
    data = k.bare(events)
    trace = read_bytes(tmp_path, data)
    counts = {name: trace.rows(name) for name in ("host_ops", "steps", "cuda_api", "kernels", "memcpy", "memset")}
    assert counts == {"host_ops": 2, "steps": 1, "cuda_api": 1, "kernels": 1, "memcpy": 1, "memset": 1}
    assert rows(trace, "threads", "tid") == [(101,)]
    assert trace.run_facts()["producer"] == "PyTorch profiler"


def test_stream_in_the_thread_id_is_used_where_no_argument_says_it(tmp_path):
    event = k.kernel("k", 0, 1, category="Kernel")
    del event["args"]["stream"]
    trace = read(tmp_path, [{**event, "tid": "stream 22"}])
    assert rows(trace, "kernels", "stream") == [(22,)]


def test_other_programs_traces_are_work_of_the_host_of_all_their_processes(tmp_path):
    events = [
        {"ph": "X", "name": "task", "pid": "browser", "tid": "main", "ts": 0, "dur": 10},
        {"ph": "X", "name": "f", "cat": "FEE", "pid": 7, "tid": 8, "ts": 2, "dur": 3},
        k.counter("memory", 5, {"used": 7}),
    ]
    trace = read_bytes(tmp_path, json.dumps({"traceEvents": events}).encode())
    assert rows(trace, "host_ops", "name", "category", "process_id") == [("task", "annotation", 1), ("f", "python", 0)]
    assert rows(trace, "processes", "pid", "name") == [(7, None), (None, "browser")]
    assert rows(trace, "threads", "tid", "name") == [(8, None), (0, "main")]
    assert trace.run_facts()["producer"] == "Chrome trace format"
    assert trace.run_facts()["framework"] is None
    assert notes(trace) == {"not-a-pytorch-trace": None, "counters-unread": 1}


def test_calls_that_unitrace_names_like_operators_are_ranges_and_nodes_of_onnx_runtime_are_operators(
    tmp_path,
):
    calls = [
        {"ph": "X", "name": "zeCommandQueueSynchronize", "cat": "cpu_op", "pid": 1, "tid": 1, "ts": 0, "dur": 9},
        {"ph": "X", "name": "gemm[SIMD32]", "cat": "gpu_op", "pid": 4294967295, "tid": 4294967295, "ts": 1, "dur": 8},
    ]
    trace = read_bytes(tmp_path, json.dumps({"traceEvents": calls}).encode())
    assert rows(trace, "host_ops", "category") == [("annotation",), ("annotation",)]
    assert trace.run_facts()["framework"] is None
    nodes = [
        {"ph": "X", "name": "conv1_kernel_time", "cat": "Node", "pid": 1, "tid": 1, "ts": 5, "dur": 3},
        {"ph": "X", "name": "model_run", "cat": "Session", "pid": 1, "tid": 1, "ts": 0, "dur": 9},
    ]
    trace = read_bytes(tmp_path, json.dumps(nodes).encode())
    assert rows(trace, "host_ops", "name", "category") == [("model_run", "annotation"), ("conv1_kernel_time", "op")]


def test_unknown_categories_are_named_in_a_note(tmp_path):
    trace = read(tmp_path, [k.complete("x", 0, 1, "warp_drive"), k.complete("y", 1, 1, "warp_drive")])
    assert notes(trace)["unknown-categories"] == 2


# Processes and threads


def test_frames_of_pid_zero_are_a_thread_of_the_program(tmp_path):
    trace = read(tmp_path, [*TRAINING, k.frame("threading.py(1032): _bootstrap", 0, 100, pid=0, tid=0)])
    assert rows(trace, "processes", "pid") == [(100,)]
    assert rows(trace, "threads", "tid", "process_id") == [(0, 0), (101, 0)]
    assert notes(trace)["processes-joined"] == 1


def test_step_of_a_pid_without_work_belongs_to_the_program(tmp_path):
    trace = read(tmp_path, [k.step(1, 0, 200, pid=31, tid=31), *TRAINING[1:]])
    assert rows(trace, "processes", "pid") == [(100,)]
    assert rows(trace, "steps", "step", "process_id") == [(1, 0)]


def test_two_programs_that_work_stay_two_and_device_work_follows_its_call(tmp_path):
    events = [
        k.op("a", 0, 10),
        k.runtime("cudaLaunchKernel", 1, 1, correlation=1),
        k.op("b", 0, 10, pid=200, tid=201),
        k.runtime("cudaLaunchKernel", 2, 1, correlation=2, pid=200, tid=201),
        k.kernel("k", 20, 1, correlation=1),
        k.kernel("l", 30, 1, correlation=2),
    ]
    trace = read(tmp_path, events)
    assert rows(trace, "kernels", "name", "process_id") == [("k", 0), ("l", 1)]


def test_device_numbers_are_no_processes_and_names_come_from_the_metadata(tmp_path):
    events = [
        *TRAINING,
        k.process_name("python3"),
        k.process_name("python3", pid=0),
        k.thread_name("thread 101 (pt_main_thread)"),
        k.thread_name("stream 7 ", pid=0, tid=7),
    ]
    trace = read(tmp_path, events)
    assert rows(trace, "processes", "pid", "name") == [(100, "python3")]
    assert rows(trace, "threads", "tid", "name") == [(101, "pt_main_thread")]


def test_threads_of_calls_that_the_profiler_could_not_tell_are_noted(tmp_path):
    trace = read(tmp_path, [*TRAINING, k.runtime("cudaEventQuery", 90, 1, tid=-549_452_224)])
    assert rows(trace, "threads", "tid") == [(-549_452_224,), (101,)]
    assert notes(trace)["threads-unresolved"] == 1


def test_kernels_alone_belong_to_a_process_of_which_nothing_is_known(tmp_path):
    trace = read(tmp_path, [k.kernel("k", 0, 1)])
    assert rows(trace, "processes", "process_id", "pid") == [(0, None)]
    assert rows(trace, "kernels", "process_id") == [(0,)]


# What is wrong with a file


def test_healthy_trace_has_no_notes(tmp_path):
    assert notes(read(tmp_path, TRAINING)) == {}


def test_event_far_away_from_all_others_is_left_out(tmp_path):
    trace = read(tmp_path, [k.op("a", 1.7e15, 5), k.op("zero", 0, 1), k.op("b", 1.7e15 + 10, 5)])
    assert rows(trace, "host_ops", "name") == [("a",), ("b",)]
    assert trace.run_facts()["span_ns"] == 15_000
    assert notes(trace)["times-out-of-range"] == 1


def test_event_of_31_days_is_kept_without_a_duration(tmp_path):
    trace = read(tmp_path, [k.op("a", 0, 5), k.op("long", 10, 31 * 86_400 * 10**6), k.op("b", 20, 5)])
    assert rows(trace, "host_ops", "name", "dur_ns") == [("a", 5_000), ("long", None), ("b", 5_000)]
    assert trace.run_facts()["span_ns"] == 25_000
    assert notes(trace) == {**notes(read(tmp_path, [k.op("a", 0, 5)])), "durations-out-of-range": 1}


def test_values_that_do_not_fit_are_not_known(tmp_path):
    event = k.kernel("k", 0, 1, registers=2**40, shared_memory=-1, occupancy=-5, stream=2**63 - 1)
    columns = ("registers_per_thread", "static_shared_bytes", "achieved_occupancy", "stream")
    assert rows(read(tmp_path, [event]), "kernels", *columns) == [(None, None, None, 2**63 - 1)]


def test_device_work_without_a_device_is_left_out_and_noted(tmp_path):
    event = k.kernel("k", 0, 1, args={"device": None})
    trace = read(tmp_path, [{**event, "pid": "somewhere"}, k.kernel("l", 5, 1)])
    assert rows(trace, "kernels", "name") == [("l",)]
    assert notes(trace)["devices-unknown"] == 1


def test_file_without_events_is_refused_with_a_reason(tmp_path):
    with pytest.raises(DamagedTraceError, match="holds no event"):
        read(tmp_path, [k.span(0, 10)])


def test_run_cannot_be_chosen_in_a_file(tmp_path):
    with pytest.raises(UsageError, match="not a folder of runs"):
        read(tmp_path, TRAINING, run="1")


def test_only_the_tables_asked_for_are_made(tmp_path):
    trace = read(tmp_path, TRAINING, tables=frozenset({"kernels"}))
    assert set(trace) == {"run", "devices", "processes", "threads", "notes", "kernels"}
    assert rows(trace, "kernels", "op") == [("aten::addmm",)]


def test_nesting_is_left_out_where_it_does_not_matter(tmp_path):
    trace = read(tmp_path, TRAINING, columns={"host_ops": frozenset({"group_id"})})
    assert {row["parent_id"] for row in trace.arrow("host_ops").to_pylist()} == {None}


def lane_events(starts, lasts=80):
    """Return the events of two lanes of another program, numbered with steps that start at ``starts``."""
    parts = (("forward", 0), ("backward", lasts // 2))
    return [
        k.complete(name, start + at, lasts // 2, "lane", tid=lane, args={"step": number})
        for number, start in enumerate(starts, 16)
        for name, at in parts
        for lane in (1, 2)
    ]


def test_events_numbered_with_steps_mark_them(tmp_path):
    trace = read(tmp_path, lane_events([0, 100, 200]))
    assert rows(trace, "steps", "step", "start_ns", "dur_ns") == [
        (16, 0, 80_000),
        (17, 100_000, 80_000),
        (18, 200_000, 80_000),
    ]


@pytest.mark.parametrize("starts", [[0, 100], [0, 20, 40], [200, 100, 0]])
def test_numbers_that_do_not_divide_the_time_mark_no_steps(tmp_path, starts):
    assert rows(read(tmp_path, lane_events(starts)), "steps", "step") == []
