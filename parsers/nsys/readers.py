"""The formats of Nsight Systems, and their recognition; reading loads the other modules."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from traceviz.parsers.base import Match, Reader, ReadRequest
from traceviz.parsers.nsys.sniff import REPORT_MAGIC, STREAM_MAGIC, is_parquet_export, is_sqlite_export

if TYPE_CHECKING:
    import pyarrow as pa


class NsysParquetReader(Reader):
    """Folders that ``nsys export --type parquetdir`` writes."""

    format: ClassVar[str] = "nsys-parquet"
    title: ClassVar[str] = "Nsight Systems Parquet export"

    def sniff(self, head: bytes, path: Path) -> Match:  # noqa: ARG002 (folders have no head)
        """Return ``YES`` for a folder with one of the tables that every export has."""
        return Match.YES if is_parquet_export(path) else Match.NO

    def read(self, path: Path, options: ReadRequest) -> Iterator[tuple[str, pa.Table]]:
        """See :meth:`Reader.read`."""
        from traceviz.parsers.nsys.parquetdir import read_parquet_folder

        return read_parquet_folder(path, options)


class NsysStreamReader(Reader):
    """Streams that ``nsys profile`` writes before it imports them into a report."""

    format: ClassVar[str] = "nsys-qdstrm"
    title: ClassVar[str] = "Nsight Systems stream"
    suffixes: ClassVar[tuple[str, ...]] = (".qdstrm",)

    def sniff(self, head: bytes, path: Path) -> Match:  # noqa: ARG002 (the first bytes are enough)
        """Return ``YES`` for the stream's first words, which follow eight bytes of framing."""
        return Match.YES if STREAM_MAGIC in head[:64] else Match.NO

    def exporter(self) -> str | None:
        """See :meth:`Reader.exporter`. The importer is a part of nsys."""
        from traceviz.core.nsys_program import find_importer
        from traceviz.parsers.nsys.report import exporter

        nsys = exporter()
        return f"QdstrmImporter, {nsys}" if nsys and find_importer() else None

    def read(self, path: Path, options: ReadRequest) -> Iterator[tuple[str, pa.Table]]:
        """See :meth:`Reader.read`. Imports into a report in a temporary folder, then exports that."""
        from traceviz.parsers.nsys.report import read_stream

        return read_stream(path, options)


class NsysReportReader(Reader):
    """Reports that ``nsys profile`` writes."""

    format: ClassVar[str] = "nsys-rep"
    title: ClassVar[str] = "Nsight Systems report"
    spills: ClassVar[bool] = True
    suffixes: ClassVar[tuple[str, ...]] = (".nsys-rep", ".qdrep")

    def sniff(self, head: bytes, path: Path) -> Match:  # noqa: ARG002 (the first bytes are enough)
        """Return ``YES`` for the report's first words, the same since 2020."""
        return Match.YES if head.startswith(REPORT_MAGIC) else Match.NO

    def exporter(self) -> str | None:
        """See :meth:`Reader.exporter`."""
        from traceviz.parsers.nsys.report import exporter

        return exporter()

    def read(self, path: Path, options: ReadRequest) -> Iterator[tuple[str, pa.Table]]:
        """See :meth:`Reader.read`. If nsys is missing or too old, an export next to the report is used."""
        from traceviz.parsers.nsys.report import read_report

        return read_report(path, options)


class NsysSqliteReader(Reader):
    """Databases that ``nsys export --type sqlite`` and ``nsys stats`` write."""

    format: ClassVar[str] = "nsys-sqlite"
    title: ClassVar[str] = "Nsight Systems SQLite export"
    spills: ClassVar[bool] = True
    decodes_ahead: ClassVar[bool] = True
    suffixes: ClassVar[tuple[str, ...]] = (".sqlite",)

    def sniff(self, head: bytes, path: Path) -> Match:
        """Return ``YES`` for a database with the strings and one of the tables that exports have."""
        return Match.YES if is_sqlite_export(head, path) else Match.NO

    def read(self, path: Path, options: ReadRequest) -> Iterator[tuple[str, pa.Table]]:
        """See :meth:`Reader.read`."""
        from traceviz.parsers.nsys.sqlite import read_sqlite

        return read_sqlite(path, options)
