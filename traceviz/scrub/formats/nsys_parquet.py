"""Scrubbing ``parquetdir`` exports of Nsight Systems, which hold each table of an SQLite export as a Parquet file.

The policy is the same. The tables become a temporary database, which is scrubbed
(:mod:`traceviz.scrub.formats.nsys_sqlite`), and then Parquet again::

    StringIds.parquet, NVTX_EVENTS.parquet ... -> database -> scrubbed database -> NVTX_EVENTS.parquet ...

Parquet files may hold names instead of their numbers. These names are numbered in the database.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from traceviz.core.errors import DamagedTraceError, OutputError
from traceviz.core.process.temporary import temporary_folder
from traceviz.parsers.nsys.parquetdir import SUFFIX
from traceviz.parsers.shared.arrays.arrow import nulls
from traceviz.parsers.shared.sqlite.arrow import BATCH_ROWS
from traceviz.scrub.formats import nsys_policy as policy
from traceviz.scrub.formats.nsys_sqlite import scrubbed_database, secrets_of_database
from traceviz.scrub.formats.sqlite_copy import explained, quoted
from traceviz.scrub.result import Outcome
from traceviz.scrub.secrets.redactor import Redactor
from traceviz.scrub.secrets.search import PACKED, check_file, leak
from traceviz.scrub.secrets.values import Secret
from traceviz.untrusted.parquet import DAMAGE, open_parquet

_STRINGS = "StringIds"
_FIRST_OF_NAMES = 1 << 40
"""First number for names without a number in the source."""


def secrets_of_nsys_parquet(source: Path) -> list[Secret]:
    """Return the secrets of a ``parquetdir`` export.

    Raises:
        DamagedTraceError: it cannot be read completely.
    """
    with temporary_folder() as spool:
        database = spool / "source"
        _write_database(source, database, lambda schema: any(_is_text(_values(column.type)) for column in schema))
        return secrets_of_database(database)


def scrub_nsys_parquet(source: Path, target: Path, known: Iterable[Secret] = ()) -> Outcome:
    """Write a scrubbed copy of a ``parquetdir`` export into the empty folder ``target``.

    Args:
        source: The folder. It is only read.
        target: An empty folder.
        known: Secrets found in other files.

    Returns:
        Kinds and counts of removed data, the number of secrets, and the number of searched bytes.

    Raises:
        DamagedTraceError: a file of ``source`` cannot be read completely.
        OutputError: ``target`` cannot be written, or a secret would remain in it.
    """
    with temporary_folder() as spool:
        database, clean = spool / "source", spool / "clean"
        layouts = _write_database(source, database)
        removed, redactor = scrubbed_database(database, clean, known)
        with explained(source), closing(sqlite3.connect(clean)) as db:
            db.text_factory = lambda text: text.decode("utf-8", "replace")
            for layout in layouts:
                _write_parquet(db, layout, target)
    return removed, len(redactor.secrets), sum(_check(path, redactor) for path in sorted(target.iterdir()))


# --- from Parquet to a database --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Layout:
    """Layout of a table's file.

    Args:
        name: Its name.
        schema: Columns of the file.
    """

    name: str
    schema: pa.Schema

    def declaration(self) -> str:
        """Return SQL that creates the table."""
        columns = []
        for column in self.schema:
            kind = _values(column.type)
            if _is_name(self.name, column) or pa.types.is_integer(kind) or pa.types.is_boolean(kind):
                declared = "INTEGER"
            else:
                declared = "REAL" if pa.types.is_floating(kind) else "TEXT"
            columns.append(f"{quoted(column.name)} {declared}")
        return f"CREATE TABLE {quoted(self.name)} ({', '.join(columns)})"


class _Strings(dict[str, int]):
    """Numbers of names that columns hold instead of a number."""

    def numbered(self, values: Any) -> Any:
        """Convert an array of texts to an array of numbers."""
        encoded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
        ids = []
        for value in encoded.dictionary.to_pylist():
            text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
            ids.append(None if text is None else self.setdefault(text, _FIRST_OF_NAMES + len(self)))
        return pc.take(pa.array(ids, pa.int64()), encoded.indices)


def _write_database(source: Path, database: Path, takes: Callable[[pa.Schema], bool] = lambda _: True) -> list[_Layout]:
    """Write the tables of ``source`` whose schema ``takes`` accepts into a new database; return their layouts."""
    files = [path for path in sorted(source.glob("*" + SUFFIX)) if path.is_file() and not path.is_symlink()]
    with explained(source), closing(sqlite3.connect(database)) as db:
        db.execute("PRAGMA journal_mode = OFF")
        db.execute("PRAGMA synchronous = OFF")
        strings = _Strings()
        layouts = [layout for path in files if (layout := _load(db, path, strings, takes)) is not None]
        if strings:
            if all(layout.name != _STRINGS for layout in layouts):
                db.execute(f"CREATE TABLE {_STRINGS} (id INTEGER, value TEXT)")
            rows = ((number, text) for text, number in strings.items())
            db.executemany(f"INSERT INTO {_STRINGS} (id, value) VALUES (?, ?)", rows)  # noqa: S608 (a constant)
        db.commit()
    return layouts


def _load(db: sqlite3.Connection, path: Path, strings: _Strings, takes: Callable[[pa.Schema], bool]) -> _Layout | None:
    try:
        with open_parquet(path) as file:
            layout = _Layout(path.stem, file.schema_arrow)
            if not takes(layout.schema):
                return None
            db.execute(layout.declaration())
            insert = f"INSERT INTO {quoted(path.stem)} VALUES ({', '.join('?' * len(layout.schema))})"  # noqa: S608
            for batch in file.iter_batches(BATCH_ROWS):
                batch.validate(full=True)
                columns = [
                    _stored(layout.name, column, batch[column.name], strings).to_pylist() for column in layout.schema
                ]
                db.executemany(insert, zip(*columns, strict=True))
    except DAMAGE as error:
        raise DamagedTraceError(f"{path} cannot be read.", str(error), "Export the report again.") from error
    return layout


def _is_name(table: str, column: pa.Field[Any]) -> bool:
    """Return whether a column of name references holds the names themselves."""
    return _is_text(_values(column.type)) and policy.refers_to_name(table, column.name)


def _values(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if isinstance(kind, pa.DictionaryType) else kind


def _is_text(kind: pa.DataType) -> bool:
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(test(kind) for test in tests)


def _stored(table: str, column: pa.Field[Any], values: Any, strings: _Strings) -> Any:
    """Convert a column for the database. Values other than numbers and texts are removed, as they may be private."""
    if _is_name(table, column):
        return strings.numbered(values)
    if pa.types.is_uint64(column.type):
        return values.view(pa.int64())
    if _is_text(_values(column.type)) or pa.types.is_boolean(column.type):
        return values
    is_number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    return values if is_number else pa.nulls(len(values))


# --- from the database to Parquet ------------------------------------------------------------------------------------


def _write_parquet(db: sqlite3.Connection, layout: _Layout, target: Path) -> None:
    """Write a table of the scrubbed database in the layout of the source, without the metadata of its file."""
    # Texts are written without dictionaries, which may hold texts that no row has.
    plain = pa.schema(
        [(field.name, pa.string() if _is_text(_values(field.type)) else field.type) for field in layout.schema]
    )
    columns = ", ".join(
        f"(SELECT value FROM {_STRINGS} WHERE id = {quoted(layout.name)}.{quoted(column.name)})"  # noqa: S608 (quoted)
        if _is_name(layout.name, column)
        else quoted(column.name)
        for column in layout.schema
    )
    last = f" WHERE id < {_FIRST_OF_NAMES}" if layout.name == _STRINGS else ""
    rows = db.execute(f"SELECT {columns} FROM {quoted(layout.name)}{last}")  # noqa: S608 (quoted)
    try:
        with pq.ParquetWriter(target / (layout.name + SUFFIX), plain, compression="zstd") as writer:
            while batch := rows.fetchmany(BATCH_ROWS):
                columns_of_batch = zip(zip(*batch, strict=True), plain, strict=True)
                arrays = [_array(values, column.type) for values, column in columns_of_batch]
                writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=plain))
    except (OSError, pa.ArrowException) as error:
        raise OutputError(f"{layout.name}{SUFFIX} cannot be written.", str(error)) from error


def _array(values: tuple[Any, ...], kind: pa.DataType) -> Any:
    if pa.types.is_uint64(kind):
        return pa.array(values, pa.int64()).view(kind)
    if pa.types.is_boolean(kind):
        return pa.array(values, pa.int8()).cast(kind)
    is_known = _is_text(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)
    return pa.array(values, kind) if is_known else nulls(len(values), kind)


def _check(path: Path, redactor: Redactor) -> int:
    """Search a written file for secrets in its texts, its names, and its bytes; return the bytes of text."""
    table = pq.read_table(path)
    size = 0
    for name in (path.name, *table.column_names):
        if redactor.holds(name.encode()):
            raise leak("in the name of a table or column")
    for column in table.columns:
        if _is_text(column.type):
            texts = [text.encode() for text in pc.unique(column).to_pylist() if text is not None]
            size += sum(map(len, texts))
            if any(map(redactor.holds, texts)):
                raise leak(f"in {path.name}")
    check_file(path, redactor, PACKED)
    return size
