"""Reader of the files of rocprof and rocprofv3: their rows as columns of one shape."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import polars as pl
import pyarrow as pa

from traceviz.core.errors import DamagedTraceError
from traceviz.parsers.base import ReadRequest
from traceviz.parsers.rocprof.sniff import HEADERS, header_names
from traceviz.parsers.rocprof.tables import Events, tables_of
from traceviz.parsers.shared.json.stream import TextStream
from traceviz.parsers.shared.notes import Notes
from traceviz.parsers.shared.sqlite.file import quoted, unread_log
from traceviz.untrusted.sqlite import foreign_database

_BLOCK = 1 << 20
_PART_OF_NAME = re.compile(
    r"_(kernel|hip_api|hip_runtime_api|hip_compiler_api|hsa_api|hsa_core_api|hsa_amd_ext_api|memory_copy|marker_api|"
    r"scratch_memory|memory_allocation|rocdecode_api|rccl_api)_trace\.csv(\.gz)?$"
)
"""End of the name of a file of rocprofv3; files of one recording have the same name before it."""
_COMMON = {"Start_Timestamp": "start", "End_Timestamp": "end", "BeginNs": "start", "EndNs": "end"}
_COLUMNS: Mapping[str, Mapping[str, str]] = {
    "kernels": {
        "Kernel_Name": "name",
        "KernelName": "name",
        "Agent_Id": "device",
        "gpu-id": "device",
        "Stream_Id": "stream",
        "Queue_Id": "queue",
        "queue-id": "queue",
        "Correlation_Id": "correlation",
        "Process_Id": "pid",
        "pid": "pid",
        "Grid_Size_X": "grid_x",
        "Grid_Size_Y": "grid_y",
        "Grid_Size_Z": "grid_z",
        "grd": "grid_x",
        "Workgroup_Size_X": "block_x",
        "Workgroup_Size_Y": "block_y",
        "Workgroup_Size_Z": "block_z",
        "wgr": "block_x",
        "VGPR_Count": "registers",
        "arch_vgpr": "registers",
        "vgpr": "registers",
        "LDS_Block_Size": "shared",
        "lds": "shared",
    },
    "calls": {
        "Function": "name",
        "Name": "name",
        "Domain": "domain",
        "Process_Id": "pid",
        "Thread_Id": "tid",
        "tid": "tid",
        "Correlation_Id": "correlation",
    },
    "copies": {
        "Direction": "kind",
        "Name": "kind",
        "Correlation_Id": "correlation",
        "Stream_Id": "stream",
        "Source_Agent_Id": "source",
        "Destination_Agent_Id": "device",
    },
}
"""Columns of rocprofv3 and rocprof by the columns of :class:`~traceviz.parsers.rocprof.tables.Events`."""


_Value = str | int | float | bool | None


class _Event(msgspec.Struct):
    """The fields of an event that are read; metadata may lack any of them."""

    name: str = ""
    pid: str | int = ""
    args: msgspec.Raw = msgspec.Raw(b"{}")


class _Document(msgspec.Struct):
    """``results.json``."""

    traceEvents: list[_Event]  # noqa: N815 (the name in the file)


def read_csv(path: Path, options: ReadRequest) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables of a CSV file and of the files of the same recording next to it."""
    notes, events = Notes(), Events()
    paths = recording_of(path)
    for number, part in enumerate(paths):
        options.progress("read", number, len(paths))
        frame = _csv(part, options, notes)
        if frame is not None:
            events.add(_kind_of(frame.columns), _renamed(_kind_of(frame.columns), frame))
    if len(paths) > 1:
        names = ", ".join(part.name for part in paths if part != path)
        notes.add("files-joined", "info", f"Read together with the files of the same recording: {names}.")
    yield from tables_of(events, "rocprofv3" if "correlation" in events.columns else "rocprof", options, notes)


def recording_of(path: Path) -> list[Path]:
    """Return the files of the recording of ``path`` in its folder, ``path`` among them, in order of their names."""
    found = _PART_OF_NAME.search(path.name)
    if found is None:
        return [path]
    start = path.name[: found.start()]
    near = (other for other in path.parent.iterdir() if other.name.startswith(start))
    return sorted({path, *(other for other in near if _PART_OF_NAME.fullmatch(other.name[len(start) :]))})


