"""A first look at all event tables of an nvprof database: clock, threads, processes, devices, kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from traceviz.errors import DamagedTraceError
from traceviz.parsers.nvprof.mapping import EVENT_TABLES, LAUNCH, MARKERS, OF_PROCESSES_TOO, THREAD
from traceviz.parsers.nvprof.raw import NvprofTables
from traceviz.parsers.shared.arrow import Array
from traceviz.parsers.shared.mapping import OFF_CLOCK, Source
from traceviz.parsers.shared.survey import Extent, extent, present

_LONGEST_NS = 1 << 62
"""146 years: what seems to last longer is no time."""

Thread = tuple[int, int]
"""Process id and thread id; 0 where the record states none."""


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """What the event tables hold.

    Args:
        zero_ns: Raw time of the first event.
        last_ns: Raw time at which the last event ends.
        rows: Rows that have a time and count, by table of the contract.
        threads: Threads that own an event.
        processes: Processes that own an event.
        devices: Device numbers of events.
        kernels: Ids of the names of kernels.
    """

    zero_ns: int
    last_ns: int
    rows: Mapping[str, int]
    threads: frozenset[Thread]
    processes: frozenset[int]
    devices: frozenset[int]
    kernels: Array


def take_survey(raw: NvprofTables) -> Survey:
    """Survey all event tables of ``raw``.

    Raises:
        DamagedTraceError: a table cannot be decoded, or its times are none.
    """
    extents = [
        extent(raw, table, source, _keys(table, source))
        for table, sources in {**EVENT_TABLES, "nvtx": (MARKERS,)}.items()
        for source in present(raw, sources)
    ]
    rows: Counter[str] = Counter()
    for part in extents:
        rows[part.table] += part.rows
    timed = [part for part in extents if part.table not in OFF_CLOCK]
    zero = min((time for part in timed for time in part.starts), default=0)
    last = max((time for part in timed for time in (*part.starts, *part.ends)), default=0)
    if not 0 <= last - zero < _LONGEST_NS or abs(zero) >= _LONGEST_NS:
        raise DamagedTraceError(
            f"The times of {raw.path.name} are impossible.",
            f"Its events lie between {zero} and {last} ns.",
            "Copy the file again.",
        )
    owned = [part for part in extents if part.source.owner != LAUNCH]
    threads = frozenset(thread for part in owned if part.source.owner == THREAD for thread in _threads(part))
    processes = frozenset(row.get("processId") or 0 for part in owned for row in _rows(part))
    devices = frozenset(
        row.get(part.source.device) or 0 for part in extents if part.source.device for row in _rows(part)
    )
    kernels = {row.get("name") for part in extents if part.table == "kernels" for row in _rows(part)}
    return Survey(zero, last, rows, threads, processes, devices, pa.array(list(kernels - {None}), pa.int64()))


def _keys(table: str, source: Source) -> list[str | None]:
    """The columns whose distinct values matter. Owners of launches are found by correlation id, when these are read."""
    owner = () if source.owner == LAUNCH else source.owner
    return [*owner, source.device, "name" if table == "kernels" else None]


def _rows(part: Extent) -> list[dict[str, Any]]:
    """Distinct combinations of the key columns; one empty combination where the table has rows but no key column."""
    if part.keys.num_columns:
        return part.keys.to_pylist()
    return [{}] if part.rows else []


def _threads(part: Extent) -> Iterator[Thread]:
    for row in _rows(part):
        if row.get("threadId") is not None or part.source.table not in OF_PROCESSES_TOO:
            yield row.get("processId") or 0, row.get("threadId") or 0
