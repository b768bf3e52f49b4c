"""A cheap first pass over all event tables of an nvprof database: clock, threads, processes, devices, kernel names.

It reads every event table whatever tables are wanted, so that time zero, the span and the surrogate ids of a trace
never depend on the question that is asked of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from traceviz import schema
from traceviz.errors import DamagedTraceError
from traceviz.parsers.nvprof import constants
from traceviz.parsers.nvprof.mapping import EVENT_TABLES, EventTable, Source
from traceviz.parsers.nvprof.raw import NvprofTables
from traceviz.parsers.shared.arrow import Array, chunked_array, nulls, pc
from traceviz.parsers.shared.event_table import first
from traceviz.parsers.shared.raw import Keep

MARKERS = constants.PREFIX + "MARKER"
_LONGEST_NS = 1 << 62
"""146 years: what seems to last longer is no time."""

Thread = tuple[int, int]
"""Process id and thread id; 0 where the record states none."""


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """What the event tables hold, before any of them is read.

    Args:
        zero_ns: Raw time of the first event.
        last_ns: Raw time at which the last event ends.
        rows: Rows that have a time and count, by table of the contract.
        untimed: Rows without a time, by raw table.
        threads: Threads that own an event.
        processes: Processes that own an event.
        devices: Device numbers of events.
        kernels: Ids of the names of kernels.
    """

    zero_ns: int
    last_ns: int
    rows: Mapping[str, int]
    untimed: Mapping[str, int]
    threads: frozenset[Thread]
    processes: frozenset[int]
    devices: frozenset[int]
    kernels: Array


@dataclass(slots=True)
class _Seen:
    """Collects what batches show."""

    first_ns: int | None = None
    last_ns: int | None = None
    rows: dict[str, int] = field(default_factory=dict)
    untimed: dict[str, int] = field(default_factory=dict)
    threads: set[Thread] = field(default_factory=set)
    processes: set[int] = field(default_factory=set)
    devices: set[int] = field(default_factory=set)
    kernels: list[Array] = field(default_factory=list)

    def time(self, batch: pa.RecordBatch, start: str, end: str | None) -> None:
        """Stretch the span to the events of ``batch``."""
        bounds = pc.min_max(batch[start]).as_py()
        ends = pc.max(batch[end]).as_py() if end else None
        self.first_ns = min((time for time in (self.first_ns, bounds["min"]) if time is not None), default=None)
        self.last_ns = max((time for time in (self.last_ns, bounds["max"], ends) if time is not None), default=None)

    def owners(self, batch: pa.RecordBatch, *, threads: bool, whole: bool = False) -> None:
        """Note the distinct processes or threads of ``batch``; with ``whole``, rows of no thread have none."""
        nothing = nulls(batch.num_rows, pa.int64())
        columns = [batch[name] if name in batch.schema.names else nothing for name in ("processId", "threadId")]
        rows = pa.table([pc.fill_null(columns[0], 0), columns[1]], names=["process", "thread"])
        for row in rows.group_by(["process", "thread"] if threads else ["process"]).aggregate([]).to_pylist():
            self.processes.add(row["process"])
            if threads and not (whole and row["thread"] is None):
                self.threads.add((row["process"], row["thread"] or 0))


def take_survey(raw: NvprofTables) -> Survey:
    """Survey all event tables of ``raw``.

    Raises:
        DamagedTraceError: a table cannot be decoded, or its times are none.
    """
    seen = _Seen()
    for table in EVENT_TABLES:
        seen.rows[table.name] = sum(_surveyed(raw, table, source, seen) for source in present(raw, table))
    _survey_markers(raw, seen)
    zero, last = seen.first_ns or 0, seen.last_ns or 0
    if not 0 <= last - zero < _LONGEST_NS or abs(zero) >= _LONGEST_NS:
        raise _impossible(raw, zero, last)
    names = chunked_array([*seen.kernels, pa.array([], pa.int64())])
    return Survey(
        zero,
        last,
        seen.rows,
        seen.untimed,
        frozenset(seen.threads),
        frozenset(seen.processes),
        frozenset(seen.devices),
        pc.unique(names),
    )


def _impossible(raw: NvprofTables, zero: int, last: int) -> DamagedTraceError:
    return DamagedTraceError(
        f"The times of {raw.path.name} are impossible.",
        f"Its events lie between {zero} and {last} ns.",
        "Copy the file again.",
    )


def present(raw: NvprofTables, table: EventTable) -> Iterator[Source]:
    """Sources of ``table`` whose raw table is there and has times."""
    return (source for source in table.sources if first(source.start, raw.columns(source.raw)))


def timed(raw: NvprofTables, source: Source, integers: list[str]) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Batches of ``integers`` and the start, of the rows that count and whose time CUPTI could take.

    Beside each batch the number of rows whose time it could not take.
    """
    start = first(source.start, raw.columns(source.raw))
    assert start is not None
    kind = source.keep
    if kind and kind.column in raw.columns(source.raw):
        wanted = list(dict.fromkeys([start, *integers, kind.column]))
    else:
        kind, wanted = None, list(dict.fromkeys([start, *integers]))
    for batch in raw.stream(source.raw, wanted):
        counting = kind.of(batch) if kind else batch
        found = Keep(start, (constants.NOT_TIMED,), inverted=True).of(counting)
        yield found, counting.num_rows - found.num_rows


