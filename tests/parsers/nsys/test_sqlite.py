"""Exports of every era, with the odd rows that real ones contain: small databases, built here."""

import sqlite3
from contextlib import closing

import pytest

from tests.parsers.nsys.database import (
    COLUMNS,
    ERAS,
    MIDDLE,
    NEW,
    OLD,
    build,
    call,
    kernel,
    nvtx_range,
    process,
    thread,
    to_parquet,
)
from tests.support.traces import column, note_counts, read
from traceviz.analyses.derived.host.classes import host_classes
from traceviz.analyses.derived.view import TraceView
from traceviz.core.errors import DamagedTraceError
from traceviz.parsers.nsys.mapping import EVENT_TABLES
from traceviz.parsers.registry import identify
from traceviz.parsers.shared.events.mapping import Name, Whole, Word
from traceviz.trace.schema import TABLES
from traceviz.trace.tables import load, save

KERNELS, RUNTIME, NVTX = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"
MEMCPY, OSRT, SYNC = "CUPTI_ACTIVITY_KIND_MEMCPY", "OSRT_API", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"


@pytest.mark.parametrize("era", ERAS)
def test_every_era_gives_the_same_events(tmp_path, era):
    tables = {KERNELS: [kernel(100, 180), kernel(300, 310)], RUNTIME: [call(90, 95, 2), call(250, 260, 2)]}
    trace = read(build(tmp_path / "x.sqlite", tables, era, ["gemm", "cudaLaunchKernel_v7000"]))
    assert column(trace, "kernels", "start_ns") == [10, 210]
    assert column(trace, "kernels", "dur_ns") == [80, 10]
    assert column(trace, "kernels", "name") == ["gemm", "gemm"]
    assert column(trace, "cuda_api", "name") == ["cudaLaunchKernel"] * 2
    assert trace.run_facts()["span_ns"] == 220
    assert trace.run_facts()["source_schema"] == (None if era == OLD else era)
    assert trace.run_facts()["t0_unix_ns"] == 1_600_000_000_000_000_090


def test_export_of_2020_names_devices_by_device_id_and_processes_by_their_first_thread(tmp_path):
    tables = {
        KERNELS: [kernel(1, 2, deviceId=1)],
        "TARGET_INFO_GPU": [{"deviceId": 0, "name": "T4"}, {"deviceId": 1, "name": "V100"}],
        "ThreadNames": [{"nameId": 2, "priority": 10, "globalTid": thread(100, 100)}],
    }
    trace = read(build(tmp_path / "x.sqlite", tables, OLD, ["k", "jacobi"]))
    assert column(trace, "devices", "name") == ["T4", "V100"]
    assert column(trace, "kernels", "device_id") == [1]
    assert column(trace, "processes", "name") == ["jacobi"]


@pytest.mark.parametrize(
    ("stated", "shown"),
    [
        ("/bin/sh", "python"),
        ("/usr/bin/bash", "python"),
        ("nsys-launcher", "python"),
        ("/opt/train", "train"),
        ("/opt/fish", "fish"),
    ],
)
def test_a_program_behind_a_shell_or_launcher_goes_by_the_name_of_its_first_thread(tmp_path, stated, shown):
    tables = {
        KERNELS: [kernel(1, 2)],
        "PROCESSES": [{"globalPid": process(100), "pid": 100, "name": stated}],
        "ThreadNames": [{"nameId": 2, "priority": 10, "globalTid": thread(100, 100)}],
    }
    trace = read(build(tmp_path / "x.sqlite", tables, MIDDLE, ["k", "python"]))
    assert column(trace, "processes", "name") == [shown]
    assert column(trace, "processes", "pid") == [100]


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ("cudaLaunchKernel_v7000", "cudaLaunchKernel"),
        ("cudaStreamGetCaptureInfo_v2_v11030", "cudaStreamGetCaptureInfo_v2"),
        ("cuMemAlloc_v2", "cuMemAlloc_v2"),
        ("cudaFree_v3020", "cudaFree"),
    ],
)
def test_api_names_lose_their_version_and_nothing_else(tmp_path, stored, shown):
    trace = read(build(tmp_path / "x.sqlite", {RUNTIME: [call(1, 2)]}, NEW, [stored]))
    assert column(trace, "cuda_api", "name") == [shown]


def test_two_versions_of_one_function_are_one_name(tmp_path):
    path = build(tmp_path / "x.sqlite", {RUNTIME: [call(1, 2, 1), call(3, 4, 2)]}, NEW, ["f_v7000", "f_v12000"])
    names = read(path).arrow("cuda_api")["name"].combine_chunks()
    assert names.to_pylist() == ["f", "f"]
    assert len(names.dictionary) == 1


def test_names_without_a_string_are_unknown_and_counted(tmp_path):
    rows = [kernel(1, 2, 1), kernel(3, 4, None, shortName=None), kernel(5, 6, 99)]
    trace = read(build(tmp_path / "x.sqlite", {KERNELS: rows}, NEW, ["known"]))
    assert column(trace, "kernels", "name") == ["known", "[unknown]", "[unknown]"]
    assert note_counts(trace) == {"name-unknown": 2}


