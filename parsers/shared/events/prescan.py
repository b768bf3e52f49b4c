"""First pass over raw event tables: number of rows, first start, last end, and owners.

The pass covers every event table, requested or not. So time zero, the span and the surrogate ids of a trace do not
depend on the request.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from traceviz.core.errors import DamagedTraceError
from traceviz.parsers.shared.arrays.arrow import Array, pc
from traceviz.parsers.shared.events.column_requests import (
    CodeColumn,
    ColumnRequest,
    Combination,
    NotPlainError,
    Number,
    NumberColumn,
)
from traceviz.parsers.shared.events.mapping import OFF_CLOCK, Keep, Source
from traceviz.parsers.shared.events.source_tables import RawTables
from traceviz.parsers.shared.events.table import combination_codes, first
from traceviz.parsers.shared.notes import Notes
from traceviz.trace.plausible import (
    LONGEST_NS,
    Numbers,
    Window,
    around,
    elapsed,
    is_strange,
    note_durations,
    note_times,
)


@dataclass(frozen=True, slots=True, eq=False)
class Extent:
    """Results of one pass over a raw table.

    Args:
        table: Table of the contract.
        source: The raw table.
        rows: Rows that count.
        starts: The smallest and the greatest start of each batch.
        ends: The smallest and the greatest end of each batch.
        keys: Distinct combinations of the key columns.
    """

    table: str
    source: Source
    rows: int
    starts: Sequence[int]
    ends: Sequence[int]
    keys: pa.Table


def present(raw: RawTables, sources: tuple[Source, ...]) -> Iterator[Source]:
    """Yield the ``sources`` whose raw table is present, has times, and is not another table of that name."""
    for source in sources:
        available = raw.columns(source.table)
        if first(source.start, available) and (source.requires is None or source.requires in available):
            yield source


def start_of(raw: RawTables, source: Source) -> str:
    """Return the raw column that holds the start; the raw table is present."""
    return next(name for name in source.start if name in raw.columns(source.table))


def timed_batches(
    raw: RawTables, source: Source, integers: Sequence[str], texts: Sequence[str] = ()
) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Yield batches of the rows that count, with their start and the named columns, which all exist.

    Yields:
        Each batch, and the number of rows dropped from it because their time was not measured.
    """
    start = start_of(raw, source)
    timed = None if source.no_time is None else Keep(start, (source.no_time,), inverted=True)
    for batch in raw.stream(source.table, list(dict.fromkeys([start, *integers])), texts, source.keep):
        counting = timed.of(batch) if timed else batch
        yield counting, batch.num_rows - counting.num_rows


def extent(raw: RawTables, table: str, source: Source, keys: Sequence[str | None]) -> Extent:
    """Return the extent of a raw table that is present. It may lack any of the columns ``keys``."""
    available = raw.columns(source.table)
    start, end = start_of(raw, source), first(source.end, available)
    known_keys = list(dict.fromkeys(key for key in keys if key in available))
    whole = raw.whole(source.table)
    if whole is not None:
        with suppress(NotPlainError):
            measured = measures(raw, source, keys)  # starts come first
            rows, results = whole.measure(keeps_of(source, start), measured)
            bounds = [(part.least, part.most) for part in results if isinstance(part, NumberColumn)]
            times = [[time for time in pair if time is not None] for pair in bounds]
            found = [part.keys for part in results if isinstance(part, CodeColumn)]
            keys_found = pa.Table.from_batches(found) if found else pa.table({})
            return Extent(table, source, rows, times[0], times[1] if len(times) > 1 else [], keys_found)
    rows = 0
    starts: list[int] = []
    ends: list[int] = []
    combinations = [pa.schema([(key, pa.int64()) for key in known_keys]).empty_table()]
    for batch, _ in timed_batches(raw, source, [*([end] if end else []), *known_keys]):
        rows += batch.num_rows
        starts += _bounds(batch[start])
        ends += _bounds(batch[end]) if end else []
        combinations.append(_distinct(pa.Table.from_batches([batch]).select(known_keys)))
    return Extent(table, source, rows, starts, ends, _distinct(pa.concat_tables(combinations)))


def measures(raw: RawTables, source: Source, keys: Sequence[str | None]) -> list[ColumnRequest]:
    """Return the columns to measure for :func:`extent`: starts, ends, and combinations of ``keys``."""
    available = raw.columns(source.table)
    end = first(source.end, available)
    times = [Number(name, pa.int64()) for name in (start_of(raw, source), end) if name]
    known = tuple(dict.fromkeys(key for key in keys if key in available))
    return [*times, *([Combination(known)] if known else [])]


