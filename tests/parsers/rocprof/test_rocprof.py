"""Recordings of rocprofv3 (CSV) and rocprof (JSON, SQLite), with times worked out by hand."""

from __future__ import annotations

import gzip
import json
import sqlite3
from pathlib import Path

import pytest

from traceviz import api
from traceviz.core.errors import DamagedTraceError
from traceviz.parsers.registry import identify
from traceviz.trace.tables import TraceTables

KERNELS = (
    '"Kind","Agent_Id","Queue_Id","Stream_Id","Thread_Id","Dispatch_Id","Kernel_Id","Kernel_Name","Correlation_Id",'
    '"Start_Timestamp","End_Timestamp","LDS_Block_Size","VGPR_Count","Workgroup_Size_X","Workgroup_Size_Y",'
    '"Workgroup_Size_Z","Grid_Size_X","Grid_Size_Y","Grid_Size_Z"\n'
    '"KERNEL_DISPATCH","Agent 2","1","3","7","1","1","scale(float*, long)","11","1000500","1000900","64","8","256","1",'
    '"1","1000","2","1"\n'
    '"KERNEL_DISPATCH","Agent 4","1","3","7","2","1","add<float>(float*)","12","1002000","1002100","0","16","64","1",'
    '"1","64","1","1"\n'
)
CALLS = """\
"Domain","Function","Process_Id","Thread_Id","Correlation_Id","Start_Timestamp","End_Timestamp"
"HIP_RUNTIME_API","hipLaunchKernel","70","7","11","1000000","1000450"
"HSA_CORE_API","hsa_signal_wait","70","8","90","1000010","1000020"
"HIP_RUNTIME_API","hipLaunchKernel","70","7","12","1001000","1001100"
"""
COPIES = """\
"Kind","Direction","Stream_Id","Source_Agent_Id","Destination_Agent_Id","Correlation_Id","Start_Timestamp","End_Timestamp"
"MEMORY_COPY","MEMORY_COPY_HOST_TO_DEVICE","3","Agent 0","Agent 4","13","1003000","1003500"
"MEMORY_COPY","MEMORY_COPY_DEVICE_TO_HOST","3","Agent 2","Agent 0","14","1004000","1004100"
"""
MARKERS = """\
"Domain","Function","Process_Id","Thread_Id","Correlation_Id","Start_Timestamp","End_Timestamp"
"MARKER_CORE_API","forward","70","7","20","1000400","1002200"
"""


def _recording(folder: Path, **texts: str) -> Path:
    for name, text in texts.items():
        (folder / f"run_{name}_trace.csv").write_text(text, encoding="utf-8")
    return folder / f"run_{next(iter(texts))}_trace.csv"


def _rows(tables: TraceTables, name: str, *columns: str) -> list[tuple[object, ...]]:
    return tables.scan(name).sort("start_ns").select(columns).collect().rows()


def test_files_of_one_recording_are_read_together_on_one_clock(tmp_path: Path):
    path = _recording(tmp_path, kernel=KERNELS, hip_api=CALLS, memory_copy=COPIES, marker_api=MARKERS)

    tables = api.open_trace(path)

    assert _rows(tables, "kernels", "name", "start_ns", "dur_ns", "device_id", "stream", "correlation_id") == [
        ("scale(float*, long)", 500, 400, 0, 3, 11),
        ("add<float>(float*)", 2000, 100, 1, 3, 12),
    ]
    assert _rows(tables, "cuda_api", "name", "start_ns", "dur_ns", "correlation_id", "domain", "thread_id") == [
        ("hipLaunchKernel", 0, 450, 11, "runtime", 0),
        ("hsa_signal_wait", 10, 10, 90, "driver", 1),
        ("hipLaunchKernel", 1000, 100, 12, "runtime", 0),
    ]
    assert _rows(tables, "memcpy", "kind", "start_ns", "dur_ns", "device_id") == [
        ("h2d", 3000, 500, 1),
        ("d2h", 4000, 100, 0),
    ]
    assert _rows(tables, "nvtx", "name", "start_ns", "dur_ns") == [("forward", 400, 1800)]
    assert tables.run_facts()["span_ns"] == 4100
    assert tables.run_facts()["producer"] == "rocprofv3"


def test_grids_are_counted_in_blocks(tmp_path: Path):
    tables = api.open_trace(_recording(tmp_path, kernel=KERNELS))

    columns = ("grid_x", "grid_y", "grid_z", "block_x", "registers_per_thread", "static_shared_bytes")
    assert _rows(tables, "kernels", *columns) == [(4, 2, 1, 256, 8, 64), (1, 1, 1, 64, 16, 0)]


