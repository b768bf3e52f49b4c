"""Events of AMD's profilers as tables of the contract: one clock, numbered devices, processes and threads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import polars as pl
import pyarrow as pa

from traceviz.parsers.base import ReadRequest
from traceviz.parsers.shared.arrays.arrow import Array
from traceviz.parsers.shared.events.columns import table
from traceviz.parsers.shared.events.owners import identity_tables
from traceviz.parsers.shared.frameworks import evidence_table, identify_framework
from traceviz.parsers.shared.notes import Notes
from traceviz.trace.rows_to_table import rows_to_table

_TEXTS = frozenset({"name", "kind", "domain", "device", "source"})
_NUMBER = re.compile(r"\d+")
_MARKERS = r"(?i)^marker|roctx"
_KINDS = (("h2d", "host_?to_?device|htod"), ("d2h", "device_?to_?host|dtoh"), ("d2d", "device_?to_?device|dtod"))
_INT32_MAX = 2**31 - 1
_COPIED = {"h2d": ("unknown", "device"), "d2h": ("device", "unknown"), "d2d": ("device", "device")}


@dataclass(slots=True)
class Events:
    """Rows of kernels, calls and copies as text columns; ``start`` and ``end`` are in nanoseconds."""

    frames: dict[str, list[pl.DataFrame]] = field(default_factory=dict)

    def add(self, kind: str, frame: pl.DataFrame) -> None:
        """Add rows of one kind, with ``start`` and ``end`` and any of the columns that this kind has."""
        self.frames.setdefault(kind, []).append(frame)

    @property
    def columns(self) -> set[str]:
        """Names of all columns."""
        return {name for frames in self.frames.values() for frame in frames for name in frame.columns}

    def frame(self, kind: str, notes: Notes) -> pl.DataFrame:
        """Return the rows of one kind with numbers in place of text; those without a start are left out and noted."""
        rows = pl.concat(self.frames.get(kind, [pl.DataFrame()]), how="diagonal")
        numbers = [
            pl.col(name).str.extract(r"^\s*(\d{1,18})\s*$", 1).cast(pl.Int64)
            for name in rows.columns
            if name not in _TEXTS
        ]
        rows = rows.with_columns(numbers)
        if not rows.width:
            return rows
        whole = rows.filter(pl.col("start").is_not_null())
        notes.add("row-damaged", "warning", f"Rows of {kind} without a start, left out.", rows.height - whole.height)
        return whole.with_columns(
            pl.when(pl.col("end") >= pl.col("start")).then(pl.col("end") - pl.col("start")).alias("dur_ns")
        )


def tables_of(events: Events, producer: str, options: ReadRequest, notes: Notes) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables of a recording, ``notes`` last."""
    kernels, calls, copies = (events.frame(kind, notes) for kind in ("kernels", "calls", "copies"))
    frames = [frame for frame in (kernels, calls, copies) if frame.height]
    timed = [frame.select("start", end=pl.col("start") + pl.col("dur_ns").fill_null(0)) for frame in frames]
    zero, last = pl.concat(timed).select(pl.col("start").min(), pl.col("end").max()).row(0) if timed else (0, 0)
    pids = sorted({pid for frame in (calls, kernels) if "pid" in frame.columns for pid in frame["pid"].drop_nulls()})
    devices = _devices(kernels, copies)
    threads = _threads(calls, pids)
    names = kernels["name"].drop_nulls().unique().to_arrow() if kernels.height else pa.array([], pa.string())
    found = identify_framework({"names": names.cast(pa.string())}, {})
    run = {
        "format": "rocprof",
        "producer": producer,
        "span_ns": last - zero,
        "reader": "rocprof",
        "framework": found.framework,
    }
    yield "run", rows_to_table("run", [run], notes)
    yield from identity_tables(
        [{"pid": pid} for pid in pids or [None]],
        [{"process_id": process, "tid": tid} for process, tid in threads],
        [{"kind": "gpu", "ordinal": number} for number in devices.values()],
        notes,
    ).items()
    settings = evidence_table(found) if options.wants("settings") else None
    if settings is not None:
        yield "settings", settings
    if options.wants("kernels") and kernels.height:
        yield "kernels", table("kernels", {**_times(kernels, zero), **_launched(kernels, devices, pids)})
    if options.wants("memcpy") and copies.height:
        yield "memcpy", _copies(copies, zero, devices)
    if calls.height:
        is_marker = _text(calls, "domain").str.contains(_MARKERS).fill_null(value=False)
        if options.wants("cuda_api") and not is_marker.all():  # markers alone: calls were not recorded
            yield "cuda_api", _calls(calls.filter(~is_marker), zero, pids, threads)
        if options.wants("nvtx") and is_marker.any():
            yield "nvtx", _ranges(calls.filter(is_marker), zero, pids, threads)
    yield "notes", notes.table()