def test_nvtx_names_come_as_text_and_as_ids_in_one_file(tmp_path):
    rows = [nvtx_range(1, 2, None, textId=1), nvtx_range(3, 4, "text"), nvtx_range(5, 6, "by id"), nvtx_range(7, 8)]
    trace = read(build(tmp_path / "x.sqlite", {NVTX: rows}, NEW, ["by id"]))
    assert column(trace, "nvtx", "name") == ["by id", "text", "by id", "[unknown]"]
    assert note_counts(trace) == {"name-unknown": 1}


def test_hostile_names_arrive_unchanged(tmp_path):
    names = ["void k[/x]", "<script>alert(1)</script>", "a|b", "two\nlines", "nul\0inside", "x" * 10_000, ""]
    rows = [kernel(index, index + 1, index) for index in range(1, len(names) + 1)]
    marks = [nvtx_range(index, index + 1, name) for index, name in enumerate(names, 1)]
    trace = read(build(tmp_path / "x.sqlite", {KERNELS: rows, NVTX: marks}, NEW, names))
    assert column(trace, "kernels", "name") == names
    assert column(trace, "nvtx", "name") == names
    assert note_counts(trace) == {}


def test_bytes_that_are_not_utf8_are_replaced(tmp_path):
    path = build(tmp_path / "x.sqlite", {NVTX: [nvtx_range(1, 2, b"caf\xe9")]})
    assert column(read(path), "nvtx", "name") == ["caf\ufffd"]


def test_ranges_know_their_depth_parent_domain_and_category(tmp_path):
    rows = [
        nvtx_range(0, None, "loader", eventType=75, domainId=1),
        nvtx_range(0, None, "io", eventType=33, category=4, domainId=1),
        nvtx_range(10, 100, "outer"),
        nvtx_range(20, 60, "inner", domainId=1, category=4),
        nvtx_range(30, 40, "leaf", domainId=9),
        nvtx_range(50, None, "mark", eventType=34),
        nvtx_range(15, 120, "across", eventType=60, endGlobalTid=thread(100, 101)),
        nvtx_range(70, None, "open"),
    ]
    trace = read(build(tmp_path / "x.sqlite", {NVTX: rows}))
    assert column(trace, "nvtx", "name") == ["outer", "across", "inner", "leaf", "mark", "open"]
    assert column(trace, "nvtx", "range_id") == [0, 1, 2, 3, 4, 5]
    assert column(trace, "nvtx", "depth") == [0, None, 1, 2, None, 1]
    assert column(trace, "nvtx", "parent_id") == [None, None, 0, 2, None, 0]
    assert column(trace, "nvtx", "domain") == ["", "", "loader", "[domain 9]", "", ""]
    assert column(trace, "nvtx", "category") == [None, None, "io", None, None, None]
    assert column(trace, "nvtx", "dur_ns") == [90, 105, 40, 10, None, None]
    assert column(trace, "nvtx", "start_ns")[0] == 0  # names of domains are no events of the clock


def test_calls_of_mpi_are_ranges_of_their_threads_and_processes_know_their_ranks(tmp_path):
    calls = {
        "MPI_COLLECTIVES_EVENTS": [{"start": 30, "end": 60, "globalTid": thread(100, 100), "textId": 1}],
        "MPI_P2P_EVENTS": [{"start": 70, "end": 90, "globalTid": thread(100, 100), "textId": 2}],
        "MPI_START_WAIT_EVENTS": [{"start": 120, "end": 130, "globalTid": thread(100, 100), "textId": 3}],
        "MPI_RANKS": [{"globalTid": thread(100, 100), "rank": 3}],
    }
    marks = [nvtx_range(10, 100, "step", globalTid=thread(100, 100))]
    names = ["MPI_Allreduce", "MPI_Recv", "MPI_Waitall"]
    for label, tables in (("both", {NVTX: marks, **calls}), ("alone", calls)):
        trace = read(build(tmp_path / f"{label}.sqlite", tables, NEW, names))
        own = [row for row in trace.arrow("nvtx").to_pylist() if row["domain"] == "MPI"]
        assert [(row["name"], row["dur_ns"], row["kind"]) for row in own] == [
            ("MPI_Allreduce", 30, "push_pop"),
            ("MPI_Recv", 20, "push_pop"),
            ("MPI_Waitall", 10, "push_pop"),
        ]
        assert [row["depth"] for row in own] == ([1, 1, 0] if label == "both" else [0, 0, 0])
        assert column(trace, "processes", "rank") == [3]
        assert note_counts(trace) == {}


def test_events_that_end_before_they_start_keep_their_row_without_a_duration(tmp_path):
    rows = [kernel(10, 5), kernel(20, 30), kernel(40, None)]
    trace = read(build(tmp_path / "x.sqlite", {KERNELS: rows}, NEW, ["k"]))
    assert column(trace, "kernels", "dur_ns") == [None, 10, None]
    assert note_counts(trace) == {"negative-duration": 1}


