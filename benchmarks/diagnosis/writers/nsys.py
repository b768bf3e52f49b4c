"""SQLite exports of Nsight Systems of three ages: all ranks and processes in one file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.diagnosis.record import DeviceSpan, Kind, Migration, Record, Work
from benchmarks.diagnosis.writers.shared import (
    DEVICE_MEMORY,
    DEVICE_NAME,
    EPOCH_NS,
    MULTIPROCESSORS,
    pid_of,
    thread_ids,
)

PUSH_POP = 59
"""``eventType`` of a range in a thread (since 2021 in ENUM_NSYS_EVENT_TYPE)."""
RUNTIME_CLASS, OS_CLASS = 0, 27
COPY_KINDS = {Work.HOST_TO_DEVICE: 1, Work.DEVICE_TO_HOST: 2, Work.DEVICE_TO_DEVICE: 8}
MIGRATION_TO_DEVICE, MIGRATION_TO_HOST = 11, 12
"""``copyKind`` of pages of managed memory that move."""
PAGEABLE, PINNED, DEVICE_MEMORY_KIND, UNKNOWN_MEMORY_KIND = 0, 1, 2, 7
STREAM_SYNCHRONIZATION = 3
HOST_BITS = 0x1_0000_0000_0000
"""The hardware part of global numbers."""


@dataclass(frozen=True, slots=True)
class Age:
    """A version of the export: its product, its schema, the table of its facts, and columns that it adds."""

    product: str
    schema: str
    facts_table: str
    kernel_columns: tuple[str, ...]
    copy_columns: tuple[str, ...] = ()
    traces_graphs: bool = False
    """Graphs are traced as a whole, not their kernels (``--cuda-graph-trace=graph``)."""
    is_newest: bool = False
    """Ranges have ``binaryData``, and synchronisations have ``greenContextId``."""


AGES = (
    Age("2021.2.4", "2.9.1", "EXPORT_META_DATA", ("mangledName",)),
    Age("2022.4.2", "3.4.0", "META_DATA_EXPORT", ("mangledName",), ("virtualAddress",), traces_graphs=True),
    Age(
        *("2025.1.1", "3.17.1", "META_DATA_EXPORT"),
        ("mangledName", "greenContextId"),
        ("virtualAddress", "greenContextId"),
        is_newest=True,
    ),
)
_KERNEL = """
    start end deviceId contextId streamId correlationId globalPid demangledName shortName launchType cacheConfig
    registersPerThread gridX gridY gridZ blockX blockY blockZ staticSharedMemory dynamicSharedMemory
    localMemoryPerThread localMemoryTotal gridId sharedMemoryExecuted graphNodeId sharedMemoryLimitConfig
"""
_COPY = """
    start end deviceId contextId streamId correlationId globalPid bytes copyKind deprecatedSrcId srcKind dstKind
    srcDeviceId srcContextId dstDeviceId dstContextId migrationCause graphNodeId
"""
_FILL = "start end deviceId contextId streamId correlationId globalPid value bytes graphNodeId memKind"
_GRAPH = "start end deviceId graphId contextId streamId correlationId globalPid graphExecId"
_DEVICE_FAULT = "start end globalPid deviceId address numberOfPageFaults faultAccessType"
_HOST_FAULT = "start globalPid address originalFaultPc CpuInstruction module unresolvedFaultPc sourceFile sourceLine"
_NVTX = """
    start end eventType rangeId category color text globalTid endGlobalTid textId domainId uint64Value
    int64Value doubleValue uint32Value int32Value floatValue jsonTextId jsonText
