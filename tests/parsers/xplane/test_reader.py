"""The XPlane reader turns planes, lines, events and stats into the tables of the contract."""

import gzip
import json
import sys

import pytest

from tests.parsers.xplane.files import Name, Ref, Unsigned, event, line, plane, space
from tests.parsers.xplane.traces import US, environment, gpu, host, notes, read, rows, tables_of, training
from traceviz.core.errors import DamagedTraceError, UnknownFormatError, UsageError
from traceviz.parsers.base import HEAD_BYTES, Match, ReadOptions
from traceviz.parsers.registry import identify
from traceviz.parsers.xplane.readers import XPlaneReader
from traceviz.trace.schema import HOST_CATEGORIES
from traceviz.trace.tables import load, save


def test_a_training_run_becomes_the_tables_that_it_can_fill(tmp_path):
    tables = tables_of(tmp_path, training(3))
    filled = {name: tables.rows(name) for name in tables if tables.rows(name)}
    assert filled == {
        "run": 1,
        "devices": 1,
        "processes": 1,
        "threads": 2,
        "kernels": 3,
        "memcpy": 3,
        "cuda_api": 6,
        "host_ops": 9,
        "op_args": 9,
        "steps": 3,
        "settings": 2,
    }


def test_a_sampler_of_frames_does_not_disturb_reading(samples):
    frames = []  # as a profiler in another thread has them, for a moment
    sys.setprofile(lambda frame, _event, _argument: frames.append(frame))
    try:
        trace = XPlaneReader().read(samples / "xplane" / "repaired.xplane.pb", ReadOptions())
        counted = {name: table.num_rows for name, table in trace}
    finally:
        sys.setprofile(None)
    assert frames
    assert counted["steps"] > 0


def test_times_count_from_the_first_event_and_picoseconds_are_cut_off(tmp_path):
    events = [event("a", 1_500, 2_000), event("b", 9_999, 1)]
    tables = tables_of(tmp_path, space(host(line(1, *events, timestamp_ns=7_000)), environment(5_000)))
    assert rows(tables, "host_ops", "start_ns", "dur_ns") == [(0, 2), (8, 1)]
    assert tables.run_facts()["t0_unix_ns"] == 5_000 + 7_001
    assert tables.run_facts()["span_ns"] == 9


def test_lines_that_hold_times_of_day_need_no_start_of_profiling(tmp_path):
    day = 1_700_000_000_000_000_000
    tables = tables_of(tmp_path, space(host(line(1, event("a", 3_000, 1_000), timestamp_ns=day))))
    assert tables.run_facts()["t0_unix_ns"] == day + 3
    assert rows(tables, "host_ops", "start_ns", "dur_ns") == [(0, 1)]


def test_a_negative_duration_is_an_instant_and_noted(tmp_path):
    tables = tables_of(tmp_path, space(host(line(1, event("a", 0, -5_000), event("b", 1_000, 1_000)))))
    assert rows(tables, "host_ops", "dur_ns") == [(0,), (1,)]
    assert notes(tables)["negative-durations"][:2] == ("warning", 1)


def test_kernels_carry_shape_occupancy_stream_context_op_and_group(tmp_path):
    tables = tables_of(tmp_path, training(2))
    kernel = tables.arrow("kernels").to_pylist()[1]
    assert {name: kernel[name] for name in ("start_ns", "dur_ns", "stream", "context_id", "correlation_id")} == {
        "start_ns": 130_000,
        "dur_ns": 40_000,
        "stream": 13,
        "context_id": 1,
        "correlation_id": 12,
    }
    assert [kernel[f"{of}_{axis}"] for of in ("grid", "block") for axis in "xyz"] == [4, 2, 1, 64, 1, 1]
    assert [kernel[f"{what}"] for what in ("registers_per_thread", "static_shared_bytes", "dynamic_shared_bytes")] == [
        32,
        48,
        16,
    ]
    assert (kernel["occupancy"], kernel["op"], kernel["group_id"]) == (0.5, "dense/MatMul:MatMul", 1)