def test_rows_without_a_start_are_left_out_and_counted(tmp_path):
    rows = [kernel(10, 20), {**kernel(30, 40), "start": None}]
    trace = read(build(tmp_path / "x.sqlite", {KERNELS: rows}, NEW, ["k"]))
    assert trace.rows("kernels") == 1
    assert note_counts(trace) == {"start-missing": 1}


def test_unsorted_rows_are_sorted(tmp_path):
    rows = [kernel(30, 31), kernel(10, 11), kernel(20, 21)]
    trace = read(build(tmp_path / "x.sqlite", {KERNELS: rows}, NEW, ["k"]))
    assert column(trace, "kernels", "start_ns") == [0, 10, 20]
    assert column(trace, "kernels", "correlation_id") == [10, 20, 30]


def test_equal_correlation_ids_of_two_processes_stay_apart(tmp_path):
    tables = {
        KERNELS: [kernel(10, 20, pid=200, correlationId=5), kernel(12, 20, pid=100, correlationId=5)],
        RUNTIME: [call(1, 2, 2, pid=200, correlationId=5), call(3, 4, 2, pid=100, correlationId=5)],
    }
    trace = read(build(tmp_path / "x.sqlite", tables, NEW, ["k", "cudaLaunchKernel"]))
    assert column(trace, "processes", "pid") == [100, 200]
    assert column(trace, "kernels", "process_id") == [1, 0]
    assert column(trace, "cuda_api", "process_id") == [1, 0]
    assert column(trace, "threads", "tid") == [100, 200]
    assert column(trace, "kernels", "correlation_id") == [5, 5]


def test_processes_that_both_call_their_gpu_zero_use_two_devices(tmp_path):
    tables = {
        KERNELS: [kernel(1, 2, pid=100), kernel(1, 2, pid=200)],
        "TARGET_INFO_GPU": [{"id": 0, "name": "A", "uuid": "a"}, {"id": 1, "name": "B", "uuid": "b"}],
        "TARGET_INFO_CUDA_DEVICE": [{"gpuId": 1, "cudaId": 0, "pid": 200}, {"gpuId": 0, "cudaId": 0, "pid": 100}],
    }
    trace = read(build(tmp_path / "x.sqlite", tables, NEW, ["k"]))
    assert column(trace, "kernels", "device_id") == [0, 1]
    assert column(trace, "devices", "uuid") == ["a", "b"]


def test_devices_without_a_description_are_known_by_number(tmp_path):
    tables = {KERNELS: [kernel(1, 2, deviceId=3), kernel(1, 2, deviceId=0)]}
    trace = read(build(tmp_path / "x.sqlite", tables, NEW, ["k"]))
    assert column(trace, "devices", "ordinal") == [0, 3]
    assert column(trace, "devices", "name") == [None, None]
    assert column(trace, "kernels", "device_id") == [1, 0]


def test_missing_tables_are_absent_unless_the_capture_could_contain_them(tmp_path):
    nothing = read(build(tmp_path / "a.sqlite", {}))
    traced = read(
        build(tmp_path / "b.sqlite", {"META_DATA_CAPTURE": [{"name": "CAPTURE_EVENT_TYPE", "value": "Cuda"}]})
    )
    beside = read(build(tmp_path / "c.sqlite", {RUNTIME: [call(1, 2)]}, MIDDLE, ["f"]))
    denied = [{"name": "PROCESS_0:COLLECT_CUDA_TRACE", "value": "false"}]
    refused = read(build(tmp_path / "d.sqlite", {"META_DATA_CAPTURE": denied}))
    cuda = {"kernels", "memcpy", "memset", "cuda_api", "sync"}
    assert not cuda & set(nothing)
    assert not cuda & set(refused)
    assert cuda <= set(traced)
    assert cuda <= set(beside)
    assert traced.rows("kernels") == 0
    assert not {"nvtx", "os_calls", "memory_events", "samples"} & set(traced)


def test_copies_and_waits_are_told_by_kind(tmp_path):
    copy = {**kernel(1, 5), "bytes": 64, "srcKind": 0, "dstKind": 2}
    wait = {**kernel(7, 9), "syncType": 3, "streamId": 0xFFFFFFFF, "deviceId": 0xFFFFFFFF}
    kinds = [1, 2, 8, 9, 10, 12, 0, 99]
    tables = {MEMCPY: [{**copy, "copyKind": kind} for kind in kinds], SYNC: [wait]}
    trace = read(build(tmp_path / "x.sqlite", tables))
    assert column(trace, "memcpy", "kind") == ["h2d", "d2h", "d2d", "h2h", "p2p", "unknown", "unknown", "d2h"]
    assert column(trace, "memcpy", "src_memory") == [*["pageable"] * 7, "managed"]  # the last migrates pages
    assert column(trace, "memcpy", "src_memory")[0] == "pageable"
    assert column(trace, "sync", "kind") == ["stream"]
    assert column(trace, "sync", "stream") == [None]
    assert column(trace, "sync", "device_id") == [None]


