"""Databases of nvprof: one for each rank. Ranges are markers; calls have numbers of callbacks, not names."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Callable
from pathlib import Path

from benchmarks.diagnosis.record import Kind, Record, Work
from benchmarks.diagnosis.writers.shared import (
    CALLBACKS,
    DEVICE_MEMORY,
    DEVICE_NAME,
    EPOCH_NS,
    MULTIPROCESSORS,
    thread_ids,
)

VERSION = 12
RANGE_START, RANGE_END = 2, 4
"""Flags of markers."""
THREAD_OBJECT = 2
COPY_KINDS = {Work.HOST_TO_DEVICE: 1, Work.DEVICE_TO_HOST: 2, Work.DEVICE_TO_DEVICE: 8}
PAGEABLE, PINNED, DEVICE = 1, 2, 3
STREAM_SYNCHRONIZATION = 3

_ID = "_id_ INTEGER PRIMARY KEY AUTOINCREMENT"
_TABLES = {
    "KERNEL": """
        cacheConfig sharedMemoryConfig registersPerThread partitionedGlobalCacheRequested
        partitionedGlobalCacheExecuted start end completed deviceId contextId streamId gridX gridY gridZ blockX
        blockY blockZ staticSharedMemory dynamicSharedMemory localMemoryPerThread localMemoryTotal correlationId
        gridId name queued submitted launchType isSharedMemoryCarveoutRequested sharedMemoryCarveoutRequested
        sharedMemoryExecuted
    """,
    "MEMCPY": """
        copyKind srcKind dstKind flags bytes start end deviceId contextId streamId correlationId
        runtimeCorrelationId
    """,
    "MEMSET": """
        value bytes start end deviceId contextId streamId correlationId flags memoryKind
    """,
    "UNIFIED_MEMORY_COUNTER": """
        counterKind value start end address srcId dstId streamId processId flags
    """,
    "RUNTIME": """
        cbid start end processId threadId correlationId returnValue
    """,
    "MARKER": """
        flags timestamp id objectKind objectId name domain
    """,
    "SYNCHRONIZATION": """
        type start end correlationId contextId streamId cudaEventId
    """,
    "DEVICE": """
        flags globalMemoryBandwidth globalMemorySize constantMemorySize l2CacheSize numThreadsPerWarp coreClockRate
        numMemcpyEngines numMultiprocessors maxIPC maxWarpsPerMultiprocessor maxBlocksPerMultiprocessor
        maxSharedMemoryPerMultiprocessor maxRegistersPerMultiprocessor maxRegistersPerBlock maxSharedMemoryPerBlock
        maxThreadsPerBlock maxBlockDimX maxBlockDimY maxBlockDimZ maxGridDimX maxGridDimY maxGridDimZ
        computeCapabilityMajor computeCapabilityMinor id eccEnabled uuid name
    """,
}
"""Columns of tables, after their key."""
_OPTIONAL = {"MEMSET", "UNIFIED_MEMORY_COUNTER"}
"""Tables that are there only if something was recorded."""
BYTES_TO_DEVICE, BYTES_TO_HOST, HOST_FAULTS, DEVICE_FAULTS = 1, 2, 3, 4
"""Kinds of counters of managed memory."""
HOST_ID = 0xFFFF_FFFF
Row = dict[str, object]


def write_nvprof(record: Record, folder: Path) -> list[Path]:
    """Write one database for each rank and return them."""
    paths = []
    for rank in range(record.ranks):
        path = folder / f"rank{rank}.nvvp"
        _write_rank(record, rank, path)
        paths.append(path)
    return paths


def _write_rank(record: Record, rank: int, path: Path) -> None:
    strings: dict[str, int] = {}

    def string(text: str) -> int:
        return strings.setdefault(text, len(strings) + 1)

    connection = sqlite3.connect(path)
    tables: dict[str, list[Row]] = {name: [] for name in _TABLES}
    tables["DEVICE"].append(
        {
            "globalMemorySize": DEVICE_MEMORY,
            "numMultiprocessors": MULTIPROCESSORS,
            "coreClockRate": 1_410_000,
            "computeCapabilityMajor": 8,
            "id": rank,
            "uuid": bytes(16),
            "name": string(DEVICE_NAME),
        }
    )
    _fill_host(record, rank, tables, string)
    _fill_device(record, rank, tables, string)
    for name, columns in _TABLES.items():
        if name in _OPTIONAL and not tables[name]:
            continue
        _write_table(connection, name, columns.split(), tables[name])
    connection.execute("CREATE TABLE Version (version INTEGER)")
    connection.execute("INSERT INTO Version VALUES (?)", (VERSION,))
    connection.execute(f"CREATE TABLE StringTable ({_ID}, value TEXT NOT NULL UNIQUE)")
    connection.executemany("INSERT INTO StringTable VALUES (?, ?)", ((n, text) for text, n in strings.items()))
    connection.commit()
    connection.close()


def _write_table(connection: sqlite3.Connection, name: str, columns: list[str], rows: list[Row]) -> None:
    blobs = {"cacheConfig", "objectId", "uuid"}
    table = f"CUPTI_ACTIVITY_KIND_{'CONCURRENT_KERNEL' if name == 'KERNEL' else name}"
    declared = ", ".join(f"{column} {'BLOB' if column in blobs else 'INT'} NOT NULL" for column in columns)
    connection.execute(f"CREATE TABLE {table} ({_ID}, {declared})")
    marks = ", ".join("?" * (len(columns) + 1))
    connection.executemany(
        f"INSERT INTO {table} VALUES ({marks})", ([None, *(row.get(column, 0) for column in columns)] for row in rows)
    )


def _fill_host(record: Record, rank: int, tables: dict[str, list[Row]], string: Callable[[str], int]) -> None:
    ids = thread_ids(record)
    markers: list[tuple[int, Row]] = []
    for number, span in enumerate(record.spans, start=1):
        pid, tid = ids[span.rank, span.thread]
        if span.rank != rank or pid != ids[rank, 1][0]:
            continue
        start, end = span.start + EPOCH_NS, span.end + EPOCH_NS
        if span.kind is Kind.API:
            row: Row = {"cbid": CALLBACKS[span.name], "start": start, "end": end, "processId": pid, "threadId": tid}
            tables["RUNTIME"].append(row | {"correlationId": span.correlation})
            if span.name == "cudaStreamSynchronize":
                wait: Row = {
                    "type": STREAM_SYNCHRONIZATION,
                    "start": start,
                    "end": end,
                    "correlationId": span.correlation,
                }
                tables["SYNCHRONIZATION"].append(wait | {"contextId": 1, "streamId": 7, "cudaEventId": -1})
        elif span.kind in {Kind.STEP, Kind.RANGE, Kind.OPERATOR}:
            where: Row = {"id": number, "objectKind": THREAD_OBJECT, "objectId": struct.pack("<iiI", pid, tid, 0)}
            markers.append((start, where | {"flags": RANGE_START, "timestamp": start, "name": string(span.name)}))
            markers.append((end, where | {"flags": RANGE_END, "timestamp": end, "name": 0}))
    tables["MARKER"] += [row for _, row in sorted(markers, key=lambda marker: marker[0])]


def _fill_device(record: Record, rank: int, tables: dict[str, list[Row]], string: Callable[[str], int]) -> None:
    for number, span in enumerate(record.device, start=1):
        if span.rank != rank:
            continue
        row: Row = {
            "start": span.start + EPOCH_NS,
            "end": span.end + EPOCH_NS,
            "deviceId": rank,
            "contextId": 1,
            "streamId": span.stream,
            "correlationId": span.correlation,
        }
        if span.work.is_copy:
            host = PINNED if span.pinned else PAGEABLE
            source = host if span.work is Work.HOST_TO_DEVICE else DEVICE
            target = host if span.work is Work.DEVICE_TO_HOST else DEVICE
            row |= {
                "copyKind": COPY_KINDS[span.work],
                "srcKind": source,
                "dstKind": target,
                "flags": 1,
                "bytes": span.bytes,
            }
            tables["MEMCPY"].append(row)
            continue
        if span.work is Work.FILL:
            tables["MEMSET"].append(row | {"bytes": span.bytes, "flags": 1, "memoryKind": DEVICE})
            continue
        row |= {"cacheConfig": b"\0", "completed": row["end"], "registersPerThread": 40, "gridId": number}
        row |= {"gridX": span.grid, "gridY": 1, "gridZ": 1, "blockX": span.block, "blockY": 1, "blockZ": 1}
        tables["KERNEL"].append(row | {"name": string(span.name)})
    for migration in record.migrations:
        if migration.rank != rank:
            continue
        source, target = (HOST_ID, rank) if migration.to_device else (rank, HOST_ID)
        counter: Row = {
            "start": migration.start + EPOCH_NS,
            "end": migration.end + EPOCH_NS,
            "address": migration.address,
            "srcId": source,
            "dstId": target,
            "processId": thread_ids(record)[rank, 1][0],
        }
        moved = BYTES_TO_DEVICE if migration.to_device else BYTES_TO_HOST
        tables["UNIFIED_MEMORY_COUNTER"].append(counter | {"counterKind": moved, "value": migration.bytes})
        # Faults of devices are counted; each fault of the host is an event.
        faults = [(DEVICE_FAULTS, migration.faults)] if migration.to_device else [(HOST_FAULTS, 1)] * migration.faults
        for kind, value in faults:
            tables["UNIFIED_MEMORY_COUNTER"].append(counter | {"counterKind": kind, "value": value})
