"""Small Nsight Systems databases of three eras, built row by row for one test each."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

OLD, MIDDLE, NEW = "2020.5", "3.0.0", "3.25.0"
ERAS = (OLD, MIDDLE, NEW)
MACHINE = 1 << 48

Row = dict[str, Any]

_WORK = "start end deviceId contextId streamId correlationId globalPid"
COLUMNS = {
    "StringIds": "id value",
    "CUPTI_ACTIVITY_KIND_KERNEL": _WORK + " demangledName shortName registersPerThread gridX gridY gridZ blockX blockY"
    " blockZ staticSharedMemory dynamicSharedMemory graphNodeId",
    "CUPTI_ACTIVITY_KIND_MEMCPY": _WORK + " bytes copyKind srcKind dstKind graphNodeId",
    "CUPTI_ACTIVITY_KIND_MEMSET": _WORK + " value bytes graphNodeId memKind",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start end eventClass globalTid correlationId nameId returnValue callchainId",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": _WORK + " syncType eventId",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": _WORK + " graphId graphExecId",
    "CUDA_GRAPH_NODE_EVENTS": "start end eventClass globalTid nameId graphNodeId originalGraphNodeId",
    "CUDA_GRAPH_EVENTS": "start end eventClass globalTid nameId graphId originalGraphId graphExecId",
    "NVTX_EVENTS": "start end eventType rangeId category color text globalTid endGlobalTid textId domainId",
    "MPI_COLLECTIVES_EVENTS": "start end globalTid textId commHandle rootRank size recvSize requestHandle",
    "MPI_P2P_EVENTS": "start end globalTid textId commHandle tag remoteRank size requestHandle",
    "MPI_START_WAIT_EVENTS": "start end globalTid textId requestHandle",
    "MPI_OTHER_EVENTS": "start end globalTid textId",
    "MPI_RANKS": "globalTid rank",
    "OSRT_API": "start end eventClass globalTid nameId returnValue nestingLevel callchainId",
    "PROFILER_OVERHEAD": "start end globalTid nameId",
    "CUPTI_ACTIVITY_KIND_OVERHEAD": "start end eventClass globalTid correlationId nameId overheadType",
    "CUDA_GPU_MEMORY_USAGE_EVENTS": "start globalPid deviceId contextId address bytes memKind memoryOperationType"
    " correlationId",
    "GPU_METRICS": "timestamp typeId metricId value",
    "TARGET_INFO_GPU_METRICS": "typeId sourceId typeName metricId metricName",
    "GENERIC_EVENTS": "rawTimestamp timestamp typeId data",
    "GENERIC_EVENT_TYPES": "typeId sourceId data",
    "GENERIC_EVENT_SOURCES": "sourceId data",
    "TARGET_INFO_GPU": "id name totalMemory smCount uuid cuDevice computeMajor computeMinor maxWarpsPerSm"
    " threadsPerWarp",
    "TARGET_INFO_CUDA_DEVICE": "gpuId cudaId pid",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs utcTime localTime",
    "TARGET_INFO_SYSTEM_ENV": "globalVid devStateName name nameEnum value",
    "PROCESSES": "globalPid pid name",
    "SCHED_EVENTS": "start cpu isSchedIn globalTid",
    "UNKNOWN_EVENTS": "start cpu isSchedIn globalTid",
    "CUDA_UM_CPU_PAGE_FAULT_EVENTS": "start globalPid address",
    "ThreadNames": "nameId priority globalTid",
    "DIAGNOSTIC_EVENT": "timestamp timestampType source severity text globalPid",
    "META_DATA_EXPORT": "name value",
    "META_DATA_CAPTURE": "name value",
    "EXPORT_META_DATA": "name value",
}
_IN_2020 = {"TARGET_INFO_GPU": "vmId deviceId name busLocation isDiscrete"}
_SINCE_2020 = {"graphNodeId", "memKind"}
_TEXT = {"value", "text", "name", "data", "metricName", "typeName", "uuid", "devStateName", "utcTime", "localTime"}


def process(pid: int) -> int:
    """Return ``globalPid`` of a process."""
    return MACHINE | pid << 24


def thread(pid: int, tid: int) -> int:
    """Return ``globalTid`` of a thread."""
    return process(pid) | tid


def build(path: Path, tables: Mapping[str, Sequence[Row]], era: str = NEW, names: Sequence[str | None] = ()) -> Path:
    """Write a database with ``tables``, the strings ``names`` (ids from 1) and the metadata of its era.

    Columns that are not given are null. Tables of a later era must not be given.
    """
    versions = [{"name": "EXPORT_SCHEMA_VERSION", "value": era}, {"name": "EXPORT_PRODUCT_VERSION", "value": "1.2.3.4"}]
    meta = {OLD: {}, MIDDLE: {"EXPORT_META_DATA": versions}, NEW: {"META_DATA_EXPORT": versions}}[era]
    strings = [{"id": index, "value": name} for index, name in enumerate(names, 1) if name is not None]
    session = [{"utcEpochNs": 1_600_000_000_000_000_000}]
    everything = {"StringIds": strings, "TARGET_INFO_SESSION_START_TIME": session, **meta, **tables}
    with closing(sqlite3.connect(path)) as connection:
        for table, rows in everything.items():
            _write(connection, table, rows, era)
        connection.commit()
    return path


def _write(connection: sqlite3.Connection, table: str, rows: Sequence[Row], era: str) -> None:
    columns = (_IN_2020.get(table, COLUMNS[table]) if era == OLD else COLUMNS[table]).split()
    columns = [column for column in columns if era != OLD or column not in _SINCE_2020]
    declared = ", ".join(f'"{name}" {"TEXT" if is_text(table, name) else "INTEGER"}' for name in columns)
    connection.execute(f'CREATE TABLE "{table}" ({declared})')
    marks = ", ".join("?" * len(columns))
    values = [[row.get(name) for name in columns] for row in rows]
    connection.executemany(f'INSERT INTO "{table}" VALUES ({marks})', values)


def is_text(table: str, column: str) -> bool:
    """Return whether a column holds text: ``value`` is a number in some tables."""
    return column in _TEXT and (table, column) not in {
        ("CUPTI_ACTIVITY_KIND_MEMSET", "value"),
        ("GPU_METRICS", "value"),
    }


def to_parquet(database: Path, folder: Path, *, inline_names: bool = False) -> Path:
    """Return the tables of ``database`` as a folder of Parquet files, as ``nsys export --type parquetdir`` does."""
    folder.mkdir()
    with closing(sqlite3.connect(database)) as connection:
        connection.text_factory = lambda content: content.decode("utf-8", "replace")
        strings = dict(connection.execute("SELECT id, value FROM StringIds"))
        for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            cursor = connection.execute(f'SELECT * FROM "{table}"')
            names = [column[0] for column in cursor.description]
            declared = {row[1]: row[2] for row in connection.execute(f'PRAGMA table_info("{table}")')}
            rows = cursor.fetchall()
            columns = {}
            for index, name in enumerate(names):
                values = [row[index] for row in rows]
                if inline_names and name in {"nameId", "demangledName", "textId"} and table != "ThreadNames":
                    columns[name] = pa.array([strings.get(value) for value in values], pa.string()).dictionary_encode()
                else:
                    kinds = {"TEXT": pa.string(), "REAL": pa.float64(), "BLOB": pa.binary()}
                    kind = kinds.get(declared[name].upper().partition(" ")[0], pa.int64())
                    columns[name] = pa.array(values, kind)
            pq.write_table(pa.table(columns), folder / f"{table}.parquet")
    return folder


def kernel(start: int, end: int | None, name: int | None = 1, pid: int = 100, **more: Any) -> Row:
    """Return a row of the kernel table."""
    shape = dict.fromkeys(("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"), 1)
    base = {"start": start, "end": end, "deviceId": 0, "contextId": 1, "streamId": 7, "correlationId": start}
    return {**base, "globalPid": process(pid), "demangledName": name, "shortName": name, **shape, **more}


def call(start: int, end: int | None, name: int | None = 1, pid: int = 100, **more: Any) -> Row:
    """Return a row of the API table, on the first thread of its process."""
    base = {"start": start, "end": end, "eventClass": 0, "globalTid": thread(pid, pid), "correlationId": start}
    return {**base, "nameId": name, "returnValue": 0, **more}


def nvtx_range(start: int, end: int | None, text: str | None = None, pid: int = 100, **more: Any) -> Row:
    """Return a push/pop range, on the first thread of its process."""
    base = {"start": start, "end": end, "eventType": 59, "globalTid": thread(pid, pid), "domainId": 0}
    return {**base, "text": text, **more}
