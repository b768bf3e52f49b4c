"""Reader of Nsight Systems SQLite exports, from nsys 2020.5 (which states no schema version) to schema 3.25."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from traceviz.parsers.base import ReadOptions
from traceviz.parsers.nsys.calls import with_ids
from traceviz.parsers.nsys.constants import STRING_ID, STRINGS
from traceviz.parsers.nsys.mapping import EVENT_TABLES
from traceviz.parsers.shared.events.prefetch_tables import begin
from traceviz.parsers.shared.prefetch.queue import Ahead
from traceviz.parsers.shared.sqlite.file import unread_log
from traceviz.parsers.shared.sqlite.tables import SqliteTables

if TYPE_CHECKING:
    import pyarrow as pa


class NsysSqliteTables(SqliteTables):
    """Tables of an SQLite export."""

    string_table: ClassVar[str] = STRINGS
    string_id: ClassVar[str] = STRING_ID


def read_sqlite(path: Path, options: ReadOptions) -> Iterator[tuple[str, pa.Table]]:
    """The tables of an SQLite export, one at a time; see :meth:`~traceviz.parsers.base.Reader.read`."""
    with closing(Ahead()) as ahead, NsysSqliteTables(path) as raw:
        begin(raw, ahead, EVENT_TABLES, with_ids(options))
        options.begun()
        from traceviz.parsers.nsys.tables import Provenance, read_tables  # noqa: PLC0415 (meanwhile, tables are decoded)

        yield from read_tables(raw, options, Provenance("nsys sqlite", notes=unread_log(path)))
