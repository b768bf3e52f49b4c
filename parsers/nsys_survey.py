"""A cheap first pass over all event tables: clock, threads, processes and devices.

It reads every event table whatever tables are wanted, so that time zero, the span and the surrogate ids of a trace
never depend on the question that is asked of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from traceviz.parsers.arrow import pc
from traceviz.parsers.nsys_constants import LOCAL_ID, UNSET
from traceviz.parsers.nsys_mapping import CLOCK_TABLES, EVENT_TABLES, Source
from traceviz.parsers.nsys_raw import RawTables

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """What the event tables hold, before any of them is read.

    Args:
        zero_ns: Raw time of the first event.
        last_ns: Raw time at which the last event ends.
        rows: Rows that count, by raw table.
        threads: Distinct ``globalTid``, unsorted.
        processes: Distinct ``globalPid`` of device work, unsorted.
        devices: Pairs of ``globalPid`` and the device number that the process uses.
    """

    zero_ns: int
    last_ns: int
    rows: Mapping[str, int]
    threads: Ids
    processes: Ids
    devices: frozenset[tuple[int, int]]


def take_survey(raw: RawTables) -> Survey:
    """Survey all event tables of ``raw``."""
    sources = [(table.name, source) for table in EVENT_TABLES for source in present(raw, table.sources)]
    extents = {source.table: raw.extent(source.table, "start", source.end, source.keep) for _, source in sources}
    clock = [extents[source.table] for name, source in sources if name in CLOCK_TABLES]
    pairs = {pair for _, source in sources if source.device for pair in _pairs(raw, source)}
    return Survey(
        min((extent.first_ns for extent in clock if extent.first_ns is not None), default=0),
        max((extent.last_ns for extent in clock if extent.last_ns is not None), default=0),
        {table: extent.rows for table, extent in extents.items()},
        _owners(raw, [source for _, source in sources if source.owner == "globalTid"]),
        np.array(sorted({process for process, _ in pairs}), dtype=np.int64),
        frozenset((process, device) for process, device in pairs if device != UNSET),
    )


def present(raw: RawTables, sources: tuple[Source, ...]) -> Iterator[Source]:
    """Those of ``sources`` whose raw table is there and has times."""
    return (source for source in sources if "start" in raw.columns(source.table))


def process_of(threads: Ids) -> Ids:
    """``globalPid`` of each ``globalTid``."""
    return threads & ~np.int64(LOCAL_ID)


def _owners(raw: RawTables, sources: list[Source]) -> Ids:
    """Distinct owners over several raw tables. A null owner counts as 0: better an unknown thread than no event."""
    found = [np.empty(0, dtype=np.int64)]
    for source in sources:
        if source.owner not in raw.columns(source.table):
            found.append(np.zeros(min(raw.extent(source.table, "start", None, source.keep).rows, 1), dtype=np.int64))
            continue
        ids = raw.distinct(source.table, (source.owner,), source.keep).column(source.owner)
        found.append(pc.fill_null(ids, 0).to_numpy())
    return np.unique(np.concatenate(found))


def _pairs(raw: RawTables, source: Source) -> set[tuple[int, int]]:
    """Distinct (process, device number) of a raw table; missing columns and nulls count as 0."""
    assert source.device is not None
    columns = [name for name in (source.owner, source.device) if name in raw.columns(source.table)]
    if not columns:
        return {(0, 0)} if raw.extent(source.table, "start", None, source.keep).rows else set()
    rows = raw.distinct(source.table, columns, source.keep).to_pylist()
    return {(row.get(source.owner) or 0, row.get(source.device) or 0) for row in rows}
