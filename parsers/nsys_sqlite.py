"""Reader of Nsight Systems SQLite exports, from nsys 2020.5 (which states no schema version) to schema 3.25."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from traceviz.errors import DamagedTraceError
from traceviz.parsers.arrow import Array, pc
from traceviz.parsers.base import Match, Reader, ReadOptions
from traceviz.parsers.nsys_raw import MAX_LOOKUPS, STRINGS, Extent, Keep, RawTables
from traceviz.parsers.nsys_tables import Provenance, read_tables
from traceviz.parsers.sqlite_arrow import quoted, read_columns, sqlite_uri

MAGIC = b"SQLite format 3\0"
MARKERS = frozenset(
    {"TARGET_INFO_SESSION_START_TIME", "TARGET_INFO_SYSTEM_ENV", "ANALYSIS_DETAILS", "ANALYSIS_FILE"}
    | {"META_DATA_EXPORT", "EXPORT_META_DATA", "NVTX_EVENTS", "OSRT_API", "CUPTI_ACTIVITY_KIND_RUNTIME"}
)
"""Tables of which every export has at least one, beside its strings."""
LOOKUPS_PER_QUERY = 500


class SqliteTables(RawTables):
    """Tables of an SQLite export, opened read-only: nothing is locked, and nothing is written beside the file.

    Raises:
        DamagedTraceError: the file is cut short, or its catalogue cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        check_complete(path)
        self._connection = sqlite3.connect(sqlite_uri(path), uri=True)
        try:
            self._catalogue = _catalogue(self._connection)
        except sqlite3.Error as error:
            self._connection.close()
            raise self.damaged("sqlite_master", error) from error

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

    @property
    def names(self) -> frozenset[str]:
        """Names of the tables present."""
        return frozenset(self._catalogue)

    def columns(self, table: str) -> frozenset[str]:
        """Columns of ``table``."""
        return self._catalogue.get(table, frozenset())

    def is_text(self, table: str, column: str) -> bool:  # noqa: ARG002 (SQLite exports always hold ids)
        """See :meth:`RawTables.is_text`."""
        return False

    def stream(
        self, table: str, integers: Sequence[str], texts: Sequence[str] = (), keep: Keep | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Batches of columns; see :meth:`RawTables.stream`."""
        yield from self._stream(table, integers, texts, self._where(table, keep))

    def extent(self, table: str, start: str, end: str | None, keep: Keep | None) -> Extent:
        """Rows and time range; see :meth:`RawTables.extent`."""
        last = [quoted(name) for name in (start, end) if name in self.columns(table)]
        bounds = ", ".join(f"min({name}), max({name})" for name in last)
        (rows, *found), *_ = self._query(table, f"count(*), {bounds}", keep)
        # SQLite sorts text after numbers, so that a text among them shows as the maximum.
        if any(not isinstance(bound, int | None) for bound in found):
            raise self.damaged(table, "a time is not a number")
        known = [bound for bound in found if bound is not None]
        return Extent(rows, min(known), max(known)) if known else Extent(rows)

    def distinct(self, table: str, columns: Sequence[str], keep: Keep | None) -> pa.Table:
        """Distinct combinations; see :meth:`RawTables.distinct`."""
        rows = self._query(table, "DISTINCT " + ", ".join(map(quoted, columns)), keep)
        names = list(columns)
        try:
            arrays = [pa.array([row[index] for row in rows], pa.int64()) for index in range(len(names))]
        except (pa.ArrowException, TypeError, OverflowError) as error:
            raise self.damaged(table, f"text in {' or '.join(names)}") from error
        return pa.table(arrays, names=names)

    def _query(self, table: str, selected: str, keep: Keep | None) -> list[tuple[Any, ...]]:
        where = self._where(table, keep)
        query = f"SELECT {selected} FROM {quoted(table)}" + (f" WHERE {where}" if where else "")  # noqa: S608 (quoted)
        try:
            return self._connection.execute(query).fetchall()
        except sqlite3.Error as error:
            raise self.damaged(table, error) from error

    def _where(self, table: str, keep: Keep | None) -> str:
        if keep is None or keep.column not in self.columns(table):
            return ""
        column, values = quoted(keep.column), ", ".join(map(str, keep.values))
        return f"({column} IS NULL OR {column} NOT IN ({values}))" if keep.inverted else f"{column} IN ({values})"

    def _stream(
        self, table: str, integers: Sequence[str], texts: Sequence[str], where: str
    ) -> Iterator[pa.RecordBatch]:
        """Texts travel as bytes beside a flag for null: a text column that begins with nulls has no type of its own."""
        import adbc_driver_manager  # noqa: PLC0415 (loads a driver; not needed to identify files)

        columns = {name: quoted(name) for name in integers}
        columns |= {name: f"ifnull(CAST({quoted(name)} AS BLOB), x'')" for name in texts}
        columns |= {_flag(name): f"{quoted(name)} IS NULL" for name in texts}
        try:
            for batch in read_columns(self.path, table, columns, where):
                yield self._checked(table, batch, integers, texts)
        except (OSError, pa.ArrowException, adbc_driver_manager.Error) as error:
            raise self.damaged(table, error) from error

    def _checked(
        self, table: str, batch: pa.RecordBatch, integers: Sequence[str], texts: Sequence[str]
    ) -> pa.RecordBatch:
        for name in integers:
            if not pa.types.is_int64(batch[name].type):
                raise self.damaged(table, f"{batch[name].type} in {name}, a column of integers")
        arrays = [batch[name] for name in integers]
        arrays += [_without(batch[name], batch[_flag(name)]) for name in texts]
        return pa.RecordBatch.from_arrays(arrays, names=[*integers, *texts])

    def _string_batches(self, ids: Array) -> Iterator[pa.RecordBatch]:
        """Look few ids up by key; for many, one pass over the table is faster."""
        if len(ids) > MAX_LOOKUPS:
            yield from self.stream(STRINGS, ("id",), ("value",))
            return
        for offset in range(0, len(ids), LOOKUPS_PER_QUERY):
            values = ", ".join(map(str, ids[offset : offset + LOOKUPS_PER_QUERY].to_pylist()))
            yield from self._stream(STRINGS, ("id",), ("value",), f"id IN ({values})")


def _flag(name: str) -> str:
    return name + " is null"


def _without(values: Array, is_null: Array) -> Array:
    return pc.if_else(pc.equal(is_null, 0), values, pa.scalar(None, pa.binary()))


def _catalogue(connection: sqlite3.Connection) -> dict[str, frozenset[str]]:
    query = (
        "SELECT t.name, c.name FROM sqlite_master AS t LEFT JOIN pragma_table_info(t.name) AS c WHERE t.type = 'table'"
    )
    found: dict[str, set[str]] = {}
    for table, column in connection.execute(query):
        found.setdefault(table, set()).add(column)
    return {table: frozenset(columns) for table, columns in found.items()}


def check_complete(path: Path) -> None:
    """Compare the size of an SQLite file with the number of pages that its header states.

    The count is valid where the header's change counter equals its "version valid for" number (SQLite file format,
    section 1.3.7); writers since SQLite 3.7.0 keep them equal.

    Raises:
        DamagedTraceError: the file is shorter.
    """
    with path.open("rb") as file:
        header = file.read(100)
    size = path.stat().st_size
    whole = 0
    if len(header) == 100 and header[24:28] == header[92:96]:
        page = int.from_bytes(header[16:18], "big")
        whole = int.from_bytes(header[28:32], "big") * (65536 if page == 1 else page)
    if len(header) < 100 or size < whole:
        raise DamagedTraceError(
            f"{path.name} is cut short.",
            f"It holds {size:,} bytes; its header says {max(whole, 100):,}.",
            "Copy or export it again.",
        )


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
            with closing(sqlite3.connect(sqlite_uri(path), uri=True)) as connection:
                names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        except (sqlite3.Error, OSError, ValueError):
            # Damaged; the text of its catalogue, which begins on the first page, still says whose it was.
            known = b"StringIds" in head and any(marker.encode() in head for marker in MARKERS)
            return Match.YES if known else Match.NO
        return Match.YES if "StringIds" in names and MARKERS & names else Match.NO

    def read(self, path: Path, options: ReadOptions) -> Iterator[tuple[str, pa.Table]]:
        """See :meth:`Reader.read`."""
        with SqliteTables(path) as raw:
            yield from read_tables(raw, options, Provenance("nsys sqlite", notes=_unfinished(path)))


def _unfinished(path: Path) -> tuple[tuple[str, str, str], ...]:
    """A write-ahead log beside the database: what it holds is not seen, since reading it would write there."""
    log = path.with_name(path.name + "-wal")
    if not log.is_file() or not log.stat().st_size:
        return ()
    return (("sqlite-log-ignored", "warning", f"{log.name} holds changes that are not in the file yet: not read."),)
