"""Reader of Nsight Systems SQLite exports, from nsys 2020.5 (which states no schema version) to schema 3.25."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from traceviz.parsers.base import ReadOptions
from traceviz.parsers.nsys.constants import STRING_ID, STRINGS
from traceviz.parsers.nsys.tables import Provenance, read_tables
from traceviz.parsers.shared.sqlite.file import unread_log
from traceviz.parsers.shared.sqlite.tables import SqliteTables


class NsysSqliteTables(SqliteTables):
    """Tables of an SQLite export."""

    string_table: ClassVar[str] = STRINGS
    string_id: ClassVar[str] = STRING_ID


def read_sqlite(path: Path, options: ReadOptions) -> Iterator[tuple[str, pa.Table]]:
    """The tables of an SQLite export, one at a time; see :meth:`~traceviz.parsers.base.Reader.read`."""
    with NsysSqliteTables(path) as raw:
        yield from read_tables(raw, options, Provenance("nsys sqlite", notes=unread_log(path)))