"""
"""Columns, by the order of the export; ages add some."""
_TYPES = dict.fromkeys(("text", "jsonText", "name", "value", "utcTime", "localTime", "busLocation"), "TEXT")
_TYPES |= dict.fromkeys(("uuid", "chipName", "ctxswDevPath", "ctrlDevPath", "binaryData"), "TEXT")
_TYPES |= {"doubleValue": "REAL", "floatValue": "REAL"}
_A100: dict[str, object] = {
    "name": DEVICE_NAME,
    "isDiscrete": 1,
    "l2CacheSize": 41_943_040,
    "totalMemory": DEVICE_MEMORY,
    "memoryBandwidth": 2_039_040_000_000,
    "clockRate": 1_410_000_000,
    "smCount": MULTIPROCESSORS,
    "pwGpuId": 0,
    "luid": 0,
    "chipName": "GA100",
    "ctxswDevPath": "",
    "ctrlDevPath": "",
    "revision": 161,
    "nodeMask": 0,
    "constantMemory": 65_536,
    "maxIPC": 0,
    "maxRegistersPerBlock": 65_536,
    "maxShmemPerBlock": 49_152,
    "maxShmemPerBlockOptin": 166_912,
    "maxShmemPerSm": 167_936,
    "maxRegistersPerSm": 65_536,
    "threadsPerWarp": 32,
    "asyncEngines": 5,
    "maxWarpsPerSm": 64,
    "maxBlocksPerSm": 32,
    "maxThreadsPerBlock": 1_024,
    "maxBlockDimX": 1_024,
    "maxBlockDimY": 1_024,
    "maxBlockDimZ": 64,
    "maxGridDimX": 2_147_483_647,
    "maxGridDimY": 65_535,
    "maxGridDimZ": 65_535,
    "computeMajor": 8,
    "computeMinor": 0,
    "smMajor": 8,
    "smMinor": 0,
}
"""Facts of each device in TARGET_INFO_GPU, next to its numbers."""


_VERSIONS = {"cudaLaunchKernel": "7000", "cudaGraphLaunch": "10000", "cudaStreamCreateWithFlags": "5000"}
"""Versions of CUDA in the names of calls; the others have the first."""


class _Database:
    """A database with the strings that its tables refer to."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path)
        self._strings: dict[str, int] = {}

    def string(self, text: str) -> int:
        """Return the number of a text in StringIds."""
        return self._strings.setdefault(text, len(self._strings) + 1)

    def table(self, name: str, columns: Iterable[str], rows: Iterable[dict[str, object]]) -> None:
        """Create a table of these columns; rows lack those that are null."""
        columns = list(columns)
        declared = ", ".join(f"[{column}] {_TYPES.get(column, 'INTEGER')}" for column in columns)
        self._connection.execute(f"CREATE TABLE {name} ({declared})")
        marks = ", ".join("?" * len(columns))
        self._connection.executemany(
            f"INSERT INTO {name} VALUES ({marks})", ([row.get(column) for column in columns] for row in rows)
        )

    def close(self) -> None:
        """Write the strings and close the file."""
        self._connection.execute("CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)")
        self._connection.executemany(
            "INSERT INTO StringIds VALUES (?, ?)", ((n, text) for text, n in self._strings.items())
        )
        self._connection.commit()
        self._connection.close()


def write_nsys(record: Record, folder: Path, *, age: int = 2) -> list[Path]:
    """Write the export and return its path. ``age`` is a position in :data:`AGES`."""
    path, version = folder / "report.sqlite", AGES[age]
    database = _Database(path)
    _write_facts(database, record, version)
    _write_host(database, record, version)
    _write_device(database, record, version)
    if record.lost:
        text = f"Number of CUPTI events lost: {record.lost}. Some CUPTI events were dropped."
        rows: list[dict[str, object]] = [
            {"timestamp": record.end, "timestampType": 1, "source": 1, "severity": 2, "text": text}
        ]
        database.table(
            "DIAGNOSTIC_EVENT", ("timestamp", "timestampType", "source", "severity", "text", "globalPid"), rows
        )
    database.close()
    return [path]


def _global_pid(pid: int) -> int:
    return HOST_BITS | pid << 24


