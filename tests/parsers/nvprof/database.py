"""Tiny nvprof databases from literals: a test shows the rows that matter, the rest is filled with zeros.

::

    path = write(tmp_path, RUNTIME=[{"cbid": 20, "start": 5, "end": 9, "correlationId": 1}], names={3: "_Z3fooi"})

An argument is a table without ``CUPTI_ACTIVITY_KIND_``; its columns are those of :data:`TABLES`, or of its first row
where the test gives ``columns``.
"""

import sqlite3
import struct
from pathlib import Path

EPOCH = 1_580_000_000 * 10**9
"""A raw time of 2020, as CUPTI writes them."""
PID = 4711
MAIN = -354_666_688
"""A thread id as nvprof stores it: the low half of a pthread_t, as a signed number."""
UNSIGNED_MAIN = MAIN + 2**32

_KERNEL = (
    "start end deviceId contextId streamId gridX gridY gridZ blockX blockY blockZ registersPerThread "
    "staticSharedMemory dynamicSharedMemory correlationId name"
)
_CALL = "cbid start end processId threadId correlationId returnValue"
_COPY = "copyKind srcKind dstKind bytes start end deviceId contextId streamId correlationId"
TABLES = {
    "KERNEL": _KERNEL,
    "CONCURRENT_KERNEL": _KERNEL,
    "CDP_KERNEL": _KERNEL,
    "RUNTIME": _CALL,
    "DRIVER": _CALL,
    "MEMCPY": _COPY,
    "MEMCPY2": f"{_COPY} srcDeviceId dstDeviceId",
    "MEMSET": "value bytes start end deviceId contextId streamId correlationId memoryKind",
    "MARKER": "flags timestamp id objectKind objectId name domain",
    "MARKER_DATA": "flags id payloadKind color category",
    "OVERHEAD": "overheadKind objectKind objectId start end",
    "SYNCHRONIZATION": "type start end correlationId contextId streamId cudaEventId",
    "UNIFIED_MEMORY_COUNTER": "counterKind value start end address srcId dstId streamId processId",
    "MEMORY": "memoryKind address bytes start end processId deviceId contextId name",
    "ENVIRONMENT": "deviceId timestamp environmentKind data",
    "NAME": "objectKind objectId name",
    "CONTEXT": "contextId deviceId computeApiKind nullStreamId",
    "DEVICE": (
        "id name uuid computeCapabilityMajor computeCapabilityMinor numMultiprocessors maxWarpsPerMultiprocessor "
        "numThreadsPerWarp globalMemorySize globalMemoryBandwidth coreClockRate"
    ),
}
_BLOBS = {"objectId", "data", "uuid"}
PREFIX = "CUPTI_ACTIVITY_KIND_"


def owner(pid=PID, thread=0):
    """Return ``objectId`` of a process, or of a thread."""
    return struct.pack("<IiI", pid, thread, 0)


def write(folder, *, names=None, version=12, name="trace.nvvp", columns=None, only=False, **rows):
    """Write a database and give its path.

    Args:
        folder: Where it goes.
        names: Strings by id.
        version: Value of table Version; ``None`` leaves the table out.
        name: File name.
        columns: For some tables, the columns instead of those of :data:`TABLES`.
        only: Whether tables without rows are left out, which nvprof never does.
        rows: Rows by table.
    """
    path = Path(folder, name)
    database = sqlite3.connect(path)
    if names is not None:
        database.execute(
            "CREATE TABLE StringTable (_id_ INTEGER PRIMARY KEY AUTOINCREMENT, value TEXT NOT NULL UNIQUE)"
        )
        strings = {0: "-- null --", **names}
        database.executemany("INSERT INTO StringTable VALUES (?, ?)", strings.items())
    if version is not None:
        database.execute("CREATE TABLE Version (version INTEGER)")
        database.execute("INSERT INTO Version VALUES (?)", (version,))
    for table, usual in TABLES.items():
        if table in rows or not only:
            _create(database, PREFIX + table, (columns or {}).get(table, usual).split(), rows.get(table, []))
    database.commit()
    database.close()
    return path


def _create(database, table, columns, rows):
    declared = ", ".join(f"{column} {'BLOB' if column in _BLOBS else 'INT'}" for column in columns)
    database.execute(f"CREATE TABLE {table} (_id_ INTEGER PRIMARY KEY AUTOINCREMENT, {declared})")
    defaults = {"processId": PID, "threadId": MAIN, "objectId": owner(PID, MAIN), "objectKind": 2}
    for row in rows:
        assert set(row) <= set(columns), set(row) - set(columns)
        values = [row.get(column, defaults.get(column, b"" if column in _BLOBS else 0)) for column in columns]
        marks = ", ".join("?" * len(columns))
        database.execute(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", values)
