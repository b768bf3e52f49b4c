"""A first pass over raw event tables: their rows, the times between which they lie, and whose events they hold.

It reads every event table whatever tables are asked for, so that time zero, the span and the surrogate ids of a trace
never depend on the question that is asked of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from traceviz.parsers.shared.arrow import pc
from traceviz.parsers.shared.event_table import first
from traceviz.parsers.shared.mapping import Source
from traceviz.parsers.shared.raw import Keep, RawTables


@dataclass(frozen=True, slots=True, eq=False)
class Extent:
    """What one pass over a raw table shows.

    Args:
        table: Table of the contract.
        source: The raw table.
        rows: Rows that count.
        starts: Smallest and greatest start of each batch, without nulls.
        ends: Smallest and greatest end of each batch, without nulls.
        keys: Distinct combinations of the columns asked for.
    """

    table: str
    source: Source
    rows: int
    starts: Sequence[int]
    ends: Sequence[int]
    keys: pa.Table


def present(raw: RawTables, sources: tuple[Source, ...]) -> Iterator[Source]:
    """Those of ``sources`` whose raw table is there and has times."""
    return (source for source in sources if first(source.start, raw.columns(source.table)))


def start_of(raw: RawTables, source: Source) -> str:
    """The raw column of the start, in a raw table that is present."""
    return next(name for name in source.start if name in raw.columns(source.table))


def counted(
    raw: RawTables, source: Source, integers: Sequence[str], texts: Sequence[str] = ()
) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Batches of the start and the named columns, which exist, of the rows that count.

    Beside each batch stands the number of rows left out because the profiler could not take their time.
    """
    start = start_of(raw, source)
    timed = None if source.no_time is None else Keep(start, (source.no_time,), inverted=True)
    for batch in raw.stream(source.table, list(dict.fromkeys([start, *integers])), texts, source.keep):
        counting = timed.of(batch) if timed else batch
        yield counting, batch.num_rows - counting.num_rows


def extent(raw: RawTables, table: str, source: Source, keys: Sequence[str | None]) -> Extent:
    """The extent of a raw table that is present, with those of the columns ``keys`` that it has."""
    available = raw.columns(source.table)
    start, end = start_of(raw, source), first(source.end, available)
    known_keys = list(dict.fromkeys(key for key in keys if key in available))
    rows = 0
    starts: list[int | None] = []
    ends: list[int | None] = []
    combinations = [pa.schema([(key, pa.int64()) for key in known_keys]).empty_table()]
    for batch, _ in counted(raw, source, [*([end] if end else []), *known_keys]):
        rows += batch.num_rows
        starts += pc.min_max(batch[start]).as_py().values()
        ends += pc.min_max(batch[end]).as_py().values() if end else ()
        combinations.append(_distinct(pa.Table.from_batches([batch]).select(known_keys)))
    return Extent(table, source, rows, _known(starts), _known(ends), _distinct(pa.concat_tables(combinations)))


def _known(times: Sequence[int | None]) -> list[int]:
    return [time for time in times if time is not None]


def _distinct(rows: pa.Table) -> pa.Table:
    """Distinct rows. Columns in which all values are equal, which most are, take no part in the comparison."""
    codes = np.zeros(rows.num_rows, dtype=np.int64)
    for column in rows.columns:
        values = pc.unique(column)
        if len(values) > 1:
            codes = codes * len(values) + pc.index_in(column, value_set=values).to_numpy()
    several, first = codes.any(), np.arange(min(rows.num_rows, 1))
    return rows.take(np.unique(codes, return_index=True)[1] if several else first)
