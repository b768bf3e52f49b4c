"""Writes SQLite databases in the form that Nsight Systems 2022.4 exports (schema 3.0.0).

Only the tables that ``nsys stats`` and traceviz read are written. Column names, order and types are those of
exports made by that version; the comments of its DDL are left out.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path

SCHEMA_VERSION = "3.0.0"

PAGE_BYTES = 1024
"""Many small tables: a small page keeps the files small."""

VM_BITS = 1 << 48
"""High bits of every serialised id: first virtual machine of the session."""

_EVENT = "start INTEGER NOT NULL, end INTEGER NOT NULL"
_PLACE = "deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId INTEGER NOT NULL"
_CAUSE = "correlationId INTEGER, globalPid INTEGER"
_ENUM = "id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT"

TABLES: dict[str, str] = {
    "StringIds": "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL",
    "EXPORT_META_DATA": "name TEXT NOT NULL, value TEXT",
    "META_DATA_CAPTURE": "name TEXT NOT NULL, value TEXT",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs INTEGER, utcTime TEXT, localTime TEXT",
    "ANALYSIS_DETAILS": (
        "globalVid INTEGER NOT NULL, duration INTEGER NOT NULL, startTime INTEGER NOT NULL, stopTime INTEGER NOT NULL"
    ),
    "TARGET_INFO_GPU": (
        "vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, busLocation TEXT, isDiscrete INTEGER, "
        "l2CacheSize INTEGER, totalMemory INTEGER, memoryBandwidth INTEGER, clockRate INTEGER, smCount INTEGER, "
        "pwGpuId INTEGER, uuid TEXT, luid INTEGER, chipName TEXT, cuDevice INTEGER, ctxswDevPath TEXT, "
        "ctrlDevPath TEXT, revision INTEGER, nodeMask INTEGER, constantMemory INTEGER, maxIPC INTEGER, "
        "maxRegistersPerBlock INTEGER, maxShmemPerBlock INTEGER, maxShmemPerBlockOptin INTEGER, "
        "maxShmemPerSm INTEGER, maxRegistersPerSm INTEGER, threadsPerWarp INTEGER, asyncEngines INTEGER, "
        "maxWarpsPerSm INTEGER, maxBlocksPerSm INTEGER, maxThreadsPerBlock INTEGER, maxBlockDimX INTEGER, "
        "maxBlockDimY INTEGER, maxBlockDimZ INTEGER, maxGridDimX INTEGER, maxGridDimY INTEGER, "
        "maxGridDimZ INTEGER, computeMajor INTEGER, computeMinor INTEGER, smMajor INTEGER, smMinor INTEGER"
    ),
    "PROCESSES": "globalPid INTEGER, pid INTEGER, name TEXT",
    "ThreadNames": "nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER",
    "CUPTI_ACTIVITY_KIND_RUNTIME": (
        f"{_EVENT}, eventClass INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER, "
        "nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER"
    ),
    "CUPTI_ACTIVITY_KIND_KERNEL": (
        f"{_EVENT}, {_PLACE}, {_CAUSE}, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, "
        "mangledName INTEGER, launchType INTEGER, cacheConfig INTEGER, registersPerThread INTEGER NOT NULL, "
        "gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, "
        "blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL, "
        "dynamicSharedMemory INTEGER NOT NULL, localMemoryPerThread INTEGER NOT NULL, "
        "localMemoryTotal INTEGER NOT NULL, gridId INTEGER NOT NULL, sharedMemoryExecuted INTEGER, "
        "graphNodeId INTEGER, sharedMemoryLimitConfig INTEGER"
    ),
    "CUPTI_ACTIVITY_KIND_MEMCPY": (
        f"{_EVENT}, {_PLACE}, {_CAUSE}, bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, "
        "deprecatedSrcId INTEGER, srcKind INTEGER, dstKind INTEGER, srcDeviceId INTEGER, srcContextId INTEGER, "
        "dstDeviceId INTEGER, dstContextId INTEGER, migrationCause INTEGER, graphNodeId INTEGER, "
        "virtualAddress INTEGER"
    ),
    "CUPTI_ACTIVITY_KIND_MEMSET": (
        f"{_EVENT}, {_PLACE}, {_CAUSE}, value INTEGER NOT NULL, bytes INTEGER NOT NULL, graphNodeId INTEGER, "
        "memKind INTEGER"
    ),
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": (
        f"{_EVENT}, {_PLACE}, {_CAUSE}, syncType INTEGER NOT NULL, eventId INTEGER NOT NULL"
    ),
    "NVTX_EVENTS": (
        "start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, category INTEGER, "
        "color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, "
        "uint64Value INTEGER, int64Value INTEGER, doubleValue REAL, uint32Value INTEGER, int32Value INTEGER, "
        "floatValue REAL, jsonTextId INTEGER, jsonText TEXT"
    ),
    "OSRT_API": (
        f"{_EVENT}, eventClass INTEGER NOT NULL, globalTid INTEGER, nameId INTEGER NOT NULL, "
        "returnValue INTEGER NOT NULL, nestingLevel INTEGER, callchainId INTEGER NOT NULL"
    ),
    "ENUM_NSYS_EVENT_TYPE": _ENUM,
    "ENUM_NSYS_EVENT_CLASS": _ENUM,
    "ENUM_CUDA_MEMCPY_OPER": _ENUM,
    "ENUM_CUDA_MEM_KIND": _ENUM,
    "ENUM_CUDA_KRENEL_LAUNCH_TYPE": _ENUM,  # spelled so by nsys
    "ENUM_CUPTI_SYNC_TYPE": _ENUM,
}
"""Columns of every table, in the order of the schema."""

COPY_KINDS = {"h2d": 1, "d2h": 2, "d2d": 8}
MEMORY_KINDS = {"pageable": 0, "pinned": 1, "device": 2}
RUNTIME_CLASS, DRIVER_CLASS, OS_CLASS = 0, 1, 27
PUSH_POP_RANGE = 59
REGULAR_LAUNCH = 1
SYNC_EVENT, SYNC_STREAM, SYNC_CONTEXT = 1, 3, 4

_ENUMS: dict[str, tuple[tuple[int, str, str], ...]] = {
    "ENUM_NSYS_EVENT_TYPE": (
        (PUSH_POP_RANGE, "NvtxPushPopRange", "NvtxPushPopRange"),
        (60, "NvtxStartEndRange", "NvtxStartEndRange"),
    ),
    "ENUM_NSYS_EVENT_CLASS": (
        (RUNTIME_CLASS, "TRACE_PROCESS_EVENT_CUDA_RUNTIME", "CUDA runtime"),
        (DRIVER_CLASS, "TRACE_PROCESS_EVENT_CUDA_DRIVER", "CUDA driver"),
        (OS_CLASS, "TRACE_PROCESS_EVENT_OS_RUNTIME", "OS runtime"),
    ),
    "ENUM_CUDA_MEMCPY_OPER": (
        (1, "CUDA_MEMCPY_KIND_HTOD", "Host-to-Device"),
        (2, "CUDA_MEMCPY_KIND_DTOH", "Device-to-Host"),
        (8, "CUDA_MEMCPY_KIND_DTOD", "Device-to-Device"),
    ),
    "ENUM_CUDA_MEM_KIND": (
        (0, "CUDA_MEMOPR_MEMORY_KIND_PAGEABLE", "Pageable"),
        (1, "CUDA_MEMOPR_MEMORY_KIND_PINNED", "Pinned"),
        (2, "CUDA_MEMOPR_MEMORY_KIND_DEVICE", "Device"),
    ),
    "ENUM_CUDA_KRENEL_LAUNCH_TYPE": ((REGULAR_LAUNCH, "CUDA_KERNEL_LAUNCH_TYPE_REGULAR", "Regular"),),
    "ENUM_CUPTI_SYNC_TYPE": (
        (SYNC_EVENT, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE", "Event sync"),
        (SYNC_STREAM, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE", "Stream sync"),
        (SYNC_CONTEXT, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE", "Context sync"),
    ),
}

EVENT_TABLES = tuple(name for name, columns in TABLES.items() if columns.startswith("start INTEGER"))

_GPU_FACTS: dict[str, object] = {
    "vmId": VM_BITS,
    "name": "Synthetic GPU",
    "isDiscrete": 1,
    "l2CacheSize": 40 << 20,
    "totalMemory": 80 << 30,
    "memoryBandwidth": 2_039_040_000_000,
    "clockRate": 1_410_000_000,
    "smCount": 108,
    "chipName": "SYNTHETIC",
    "threadsPerWarp": 32,
    "maxWarpsPerSm": 64,
    "maxBlocksPerSm": 32,
    "maxThreadsPerBlock": 1024,
    "maxRegistersPerSm": 65_536,
    "maxShmemPerSm": 167_936,
    "computeMajor": 8,
    "computeMinor": 0,
    "smMajor": 8,
    "smMinor": 0,
}


def global_pid(pid: int) -> int:
    """The serialised id of a process."""
    return VM_BITS | pid << 24


def create_tables(connection: sqlite3.Connection, names: Iterable[str] = tuple(TABLES)) -> None:
    """Create the tables ``names``, empty."""
    for name in names:
        connection.execute(f"CREATE TABLE {name} ({TABLES[name]})")


def fill_enums(connection: sqlite3.Connection) -> None:
    """Fill the tables that give the numbers of kinds their names."""
    for name, rows in _ENUMS.items():
        connection.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", rows)


class Strings:
    """Numbers repeated strings, as the table StringIds does."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        """The id of ``text``."""
        return self.ids.setdefault(text, len(self.ids))


class NsysDatabase:
    """Rows of a database, collected in memory and written at once.

    Args:
        label: What the capture is; stored with the word synthetic in META_DATA_CAPTURE.
        started_unix_ns: Wall-clock time at which the invented session began.
    """

    def __init__(self, label: str, started_unix_ns: int = 1_700_000_000_000_000_000) -> None:
        self.string = Strings()
        self.rows: dict[str, list[dict[str, object]]] = {}
        self.add("TARGET_INFO_SESSION_START_TIME", utcEpochNs=started_unix_ns)
        self.add("META_DATA_CAPTURE", name="SYNTHETIC", value=f"synthetic, not a recording: {label}")
        self.add("EXPORT_META_DATA", name="EXPORT_PRODUCT_NAME", value="traceviz make_synthetic.py (synthetic)")
        self.add("EXPORT_META_DATA", name="EXPORT_SCHEMA_VERSION", value=SCHEMA_VERSION)
        for part, value in zip(("MAJOR", "MINOR", "MICRO"), SCHEMA_VERSION.split("."), strict=True):
            self.add("EXPORT_META_DATA", name=f"EXPORT_SCHEMA_VERSION_{part}", value=value)

    def add(self, table: str, **values: object) -> None:
        """Append one row; columns that are not named are null."""
        self.rows.setdefault(table, []).append(values)

    def add_device(self, ordinal: int) -> None:
        """Declare a device."""
        uuid = f"00000000-0000-0000-0000-{ordinal:012d}"
        self.add("TARGET_INFO_GPU", id=ordinal, cuDevice=ordinal, uuid=uuid, **_GPU_FACTS)

    def add_process(self, pid: int, name: str) -> None:
        """Declare a process and name its main thread."""
        self.add("PROCESSES", globalPid=global_pid(pid), pid=pid, name=name)
        self.add("ThreadNames", nameId=self.string(name), priority=20, globalTid=global_pid(pid) | pid)

    def save(self, path: Path) -> None:
        """Write the database; event tables in order of start. Tables without rows are left out, as nsys does."""
        path.unlink(missing_ok=True)
        connection = sqlite3.connect(path)
        with connection:
            connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
            self._add_details()
            create_tables(connection, [name for name in TABLES if name in self.rows or name in (*_ENUMS, "StringIds")])
            fill_enums(connection)
            ids = ((number, text) for text, number in self.string.ids.items())
            connection.executemany("INSERT INTO StringIds VALUES (?, ?)", ids)
            for name in TABLES:
                if name in self.rows:
                    self._insert(connection, name)
        connection.execute("VACUUM")
        connection.close()

    def _add_details(self) -> None:
        events = [row for name in EVENT_TABLES for row in self.rows.get(name, ())]
        stop = max((row["end"] for row in events), default=0)  # type: ignore[type-var]
        self.add("ANALYSIS_DETAILS", globalVid=VM_BITS, duration=stop, startTime=0, stopTime=stop)

    def _insert(self, connection: sqlite3.Connection, table: str) -> None:
        rows = self.rows[table]
        if table in EVENT_TABLES:
            rows = sorted(rows, key=lambda row: (row["start"], row["end"]))  # type: ignore[arg-type,return-value]
        columns = column_names(table)
        unknown = {key for row in rows for key in row} - set(columns)
        if unknown:
            raise KeyError(f"table {table} has no column {', '.join(sorted(unknown))}")
        marks = ", ".join("?" * len(columns))
        connection.executemany(
            f"INSERT INTO {table} VALUES ({marks})", ([row.get(column) for column in columns] for row in rows)
        )


def column_names(table: str) -> list[str]:
    """Names of the columns of ``table``, in order."""
    return [column.split()[0] for column in TABLES[table].split(", ")]