def test_any_file_of_a_recording_stands_for_all(tmp_path: Path):
    _recording(tmp_path, kernel=KERNELS, hip_api=CALLS)
    (tmp_path / "other_hip_api_trace.csv").write_text(CALLS, encoding="utf-8")

    tables = api.open_trace(tmp_path / "run_hip_api_trace.csv")

    assert tables.rows("kernels") == 2
    assert tables.rows("cuda_api") == 3


def test_a_packed_file_is_read(tmp_path: Path):
    path = tmp_path / "packed.csv.gz"
    path.write_bytes(gzip.compress(KERNELS.encode()))

    assert identify(path).format == "rocprof-csv"
    assert api.open_trace(path).rows("kernels") == 2


def test_the_share_of_the_hip_api_is_reported(tmp_path: Path):
    report = api.analyze(_recording(tmp_path, kernel=KERNELS, hip_api=CALLS))

    (grid,) = [grid for grid in report.grids("cuda_api") if "name" in [column.name for column in grid.columns]][:1]
    rows = grid.to_polars()
    assert rows.filter(rows["name"] == "hipLaunchKernel")["total_ns"].to_list() == [550]


RESULTS = [
    {},
    {"args": {"name": "CPU HIP API"}, "ph": "M", "pid": 2, "name": "process_name"},
    {"args": {"name": "COPY"}, "ph": "M", "pid": 1, "name": "process_name"},
    {
        "ph": "X",
        "name": "mm.kd",
        "pid": "6",
        "tid": "0",
        "args": {
            "KernelName": "mm.kd",
            "gpu-id": "0",
            "queue-id": "0",
            "pid": "219",
            "tid": "219",
            "grd": "1024",
            "wgr": "256",
            "BeginNs": "2000300",
            "EndNs": "2000700",
        },
    },
    {
        "ph": "X",
        "name": "hipMemcpy",
        "pid": "2",
        "tid": "219",
        "args": {"BeginNs": "2000000", "EndNs": "2000900", "pid": "2", "tid": "219", "Name": "hipMemcpy"},
    },
    {
        "ph": "X",
        "name": "CopyHostToDevice",
        "pid": "1",
        "tid": "0",
        "args": {"BeginNs": "2000100", "EndNs": "2000200", "Name": "CopyHostToDevice", "pid": "1", "tid": "0"},
    },
]


def test_results_json_of_rocprof_has_device_work_and_calls(tmp_path: Path):
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"traceEvents": RESULTS, "otherData": {}}), encoding="utf-8")

    tables = api.open_trace(path)

    assert identify(path).format == "rocprof-json"
    assert _rows(tables, "kernels", "name", "start_ns", "dur_ns", "grid_x") == [("mm", 300, 400, 4)]
    assert _rows(tables, "cuda_api", "name", "start_ns", "dur_ns") == [("hipMemcpy", 0, 900)]
    assert _rows(tables, "memcpy", "kind", "start_ns", "dur_ns") == [("h2d", 100, 100)]


def test_a_cut_results_json_is_refused_with_what_is_wrong(tmp_path: Path):
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"traceEvents": RESULTS})[:-30], encoding="utf-8")

    with pytest.raises(DamagedTraceError, match="cut or damaged"):
        api.open_trace(path)


def test_results_db_of_rocprof_is_read(tmp_path: Path):
    path = tmp_path / "results.db"
    with sqlite3.connect(path) as connection:
        connection.execute(
            'CREATE TABLE A (KernelName TEXT, "gpu-id" INT, "queue-id" INT, pid INT, tid INT, grd INT, wgr INT, '
            "BeginNs INT, EndNs INT)"
        )
        connection.execute("INSERT INTO A VALUES ('\"mm.kd\"', 0, 0, 219, 219, 1024, 256, 2000300, 2000700)")
        connection.execute("CREATE TABLE HSA (BeginNs INT, EndNs INT, pid INT, tid INT, Name TEXT)")
        connection.execute("INSERT INTO HSA VALUES (2000000, 2000100, 3, 219, 'hsa_queue_create')")
    connection.close()

    tables = api.open_trace(path)

    assert _rows(tables, "kernels", "name", "start_ns", "dur_ns") == [("mm", 300, 400)]
    assert _rows(tables, "cuda_api", "name", "domain") == [("hsa_queue_create", "driver")]


def test_rows_without_a_start_are_left_out_and_noted(tmp_path: Path):
    tables = api.open_trace(_recording(tmp_path, kernel=KERNELS.replace('"1002000"', '"soon"')))

    assert tables.rows("kernels") == 1
    assert ("row-damaged", 1) in tables.scan("notes").select("code", "count").collect().rows()
