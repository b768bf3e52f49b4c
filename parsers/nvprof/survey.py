"""First pass over all event tables of an nvprof database: clock, threads, processes, devices, kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from traceviz.parsers.nvprof.mapping import BY_LAUNCH, EVENT_TABLES, MARKERS, OF_PROCESSES_TOO, THREAD
from traceviz.parsers.nvprof.raw import NvprofTables
from traceviz.parsers.shared.arrays.arrow import Array
from traceviz.parsers.shared.events.mapping import Source
from traceviz.parsers.shared.events.prescan import Clock, Extent, clock_of, extent, present
from traceviz.parsers.shared.notes import Notes

Thread = tuple[int, int]
"""Process id and thread id; 0 if the record states none."""


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """Summary of the event tables.

    Args:
        clock: Time range of the events.
        rows: Rows that have a time and count, by table of the contract.
        threads: Threads that own an event.
        processes: Processes that own an event.
        devices: Device numbers of events.
        kernels: Ids of the names of kernels.
    """

    clock: Clock
    rows: Mapping[str, int]
    threads: frozenset[Thread]
    processes: frozenset[int]
    devices: frozenset[int]
    kernels: Array


def take_survey(raw: NvprofTables, notes: Notes) -> Survey:
    """Survey all event tables of ``raw``.

    Raises:
        DamagedTraceError: a table cannot be decoded, or no event has a plausible time.
    """
    extents = [
        extent(raw, table, source, _keys(table, source))
        for table, sources in {**EVENT_TABLES, "nvtx": (MARKERS,)}.items()
        for source in present(raw, sources)
    ]
    rows: Counter[str] = Counter()
    for part in extents:
        rows[part.table] += part.rows
    owned = [part for part in extents if part.source.owner not in BY_LAUNCH]
    threads = frozenset(thread for part in owned if part.source.owner == THREAD for thread in _threads(part))
    processes = frozenset(row.get("processId") or 0 for part in owned for row in _rows(part))
    devices = frozenset(
        row.get(part.source.device) or 0 for part in extents if part.source.device for row in _rows(part)
    )
    kernels = {row.get("name") for part in extents if part.table == "kernels" for row in _rows(part)}
    return Survey(
        clock_of(raw, extents, notes), rows, threads, processes, devices, pa.array(list(kernels - {None}), pa.int64())
    )


def _keys(table: str, source: Source) -> list[str | None]:
    """Return the key columns. Owners of launches are found later, by correlation id."""
    owner = () if source.owner in BY_LAUNCH else source.owner
    return [*owner, source.device, "name" if table == "kernels" else None]


def _rows(part: Extent) -> list[dict[str, Any]]:
    """Return distinct combinations of the key columns; an empty one if the table has rows but no key column."""
    if part.keys.num_columns:
        return part.keys.to_pylist()
    return [{}] if part.rows else []


def _threads(part: Extent) -> Iterator[Thread]:
    for row in _rows(part):
        if row.get("threadId") is not None or part.source.table not in OF_PROCESSES_TOO:
            yield row.get("processId") or 0, row.get("threadId") or 0
