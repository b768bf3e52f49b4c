"""What another program exported is kept: decoding a recording of nsys takes a good part of the time of a report.

::

    report.nsys-rep --> nsys export --> all tables, as a traceviz folder --> what is asked for
                                              |        ^
                                              v        |  the next time, from here
                                      a folder of the cache

The folder holds every table whatever was asked for, so that it answers any question, and the first answer comes from it
as the second does. It is made among the temporary files and moved: where the cache takes nothing, it is read where it
is, and nsys need not run twice. Making it adds up to a tenth to the processor time of a whole report; to that of one
section up to two fifths, and memory, where the trace has large tables that the section does not read.

A kept folder is that of the report's content, of the exporting program and its version, and of the code that made the
tables. It holds no private data: where that is asked for, nothing is kept, and nothing that was kept is used.
"""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from traceviz.core.errors import OutOfMemoryError, TracevizError
from traceviz.core.process.temporary import temporary_folder
from traceviz.parsers.base import Reader, ReadOptions
from traceviz.parsers.traceviz_folder import TracevizFolderReader
from traceviz.trace.folder_cache import KeptFolders, kept_folders
from traceviz.trace.trace_folder import MANIFEST

if TYPE_CHECKING:
    import pyarrow as pa

KIND = "exports"
"""Name of the folder in the cache."""
KEPT = "kept from an earlier export"
"""What ``run.reader`` adds where nothing was exported now."""
Tables = Iterator[tuple[str, "pa.Table"]]


def tables_of(path: Path, reader: Reader, options: ReadOptions) -> Tables:
    """What :meth:`Reader.tables` yields; where another program has to export ``path``, that happens once.

    Raises:
        TracevizError: as :meth:`Reader.tables`.
        UsageError: the environment names a bound of the cache that is no size.

    Warns:
        TracevizWarning: the folder of the cache is not ours.
    """
    exporter = reader.exporter() if options.cache and not options.keep_private else None
    kept = kept_folders(KIND, _files()) if exporter else None
    if exporter is None or kept is None:
        return reader.tables(path, options)
    try:
        export = _Export(path, reader, exporter, kept)
    except OSError:  # the reader says what is wrong with the file
        return reader.tables(path, options)
    return export.tables(options)


def _files() -> frozenset[str]:
    """Names of the files that a traceviz folder may hold."""
    from traceviz.trace.schema import TABLES  # noqa: PLC0415 (recognising a file loads no pyarrow)

    return frozenset({MANIFEST, *(f"{table}.parquet" for table in TABLES)})


class _UnusableError(Exception):
    """A folder is not there, or cannot be made or read."""


class _Export:
    """The tables of one file, by the cheapest way that can be gone."""

    def __init__(self, path: Path, reader: Reader, exporter: str, kept: KeptFolders) -> None:
        self.path = path
        self.reader = reader
        self.exporter = exporter
        self.kept = kept
        self.key = _key(path, reader, exporter)

    def tables(self, options: ReadOptions) -> Tables:
        """The tables; where a folder turns out to be damaged, those that it has not given yet come the next way."""
        ways: tuple[Callable[[ReadOptions], Tables], ...] = (self._kept_before, self._exported_now, self._not_kept)
        given: set[str] = set()
        for way in ways:
            try:
                for name, table in way(options):
                    handed = [table]
                    del table  # who gets it may let go of it: nothing is left of it here
                    if name not in given:
                        given.add(name)
                        yield name, handed.pop()
            except _UnusableError:
                continue
            return

    def _kept_before(self, options: ReadOptions) -> Tables:
        folder = self.kept.find(self.key)
        if folder is None:
            raise _UnusableError
        try:
            for name, table in _from_folder(folder, options):
                handed = [_marked(table) if name == "run" else table]
                del table  # as above
                yield name, handed.pop()
        except _UnusableError:
            self.kept.evict(self.key)
            raise

    def _exported_now(self, options: ReadOptions) -> Tables:
        with temporary_folder() as work:
            made = work / "tables"
            try:
                made.mkdir()
                is_export = self._write(made, options)
            except OSError as error:  # of the place of temporary files: reading has errors of its own
                raise _UnusableError from error
            kept = self.kept.keep(self.key, made) if is_export else None
            yield from _from_folder(kept or made, options)

    def _not_kept(self, options: ReadOptions) -> Tables:
        return self.reader.tables(self.path, options)

    def _write(self, folder: Path, options: ReadOptions) -> bool:
        """Write all tables; whether they are the export of what the key stands for.

        They are not where something beside the report was read in its place, or the file was changed meanwhile.
        """
        from traceviz.trace.tables import load, write_tables  # noqa: PLC0415 (as above)

        everything = replace(options, tables=None, columns={}, window=None)
        provenance = {"format": self.reader.format, "exporter": self.exporter}
        write_tables(folder, self.reader.tables(self.path, everything), provenance)
        route = str(load(folder).run_facts().get("reader"))
        return route.endswith(self.exporter) and self.key == _key(self.path, self.reader, self.exporter)


def _from_folder(folder: Path, options: ReadOptions) -> Tables:
    try:
        yield from TracevizFolderReader().tables(folder, options)
    except OutOfMemoryError:
        raise
    except TracevizError as error:
        raise _UnusableError from error


def _marked(run: pa.Table) -> pa.Table:
    """Table ``run`` of a folder that was kept, which says so."""
    import pyarrow as pa  # noqa: PLC0415 (as above)

    at = run.schema.get_field_index("reader")
    routes = [f"{route}, {KEPT}" for route in run["reader"].to_pylist()]
    return run.set_column(at, run.schema.field(at), pa.array(routes, run.schema.field(at).type))


def _key(path: Path, reader: Reader, exporter: str) -> str:
    """What the tables depend on, as one word."""
    from traceviz.trace.schema import SCHEMA_VERSION  # noqa: PLC0415 (as above)
    from traceviz.version import __version__  # noqa: PLC0415 (as above)

    with path.open("rb") as file:
        content = hashlib.file_digest(file, "sha256").hexdigest()
    facts = (content, reader.format, exporter, str(SCHEMA_VERSION), __version__, _code())
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()


@functools.cache
def _code() -> str:
    """A digest of the code that makes tables: between two releases it changes, and the version does not."""
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