def _write_facts(database: _Database, record: Record, version: Age) -> None:
    facts = {"EXPORT_PRODUCT_NAME": "NVIDIA Nsight Systems", "EXPORT_PRODUCT_VERSION": version.product}
    facts["EXPORT_SCHEMA_VERSION"] = version.schema
    database.table(
        version.facts_table, ("name", "value"), [{"name": name, "value": value} for name, value in facts.items()]
    )
    database.table("TARGET_INFO_SESSION_START_TIME", ("utcEpochNs", "utcTime", "localTime"), [{"utcEpochNs": EPOCH_NS}])
    span: dict[str, object] = {"globalVid": HOST_BITS, "duration": record.end, "startTime": 0, "stopTime": record.end}
    database.table("ANALYSIS_DETAILS", ("globalVid", "duration", "startTime", "stopTime"), [span])
    gpus: list[dict[str, object]] = [
        {
            "vmId": HOST_BITS,
            "id": rank,
            "busLocation": f"0000:{16 + rank:02x}:00.0",
            "uuid": f"1825e7cc-6d1b-a3ac-d9bf-{rank:012x}",
            "cuDevice": rank,
            **_A100,
        }
        for rank in range(record.ranks)
    ]
    database.table("TARGET_INFO_GPU", gpus[0], gpus)
    processes: dict[int, dict[str, object]] = {}
    threads: list[dict[str, object]] = []
    for (pid, tid), facts_of_thread in zip(thread_ids(record).values(), record.threads, strict=True):
        processes[pid] = {"globalPid": _global_pid(pid), "pid": pid, "name": "python3"}
        name = database.string(facts_of_thread.name)
        threads.append({"nameId": name, "priority": 20, "globalTid": _global_pid(pid) | tid})
    database.table("PROCESSES", ("globalPid", "pid", "name"), processes.values())
    database.table("ThreadNames", ("nameId", "priority", "globalTid"), threads)