def _devices(kernels: pl.DataFrame, copies: pl.DataFrame) -> dict[str, int]:
    """Return numbers of devices by their names in the file (``Agent 1``), in the order of the numbers in these."""
    names = {str(name) for frame in (kernels, copies) if frame.height for name in _text(frame, "device").drop_nulls()}
    if kernels.height:  # copies to the host name the host
        names &= {str(name) for name in _text(kernels, "device").drop_nulls()} or names
    ordered = sorted(names or {"0"}, key=lambda name: int(_NUMBER.findall(name)[-1][:9]) if _NUMBER.search(name) else 0)
    return {name: number for number, name in enumerate(ordered)}


def _threads(calls: pl.DataFrame, pids: list[int]) -> list[tuple[int, int]]:
    """Return the threads of calls as process and number; calls that state none are on a thread with number 0."""
    if not calls.height:
        return []
    owners = {"process": _process(calls, pids), "tid": _number(calls, "tid").fill_null(0)}
    rows = pl.DataFrame(owners).unique().sort("process", "tid")
    return [(int(process), int(tid)) for process, tid in rows.iter_rows()]


def _text(frame: pl.DataFrame, name: str) -> pl.Series:
    return frame[name] if name in frame.columns else pl.Series(name, [None] * frame.height, pl.String)


def _number(frame: pl.DataFrame, name: str) -> pl.Series:
    return frame[name] if name in frame.columns else pl.Series(name, [None] * frame.height, pl.Int64)


def _process(frame: pl.DataFrame, pids: list[int]) -> pl.Series:
    if "pid" not in frame.columns or not pids:
        return pl.Series([0] * frame.height, dtype=pl.Int32)
    return frame["pid"].replace_strict(pids, range(len(pids)), default=0, return_dtype=pl.Int32).fill_null(0)


def _device(frame: pl.DataFrame, devices: dict[str, int]) -> pl.Series:
    names = _text(frame, "device")
    return names.replace_strict(list(devices), list(devices.values()), default=0, return_dtype=pl.Int16).fill_null(0)


def _times(frame: pl.DataFrame, zero: int) -> dict[str, Array]:
    return {"start_ns": (frame["start"] - zero).to_arrow(), "dur_ns": frame["dur_ns"].to_arrow()}


def _words(values: pl.Series) -> Array:
    return values.to_arrow().cast(pa.string()).dictionary_encode()


def _small(values: pl.Series) -> Array:
    return values.set(values > _INT32_MAX, None).cast(pl.Int32).to_arrow()