def _surveyed(raw: NvprofTables, table: EventTable, source: Source, seen: _Seen) -> int:
    """Note what ``source`` shows; gives the number of its rows."""
    available = raw.columns(source.raw)
    start, end = first(source.start, available), first(source.end, available)
    assert start is not None
    asked = [end, source.device, "processId", "threadId", source.name if table.name == "kernels" else None]
    rows = 0
    for batch, untimed in timed(raw, source, [name for name in asked if name in available]):
        rows += batch.num_rows
        seen.untimed[source.raw] = seen.untimed.get(source.raw, 0) + untimed
        known = set(batch.schema.names)
        if table.clock:
            seen.time(batch, start, end)
        if batch.num_rows and source.owner != "launch":
            whole = schema.table(table.name).arrow.field("thread_id").nullable if source.owner == "thread" else False
            seen.owners(batch, threads=source.owner == "thread", whole=whole)
        if source.device and batch.num_rows:
            numbers = batch[source.device] if source.device in known else nulls(1, pa.int64())
            seen.devices.update(pc.unique(pc.fill_null(numbers, 0)).to_pylist())
        if table.name == "kernels" and source.name in known:
            seen.kernels.append(pc.unique(batch[source.name]))
    return rows


def _survey_markers(raw: NvprofTables, seen: _Seen) -> None:
    if "timestamp" not in raw.columns(MARKERS):
        seen.rows["nvtx"] = 0
        return
    owners = [name for name in ("processId", "threadId") if name in raw.columns(MARKERS)]
    for batch in raw.stream(MARKERS, ["timestamp", *owners]):
        seen.rows["nvtx"] = seen.rows.get("nvtx", 0) + batch.num_rows
        if batch.num_rows:
            seen.time(batch, "timestamp", None)
            seen.owners(batch, threads=True)


def small(
    raw: NvprofTables, table: str, integers: tuple[str, ...], blobs: tuple[str, ...] = ()
) -> list[dict[str, Any]]:
    """Rows of a table that describes the capture; columns that it does not have are ``None``, blobs are bytes."""
    available = raw.columns(table)
    numbers = [name for name in integers if name in available]
    texts = [name for name in blobs if name in available]
    nothing: dict[str, Any] = dict.fromkeys((*integers, *blobs))
    batches = raw.stream(table, numbers, texts) if numbers or texts else ()
    return [{**nothing, **row} for batch in batches for row in batch.to_pylist()]