def test_tracers_own_start_and_finish_are_no_calls(tmp_path):
    base = {"globalTid": thread(1, 1), "nameId": 1}
    rows = [{**base, "start": kind, "end": kind + 5, "eventClass": kind} for kind in (27, 31, 32)]
    trace = read(build(tmp_path / "x.sqlite", {OSRT: rows}, NEW, ["poll"]))
    assert column(trace, "os_calls", "dur_ns") == [5]


def test_only_overhead_of_the_profiler_counts_as_overhead(tmp_path):
    base = {"globalTid": thread(1, 1), "nameId": 1}
    cuda = [{**base, "start": 10 * kind, "end": 10 * kind + 5, "overheadType": kind} for kind in (3, 6, 7)]
    tables = {"PROFILER_OVERHEAD": [{**base, "start": 1, "end": 3, "nameId": 2}], "CUPTI_ACTIVITY_KIND_OVERHEAD": cuda}
    trace = read(build(tmp_path / "x.sqlite", tables, NEW, ["Buffer flush", "init"]))
    assert column(trace, "overhead", "name") == ["init", "Buffer flush"]
    assert column(trace, "overhead", "start_ns") == [0, 29]


def test_memory_events_are_read_where_recorded(tmp_path):
    base = {"globalPid": process(1), "deviceId": 0, "address": 4096, "bytes": 10, "memKind": 2}
    rows = [{**base, "start": 5 + kind, "memoryOperationType": kind} for kind in (0, 1)]
    trace = read(build(tmp_path / "x.sqlite", {"CUDA_GPU_MEMORY_USAGE_EVENTS": rows}))
    assert column(trace, "memory_events", "kind") == ["alloc", "free"]
    assert column(trace, "memory_events", "memory") == ["device", "device"]


@pytest.mark.parametrize(
    ("second", "kept"),
    [
        ({"start": 11, "end": 19}, [(0, 10)]),
        ({"start": 10, "end": 20}, [(0, 10)]),
        ({"start": 11, "end": 21}, [(0, 10), (1, 10)]),  # not inside
        ({"start": 11, "end": 19, "correlationId": 6}, [(0, 10), (1, 8)]),
        ({"start": 11, "end": 19, "globalTid": thread(10, 2)}, [(0, 10), (1, 8)]),
        ({"start": 11, "end": 19, "nameId": 3}, [(0, 10), (1, 8)]),
    ],
)
def test_a_call_inside_the_same_call_counts_once(tmp_path, second, kept):
    outer = {**call(10, 20), "correlationId": 5, "globalTid": thread(10, 1), "eventClass": 67}
    inner = {**outer, "nameId": 2, "eventClass": 0, **second}
    other = {**outer, "start": 30, "end": 40, "correlationId": 7}
    names = ["cudaMalloc", "cudaMalloc_v3020", "cuMemAlloc_v2"]
    path = build(tmp_path / "x.sqlite", {RUNTIME: [outer, inner, other]}, NEW, names)
    for columns in ({}, {"cuda_api": frozenset({"status"})}):
        trace = read(path, columns=columns)
        spans = zip(column(trace, "cuda_api", "start_ns"), column(trace, "cuda_api", "dur_ns"), strict=True)
        assert list(spans) == [*kept, (20, 10)]
        assert note_counts(trace).get("calls-recorded-twice", 0) == 2 - len(kept)


def test_gpu_metrics_become_samples_with_units(tmp_path):
    tables = {
        KERNELS: [kernel(100, 200)],
        "TARGET_INFO_GPU": [{"id": 0, "name": "A"}],
        "TARGET_INFO_GPU_METRICS": [
            {"typeId": 1 << 40, "metricId": 3, "metricName": "SMs Active [Throughput %]"},
            {"typeId": 1 << 40, "metricId": 9, "metricName": "GPC Clock Frequency [MHz]"},
        ],
        "GPU_METRICS": [
            {"timestamp": 50, "typeId": 1 << 40, "metricId": 3, "value": 80},
            {"timestamp": 150, "typeId": 1 << 40, "metricId": 9, "value": 1410},
        ],
    }
    samples = read(build(tmp_path / "x.sqlite", tables, NEW, ["k"])).arrow("samples").to_pylist()
    assert [(s["start_ns"], s["metric"], s["unit"], s["value"], s["device_id"]) for s in samples] == [
        (-50, "SMs Active", "%", 80.0, 0),
        (50, "GPC Clock Frequency", "MHz", 1410.0, 0),
    ]