def test_old_details_and_annotations_are_understood(tmp_path):
    stats = {"kernel_details": "regs:16 shm:8 grid:1,1,1 block:1024,1,1", "annotation": "a/Mul:Mul#k=1#::#edge=b#"}
    stream = line(13, event("mul", 0, US, stats), name="Stream #13(Compute)")
    kernel = tables_of(tmp_path, space(gpu(stream))).arrow("kernels").to_pylist()[0]
    assert (kernel["registers_per_thread"], kernel["dynamic_shared_bytes"], kernel["block_x"]) == (16, 8, 1024)
    assert kernel["op"] == "a/Mul:Mul"


def test_registers_that_no_gpu_has_are_left_out_and_noted(tmp_path):
    wrong = "regs:2191500840 static_shared:32462 dynamic_shared:0 grid:2,1,1 block:64,1,1 occ_pct:0"
    stats = {"kernel_details": Ref(wrong), "theoretical_occupancy_pct": 0.0}
    tables = tables_of(tmp_path, space(gpu(line(1, event("k", 0, US, stats), name="Stream #1(Kernel)"))))
    names = ("registers_per_thread", "static_shared_bytes", "dynamic_shared_bytes", "grid_x", "occupancy")
    assert rows(tables, "kernels", *names) == [(None, None, 0, 2, None)]
    assert notes(tables)["implausible-registers"][:2] == ("warning", 1)


@pytest.mark.parametrize(
    ("name", "details", "expected"),
    [
        ("MemcpyH2D", "kind_src:pinned kind_dst:device size:8 dest:0 async:1", ("h2d", "pinned", "device", 8)),
        ("MemcpyD2H", "size:4 dest:0 async:1", ("d2h", "device", "unknown", 4)),
        ("MemcpyD2D", "size:16 dest:0 async:1", ("d2d", "device", "device", 16)),
        ("MemcpyD2D", "size:16 dest:3 async:1", ("p2p", "device", "device", 16)),
        ("MemcpyP2P", "size:16 dest:1 async:1", ("p2p", "device", "device", 16)),
        ("CopyDeviceToDevice", "kind:Unknown size:655360 dest:2 async:1", ("p2p", "device", "device", 655_360)),
        ("CopyHostToDevice", "kind:Unknown size:32 dest:0 async:1", ("h2d", "unknown", "device", 32)),
        ("MemcpyOther", "size:2 dest:0 async:0", ("unknown", "unknown", "unknown", 2)),
    ],
)
def test_copies_have_their_direction_memory_and_size(tmp_path, name, details, expected):
    copied = line(2, event(name, 0, US, {"memcpy_details": details}), name="Stream #2(Memcpy)")
    tables = tables_of(tmp_path, space(gpu(copied)))
    assert rows(tables, "memcpy", "kind", "src_memory", "dst_memory", "bytes") == [expected]


def test_fills_graphs_and_driver_allocations_are_no_kernels(tmp_path):
    stream = line(
        3,
        event("Memset", 0, US, {"Memset_details": "kind:device num_bytes:64 async:1"}),
        event("MemoryAlloc", 2 * US, 0, {"MemoryResidency_details": "kind:device num_bytes:32 addr:0x10"}),
        event("CudaGraphExec:5", 3 * US, US),
        name="Stream #3(Memset,Compute)",
    )
    tables = tables_of(tmp_path, space(gpu(stream)))
    assert rows(tables, "memset", "dur_ns", "memory", "bytes") == [(1_000, "device", 64)]
    assert rows(tables, "memory_events", "kind", "memory", "bytes", "address") == [("alloc", "device", 32, 16)]
    assert tables.rows("kernels") == 0
    assert rows(tables, "graphs", "start_ns", "dur_ns", "stream", "graph_id") == [(3_000, 1_000, 3, 5)]
    assert notes(tables)["graph-kernels-hidden"][:2] == ("warning", 1)


def test_lines_that_the_profiler_derived_are_not_counted_again(tmp_path):
    work = line(13, event("k", 0, US), name="Stream #13(Compute)")
    derived = [
        line(-559038737, event("0", 0, US), name="Steps"),
        line(-559038734, event("op", 0, US), name="TensorFlow Ops"),
        line(-559038447, event("op", 0, US), name="XLA Ops - from #13"),
        line(5, event("op", 0, US), name="Framework Name Scope - from #13"),
    ]
    tables = tables_of(tmp_path, space(gpu(work, *derived)))
    assert tables.rows("kernels") == 1
    assert "device_ops" not in tables
    assert notes(tables) == {}


