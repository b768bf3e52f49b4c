"""Exports of Nsight Systems: SQLite databases, and folders of Parquet files."""

from __future__ import annotations

from pathlib import Path

from nsys_database import NsysDatabase
from stories import STORIES

from tests.fuzz.cases import Format
from tests.fuzz.mutations import folders, sqlite_logic
from tests.fuzz.mutations.octets import SPOIL
from tests.fuzz.oracle import examine
from tests.parsers.nsys.database import (
    MIDDLE,
    NEW,
    OLD,
    Row,
    build,
    call,
    kernel,
    nvtx_range,
    process,
    thread,
    to_parquet,
)

_STEPS = 2
_STORIES = {story.name: story for story in STORIES}
_WORK = {
    "start": 90,
    "end": 95,
    "deviceId": 0,
    "contextId": 1,
    "streamId": 7,
    "globalPid": process(100),
    "correlationId": 9,
}
_NAMES = ("cudaLaunchKernel_v7000", "gemm", "cudaMemcpyAsync", "step", "python", "read", None)


def era(path: Path, version: str) -> Path:
    """Return a database as one of the ages of the format wrote it: four steps, each with a call, a kernel, a copy."""
    tables: dict[str, list[Row]] = {
        "CUPTI_ACTIVITY_KIND_RUNTIME": [call(100 * n, 100 * n + 9) for n in range(1, 5)],
        "CUPTI_ACTIVITY_KIND_KERNEL": [kernel(100 * n, 100 * n + 60, 2) for n in range(1, 5)],
        "CUPTI_ACTIVITY_KIND_MEMCPY": [{**_WORK, "bytes": 64, "copyKind": 1, "srcKind": 0, "dstKind": 2}],
        "CUPTI_ACTIVITY_KIND_MEMSET": [{**_WORK, "bytes": 64, "value": 0}],
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": [{**_WORK, "syncType": 1, "eventId": 0}],
        "NVTX_EVENTS": [nvtx_range(100 * n - 5, 100 * n + 90, f"step {n}") for n in range(1, 5)],
        "OSRT_API": [{"start": 130, "end": 140, "globalTid": thread(100, 100), "nameId": 6, "returnValue": 0}],
        "ThreadNames": [{"nameId": 5, "priority": 0, "globalTid": thread(100, 100)}],
    }
    if version != OLD:
        tables["TARGET_INFO_GPU"] = [
            {"id": 0, "name": "Tesla T4", "smCount": 40, "cuDevice": 0, "totalMemory": 1 << 34}
        ]
        tables["PROCESSES"] = [{"globalPid": process(100), "pid": 100, "name": "python"}]
    return build(path, tables, version, _NAMES)


def _databases(folder: Path) -> None:
    era(folder / "middle.sqlite", MIDDLE)
    era(folder / "new.sqlite", NEW)
    era(folder / "old.sqlite", OLD)
    story = NsysDatabase("fuzz")
    _STORIES["input_bound"].tell(story, _STEPS)
    story.save(folder / "story.sqlite")


def _parquet(folder: Path) -> None:
    database = era(folder / "new.sqlite", NEW)
    to_parquet(database, folder / "new")
    to_parquet(database, folder / "inline", inline_names=True)
    database.unlink()


NSYS_SQLITE = Format("nsys-sqlite", _databases, {sqlite_logic.change: 8, sqlite_logic.spoil_page: 1, SPOIL: 1}, examine)
NSYS_PARQUET = Format(
    "nsys-parquetdir",
    _parquet,
    {folders.CELLS: 8, folders.FOOTER: 1, folders.BYTES: 1, folders.rearrange: 1},
    examine,
)
