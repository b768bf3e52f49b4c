"""The formats of nvprof, and how each is recognised; reading loads the rest."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from traceviz.parsers.base import Match, Reader, ReadOptions
from traceviz.parsers.nvprof.constants import PREFIX, STRINGS
from traceviz.parsers.nvprof.printed_text import looks_printed
from traceviz.parsers.shared.sqlite_file import MAGIC, table_names

if TYPE_CHECKING:
    import pyarrow as pa

_SESSION = re.compile(rb"<session\b[^>]*\.nvvp|<session\b.*<(?:timelineoptions|executable)\b", re.DOTALL)


class NvprofCsvReader(Reader):
    """What ``nvprof`` prints, with or without ``--csv``, ``--print-gpu-trace`` and ``--print-api-trace``."""

    format: ClassVar[str] = "nvprof-csv"
    title: ClassVar[str] = "nvprof CSV or text"
    suffixes: ClassVar[tuple[str, ...]] = (".csv", ".txt", ".log")

    def sniff(self, head: bytes, path: Path) -> Match:  # noqa: ARG002 (the content tells)
        """Certain where nvprof says what it does, or where one of its headers stands."""
        return Match.YES if looks_printed(head) else Match.NO

    def read(self, path: Path, options: ReadOptions) -> Iterator[tuple[str, pa.Table]]:
        """See :meth:`Reader.read`."""
        from traceviz.parsers.nvprof.printed import read_printed

        return read_printed(path, options)


class NvprofSqliteReader(Reader):
    """Databases of ``nvprof -o`` and of the Visual Profiler. Its session files are recognised too, to be refused."""

    format: ClassVar[str] = "nvprof-sqlite"
    title: ClassVar[str] = "nvprof database"
    suffixes: ClassVar[tuple[str, ...]] = (".nvvp", ".nvprof", ".prof", ".sql")

    def sniff(self, head: bytes, path: Path) -> Match:
        """Certain of a database with records of CUPTI and nvprof's own strings or version, and of a session file."""
        if is_session(head):
            return Match.YES
        if not head.startswith(MAGIC):
            return Match.NO
        try:
            names = table_names(path)
        except (sqlite3.Error, OSError, ValueError):
            # Damaged, but the texts on its first pages still show the format.
            return Match.YES if STRINGS.encode() in head and b"StringIds" not in head else Match.NO
        recorded = any(name.startswith(PREFIX) for name in names)
        return Match.YES if recorded and {STRINGS, "Version"} & names and "StringIds" not in names else Match.NO

    def read(self, path: Path, options: ReadOptions) -> Iterator[tuple[str, pa.Table]]:
        """See :meth:`Reader.read`."""
        from traceviz.parsers.nvprof.sqlite import read_sqlite

        return read_sqlite(path, options)


def is_session(head: bytes) -> bool:
    """Whether ``head`` begins a session of the Visual Profiler."""
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return start.startswith((b"<?xml", b"<session")) and _SESSION.search(head) is not None
