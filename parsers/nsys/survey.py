"""First pass over all event tables of an export: clock, threads, processes and devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from traceviz.parsers.nsys.constants import LOCAL_ID, UNSET
from traceviz.parsers.nsys.mapping import EVENT_TABLES, THREAD
from traceviz.parsers.shared.events.prescan import Clock, Extent, clock_of, extent, present
from traceviz.parsers.shared.events.source_tables import RawTables
from traceviz.parsers.shared.notes import Notes

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """Summary of the event tables.

    Args:
        clock: Time range of the events.
        rows: Rows that count, by table of the contract.
        telling: Raw tables whose presence shows that something was traced. An export that writes tables without rows
            writes all tables, traced or not: then only tables with rows are evidence.
        threads: Distinct ``globalTid``, sorted.
        processes: Distinct ``globalPid`` of device work, sorted.
        devices: Pairs of ``globalPid`` and the device number that the process uses.
    """

    clock: Clock
    rows: Mapping[str, int]
    telling: frozenset[str]
    threads: Ids
    processes: Ids
    devices: frozenset[tuple[int, int]]


def take_survey(raw: RawTables, notes: Notes) -> Survey:
    """Survey all event tables of ``raw``.

    Raises:
        DamagedTraceError: a table cannot be decoded, or no event has a plausible time.
    """
    extents = [
        extent(raw, table, source, [*source.owner, source.device])
        for table, sources in EVENT_TABLES.items()
        for source in present(raw, sources)
    ]
    rows: Counter[str] = Counter()
    for part in extents:
        rows[part.table] += part.rows
    used = {pair for part in extents if part.source.device for pair in _owners(part)}
    filled = frozenset(part.source.table for part in extents if part.rows)
    return Survey(
        clock_of(raw, extents, notes),
        rows,
        raw.names if all(part.rows for part in extents) else filled,
        _sorted(owner for part in extents if part.source.owner == THREAD for owner, _ in _owners(part)),
        _sorted(process for process, _ in used),
        frozenset((process, device) for process, device in used if device != UNSET),
    )


def _owners(part: Extent) -> set[tuple[int, int]]:
    """Return the distinct (owner, device number) pairs of a raw table.

    Missing columns and nulls count as 0, to keep events of unknown threads.
    """
    if not part.keys.num_columns:
        return {(0, 0)} if part.rows else set()
    (owner,), device = part.source.owner, part.source.device or ""
    return {(row.get(owner) or 0, row.get(device) or 0) for row in part.keys.to_pylist()}


def _sorted(ids: Iterable[int]) -> Ids:
    return np.array(sorted(set(ids)), dtype=np.int64)


def process_of(threads: Ids) -> Ids:
    """Return ``globalPid`` of each ``globalTid``."""
    return threads & ~np.int64(LOCAL_ID)