def read_json(path: Path, options: ReadRequest) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables of ``results.json`` of rocprof."""
    notes, events = Notes(), Events()
    try:
        document = msgspec.json.Decoder(_Document).decode(_text(path, options, notes))
    except (msgspec.DecodeError, RecursionError):
        raise DamagedTraceError(f"{path.name} is cut or damaged: it is no whole JSON document.") from None
    rows: dict[str, list[dict[str, _Value]]] = {"kernels": [], "calls": [], "copies": []}
    lanes: dict[str, str] = {}
    read_arguments = msgspec.json.Decoder(dict[str, _Value])
    for event in document.traceEvents:
        try:
            arguments = read_arguments.decode(event.args)
        except msgspec.DecodeError:
            continue  # no event of rocprof: its arguments are texts and numbers
        if event.name == "process_name":
            lanes[str(event.pid)] = str(arguments.get("name"))
        elif "KernelName" in arguments:
            rows["kernels"].append(arguments)
        elif "BeginNs" in arguments:
            lane = lanes.get(str(event.pid), "")
            rows["copies" if lane == "COPY" else "calls"].append({"Domain": lane, **arguments})
    for kind, found in rows.items():
        if found:
            keys = dict.fromkeys(key for row in found for key in row)
            text = {key: [None if row.get(key) is None else str(row[key]) for row in found] for key in keys}
            events.add(kind, _renamed(kind, pl.DataFrame(text, schema=dict.fromkeys(keys, pl.String))))
    yield from tables_of(events, "rocprof", options, notes)


def read_sqlite(path: Path, options: ReadRequest) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables of ``results.db`` of rocprof."""
    notes, events = Notes(), Events()
    for code, severity, message in unread_log(path):
        notes.add(code, severity, message)
    with foreign_database(path) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for name in sorted(names):
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({quoted(name)})")]
            if not {"BeginNs", "EndNs"} <= set(columns):
                continue
            kind = _kind_of(columns) if name != "COPY" else "copies"
            listed = ", ".join(f"CAST({quoted(column)} AS TEXT)" for column in columns)
            rows = connection.execute(f"SELECT {listed} FROM {quoted(name)}").fetchall()  # noqa: S608 (quoted names)
            texts = {column: [row[place] for row in rows] for place, column in enumerate(columns)}
            frame = pl.DataFrame(texts, schema=dict.fromkeys(columns, pl.String))
            events.add(kind, _renamed(kind, frame.with_columns(pl.lit(name).alias("Domain"))))
            options.allowance.check(0, path.name)
    yield from tables_of(events, "rocprof", options, notes)


def _kind_of(columns: list[str]) -> str:
    names = set(columns)
    if "Kernel_Name" in names or "KernelName" in names:
        return "kernels"
    return "copies" if "Direction" in names else "calls"


def _renamed(kind: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Return the columns that are known, by the names of :class:`Events`; the first of two with one meaning counts."""
    found: dict[str, pl.Expr] = {}
    for theirs, ours in {**_COMMON, **_COLUMNS[kind]}.items():
        if theirs in frame.columns:
            found.setdefault(ours, pl.col(theirs).alias(ours))
    return frame.select(list(found.values()))


def _csv(path: Path, options: ReadRequest, notes: Notes) -> pl.DataFrame | None:
    """Return the rows of a CSV file as text; ``None`` if its columns are of another table than those that are read."""
    content = _text(path, options, notes)
    names = header_names(content[:4096].partition(b"\n")[0])
    if not any(needed <= names for needed in HEADERS):
        return None
    try:
        return pl.read_csv(content, infer_schema=False, truncate_ragged_lines=True)
    except pl.exceptions.PolarsError as error:
        reason = str(error).partition("\n")[0]
        raise DamagedTraceError(f"{path.name} is no table that can be read: {reason}.") from None


def _text(path: Path, options: ReadRequest, notes: Notes) -> bytes:
    options.allowance.check(2 * path.stat().st_size, path.name)
    stream, content = TextStream(path, options.max_size), bytearray()
    for block in stream.blocks(_BLOCK):
        content += block
        options.allowance.check(len(content), path.name)
    if stream.damage:
        notes.add("damaged", "warning", stream.damage)
    return bytes(content)
