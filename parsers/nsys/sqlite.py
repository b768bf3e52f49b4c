"""Reader of Nsight Systems SQLite exports, from nsys 2020.5 (which states no schema version) to schema 3.25."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from traceviz.parsers.base import Match, Reader, ReadOptions
from traceviz.parsers.nsys.constants import STRING_ID, STRINGS
from traceviz.parsers.nsys.tables import Provenance, read_tables
from traceviz.parsers.shared.sqlite_arrow import table_names
from traceviz.parsers.shared.sqlite_tables import MAGIC, SqliteTables, unread_log

MARKERS = frozenset(
    {"TARGET_INFO_SESSION_START_TIME", "TARGET_INFO_SYSTEM_ENV", "ANALYSIS_DETAILS", "ANALYSIS_FILE"}
    | {"META_DATA_EXPORT", "EXPORT_META_DATA", "NVTX_EVENTS", "OSRT_API", "CUPTI_ACTIVITY_KIND_RUNTIME"}
)
"""Tables of which every export has at least one, beside its strings."""


class NsysSqliteTables(SqliteTables):
    """Tables of an SQLite export."""

    string_table: ClassVar[str] = STRINGS
    string_id: ClassVar[str] = STRING_ID


class NsysSqliteReader(Reader):
    """Databases that ``nsys export --type sqlite`` and ``nsys stats`` write."""

    format: ClassVar[str] = "nsys-sqlite"
    title: ClassVar[str] = "Nsight Systems SQLite export"
    suffixes: ClassVar[tuple[str, ...]] = (".sqlite",)

    def sniff(self, head: bytes, path: Path) -> Match:
        """Certain of a database with the strings and one of the tables that exports have."""
        if not head.startswith(MAGIC):
            return Match.NO
        try:
            names = table_names(path)
        except (sqlite3.Error, OSError, ValueError):
            # Damaged; the text of its catalogue, which begins on the first page, still says whose it was.
            known = b"StringIds" in head and any(marker.encode() in head for marker in MARKERS)
            return Match.YES if known else Match.NO
        return Match.YES if "StringIds" in names and MARKERS & names else Match.NO

    def read(self, path: Path, options: ReadOptions) -> Iterator[tuple[str, pa.Table]]:
        """See :meth:`Reader.read`."""
        with NsysSqliteTables(path) as raw:
            yield from read_tables(raw, options, Provenance("nsys sqlite", notes=unread_log(path)))