def test_gpu_metrics_of_2022_are_read_from_json(tmp_path):
    tables = {
        KERNELS: [kernel(100, 200)],
        "GENERIC_EVENT_TYPES": [{"typeId": 7, "data": '{"Name": "GPU Metrics [A100]"}'}, {"typeId": 8, "data": "{}"}],
        "GENERIC_EVENTS": [
            {"timestamp": 110, "typeId": 7, "data": '{"SM Active": "42", "Note": "text"}'},
            {"timestamp": 120, "typeId": 8, "data": "not even json"},
        ],
    }
    samples = read(build(tmp_path / "x.sqlite", tables, MIDDLE, ["k"])).arrow("samples").to_pylist()
    assert [(s["start_ns"], s["metric"], s["value"]) for s in samples] == [(10, "SM Active", 42.0)]


def test_gpu_metrics_without_a_name_are_known_by_their_source_and_have_the_raw_time(tmp_path):
    tables = {
        KERNELS: [kernel(100, 200)],
        "GENERIC_EVENT_SOURCES": [{"sourceId": 5, "data": '{"Name": "GpuMetrics"}'}, {"sourceId": 6, "data": "{}"}],
        "GENERIC_EVENT_TYPES": [
            {"typeId": 7, "sourceId": 5, "data": '{"Name": ""}'},
            {"typeId": 8, "sourceId": 6, "data": '{"Name": ""}'},
        ],
        "GENERIC_EVENTS": [
            {"rawTimestamp": 110, "typeId": 7, "data": '{"Tensor Active": "42"}'},
            {"rawTimestamp": 1, "timestamp": 120, "typeId": 7, "data": '{"Tensor Active": "43"}'},
            {"rawTimestamp": 130, "typeId": 8, "data": '{"Tensor Active": "44"}'},
        ],
    }
    samples = read(build(tmp_path / "x.sqlite", tables, MIDDLE, ["k"])).arrow("samples").to_pylist()
    assert [(s["start_ns"], s["metric"], s["value"]) for s in samples] == [
        (10, "Tensor Active", 42.0),
        (20, "Tensor Active", 43.0),
    ]


@pytest.mark.parametrize("era", ERAS)
def test_the_framework_is_told_by_names_and_ranges_and_its_version_by_the_environment(tmp_path, era):
    variables = ['PYTORCH_VERSION="2.6.0a0"', 'API_TOKEN="1.2.3"', 'TENSORFLOW_VERSION="2.16.1"']
    tables = {
        KERNELS: [kernel(5, 6)],
        "NVTX_EVENTS": [{"start": 1, "end": 9, "eventType": 59, "text": "aten::add, op_id = 3", "globalTid": 1}],
        **(
            {}
            if era == OLD
            else {"META_DATA_CAPTURE": [{"name": "PROCESS_0:ENVIRONMENT_VARIABLE", "value": v} for v in variables]}
        ),
    }
    path = build(tmp_path / "x.sqlite", tables, era, ["void at::native::f<int>(int)", "other"])
    seen = read(path)
    assert seen.run_facts()["framework"] == ("PyTorch" if era == OLD else "PyTorch 2.6.0a0")
    assert {row["key"]: row["value"] for row in seen.arrow("settings").to_pylist()} == {
        "framework.PyTorch.names": "names in at::native::, c10::",
        "framework.PyTorch.ranges": "ranges of PyTorch",
    }
    only_calls = read(path, tables=frozenset({"cuda_api"}))
    assert (only_calls.run_facts()["framework"], "settings" in only_calls) == (seen.run_facts()["framework"], False)


