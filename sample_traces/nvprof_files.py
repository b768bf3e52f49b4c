"""Writes what nvprof would have written of a simulated program: a database, a printed trace, a printed summary.

The program fills an :class:`~nsys_database.NsysDatabase`; here its rows are put into nvprof's forms. Tables, columns
and their order are those of databases of CUDA 10 (Version 12); most tables in which such a run has no rows are left
out. nvprof records no calls of the operating system.
"""

from __future__ import annotations

import csv
import io
import sqlite3
import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar

from nsys_database import DRIVER_CLASS, NsysDatabase

VERSION = 12
PAGE_BYTES = 1024
STARTED_UNIX_NS = 1_583_978_808_000_000_000
DEVICE = "Synthetic GPU"
_PREFIX = "CUPTI_ACTIVITY_KIND_"
_FUNCTIONS = Path(__file__).resolve().parent.parent / "parsers" / "data" / "cupti_cbids.csv"

Row = dict[str, Any]

_CALL = "cbid start end processId threadId correlationId returnValue"
_KERNEL = (
    "cacheConfig sharedMemoryConfig registersPerThread partitionedGlobalCacheRequested partitionedGlobalCacheExecuted "
    "start end completed deviceId contextId streamId gridX gridY gridZ blockX blockY blockZ staticSharedMemory "
    "dynamicSharedMemory localMemoryPerThread localMemoryTotal correlationId gridId name queued submitted launchType "
    "isSharedMemoryCarveoutRequested sharedMemoryCarveoutRequested sharedMemoryExecuted"
)
TABLES = {
    "MEMCPY": (
        "copyKind srcKind dstKind flags bytes start end deviceId contextId streamId correlationId runtimeCorrelationId"
    ),
    "MEMSET": "value bytes start end deviceId contextId streamId correlationId flags memoryKind",
    "KERNEL": _KERNEL,
    "DRIVER": _CALL,
    "RUNTIME": _CALL,
    "DEVICE": (
        "flags globalMemoryBandwidth globalMemorySize numThreadsPerWarp coreClockRate numMultiprocessors "
        "maxWarpsPerMultiprocessor computeCapabilityMajor computeCapabilityMinor id eccEnabled uuid name"
    ),
    "CONTEXT": "contextId deviceId computeApiKind nullStreamId",
    "CONCURRENT_KERNEL": _KERNEL,
    "NAME": "objectKind objectId name",
    "MARKER": "flags timestamp id objectKind objectId name domain",
    "OVERHEAD": "overheadKind objectKind objectId start end",
    "SYNCHRONIZATION": "type start end correlationId contextId streamId cudaEventId",
}
"""Columns of every table, in their order, without the number of the row that all begin with."""
_BLOBS = frozenset({"cacheConfig", "uuid", "objectId"})
_PROCESS, _THREAD = 1, 2
_START, _END = 2, 4
_PLACE = ("deviceId", "contextId", "streamId", "correlationId")
_SHAPE = ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "staticSharedMemory", "dynamicSharedMemory")


