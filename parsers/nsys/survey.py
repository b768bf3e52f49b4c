"""A cheap first pass over all event tables: clock, threads, processes and devices.

It reads every event table whatever tables are wanted, so that time zero, the span and the surrogate ids of a trace
never depend on the question that is asked of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from traceviz.parsers.nsys.constants import LOCAL_ID, UNSET
from traceviz.parsers.nsys.mapping import CLOCK_TABLES, EVENT_TABLES, Source
from traceviz.parsers.shared.raw import Extent, RawTables

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
    extents = [_extent(raw, source) for _, source in sources]
    clock = [extent for (name, _), extent in zip(sources, extents, strict=True) if name in CLOCK_TABLES]
    owners = [(source, _owners(source, extent)) for (_, source), extent in zip(sources, extents, strict=True)]
    pairs = {pair for source, found in owners if source.device for pair in found}
    return Survey(
        min((extent.first_ns for extent in clock if extent.first_ns is not None), default=0),
        max((extent.last_ns for extent in clock if extent.last_ns is not None), default=0),
        {source.table: extent.rows for (_, source), extent in zip(sources, extents, strict=True)},
        _sorted(owner for source, found in owners if source.owner == "globalTid" for owner, _ in found),
        _sorted(process for process, _ in pairs),
        frozenset((process, device) for process, device in pairs if device != UNSET),
    )


def _extent(raw: RawTables, source: Source) -> Extent:
    keys = [name for name in (source.owner, source.device) if name and name in raw.columns(source.table)]
    return raw.extent(source.table, "start", source.end, source.keep, keys)


def _owners(source: Source, extent: Extent) -> set[tuple[int, int]]:
    """Distinct (owner, device number) of a raw table.

    Missing columns and nulls count as 0: better an unknown thread than no event.
    """
    if not extent.keys.num_columns:
        return {(0, 0)} if extent.rows else set()
    rows = extent.keys.to_pylist()
    return {(row.get(source.owner) or 0, row.get(source.device or "") or 0) for row in rows}


def _sorted(ids: Iterable[int]) -> Ids:
    return np.array(sorted(set(ids)), dtype=np.int64)


def present(raw: RawTables, sources: tuple[Source, ...]) -> Iterator[Source]:
    """Those of ``sources`` whose raw table is there and has times."""
    return (source for source in sources if "start" in raw.columns(source.table))


def process_of(threads: Ids) -> Ids:
    """``globalPid`` of each ``globalTid``."""
    return threads & ~np.int64(LOCAL_ID)