def test_overhead_and_counters_of_a_device_have_tables_of_their_own(tmp_path):
    counters = line(8, event("power", 0, 0, {"power_mw": 70_500, "gpu_temp_c": 51.5}), name="_counters_")
    overhead = line(9, event("Buffer flush", US, 3 * US), name="CUPTI overhead")
    tables = tables_of(tmp_path, space(gpu(counters, overhead)))
    assert rows(tables, "samples", "metric", "unit", "value", "device_id") == [
        ("power_mw", "mW", 70_500.0, 0),
        ("gpu_temp_c", "°C", 51.5, 0),
    ]
    assert rows(tables, "overhead", "name", "dur_ns") == [("Buffer flush", 3_000)]


def test_devices_have_the_facts_of_their_planes(tmp_path):
    tpu = plane(
        "/device:TPU:1",
        plane_id=10,
        stats={"device_type_string": "TPU v6 Lite", "peak_hbm_bw_gigabytes_per_second": 1638.0},
    )
    amd = plane("/device:GPU:1", stats={"device_vendor": "AMD", "compute_cap_major": 9, "compute_cap_minor": 4})
    tables = tables_of(tmp_path, space(tpu, gpu(), amd))
    names = ("kind", "ordinal", "name", "compute_capability", "sm_count", "memory_bandwidth", "clock_hz")
    assert rows(tables, "devices", *names) == [
        ("gpu", 0, "Tesla T4", "7.5", 40, 320_064_000_000, 1_590_000_000),
        ("gpu", 1, "AMD GPU", None, None, None, None),
        ("tpu", 1, "TPU v6 Lite", None, None, 1_638_000_000_000, None),
    ]


def test_ops_of_a_tpu_are_kernels_unless_they_enclose_others(tmp_path):
    ops = line(
        3,
        event("%while = ...", 0, 10 * US),
        event("%fusion.1 = f32[8]{0} fusion()", US, 3 * US),
        event("%copy-start = ...", 5 * US, 0),
        event("%copy-done = ...", 5 * US, 2 * US),
        event("%tail = ...", 10 * US, US),
        name="XLA Ops",
    )
    modules = line(2, event("jit_f(77)", 0, 11 * US, {"run_id": Unsigned(5)}), name="XLA Modules")
    steps = line(1, event("12", 0, 11 * US), name="Steps")
    described = {
        "%while = ...": Name("while", {"hlo_category": "while"}),
        "%fusion.1 = f32[8]{0} fusion()": Name(
            "fusion.1", {"hlo_category": "loop fusion", "program_id": Unsigned(77), "tf_op": "jit(f)/add:"}
        ),
    }
    tables = tables_of(tmp_path, space(plane("/device:TPU:0", ops, modules, steps, names=described)))
    assert rows(tables, "kernels", "name", "category", "module", "dur_ns") == [
        ("fusion.1", "loop fusion", "jit_f(77)", 3_000),
        ("%copy-start = ...", None, None, 0),
        ("%copy-done = ...", None, None, 2_000),
        ("%tail = ...", None, None, 1_000),
    ]
    assert sorted(rows(tables, "device_ops", "kind", "name", "run_id")) == [
        ("container", "while", None),
        ("module", "jit_f(77)", 5),
        ("step", "12", None),
    ]
    assert rows(tables, "steps", "step", "marker", "device_id", "dur_ns") == [(12, "Steps", 0, 11_000)]


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("IteratorGetNext:IteratorGetNext", "input"),
        ("IteratorGetNextAsOptionalOp::DoCompute", "input"),
        ("iteratorgetnext", "input"),
        ("Iterator::Root::Prefetch", "pipeline"),
        ("PrefetchConsume", "pipeline"),
        ("InstantiatedCapturedFunction::RunAsync", "pipeline"),
        ("dense/MatMul:MatMul", "op"),
        ("PjitFunction(train_step)", "op"),
        ("MemcpyH2D", "transfer"),
        ("TransferToDevice", "transfer"),
        ("BufferFromHostBuffer", "transfer"),
        ("InfeedEnqueueTuple", "transfer"),
        ("PjRtCpuClient::Compile", "compile"),
        ("backend_compile_and_load", "compile"),
        ("tf.function-graph_building", "compile"),
        ("$trainer.py:12 fit", "python"),
        ("ExecutorState::Process", "runtime"),
        ("EagerExecute: __inference_step_46", "runtime"),
        ("MemoryAllocation", "runtime"),
    ],
)
def test_operations_on_the_host_are_sorted_by_what_they_do(tmp_path, name, category):
    tables = tables_of(tmp_path, space(host(line(1, event(name, 0, US)))))
    assert category in HOST_CATEGORIES
    assert rows(tables, "host_ops", "name", "category") == [(name, category)]


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("$profiler.py:101 start_trace", 1),
        ("$profiler.py:213 stop_trace", 1),
        ("$profiler_v2.py:79 start", 1),
        ("$profiler_v2.py:127 stop", 1),
        ("$callbacks.py:2805 _stop_profiler", 1),
        ("$profiler.py:356 wrapper", 0),  # around a function of the program
        ("$trainer.py:12 start_trace", 0),
        ("start_trace", 0),
    ],
)
def test_starting_and_stopping_the_profiler_is_overhead(tmp_path, name, taken):
    tables = tables_of(tmp_path, space(host(line(1, event(name, 0, US), event("step", 2 * US, US)))))
    assert (tables.rows("overhead") if "overhead" in tables else 0) == taken
    assert tables.rows("host_ops") == 2  # it stays a frame among the others
    if taken:
        assert rows(tables, "overhead", "start_ns", "dur_ns", "process_id", "thread_id", "name") == [
            (0, 1_000, 0, 0, name)
        ]


