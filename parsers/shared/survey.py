"""A first pass over raw event tables: how many rows they have, when these begin and end, and who owns them.

The pass covers every event table, whichever tables the caller asks for. So time zero, the span and the surrogate ids of
a trace do not depend on the question.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from traceviz.parsers.shared.arrow import Array, pc
from traceviz.parsers.shared.event_table import combination_codes, first
from traceviz.parsers.shared.mapping import Source
from traceviz.parsers.shared.raw import Keep, RawTables


@dataclass(frozen=True, slots=True, eq=False)
class Extent:
    """What one pass over a raw table shows.

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
    """The ``sources`` whose raw table is present and has times."""
    return (source for source in sources if first(source.start, raw.columns(source.table)))


def start_of(raw: RawTables, source: Source) -> str:
    """The raw column that holds the start; the raw table is present."""
    return next(name for name in source.start if name in raw.columns(source.table))


def counted(
    raw: RawTables, source: Source, integers: Sequence[str], texts: Sequence[str] = ()
) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Batches of the rows that count, with their start and the named columns, all of which exist.

    Yields:
        Each batch, and the number of rows left out of it because the profiler could not take their time.
    """
    start = start_of(raw, source)
    timed = None if source.no_time is None else Keep(start, (source.no_time,), inverted=True)
    for batch in raw.stream(source.table, list(dict.fromkeys([start, *integers])), texts, source.keep):
        counting = timed.of(batch) if timed else batch
        yield counting, batch.num_rows - counting.num_rows


def extent(raw: RawTables, table: str, source: Source, keys: Sequence[str | None]) -> Extent:
    """The extent of a raw table that is present. Of the columns ``keys``, it may lack any."""
    available = raw.columns(source.table)
    start, end = start_of(raw, source), first(source.end, available)
    known_keys = list(dict.fromkeys(key for key in keys if key in available))
    rows = 0
    starts: list[int] = []
    ends: list[int] = []
    combinations = [pa.schema([(key, pa.int64()) for key in known_keys]).empty_table()]
    for batch, _ in counted(raw, source, [*([end] if end else []), *known_keys]):
        rows += batch.num_rows
        starts += _bounds(batch[start])
        ends += _bounds(batch[end]) if end else []
        combinations.append(_distinct(pa.Table.from_batches([batch]).select(known_keys)))
    return Extent(table, source, rows, starts, ends, _distinct(pa.concat_tables(combinations)))


def _bounds(times: Array) -> list[int]:
    """The smallest and the greatest time; nothing where all are null."""
    return [time for time in pc.min_max(times).as_py().values() if time is not None]


def _distinct(rows: pa.Table) -> pa.Table:
    codes = combination_codes(rows.columns, rows.num_rows)
    only_row = np.arange(min(rows.num_rows, 1))
    return rows.take(np.unique(codes, return_index=True)[1] if codes.any() else only_row)
