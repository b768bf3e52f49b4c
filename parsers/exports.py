"""Cache of exports by other programs: decoding a recording of nsys takes much of the time of a report.

::

    report.nsys-rep --> nsys export --> all tables, as a traceviz folder --> requested tables
                                              |        ^
                                              v        |  the next time, from here
                                      a folder of the cache

The folder holds every table, requested or not, so that it serves later requests. The first request reads it too.
The folder is made among the temporary files and moved. If the cache does not accept it, it is read in place, and nsys
need not run twice. Making it adds up to a tenth to the processor time of a whole report, and up to two fifths to that
of one section. It takes more memory if the trace has large tables that the section does not read.

The key of a folder covers the report's content, the exporting program and its version, and the code that made the
tables. The folder holds no private data: a request for such data neither uses nor fills the cache.
"""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from traceviz.core.errors import OutOfMemoryError, TracevizError
from traceviz.core.process.temporary import temporary_folder
from traceviz.parsers.base import Reader, ReadRequest
from traceviz.parsers.traceviz_folder import TracevizFolderReader
from traceviz.trace.folder_cache import KeptFolders, kept_folders
from traceviz.trace.trace_folder import MANIFEST

if TYPE_CHECKING:
    import pyarrow as pa

KIND = "exports"
"""Name of the folder in the cache."""
KEPT = "kept from an earlier export"
"""Suffix of ``run.reader`` if the tables come from the cache."""
Tables = Iterator[tuple[str, "pa.Table"]]


def tables_of(path: Path, reader: Reader, options: ReadRequest) -> Tables:
    """Yield as :meth:`Reader.tables`; if another program has to export ``path``, it runs only once.

    Raises:
        TracevizError: as :meth:`Reader.tables`.
        UsageError: the environment sets a limit of the cache that is not a size.

    Warns:
        TracevizWarning: the folder of the cache is not ours.
    """
    exporter = reader.exporter() if options.cache and not options.keep_private else None
    if exporter is not None:
        from traceviz.trace.schema import TABLES  # noqa: PLC0415 (recognising a file loads no pyarrow)

        kept = kept_folders(KIND, frozenset({MANIFEST, *(f"{table}.parquet" for table in TABLES)}))
        if kept is not None:
            with suppress(OSError):  # the reader reports the problem of the file
                return _Export(path, reader, exporter, kept).tables(options)
    return reader.tables(path, options)


class _UnusableError(Exception):
    """A folder is not there, or cannot be made or read."""


class _Export:
    """The tables of one file, by the cheapest way that works."""

    def __init__(self, path: Path, reader: Reader, exporter: str, kept: KeptFolders) -> None:
        self.path = path
        self.reader = reader
        self.exporter = exporter
        self.kept = kept
        self.key = _key(path, reader, exporter)

    def tables(self, options: ReadRequest) -> Tables:
        """Yield the tables. If a folder is damaged, the remaining tables come the next way."""
        ways = (self._read_cached, self._export, lambda options: self.reader.tables(self.path, options))
        yielded: set[str] = set()
        for way in ways:
            try:
                for name, table in way(options):
                    handed = [table]
                    del table  # as in Reader.tables: hold no reference here
                    if name not in yielded:
                        yielded.add(name)
                        yield name, handed.pop()
            except _UnusableError:
                continue
            return

    def _read_cached(self, options: ReadRequest) -> Tables:
        folder = self.kept.find(self.key)
        if folder is None:
            raise _UnusableError
        try:
            for name, table in _from_folder(folder, options):
                handed = [table]
                del table  # as above
                if name == "run":
                    import pyarrow as pa  # noqa: PLC0415 (as above)

                    run = handed.pop()
                    at = run.schema.get_field_index("reader")
                    routes = [f"{route}, {KEPT}" for route in run["reader"].to_pylist()]
                    field = run.schema.field(at)
                    handed.append(run.set_column(at, field, pa.array(routes, field.type)))
                yield name, handed.pop()
        except _UnusableError:
            self.kept.evict(self.key)
            raise

    def _export(self, options: ReadRequest) -> Tables:
        with temporary_folder() as work:
            made = work / "tables"
            try:
                made.mkdir()
                is_export = self._write(made, options)
            except OSError as error:  # an error of the temporary folder: the reader reports its own errors
                raise _UnusableError from error
            kept = self.kept.keep(self.key, made) if is_export else None
            yield from _from_folder(kept or made, options)

    def _write(self, folder: Path, options: ReadRequest) -> bool:
        """Write all tables. Return whether they are the export that the key stands for.

        They are not if a file next to the report was read in its place, or if the file changed during the export.
        """
        from traceviz.trace.tables import load, write_tables  # noqa: PLC0415 (as above)

        everything = replace(options, tables=None, columns={}, window=None)
        provenance = {"format": self.reader.format, "exporter": self.exporter}
        write_tables(folder, self.reader.tables(self.path, everything), provenance)
        route = str(load(folder).run_facts().get("reader"))
        return route.endswith(self.exporter) and self.key == _key(self.path, self.reader, self.exporter)


def _from_folder(folder: Path, options: ReadRequest) -> Tables:
    try:
        yield from TracevizFolderReader().tables(folder, options)
    except OutOfMemoryError:
        raise
    except TracevizError as error:
        raise _UnusableError from error


def _key(path: Path, reader: Reader, exporter: str) -> str:
    """Return a digest of everything that the tables depend on."""
    from traceviz.trace.schema import SCHEMA_VERSION  # noqa: PLC0415 (as above)
    from traceviz.version import __version__  # noqa: PLC0415 (as above)

    with path.open("rb") as file:
        content = hashlib.file_digest(file, "sha256").hexdigest()
    facts = (content, reader.format, exporter, str(SCHEMA_VERSION), __version__, _code())
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()


@functools.cache
def _code() -> str:
    """Return a digest of the code that makes tables: it changes between releases, when the version does not."""
    parsers, package = ([Path(folder) for folder in sys.modules[name].__path__] for name in (__package__, "traceviz"))
    patterns = [
        *((folder, pattern) for folder in parsers for pattern in ("nsys/**/*.py", "shared/**/*.py", "_*.so")),
        *((folder, pattern) for folder in package for pattern in ("*.py", "foreign/**/*.py", "_*.so")),
    ]
    files = {file for folder, pattern in patterns for file in folder.glob(pattern)}
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()