def test_graphs_recorded_as_a_whole_are_said_to_hide_kernels(tmp_path):
    mode = [{"name": "CUDA_GRAPH_TRACE_OPTIONS:MODE", "value": "Graph"}]
    launched = {RUNTIME: [call(1, 2), call(3, 4), call(5, 6, 2)], "META_DATA_CAPTURE": mode}
    recorded = {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE": [kernel(1, 2)], KERNELS: [kernel(5, 6)]}
    names = ["cudaGraphLaunch_v10000", "cudaFree_v3020"]
    assert note_counts(read(build(tmp_path / "a.sqlite", launched, NEW, names))) == {"graph-kernels-hidden": 2}
    assert note_counts(read(build(tmp_path / "b.sqlite", recorded, NEW, names))) == {"graph-kernels-hidden": 1}


def test_a_graph_recorded_as_a_whole_is_device_work_and_no_kernel(tmp_path):
    graphs = [
        kernel(200, 700, correlationId=5, graphId=4, graphExecId=9),
        kernel(800, 1_200, correlationId=6, graphId=4, graphExecId=9, streamId=8, deviceId=1),
        kernel(0, 0, correlationId=7, graphId=4),  # CUPTI could not take the times
    ]
    launches = [call(100, 110, correlationId=5), call(120, 130, correlationId=6), call(140, 150, correlationId=7)]
    tables = {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE": graphs, KERNELS: [kernel(1_300, 1_310)], RUNTIME: launches}
    trace = read(build(tmp_path / "x.sqlite", tables, NEW, ["cudaGraphLaunch_v10000"]))
    rows = trace.arrow("graphs").select(["start_ns", "dur_ns", "device_id", "stream", "correlation_id", "graph_id"])
    assert [tuple(row.values()) for row in rows.to_pylist()] == [(100, 500, 0, 7, 5, 4), (700, 400, 1, 8, 6, 4)]
    assert trace.rows("kernels") == 1
    assert trace.run_facts()["span_ns"] == 1_210
    assert note_counts(trace) == {"graph-kernels-hidden": 2, "not-timed": 1}
    view = TraceView(trace)
    assert {device: busy.total for device, busy in view.device_busy.items()} == {0: 510, 1: 400}
    assert host_classes(view)[0].sets["device_compute"].total == 910


def test_without_such_graphs_there_is_no_table_of_them(tmp_path):
    tables = {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE": [], "CUDA_GRAPH_NODE_EVENTS": [], KERNELS: [kernel(5, 6)]}
    trace = read(build(tmp_path / "x.sqlite", tables, NEW, ["k"]))
    assert {"graphs", "graph_nodes"} & set(trace) == set()
    assert note_counts(trace) == {}


@pytest.mark.parametrize("table", ["CUDA_GRAPH_NODE_EVENTS", "CUDA_GRAPH_EVENTS"])
def test_nodes_of_graphs_say_where_they_were_made_and_what_they_are_copies_of(tmp_path, table, monkeypatch):
    monkeypatch.setitem(COLUMNS, "CUDA_GRAPH_EVENTS", COLUMNS["CUDA_GRAPH_NODE_EVENTS"])  # as in schema 2.9.1
    of_thread = {"globalTid": thread(100, 100)}
    nodes = [
        {"start": 105, "end": 105, "graphNodeId": 3, **of_thread},
        {"start": 150, "end": 151, "graphNodeId": 1 << 33, "originalGraphNodeId": 3, **of_thread},
    ]
    tables = {table: nodes, RUNTIME: [call(100, 110)], KERNELS: [kernel(300, 310, 2, graphNodeId=1 << 33)]}
    trace = read(build(tmp_path / "x.sqlite", tables, NEW, ["cudaLaunchKernel_v7000", "k"]))
    rows = trace.arrow("graph_nodes").select(["start_ns", "thread_id", "graph_node_id", "original_node_id"])
    assert [tuple(row.values()) for row in rows.to_pylist()] == [(5, 0, 3, None), (50, 0, 1 << 33, 3)]
    assert note_counts(trace) == {}


def test_events_of_graphs_that_are_no_nodes_are_said_not_to_be_read(tmp_path):
    made = [{"start": 105, "end": 105, "graphId": 4, "globalTid": thread(100, 100)}]
    tables = {"CUDA_GRAPH_EVENTS": made, KERNELS: [kernel(300, 310)]}
    trace = read(build(tmp_path / "x.sqlite", tables, NEW, ["k"]))
    assert "graph_nodes" not in trace
    assert note_counts(trace) == {"unread-tables": None}


def test_diagnostics_are_counted_scrubbed_and_only_told_when_serious(tmp_path):
    diagnostics = [
        (1, "fine"),
        (2, "cannot open /home/someone/secret.log"),
        (2, "cannot open /home/other/x"),
        (3, "lost"),
    ]
    rows = [{"timestamp": 1, "severity": severity, "text": text} for severity, text in diagnostics]
    noted = read(build(tmp_path / "x.sqlite", {"DIAGNOSTIC_EVENT": rows})).arrow("notes").to_pylist()
    assert [(row["severity"], row["count"], row["message"]) for row in noted] == [
        ("warning", 2, "Nsight Systems: cannot open [path]"),
        ("error", 1, "Nsight Systems: lost"),
    ]


def test_values_beyond_32_bits_are_left_out_and_counted(tmp_path):
    trace = read(build(tmp_path / "x.sqlite", {RUNTIME: [call(1, 2, returnValue=1 << 40), call(3, 4)]}, NEW, ["f"]))
    assert column(trace, "cuda_api", "status") == [None, 0]
    assert note_counts(trace) == {"value-too-large": 1}


def test_events_without_a_process_belong_to_process_zero(tmp_path):
    rows = [{**kernel(1, 2), "globalPid": None}]
    trace = read(build(tmp_path / "x.sqlite", {KERNELS: rows}, NEW, ["k"]))
    assert column(trace, "processes", "pid") == [0]
    assert note_counts(trace) == {"owner-unknown": 1}


def test_wall_clock_exports_state_the_same_begin(tmp_path):
    option = {"name": "EXPORT_PARAM_TIME_NORMALIZE", "value": "true"}
    path = build(tmp_path / "x.sqlite", {KERNELS: [kernel(1_700_000_000_000_000_000, None)]}, NEW, ["k"])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO META_DATA_EXPORT VALUES (?, ?)", (option["name"], option["value"]))
        connection.commit()
    assert read(path).run_facts()["t0_unix_ns"] == 1_700_000_000_000_000_000


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("inline", [False, True])
def test_sqlite_parquet_and_saved_folder_agree_to_the_nanosecond(tmp_path, era, inline):
    tables = {
        KERNELS: [kernel(30, 31), kernel(10, 12, 2), kernel(20, 19, None, shortName=None)],
        RUNTIME: [call(5, 6, 3), call(8, None, 3)],
        MEMCPY: [{**kernel(3, 4), "copyKind": 1, "bytes": 9}],
        OSRT: [{"start": 2, "end": 3, "eventClass": 27, "globalTid": thread(100, 7), "nameId": 2}],
        NVTX: [nvtx_range(2, 40, "a"), nvtx_range(2, 10, "b", category=1), nvtx_range(0, None, "d", eventType=75)],
    }
    path = build(tmp_path / "x.sqlite", tables, era, ["gemm", "poll", "cudaLaunchKernel_v7000"])
    folder = to_parquet(path, tmp_path / "x_pqtdir", inline_names=inline)
    from_sqlite, from_parquet = read(path), read(folder)
    save(from_sqlite, tmp_path / "saved")
    loaded = load(tmp_path / "saved")
    reread = read(tmp_path / "saved")
    assert identify(folder).format == "nsys-parquet"
    assert set(from_sqlite) == set(from_parquet) == set(loaded) == set(reread)
    for name in set(from_sqlite) - {"run"}:
        rows = from_sqlite.arrow(name).to_pylist()
        assert rows == from_parquet.arrow(name).to_pylist() == loaded.arrow(name).to_pylist()
        assert rows == reread.arrow(name).to_pylist()
    assert from_sqlite.run_facts() == from_parquet.run_facts() | {"reader": "nsys sqlite"}


def test_many_batches_share_one_dictionary(tmp_path, monkeypatch):
    monkeypatch.setenv("TRACEVIZ_SCANNER", "numpy")
    monkeypatch.setattr("traceviz.parsers.shared.sqlite.arrow.FEW_ROWS", 5)
    monkeypatch.setattr("traceviz.parsers.shared.sqlite.arrow.BATCH_ROWS", 100)
    rows = [kernel(index, index + 1, 1 + index % 3) for index in range(1000)]
    names = read(build(tmp_path / "x.sqlite", {KERNELS: rows}, NEW, ["a", "b", "c"])).arrow("kernels")["name"]
    assert names.num_chunks > 5
    assert all(chunk.dictionary.equals(names.chunk(0).dictionary) for chunk in names.chunks)
    assert names.to_pylist() == ["a", "b", "c"] * 333 + ["a"]


@pytest.mark.parametrize("few", [5, 500])
def test_texts_that_begin_after_a_batch_of_nulls_are_read(tmp_path, monkeypatch, few):
    monkeypatch.setattr("traceviz.parsers.shared.sqlite.arrow.FEW_ROWS", few)
    monkeypatch.setattr("traceviz.parsers.shared.sqlite.arrow.BATCH_ROWS", 4)
    rows = [nvtx_range(index, index + 1, None if index < 10 else "late") for index in range(12)]
    assert column(read(build(tmp_path / "x.sqlite", {NVTX: rows})), "nvtx", "name") == ["[unknown]"] * 10 + ["late"] * 2


@pytest.mark.parametrize(
    ("few", "row", "name"), [(10, 1, "start"), (10, 90, "deviceId"), (500, 1, "gridX"), (500, 90, "start")]
)
def test_text_among_numbers_is_damage_and_names_the_table(tmp_path, monkeypatch, row, name, few):
    monkeypatch.setattr("traceviz.parsers.shared.sqlite.arrow.FEW_ROWS", few)
    monkeypatch.setattr("traceviz.parsers.shared.sqlite.arrow.BATCH_ROWS", 16)
    rows = [kernel(index, index + 1) for index in range(100)]
    rows[row][name] = "garbage"
    path = build(tmp_path / "x.sqlite", {KERNELS: rows}, NEW, ["k"])
    with pytest.raises(DamagedTraceError, match="CUPTI_ACTIVITY_KIND_KERNEL"):
        read(path)


def test_overwritten_pages_are_damage_and_name_the_table(tmp_path):
    rows = [kernel(index, index + 1) for index in range(20_000)]
    path = build(tmp_path / "x.sqlite", {KERNELS: rows}, NEW, ["k"])
    content = bytearray(path.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 40_000] = b"\xff" * 40_000
    path.write_bytes(content)
    with pytest.raises(DamagedTraceError, match="CUPTI_ACTIVITY_KIND_KERNEL"):
        read(path)


@pytest.mark.parametrize("share", [0.2, 0.99])
def test_truncated_database_is_recognised_and_damaged(tmp_path, share):
    rows = [kernel(index, index + 1) for index in range(5_000)]
    path = build(tmp_path / "x.sqlite", {KERNELS: rows}, NEW, ["k"])
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    assert identify(path).format == "nsys-sqlite"
    with pytest.raises(DamagedTraceError, match="cut short") as caught:
        read(path)
    assert f"{len(content):,}" in caught.value.why


def test_truncated_parquet_is_damage_and_names_the_table(tmp_path):
    folder = to_parquet(build(tmp_path / "x.sqlite", {KERNELS: [kernel(1, 2)]}, NEW, ["k"]), tmp_path / "d")
    file = folder / "CUPTI_ACTIVITY_KIND_KERNEL.parquet"
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(DamagedTraceError, match="CUPTI_ACTIVITY_KIND_KERNEL"):
        read(folder)


def test_reading_leaves_nothing_beside_the_source_and_writes_nothing(tmp_path):
    path = build(tmp_path / "a b#?%.sqlite", {KERNELS: [kernel(1, 2)]}, NEW, ["k"])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=wal")
    before = path.read_bytes()
    (tmp_path / "a b#?%.sqlite-wal").write_bytes(b"x")
    trace = read(path)
    assert note_counts(trace) == {"sqlite-log-ignored": None}
    assert path.read_bytes() == before
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a b#?%.sqlite", "a b#?%.sqlite-wal"]


def test_progress_counts_rows_up_to_the_total(tmp_path):
    seen = []
    path = build(tmp_path / "x.sqlite", {KERNELS: [kernel(1, 2), kernel(3, 4)]}, NEW, ["k"])
    read(path, progress=lambda stage, done, total: seen.append((stage, done, total)))
    assert seen == [("kernels", 2, 2)]


def test_mapping_names_only_columns_of_the_contract():
    for table, sources in EVENT_TABLES.items():
        declared = {column.name for column in TABLES[table].columns}
        for source in sources:
            assert {column.name for column in source.columns if isinstance(column, Whole | Word)} <= declared
            assert isinstance(source.name, Name) == ("name" in declared)
    assert len(EVENT_TABLES) == 11


def test_a_table_without_rows_shows_nothing_where_all_tables_were_written(tmp_path):
    """An export of schema 2.9.1 writes the tables of everything that nsys can trace."""
    tables = {KERNELS: [kernel(100, 200)], RUNTIME: [], "OSRT_API": [], "NVTX_EVENTS": []}
    trace = read(build(tmp_path / "x.sqlite", tables, MIDDLE, ["k"]))
    recorded = {name: trace.rows(name) for name in trace if name in {"kernels", "cuda_api", "os_calls", "nvtx"}}
    assert recorded == {"kernels": 1, "cuda_api": 0}  # kernels show that CUDA was traced


def test_a_table_without_rows_was_traced_where_the_capture_says_so(tmp_path):
    said = [{"name": "CAPTURE_EVENT_TYPE", "value": "OSRuntime"}]
    tables = {KERNELS: [kernel(100, 200)], "OSRT_API": [], "NVTX_EVENTS": [], "META_DATA_CAPTURE": said}
    trace = read(build(tmp_path / "x.sqlite", tables, NEW, ["k"]))
    assert {name: trace.rows(name) for name in trace if name in {"os_calls", "nvtx"}} == {"os_calls": 0}


def test_an_export_of_2020_without_any_event_is_read(tmp_path):
    path = tmp_path / "x.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
        connection.execute("CREATE TABLE ProcessStreams (globalPid INTEGER, filenameId INTEGER, contentId INTEGER)")
        connection.commit()
    trace = read(path)
    assert (trace.run_facts()["span_ns"], trace.rows("processes")) == (0, 0)
    assert not {"kernels", "cuda_api", "os_calls", "nvtx"} & set(trace)


def test_tables_of_events_that_are_not_read_are_noted_where_they_have_rows(tmp_path):
    tables = {
        KERNELS: [kernel(100, 200)],
        "UNKNOWN_EVENTS": [{"start": 5, "cpu": 1}],
        "CUDA_UM_CPU_PAGE_FAULT_EVENTS": [],
        "GENERIC_EVENT_TYPES": [{"typeId": 7, "data": '{"Name": "of something else"}'}],
        "GENERIC_EVENTS": [{"timestamp": 110, "typeId": 7, "data": "{}"}],
    }
    trace = read(build(tmp_path / "x.sqlite", tables, MIDDLE, ["k"]))
    (note,) = [row for row in trace.arrow("notes").to_pylist() if row["code"] == "unread-tables"]
    assert note["message"].endswith("does not read: GENERIC_EVENTS, UNKNOWN_EVENTS.")


def test_damage_in_a_table_that_nobody_reads_does_no_harm(tmp_path):
    path = build(tmp_path / "x.sqlite", {KERNELS: [kernel(100, 200)], "UNKNOWN_EVENTS": [{"start": 5}]}, MIDDLE, ["k"])
    query = "SELECT rootpage, page_size FROM sqlite_master, pragma_page_size WHERE name = 'UNKNOWN_EVENTS'"
    with closing(sqlite3.connect(path)) as connection:
        page, size = connection.execute(query).fetchone()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    trace = read(path)
    assert (trace.rows("kernels"), note_counts(trace)) == (1, {"unread-tables": None})