def test_stats_tell_what_names_do_not(tmp_path):
    events = [
        event("train", 0, 50 * US, {"step_num": 4, "_r": 1}),
        event("fusion", US, 2 * US, {"hlo_op": "fusion"}),
        event("next_batch", 10 * US, 20 * US, {"_ipl_stage_name": "read"}),
        event("decode", 11 * US, 5 * US, {"_ipl_stage_name": "decode"}),
    ]
    tables = tables_of(tmp_path, space(host(line(1, *events))))
    assert rows(tables, "host_ops", "name", "category") == [
        ("train", "step"),
        ("fusion", "op"),
        ("next_batch", "input"),
        ("decode", "pipeline"),
    ]


def test_operations_are_numbered_by_start_and_nested_within_their_thread(tmp_path):
    first = line(1, event("a", 0, 10 * US), event("b", US, 5 * US), event("c", US, 5 * US), event("d", 20 * US, 0))
    second = line(2, event("e", 2 * US, US), event("f", 2 * US, 0))
    tables = tables_of(tmp_path, space(host(first, second)))
    assert rows(tables, "host_ops", "op_id", "name", "thread_id", "depth", "parent_id") == [
        (0, "a", 0, 0, None),
        (1, "b", 0, 1, 0),
        (2, "c", 0, 2, 1),
        (3, "e", 1, 0, None),
        (4, "f", 1, 1, 3),
        (5, "d", 0, 0, None),
    ]


def test_frames_that_overlap_in_part_are_siblings(tmp_path):
    frames = [event("$a.py:1 f", 0, 10 * US), event("$a.py:2 g", 5 * US, 10 * US), event("$a.py:3 h", 6 * US, US)]
    tables = tables_of(tmp_path, space(host(line(1, *frames))))
    assert rows(tables, "host_ops", "parent_id", "depth") == [(None, 0), (None, 0), (1, 1)]


def test_what_lies_within_a_driver_call_belongs_to_the_operation_around_it(tmp_path):
    events = [
        event("ExecutorState::Process", 0, 10 * US),
        event("cuStreamSynchronize", US, 5 * US, {"correlation_id": 9}),
        event("wait", 2 * US, US),
    ]
    tables = tables_of(tmp_path, space(host(line(1, *events)), gpu()))
    assert rows(tables, "host_ops", "op_id", "name", "parent_id") == [
        (0, "ExecutorState::Process", None),
        (1, "wait", 0),
    ]
    assert rows(tables, "cuda_api", "name", "domain", "correlation_id") == [("cuStreamSynchronize", "driver", 9)]