def _write_host(database: _Database, record: Record, version: Age) -> None:
    ids = thread_ids(record)
    calls: list[dict[str, object]] = []
    ranges: list[dict[str, object]] = []
    waits: list[dict[str, object]] = []
    for number, span in enumerate(sorted(record.spans, key=lambda span: (span.start, -span.end)), start=1):
        pid, tid = ids[span.rank, span.thread]
        row: dict[str, object] = {"start": span.start, "end": span.end, "globalTid": _global_pid(pid) | tid}
        if span.kind is Kind.API:
            name = database.string(f"{span.name}_v{_VERSIONS.get(span.name, '3020')}")
            row |= {"eventClass": RUNTIME_CLASS, "correlationId": span.correlation, "nameId": name, "returnValue": 0}
            calls.append(row)
        elif span.kind is Kind.OS:
            row |= {"eventClass": OS_CLASS, "nameId": database.string(span.name), "returnValue": 0, "nestingLevel": 0}
            waits.append(row)
        elif span.kind is not Kind.PYTHON:
            text = f"{span.name}, op_id = {number}" if span.kind is Kind.OPERATOR else span.name
            if span.kind is Kind.STEP:
                text = span.name.replace("ProfilerStep#", "step ")
            ranges.append(row | {"eventType": PUSH_POP, "text": text, "domainId": 0})
    api = ("start", "end", "eventClass", "globalTid", "correlationId", "nameId", "returnValue", "callchainId")
    if calls:
        database.table("CUPTI_ACTIVITY_KIND_RUNTIME", api, calls)
    if ranges:
        newest = ("binaryData",) if version.is_newest else ()
        database.table("NVTX_EVENTS", (*_NVTX.split(), *newest), ranges)
    os_columns = ("start", "end", "eventClass", "globalTid", "nameId", "returnValue", "nestingLevel", "callchainId")
    database.table("OSRT_API", os_columns, waits)
    synchronizations: list[dict[str, object]] = [
        {
            "start": span.start + 500,
            "end": span.end - 500,
            "deviceId": span.rank,
            "contextId": 1,
            "streamId": 7,
            "correlationId": span.correlation,
            "globalPid": _global_pid(pid_of(span.rank)),
            "syncType": STREAM_SYNCHRONIZATION,
            "eventId": 0xFFFFFFFF,
        }
        for span in record.spans
        if span.name == "cudaStreamSynchronize"
    ]
    columns = ["start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "syncType", "eventId"]
    columns += ["greenContextId"] if version.is_newest else []
    database.table("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", columns, synchronizations)


def _write_device(database: _Database, record: Record, version: Age) -> None:
    kernels: list[dict[str, object]] = []
    copies: list[dict[str, object]] = []
    fills: list[dict[str, object]] = []
    graphs: dict[tuple[int, int], dict[str, object]] = {}
    for number, span in enumerate(sorted(record.device, key=lambda span: span.start), start=1):
        row: dict[str, object] = {
            "start": span.start,
            "end": span.end,
            "deviceId": span.rank,
            "contextId": 1,
            "streamId": span.stream,
            "correlationId": span.correlation,
            "globalPid": _global_pid(pid_of(span.rank)),
        }
        if span.graph is not None and version.traces_graphs:
            graph = graphs.setdefault((span.rank, span.correlation), row | {"graphId": span.graph})
            graph |= {"graphExecId": span.graph, "end": span.end}
            continue
        if span.graph is not None:
            row["graphNodeId"] = span.graph << 32 | span.node
        if span.work.is_copy:
            copies.append(row | _copy_facts(span))
            continue
        if span.work is Work.FILL:
            fills.append(row | {"value": 0, "bytes": span.bytes, "memKind": DEVICE_MEMORY_KIND})
            continue
        function = span.name.replace("(anonymous namespace)::", "").partition("(")[0].partition("<")[0]
        short = function.split()[-1].rpartition("::")[2]
        row |= {
            "demangledName": database.string(span.name),
            "shortName": database.string(short),
            "mangledName": database.string(span.name),
            "launchType": 1,
            "cacheConfig": 1,
            "registersPerThread": 40,
            "gridX": span.grid,
            "gridY": 1,
            "gridZ": 1,
            "blockX": span.block,
            "blockY": 1,
            "blockZ": 1,
            "staticSharedMemory": 0,
            "dynamicSharedMemory": 0,
            "localMemoryPerThread": 0,
            "localMemoryTotal": 127_401_984,
            "gridId": number,
            "sharedMemoryExecuted": 32_768,
            "sharedMemoryLimitConfig": 0,
            "greenContextId": None,
        }
        kernels.append(row)
    database.table("CUPTI_ACTIVITY_KIND_KERNEL", (*_KERNEL.split(), *version.kernel_columns), kernels)
    copies += [_migration_row(migration) for migration in record.migrations]
    database.table("CUPTI_ACTIVITY_KIND_MEMCPY", (*_COPY.split(), *version.copy_columns), copies)
    if fills:
        database.table("CUPTI_ACTIVITY_KIND_MEMSET", _FILL.split(), fills)
    if graphs:
        database.table("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", _GRAPH.split(), graphs.values())
    if record.migrations:
        _write_faults(database, record)


def _migration_row(migration: Migration) -> dict[str, object]:
    return {
        "start": migration.start,
        "end": migration.end,
        "deviceId": migration.rank,
        "contextId": 0,
        "streamId": 0,
        "correlationId": 0,
        "globalPid": _global_pid(pid_of(migration.rank)),
        "bytes": migration.bytes,
        "copyKind": MIGRATION_TO_DEVICE if migration.to_device else MIGRATION_TO_HOST,
        "srcKind": UNKNOWN_MEMORY_KIND,
        "dstKind": UNKNOWN_MEMORY_KIND,
        "migrationCause": 1,
        "virtualAddress": migration.address,
    }


def _write_faults(database: _Database, record: Record) -> None:
    """Write page faults of devices, and each of the host, at the start of the migration that they cause."""
    device: list[dict[str, object]] = []
    host: list[dict[str, object]] = []
    for migration in record.migrations:
        row: dict[str, object] = {"start": migration.start, "globalPid": _global_pid(pid_of(migration.rank))}
        row["address"] = migration.address
        if migration.to_device:
            counted = {"end": migration.end, "deviceId": migration.rank, "numberOfPageFaults": migration.faults}
            device.append(row | counted | {"faultAccessType": 1})
        else:
            host += [row] * migration.faults
    database.table("CUDA_UM_GPU_PAGE_FAULT_EVENTS", _DEVICE_FAULT.split(), device)
    database.table("CUDA_UM_CPU_PAGE_FAULT_EVENTS", _HOST_FAULT.split(), host)


def _copy_facts(span: DeviceSpan) -> dict[str, object]:
    host = PINNED if span.pinned else PAGEABLE
    source = host if span.work is Work.HOST_TO_DEVICE else DEVICE_MEMORY_KIND
    target = host if span.work is Work.DEVICE_TO_HOST else DEVICE_MEMORY_KIND
    return {"bytes": span.bytes, "copyKind": COPY_KINDS[span.work], "srcKind": source, "dstKind": target}