def keeps_of(source: Source, start: str) -> list[Keep]:
    """Return the filters of the rows of ``source`` that count; ``start`` is the column of the starts."""
    timed = [] if source.no_time is None else [Keep(start, (source.no_time,), inverted=True)]
    return [*([source.keep] if source.keep else []), *timed]


@dataclass(frozen=True, slots=True)
class Clock:
    """Time range of the events of a file.

    Args:
        zero_ns: Raw time of the first event.
        last_ns: Raw time at which the last event ends.
        window: The plausible starts; ``None`` if all are plausible.
    """

    zero_ns: int
    last_ns: int
    window: Window | None


def clock_of(raw: RawTables, extents: Sequence[Extent], notes: Notes) -> Clock:
    """Return the clock of all event tables. Ends never set time zero: a damaged event may end before all starts.

    Notes cover all tables, requested or not.

    Raises:
        DamagedTraceError: no event has a plausible time.
    """
    times = [time for part in extents for time in (*part.starts, *part.ends)]
    if times and is_strange(min(times), max(times)):
        return _clock_without_strays(raw, extents, notes, (min(times), max(times)))
    timed = [part for part in extents if part.table not in OFF_CLOCK]
    zero = min((time for part in timed for time in part.starts), default=0)
    return Clock(zero, max((time for part in timed for time in (*part.starts, *part.ends)), default=0), None)


def _clock_without_strays(raw: RawTables, extents: Sequence[Extent], notes: Notes, bounds: tuple[int, int]) -> Clock:
    """Return the clock of the events that lie close together, by another pass over the tables."""
    spans: dict[str, list[tuple[Numbers, Numbers]]] = {}
    for part in extents:
        spans.setdefault(part.table, []).append(_spans(raw, part.source))
    by_table = {
        name: (np.concatenate([start for start, _ in parts]), np.concatenate([end for _, end in parts]))
        for name, parts in spans.items()
    }
    timed = [starts for name, (starts, _) in by_table.items() if name not in OFF_CLOCK]
    window = around(np.concatenate([starts for starts in timed if starts.size] or [np.zeros(1, np.int64)]))
    plausible = [_note_strays(name, *span, window, notes) for name, span in by_table.items()]
    found = [bounds for name, bounds in zip(by_table, plausible, strict=True) if bounds and name not in OFF_CLOCK]
    if not found and any(starts.size for starts in timed):
        raise DamagedTraceError(
            f"The times of {raw.path.name} are impossible.",
            f"Its events lie between {bounds[0]} and {bounds[1]} ns.",
            "Copy the file again.",
        )
    return Clock(min((first for first, _ in found), default=0), max((last for _, last in found), default=0), window)


def _note_strays(name: str, starts: Numbers, ends: Numbers, window: Window, notes: Notes) -> tuple[int, int] | None:
    """Note the implausible rows of a table. Return the first start and the last end of the others."""
    inside = window.has(starts)
    lasting = elapsed(starts[inside], ends[inside])
    note_times(notes, name, starts[~inside])
    note_durations(notes, name, lasting[lasting > LONGEST_NS])
    if not lasting.size:
        return None
    lasting[(lasting < 0) | (lasting > LONGEST_NS)] = 0
    return int(starts[inside].min()), int((starts[inside] + lasting).max())


def _spans(raw: RawTables, source: Source) -> tuple[Numbers, Numbers]:
    """Return starts and ends of the rows of a raw table that have a start; a missing end is replaced by the start."""
    start, end = start_of(raw, source), first(source.end, raw.columns(source.table))
    batches = [pa.Table.from_batches([batch]) for batch, _ in timed_batches(raw, source, [end] if end else [])]
    if not batches:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    rows = pa.concat_tables(batches)
    rows = rows.filter(rows[start].is_valid())
    return rows[start].to_numpy(), pc.coalesce(rows[end or start], rows[start]).to_numpy()


def _bounds(times: Array) -> list[int]:
    """Return the smallest and the greatest time; nothing if all are null."""
    return [time for time in pc.min_max(times).as_py().values() if time is not None]


def _distinct(rows: pa.Table) -> pa.Table:
    codes = combination_codes(rows.columns, rows.num_rows)
    only_row = np.arange(min(rows.num_rows, 1))
    return rows.take(np.unique(codes, return_index=True)[1] if codes.any() else only_row)