@pytest.mark.parametrize(
    ("name", "details", "call", "domain"),
    [
        ("cuLaunchKernel", "", "cuLaunchKernel", "driver"),
        ("cuMemcpyDtoHAsync_v2", "", "cuMemcpyDtoHAsync", "driver"),
        ("cuGraphLaunch (CudaGraph:3)", "", "cuGraphLaunch", "driver"),
        ("cudaMemcpyAsync", "", "cudaMemcpyAsync", "runtime"),
        ("MemcpyH2D", "size:4 dest:1 async:1", "cuMemcpyHtoDAsync", "driver"),
        ("MemcpyH2D", "size:112 dest:4 async:0", "cuMemcpyHtoD", "driver"),
        ("void Eigen::internal::EigenMetaKernel<float>(int)", "", "cuLaunchKernel", "driver"),
    ],
)
def test_driver_calls_have_one_name_in_old_and_new_captures(tmp_path, name, details, call, domain):
    stats = {"correlation_id": 3} | ({"memcpy_details": details} if details else {})
    tables = tables_of(tmp_path, space(host(line(1, event(name, 0, US, stats))), gpu()))
    assert rows(tables, "cuda_api", "name", "domain", "correlation_id") == [(call, domain, 3)]
    assert tables.rows("host_ops") == 0


def test_properties_keep_their_types_and_64_bits_and_leave_plumbing_out(tmp_path):
    stats = {
        "id": Unsigned(2**63 + 5),
        "parent_id": -3,
        "fragmentation": 0.25,
        "shapes": Ref("[?,32]"),
        "is_eager": 1,
        "_p": 4,
        "_ct": 1,
        "group_id": 0,
    }
    tables = tables_of(tmp_path, space(host(line(1, event("Iterator::Root", 0, US, stats)))))
    assert rows(tables, "op_args", "op_id", "key", "integer", "real", "text") == [
        (0, "id", -(2**63) + 5, None, None),
        (0, "parent_id", -3, None, None),
        (0, "fragmentation", None, 0.25, None),
        (0, "shapes", None, None, "[?,32]"),
        (0, "is_eager", 1, None, None),
    ]


def test_allocations_of_the_framework_name_pool_device_and_op(tmp_path):
    stats = {
        "allocator_name": Ref("GPU_0_bfc"),
        "bytes_allocated": 900,
        "bytes_available": 100,
        "peak_bytes_in_use": 950,
        "requested_bytes": 60,
        "allocation_bytes": 64,
        "addr": 4096,
        "tf_op": Ref("dense/MatMul"),
    }
    events = [event("MemoryAllocation", 0, 0, stats), event("MemoryDeallocation", US, 0, {**stats, "tf_op": Ref("")})]
    tables = tables_of(tmp_path, space(host(line(1, *events)), gpu()))
    names = ("kind", "pool", "memory", "device_id", "bytes", "in_use_bytes", "peak_bytes", "available_bytes", "address")
    assert rows(tables, "memory_events", *names) == [
        (kind, "GPU_0_bfc", "device", 0, 64, 900, 950, 100, 4096) for kind in ("alloc", "free")
    ]
    assert tables.rows("op_args") == 0


def test_nvtx_ranges_are_a_table_of_their_own_on_the_thread_that_they_name(tmp_path):
    nvtx = line(
        2**32,
        event("NVTX:data:load", 0, 10 * US),
        event("NVTX:decode", US, 2 * US),
        event("NVTX:mark", 20 * US, 0),
        name="Host Threads/100/NVTX",
    )
    tables = tables_of(tmp_path, space(host(line(100, event("a", 0, US), name="python3"), nvtx)))
    names = ("range_id", "name", "domain", "kind", "depth", "parent_id", "thread_id")
    assert rows(tables, "nvtx", *names) == [
        (0, "load", "data", "push_pop", 0, None, 0),
        (1, "decode", "", "push_pop", 1, 0, 0),
        (2, "mark", "", "mark", 0, None, 0),
    ]
    assert rows(tables, "threads", "tid", "name") == [(100, "python3")]


