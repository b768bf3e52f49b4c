"""Reader of Nsight Systems SQLite exports, from nsys 2020.5 (which states no schema version) to schema 3.25."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from traceviz.core.process.memory import free
from traceviz.parsers.base import ReadRequest
from traceviz.parsers.nsys.calls import with_ids
from traceviz.parsers.nsys.mapping import EVENT_TABLES, STRING_ID, STRINGS
from traceviz.parsers.shared.events.prescan import keeps_of, measures, present, start_of
from traceviz.parsers.shared.events.whole_events import column_requests, raw_columns, requested
from traceviz.parsers.shared.prefetch import Prefetch
from traceviz.parsers.shared.sqlite.file import unread_log
from traceviz.parsers.shared.sqlite.tables import SqliteTables
from traceviz.trace import schema

if TYPE_CHECKING:
    import pyarrow as pa


class NsysSqliteTables(SqliteTables):
    """Tables of an SQLite export."""

    string_table: ClassVar[str] = STRINGS
    string_id: ClassVar[str] = STRING_ID


def read_sqlite(path: Path, options: ReadRequest) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables of an SQLite export; see :meth:`~traceviz.parsers.base.Reader.read`."""
    with closing(Prefetch()) as prefetch, NsysSqliteTables(path) as raw:
        _prefetch_tables(raw, prefetch, with_ids(options))
        options.begun()
        from traceviz.parsers.nsys.tables import Provenance, read_tables  # noqa: PLC0415 (tables are decoded at the same time)

        yield from read_tables(raw, options, Provenance("nsys sqlite", notes=unread_log(path)))


_SHARE = 4
"""Divisor of the free memory for prefetched tables: no caller checks their size yet."""


def _prefetch_tables(raw: SqliteTables, prefetch: Prefetch, options: ReadRequest) -> None:
    """Start to decode the requested event tables, if all their rows are known to count.

    Nothing is started if memory is bounded: the caller then checks the memory of each table before the next one.
    """
    left = free()
    if options.max_memory is not None or options.spill is not None or left is None:
        return
    room = left.more // _SHARE
    for table, sources in EVENT_TABLES.items():
        for source in present(raw, sources) if options.wants(table) else ():
            start, available = start_of(raw, source), raw.columns(source.table)
            whole = raw.whole(source.table)
            if whole is None or keeps_of(source, start):
                continue
            own = requested(table, source, options)
            asked = column_requests(own, raw_columns(own, start, available), schema.table(table).arrow, 0)
            room -= whole.prefetch(prefetch, list(asked.values()), measures(raw, own, [*own.owner, own.device]), room)
