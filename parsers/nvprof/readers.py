"""The formats of nvprof, and their recognition; reading loads the other modules."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from traceviz.parsers.base import Match, Reader, ReadRequest
from traceviz.parsers.nvprof.printed_text import looks_printed
from traceviz.parsers.nvprof.sniff import is_database, is_session
from traceviz.parsers.shared.json.stream import head_text

if TYPE_CHECKING:
    import pyarrow as pa


class NvprofCsvReader(Reader):
    """Printed output of ``nvprof``, also with ``--csv``, ``--print-gpu-trace`` or ``--print-api-trace``; also gzip."""

    format: ClassVar[str] = "nvprof-csv"
    title: ClassVar[str] = "nvprof CSV or text"
    suffixes: ClassVar[tuple[str, ...]] = (".csv", ".txt", ".log")

    def sniff(self, head: bytes, path: Path) -> Match:  # noqa: ARG002 (the content decides)
        """Return ``YES`` for a log line of nvprof or one of its headers."""
        return Match.YES if looks_printed(head_text(head)) else Match.NO

    def read(self, path: Path, options: ReadRequest) -> Iterator[tuple[str, pa.Table]]:
        """See :meth:`Reader.read`."""
        from traceviz.parsers.nvprof.printed import read_printed

        return read_printed(path, options)


class NvprofSqliteReader(Reader):
    """Databases of ``nvprof -o`` and of the Visual Profiler. Its session files are recognised too, and rejected."""

    format: ClassVar[str] = "nvprof-sqlite"
    title: ClassVar[str] = "nvprof database"
    suffixes: ClassVar[tuple[str, ...]] = (".nvvp", ".nvprof", ".prof", ".sql")

    def sniff(self, head: bytes, path: Path) -> Match:
        """Return ``YES`` for a database with records of CUPTI and nvprof's strings or version, or a session file."""
        return Match.YES if is_session(head) or is_database(head, path) else Match.NO

    def read(self, path: Path, options: ReadRequest) -> Iterator[tuple[str, pa.Table]]:
        """See :meth:`Reader.read`."""
        from traceviz.parsers.nvprof.sqlite import read_sqlite

        return read_sqlite(path, options)