class NvprofRun:
    """A simulated run, as nvprof sees it.

    Args:
        database: The run as the simulated program wrote it.
        label: What the run is; stored in the name of the process, with the word synthetic.
        rename: Gives kernels their names.
    """

    def __init__(self, database: NsysDatabase, label: str, rename: Callable[[str], str]) -> None:
        self._from = database.rows
        self._texts = {number: text for text, number in database.string.ids.items()}
        self._rename = rename
        self.label = f"python3 synthetic, not a recording: {label}"
        (process,) = self._from["PROCESSES"]
        self.pid = int(process["pid"])  # type: ignore[call-overload]

    # --- the database -----------------------------------------------------------------------------------------

    def save(self, path: Path) -> None:
        """Write the database; rows in order of start."""
        path.unlink(missing_ok=True)
        names: dict[str, int] = {"-- null --": 0}
        rows = self._rows(lambda text: names.setdefault(text, len(names)))
        connection = sqlite3.connect(path)
        with connection:
            connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
            connection.execute(
                "CREATE TABLE StringTable(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, value TEXT NOT NULL UNIQUE)"
            )
            connection.executemany("INSERT INTO StringTable VALUES (?, ?)", ((i, text) for text, i in names.items()))
            connection.execute("CREATE TABLE Version(version INTEGER)")
            connection.execute("INSERT INTO Version VALUES (?)", (VERSION,))
            for table, columns in TABLES.items():
                _insert(connection, _PREFIX + table, columns.split(), rows.get(table, []))
        connection.execute("VACUUM")
        connection.close()

    def _rows(self, name: Callable[[str], int]) -> dict[str, list[Row]]:
        kernels = [
            {**row, "name": name(self._rename(self._texts[row["demangledName"]])), "gridId": row["correlationId"]}
            for row in self._work("KERNEL")
        ]
        copies = [{**row, "srcKind": row["srcKind"] + 1, "dstKind": row["dstKind"] + 1} for row in self._work("MEMCPY")]
        fills = [{**row, "memoryKind": row["memKind"] + 1} for row in self._work("MEMSET")]
        waits = [
            {**row, "type": row["syncType"], "streamId": _signed(row["streamId"]), "cudaEventId": -1}
            for row in self._work("SYNCHRONIZATION")
        ]
        return {
            "CONCURRENT_KERNEL": kernels,
            "MEMCPY": copies,
            "MEMSET": fills,
            "SYNCHRONIZATION": waits,
            "RUNTIME": self._calls(driver=False),
            "DRIVER": self._calls(driver=True),
            "MARKER": self._markers(name),
            "NAME": [{"objectKind": _PROCESS, "objectId": self._object(0), "name": name(self.label)}],
            "DEVICE": [self._device(row, name) for row in self._from["TARGET_INFO_GPU"]],
            "CONTEXT": [{"contextId": 1, "computeApiKind": 1, "nullStreamId": 7}],
        }

    def _work(self, table: str) -> list[Row]:
        """Rows of a table of the device or of the API at wall-clock times, in order of start."""
        rows: list[Any] = self._from.get(f"{_PREFIX}{table}", [])
        timed = [{**row, "start": STARTED_UNIX_NS + row["start"], "end": STARTED_UNIX_NS + row["end"]} for row in rows]
        return sorted(timed, key=lambda row: (row["start"], row["end"]))

    def _calls(self, *, driver: bool) -> list[Row]:
        numbers = _functions("driver" if driver else "runtime")
        return [
            {
                **row,
                "cbid": numbers[self._texts[row["nameId"]]],
                "processId": self.pid,
                "threadId": _signed(self._thread),
            }
            for row in self._work("RUNTIME")
            if (row["eventClass"] == DRIVER_CLASS) == driver
        ]

    @property
    def _thread(self) -> int:
        """The low half of an invented pthread_t."""
        return 0xE000_0740 | self.pid << 12

    def _object(self, thread: int) -> bytes:
        return struct.pack("<III", self.pid, thread, 0)

    def _markers(self, name: Callable[[str], int]) -> list[Row]:
        """Two records of each range, all in order of time; of records at one time, ends come first."""
        ranges: list[Any] = self._from.get("NVTX_EVENTS", [])
        owner = {"objectKind": _THREAD, "objectId": self._object(self._thread)}
        records: list[Row] = []
        for number, row in enumerate(sorted(ranges, key=lambda row: (row["start"], -row["end"])), 1):
            begin, end = STARTED_UNIX_NS + row["start"], STARTED_UNIX_NS + row["end"]
            records.append({**owner, "flags": _START, "timestamp": begin, "id": number, "name": name(row["text"])})
            records.append({**owner, "flags": _END, "timestamp": end, "id": number})
        return sorted(records, key=lambda row: (row["timestamp"], -row["flags"]))

    def _device(self, row: Row, name: Callable[[str], int]) -> Row:
        return {
            "id": row["id"],
            "name": name(DEVICE),
            "uuid": bytes([*range(15), row["id"]]),
            "globalMemoryBandwidth": row["memoryBandwidth"] // 1000,
            "globalMemorySize": row["totalMemory"],
            "coreClockRate": row["clockRate"] // 1000,
            "numThreadsPerWarp": row["threadsPerWarp"],
            "numMultiprocessors": row["smCount"],
            "maxWarpsPerMultiprocessor": row["maxWarpsPerSm"],
            "computeCapabilityMajor": row["computeMajor"],
            "computeCapabilityMinor": row["computeMinor"],
        }

    # --- what is printed --------------------------------------------------------------------------------------

    def printed_trace(self) -> str:
        """What ``--print-gpu-trace --print-api-trace --csv`` prints, log lines included."""
        first = min(row["start"] for table in ("RUNTIME", "KERNEL") for row in self._work(table))
        rows = [
            self._printed(table, row, first)
            for table in ("RUNTIME", "KERNEL", "MEMCPY", "MEMSET")
            for row in self._work(table)
        ]
        ordered = [cells for _, cells in sorted(rows, key=lambda row: row[0])]
        return self._log() + _csv([_TRACE_LABELS], quoted=True) + _csv([_TRACE_UNITS]) + _csv(ordered)

    def _printed(self, table: str, row: Row, first: int) -> tuple[int, list[str]]:
        cells = dict.fromkeys(_TRACE_LABELS, "")
        cells["Start"], cells["Duration"] = (
            f"{(row['start'] - first) / 1e6:.6f}",
            f"{(row['end'] - row['start']) / 1e3:.6f}",
        )
        cells["Correlation_ID"] = str(row["correlationId"])
        if table != "RUNTIME":
            cells |= {"Device": f"{DEVICE} ({row['deviceId']})", "Context": str(row["contextId"])}
            cells |= {"Stream": str(row["streamId"])}
        cells |= self._PRINTED[table](self, row)
        return row["start"], list(cells.values())

    def _printed_call(self, row: Row) -> dict[str, str]:
        return {"Name": _without_version(self._texts[row["nameId"]])}

    def _printed_kernel(self, row: Row) -> dict[str, str]:
        shape = zip(_TRACE_LABELS[2:8], (str(row[name]) for name in _SHAPE[:6]), strict=True)
        return {
            **dict(shape),
            "Registers Per Thread": str(row["registersPerThread"]),
            "Static SMem": f"{row['staticSharedMemory'] / 1024:.6f}",
            "Dynamic SMem": f"{row['dynamicSharedMemory'] / 1024:.6f}",
            "Name": self._rename(self._texts[row["demangledName"]]),
        }

    def _printed_copy(self, row: Row) -> dict[str, str]:
        ends = {"SrcMemType": _MEMORY[row["srcKind"]], "DstMemType": _MEMORY[row["dstKind"]]}
        return {**_sizes(row), **ends, "Name": f"[CUDA memcpy {_COPIES[row['copyKind']]}]"}

    def _printed_fill(self, row: Row) -> dict[str, str]:
        return {**_sizes(row), "SrcMemType": "Device", "Name": "[CUDA memset]"}

    _PRINTED: ClassVar = {
        "RUNTIME": _printed_call,
        "KERNEL": _printed_kernel,
        "MEMCPY": _printed_copy,
        "MEMSET": _printed_fill,
    }

    def printed_summary(self) -> str:
        """What nvprof prints by itself, with ``--csv``, log lines included."""
        work = [
            (self._printed(table, row, 0)[1][18], row)
            for table in ("KERNEL", "MEMCPY", "MEMSET")
            for row in self._work(table)
        ]
        calls = [(self._printed_call(row)["Name"], row) for row in self._work("RUNTIME")]
        rows = [*_summed("GPU activities", work), *_summed("API calls", calls)]
        return self._log() + _csv([_SUMMARY_LABELS], quoted=True) + _csv([_SUMMARY_UNITS]) + _csv(rows)

    def _log(self) -> str:
        log = f"=={self.pid}=="
        lines = (
            f"NVPROF is profiling process {self.pid}, command: {self.label}",
            f"Profiling application: {self.label}",
            "Profiling result:",
        )
        return "".join(f"{log} {line}\n" for line in lines)