def _launched(kernels: pl.DataFrame, devices: dict[str, int], pids: list[int]) -> dict[str, Array]:
    """Return the columns of kernels besides their times. Grids count work-items in AMD's files, and blocks here."""
    stream = _number(kernels, "stream")
    columns = {
        "device_id": _device(kernels, devices).to_arrow(),
        "process_id": _process(kernels, pids).to_arrow(),
        "stream": pl.select(pl.coalesce(stream, _number(kernels, "queue"))).to_series().to_arrow(),
        "correlation_id": _number(kernels, "correlation").to_arrow(),
        "name": _words(_text(kernels, "name").fill_null("").str.strip_chars('"').str.replace(r"\.kd$", "")),
        "registers_per_thread": _small(_number(kernels, "registers")),
        "static_shared_bytes": _small(_number(kernels, "shared")),
    }
    for axis in "xyz":
        block = _number(kernels, f"block_{axis}")
        if axis != "x" and block.null_count() == kernels.height:
            block = pl.Series([1] * kernels.height, dtype=pl.Int64)
        items = pl.select(pl.coalesce(_number(kernels, f"grid_{axis}"), pl.when(block == 1).then(1))).to_series()
        grid = (items + block - 1) // block.set(block == 0, None)
        columns |= {f"grid_{axis}": _small(grid), f"block_{axis}": _small(block)}
    return columns


def _copies(copies: pl.DataFrame, zero: int, devices: dict[str, int]) -> pa.Table:
    """Return the copies. A copy to the host belongs to the device that it comes from."""
    stated = _text(copies, "kind").str.to_lowercase().fill_null("")
    kind = pl.Series(["unknown"] * copies.height, dtype=pl.String)
    for word, pattern in _KINDS:
        kind = kind.set(stated.str.contains(pattern), word)
    sides = pl.DataFrame({"kind": kind, "to": _text(copies, "device"), "from": _text(copies, "source")})
    device = sides.select(pl.when(pl.col("kind") == "d2h").then("from").otherwise("to").alias("device"))
    memory = [_COPIED.get(word, ("unknown", "unknown")) for word in kind]
    columns = {
        "device_id": _device(device, devices).to_arrow(),
        "process_id": pa.array([0] * copies.height, pa.int32()),
        "stream": _number(copies, "stream").to_arrow(),
        "correlation_id": _number(copies, "correlation").to_arrow(),
        "kind": _words(kind),
        "src_memory": _words(pl.Series([source for source, _ in memory], dtype=pl.String)),
        "dst_memory": _words(pl.Series([target for _, target in memory], dtype=pl.String)),
    }
    return table("memcpy", {**_times(copies, zero), **columns})


def _of_host(frame: pl.DataFrame, zero: int, pids: list[int], threads: list[tuple[int, int]]) -> dict[str, Array]:
    process = _process(frame, pids)
    owners = pl.DataFrame({"process": process, "tid": _number(frame, "tid").fill_null(0)})
    known = pl.DataFrame(
        {"process": [process for process, _ in threads], "tid": [tid for _, tid in threads]},
        schema={"process": pl.Int32, "tid": pl.Int64},
    ).with_row_index("thread")
    numbers = owners.join(known, on=["process", "tid"], how="left", maintain_order="left")["thread"]
    return {**_times(frame, zero), "process_id": process.to_arrow(), "thread_id": numbers.cast(pl.Int32).to_arrow()}


def _calls(calls: pl.DataFrame, zero: int, pids: list[int], threads: list[tuple[int, int]]) -> pa.Table:
    domain = pl.Series(["runtime"] * calls.height).set(
        _text(calls, "domain").fill_null("").str.contains("HSA"), "driver"
    )
    columns = {
        "correlation_id": _number(calls, "correlation").to_arrow(),
        "name": _words(_text(calls, "name").fill_null("")),
        "domain": _words(domain),
    }
    return table("cuda_api", {**_of_host(calls, zero, pids, threads), **columns})


def _ranges(ranges: pl.DataFrame, zero: int, pids: list[int], threads: list[tuple[int, int]]) -> pa.Table:
    rows = ranges.height
    columns = {
        "range_id": pa.array(range(rows), pa.int64()),
        "kind": _words(pl.Series(["push_pop"] * rows)),
        "name": _words(_text(ranges, "name").fill_null("")),
        "domain": _words(pl.Series(["ROCTX"] * rows)),
    }
    return table("nvtx", {**_of_host(ranges, zero, pids, threads), **columns})