def test_threads_lose_the_number_that_the_profiler_appends_to_their_names(tmp_path):
    lines = [line(-7, event("a", 0, US), name="tf_Compute/-7"), line(5, event("b", 0, US)), line(6, name="empty")]
    assert rows(tables_of(tmp_path, space(host(*lines))), "threads", "thread_id", "tid", "name") == [
        (0, -7, "tf_Compute"),
        (1, 5, None),
    ]


def test_marked_steps_are_the_groups_that_the_program_marked(tmp_path):
    tables = tables_of(tmp_path, training(3))
    assert rows(tables, "steps", "step", "name", "marker", "start_ns", "dur_ns", "thread_id", "group_id") == [
        (step, f"train {step}", "train", step * 100_000, 90_000, 1, step) for step in range(3)
    ]
    assert rows(tables, "cuda_api", "group_id") == [(0,), (0,), (1,), (1,), (2,), (2,)]


def test_unmarked_steps_last_as_long_as_their_work_on_the_gpu(tmp_path):
    run = event("FunctionRun", 0, 8 * US, {"_r": 1})
    launch = event("cuLaunchKernel", US, US, {"correlation_id": 5})
    work = [event("k", 20 * US, 10 * US, {"correlation_id": Unsigned(5)})]
    on_gpu = gpu(line(13, *work, name="Stream #13(Compute)"))
    tables = tables_of(tmp_path, space(host(line(1, run, launch)), on_gpu))
    assert rows(tables, "steps", "start_ns", "dur_ns", "marker", "thread_id", "group_id") == [
        (20_000, 10_000, "FunctionRun", None, 0)
    ]


def test_versions_options_and_capabilities_are_settings_and_private_ones_are_not(tmp_path):
    facts = plane("/host:metadata", stats={"jax_version": "0.10.2", "process_id": 4711, "log_path": "/home/me"})
    options = b"\x10\x02\x18\x01\x20\x00" + b"\x52\x0d/home/me/logs"
    when = plane("Task Environment", stats={"profile_options": options})
    content = space(host(line(1, event("a", 0, US))), facts, when)
    shown = dict(rows(tables_of(tmp_path, content), "settings", "key", "value"))
    assert shown == {
        "jax_version": "0.10.2",
        "process_id": "4711",
        "host_tracer_level": "2",
        "device_tracer_level": "1",
        "python_tracer_level": "0",
    }
    kept = tables_of(tmp_path, content, keep_private=True)
    assert dict(rows(kept, "settings", "key", "value"))["log_path"] == "/home/me"
    assert rows(kept, "processes", "pid", "name") == [(4711, "host")]


def test_the_run_names_framework_producer_and_scanner_but_no_host(tmp_path):
    facts = tables_of(tmp_path, training(1)).run_facts()
    assert (facts["format"], facts["producer"], facts["framework"]) == ("xplane", "TensorFlow profiler", "TensorFlow")
    assert facts["reader"].startswith("xplane, ")
    assert facts["host"] is None
    assert tables_of(tmp_path, training(1), keep_private=True).run_facts()["host"] == "secret-host"
    jax = plane("/host:metadata", stats={"jax_version": "0.10.2", "cuda_version": "12090"})
    facts = tables_of(tmp_path, space(host(line(1, event("PjitFunction(f)", 0, US))), jax)).run_facts()
    assert (facts["producer"], facts["producer_version"], facts["framework"]) == (
        "JAX profiler",
        "0.10.2",
        "JAX 0.10.2",
    )
    assert facts["cuda_version"] == "12.9"


def test_what_the_profiler_reports_reaches_the_notes_without_host_names(tmp_path):
    dropped = "Detected GPU events dropped on secret-host: Profiler has collected 2097152 events"
    content = space(
        host(line(1, event("a", 0, US))), errors=["CUPTI failed"], warnings=[dropped], hostnames=["secret-host"]
    )
    found = [tuple(row.values()) for row in tables_of(tmp_path, content).arrow("notes").to_pylist()]
    assert ("profiler-diagnostic", "error", 1, "The profiler: CUPTI failed") in found
    assert ("profiler-diagnostic", "warning", 1, f"The profiler: {dropped.replace('secret-host', '[host]')}") in found