_TRACE_LABELS = (
    *("Start", "Duration", "Grid X", "Grid Y", "Grid Z", "Block X", "Block Y", "Block Z", "Registers Per Thread"),
    *("Static SMem", "Dynamic SMem", "Size", "Throughput", "SrcMemType", "DstMemType", "Device", "Context", "Stream"),
    *("Name", "Correlation_ID"),
)
_TRACE_UNITS = ("ms", "us", *[""] * 7, "KB", "KB", "MB", "GB/s", *[""] * 7)
_SUMMARY_LABELS = ("Type", "Time(%)", "Time", "Calls", "Avg", "Min", "Max", "Name")
_SUMMARY_UNITS = ("", "%", "ms", "", "us", "us", "us", "")
_MEMORY = {0: "Pageable", 1: "Pinned", 2: "Device"}
_COPIES = {1: "HtoD", 2: "DtoH", 8: "DtoD"}


def _sizes(row: Row) -> dict[str, str]:
    seconds = (row["end"] - row["start"]) / 1e9
    return {"Size": f"{row['bytes'] / 2**20:.6f}", "Throughput": f"{row['bytes'] / 2**30 / seconds:.6f}"}


def _summed(kind: str, named: Iterable[tuple[str, Row]]) -> list[list[str]]:
    """One line per name, the largest total first; shares are those of ``kind``."""
    durations: dict[str, list[int]] = {}
    for name, row in named:
        durations.setdefault(name, []).append(row["end"] - row["start"])
    whole = sum(map(sum, durations.values()))
    ordered = sorted(durations.items(), key=lambda item: -sum(item[1]))
    return [
        [
            kind,
            f"{100 * sum(some) / whole:.6f}",
            f"{sum(some) / 1e6:.6f}",
            str(len(some)),
            *(f"{value / 1e3:.6f}" for value in (sum(some) / len(some), min(some), max(some))),
            name,
        ]
        for name, some in ordered
    ]


def _csv(rows: Iterable[Iterable[str]], *, quoted: bool = False) -> str:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _functions(domain: str) -> dict[str, int]:
    """Callback ids of the functions of ``runtime`` or ``driver``."""
    with _FUNCTIONS.open(encoding="utf-8", newline="") as file:
        return {row["function"]: int(row["cbid"]) for row in csv.DictReader(file) if row["domain"] == domain}


def _without_version(name: str) -> str:
    stem, _, version = name.rpartition("_v")
    return stem if version.isdecimal() and len(version) >= 4 else name


def _signed(number: int) -> int:
    """A number of 32 bits as nvprof stores it."""
    return number - 2**32 if number >= 2**31 else number


def _insert(connection: sqlite3.Connection, table: str, columns: list[str], rows: list[Row]) -> None:
    declared = ", ".join(f"{column} {'BLOB' if column in _BLOBS else 'INT'} NOT NULL" for column in columns)
    connection.execute(f"CREATE TABLE {table}(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, {declared})")
    marks = ", ".join("?" * len(columns))
    values = ([row.get(column, b"\0" if column in _BLOBS else 0) for column in columns] for row in rows)
    connection.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", values)
