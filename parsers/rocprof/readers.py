"""The formats of rocprof and rocprofv3, and their recognition; reading loads the other modules."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from traceviz.parsers.base import Match, Reader, ReadRequest
from traceviz.parsers.rocprof.sniff import HEADERS, header_names
from traceviz.parsers.shared.json.stream import head_text
from traceviz.parsers.shared.sqlite.file import MAGIC, table_names

if TYPE_CHECKING:
    import pyarrow as pa

_EVENT = re.compile(rb'"BeginNs"\s*:\s*"\d+".{0,200}?"EndNs"\s*:\s*"\d+"', re.DOTALL)
"""Arguments of an event in ``results.json`` of rocprof; other traces state times as ``ts`` alone."""


class RocprofCsvReader(Reader):
    """CSV files of ``rocprofv3`` (such as ``*_kernel_trace.csv``) and of ``rocprof`` (``results.csv``).

    Files of one recording are read together: those in the same folder with the same name before ``_kernel_trace.csv``.
    """

    format: ClassVar[str] = "rocprof-csv"
    title: ClassVar[str] = "rocprof CSV"
    suffixes: ClassVar[tuple[str, ...]] = (".csv",)

    def sniff(self, head: bytes, path: Path) -> Match:  # noqa: ARG002 (the content decides)
        """Return ``YES`` for the header of a table of events."""
        line = head_text(head)[:4096].partition(b"\n")[0]
        names = header_names(line)
        return Match.YES if any(needed <= names for needed in HEADERS) else Match.NO

    def read(self, path: Path, options: ReadRequest) -> Iterator[tuple[str, pa.Table]]:
        """See :meth:`Reader.read`."""
        from traceviz.parsers.rocprof.sources import read_csv

        return read_csv(path, options)


class RocprofJsonReader(Reader):
    """``results.json`` of ``rocprof``: events of Chrome's format whose arguments have the times in nanoseconds."""

    format: ClassVar[str] = "rocprof-json"
    title: ClassVar[str] = "rocprof JSON"
    suffixes: ClassVar[tuple[str, ...]] = (".json",)

    def sniff(self, head: bytes, path: Path) -> Match:  # noqa: ARG002 (the content decides)
        """Return ``YES`` if events state ``BeginNs`` and ``EndNs``."""
        text = head_text(head)
        return Match.YES if b'"traceEvents"' in text[:4096] and _EVENT.search(text) else Match.NO

    def read(self, path: Path, options: ReadRequest) -> Iterator[tuple[str, pa.Table]]:
        """See :meth:`Reader.read`."""
        from traceviz.parsers.rocprof.sources import read_json

        return read_json(path, options)


class RocprofSqliteReader(Reader):
    """``results.db`` of ``rocprof``: tables of kernels, HSA and HIP calls, copies and ranges."""

    format: ClassVar[str] = "rocprof-sqlite"
    title: ClassVar[str] = "rocprof database"
    suffixes: ClassVar[tuple[str, ...]] = (".db",)

    def sniff(self, head: bytes, path: Path) -> Match:
        """Return ``YES`` for a database with the tables of rocprof and a column for the start of a kernel."""
        if not head.startswith(MAGIC) or b"BeginNs" not in head:
            return Match.NO
        try:
            names = table_names(path)
        except (sqlite3.Error, OSError, ValueError):
            return Match.NO
        return Match.YES if names & {"HSA", "HIP", "COPY", "A"} and "StringIds" not in names else Match.NO

    def read(self, path: Path, options: ReadRequest) -> Iterator[tuple[str, pa.Table]]:
        """See :meth:`Reader.read`."""
        from traceviz.parsers.rocprof.sources import read_sqlite

        return read_sqlite(path, options)