def test_unknown_planes_lines_and_stats_are_counted(tmp_path):
    strange = plane("/device:CUSTOM:x", line(1, event("a", 0, 1), event("b", 0, 1)))
    tpu = plane("/device:TPU:0", line(1, event("c", 0, 1), name="Overlay"))
    stats = {"level 0": Ref("x"), "correlation_id": 3}
    work = gpu(line(13, event("k", 0, US, stats), name="Stream #13(Compute)"))
    messages = notes(tables_of(tmp_path, space(strange, tpu, work)))
    assert messages["unknown-planes"][1] == 2
    assert messages["unknown-lines"][1] == 1
    assert messages["unread-stats"][1] == 1
    assert "level 0 (1)" in messages["unread-stats"][2]


def test_aggregated_events_are_left_out_and_counted(tmp_path):
    tables = tables_of(tmp_path, space(host(line(1, event("a", 0, US), event("b", occurrences=12)))))
    assert tables.rows("host_ops") == 1
    assert notes(tables)["aggregated-events"][1] == 1


def test_only_the_tables_that_are_wanted_are_made(tmp_path):
    tables = tables_of(tmp_path, training(2), tables=frozenset({"kernels"}))
    assert {name for name in tables if tables.rows(name)} == {"run", "devices", "processes", "threads", "kernels"}


def test_columns_that_nobody_wants_stay_null(tmp_path):
    tables = tables_of(tmp_path, training(1), columns={"host_ops": frozenset({"group_id"})})
    assert rows(tables, "host_ops", "depth", "parent_id") == [(None, None)] * 3
    assert rows(tables, "host_ops", "name", "group_id")[0] == ("train", 0)


def test_a_compressed_capture_gives_the_same_tables(tmp_path):
    plain = tables_of(tmp_path, training(2))
    packed = tables_of(tmp_path, gzip.compress(training(2)))
    assert list(plain) == list(packed)
    assert all(plain.arrow(name).equals(packed.arrow(name)) for name in plain)


def test_the_fallback_gives_the_same_tables_and_says_so(tmp_path, monkeypatch):
    compiled = tables_of(tmp_path, training(2))
    monkeypatch.setenv("TRACEVIZ_SCANNER", "protobuf")
    slow = tables_of(tmp_path, training(2))
    assert all(compiled.arrow(name).equals(slow.arrow(name)) for name in slow if name not in ("run", "notes"))
    assert slow.run_facts()["reader"] == "xplane, protobuf fallback (slower)"
    assert notes(slow)["slow-reader"][0] == "info"


def test_a_converted_capture_reads_back_the_same(tmp_path):
    tables = tables_of(tmp_path, training(3))
    save(tables, tmp_path / "saved")
    again = load(tmp_path / "saved")
    assert list(again) == list(tables)
    assert all(again.arrow(name).to_pylist() == tables.arrow(name).to_pylist() for name in tables)


def test_captures_are_recognised_by_their_content(tmp_path):
    path = tmp_path / "anything.bin"
    for content in (training(1), gzip.compress(training(1)), training(2000)):
        path.write_bytes(content)
        assert identify(path).format == "xplane"


@pytest.mark.parametrize(
    "content",
    [
        b"{}",
        json.dumps({"traceEvents": []}).encode(),
        b"[1]",
        b"\n\x0bhello world",
        b"\x0a\x05hello",
        b"\x0a\x02\x12\x00",
        gzip.compress(b'{"traceEvents": []}', mtime=0),
        b"SQLite format 3\0",
        b"\x08\x01\x12\x03abc",
        bytes(range(256)),
    ],
)
def test_other_files_are_not_claimed(tmp_path, content):
    path = tmp_path / "other"
    path.write_bytes(content)
    assert XPlaneReader().sniff(content[:HEAD_BYTES], path) is Match.NO


def test_an_empty_capture_says_how_it_came_about(tmp_path):
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(b"")
    with pytest.raises(DamagedTraceError, match="over 2 GiB"):
        list(identify(path).read(path, ReadOptions()))


def test_a_file_that_only_has_the_name_of_a_capture_is_refused(tmp_path):
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(UnknownFormatError, match="its first bytes are no XSpace message"):
        identify(path)


def test_a_single_capture_has_no_runs_to_choose_from(tmp_path):
    with pytest.raises(UsageError, match="not a folder of runs"):
        tables_of(tmp_path, training(1), run="2024")


@pytest.mark.parametrize("name", ["events", "t"])
def test_a_renamed_file_takes_no_words_out_of_what_the_profiler_says(tmp_path, name):
    path = tmp_path / f"{name}.xplane.pb"
    path.write_bytes(space(host(line(1, event("a", 0, US))), warnings=["3 events dropped on vm1"], hostnames=["vm1"]))
    message = notes(read(path))["profiler-diagnostic"][2]
    assert message == "The profiler: 3 events dropped on [host]"


def test_steps_that_nobody_marked_are_found_on_the_host_where_the_gpu_of_the_machine_is_idle(tmp_path):
    runs = [event("FunctionRun", at * 100 * US, 90 * US, {"id": at, "_r": 1}) for at in range(4)]
    tables = tables_of(tmp_path, space(host(line(1, *runs)), gpu(), environment()))
    assert rows(tables, "steps", "start_ns", "dur_ns", "device_id")[1] == (100_000, 90_000, None)
    assert tables.rows("steps") == 4


def test_samples_of_a_grouped_file_hold_no_group_ids(tmp_path):
    sample = event("power_mw", 0, 0, {"power_mw": 5000, "group_id": 0})
    marker = event("train", 0, US, {"group_id": 0, "step_name": "train 0"})
    tables = tables_of(tmp_path, space(host(line(1, marker)), gpu(line(5, sample, name="_counters_"))))
    assert rows(tables, "samples", "metric", "value") == [("power_mw", 5000.0)]


def test_the_process_id_is_not_that_of_a_subprocess(tmp_path):
    worker = plane("/host:CPU [77]", line(2, event("b", 0, US)), stats={"process_id": 77})
    own = host(line(1, event("a", 0, US)), stats={"process_id": 12})
    assert rows(tables_of(tmp_path, space(worker, own)), "processes", "pid") == [(12,)]


@pytest.mark.parametrize("wrong", [2**63 - 1, 2**62, -(2**63), 31 * 86_400 * 10**9])
def test_1_line_that_begins_more_than_30_days_from_3_events_is_left_out_and_moves_nothing(tmp_path, wrong):
    good = line(2, event("b", 0, US), event("c", 2 * US, US), event("d", 4 * US, US), timestamp_ns=5)
    tables = tables_of(tmp_path, space(host(line(1, event("a", 0, US), timestamp_ns=wrong), good)))
    assert rows(tables, "host_ops", "name", "start_ns") == [("b", 0), ("c", 2000), ("d", 4000)]
    assert rows(tables, "run", "span_ns") == [(5000,)]
    left_out = [(code, count) for code, count in rows(tables, "notes", "code", "count") if "range" in code]
    assert left_out == [("times-out-of-range", 1)]


def test_an_event_that_lasts_31_days_is_an_instant_and_the_span_is_that_of_the_others(tmp_path):
    events = (event("a", 0, 31 * 86_400 * 10**12), event("b", 2 * US, US))
    tables = tables_of(tmp_path, space(host(line(1, *events))))
    assert rows(tables, "host_ops", "name", "dur_ns") == [("a", 0), ("b", 1000)]
    assert rows(tables, "run", "span_ns") == [(3000,)]
    left_out = [(code, count) for code, count in rows(tables, "notes", "code", "count") if "range" in code]
    assert left_out == [("durations-out-of-range", 1)]


def test_a_line_that_begins_30_days_after_another_is_read(tmp_path):
    lines = (line(1, event("a", 0, 0), timestamp_ns=30 * 86_400 * 10**9), line(2, event("b", 0, US), timestamp_ns=0))
    tables = tables_of(tmp_path, space(host(*lines)))
    assert rows(tables, "host_ops", "name", "start_ns") == [("b", 0), ("a", 2_592_000 * 10**9)]


def test_offsets_near_the_end_of_64_bits_are_left_out_even_where_all_events_have_them(tmp_path):
    late = 2**63 - 2
    content = space(host(line(1, event("a", late, US), event("b", late, 2 * US), name="python3")), environment())
    trace = tables_of(tmp_path, content)
    assert trace.run_facts()["span_ns"] == 0
    assert trace.rows("host_ops") == 0
    assert notes(trace)["times-out-of-range"][:2] == ("warning", 2)
