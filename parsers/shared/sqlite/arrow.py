"""Columns of an SQLite table as Arrow batches: the only conversion of rows of SQLite to arrays.

Callers name columns and get batches of 64-bit integers and binary strings. Three decoders give the same rows:

* whole tables of plain integers are decoded from their pages (:mod:`traceviz.parsers.shared.sqlite.pages`);
* few rows are fetched through Python's own ``sqlite3``, which needs no driver to be loaded;
* for everything else ADBC steps the rows in compiled code.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from traceviz.parsers.shared.arrays.arrow import Array, nulls, pc
from traceviz.parsers.shared.events.column_requests import NotPlainError
from traceviz.parsers.shared.sqlite.file import quoted
from traceviz.parsers.shared.sqlite.pages import read_integers
from traceviz.untrusted.sqlite import read_only_uri

BATCH_ROWS = 1 << 16
"""Rows of one batch: 22 columns of 64 bits take 11 MB, so that the cost per batch is negligible."""
FEW_ROWS = 1 << 13
"""Maximum number of rows that pass through Python objects, which takes less time than loading a driver."""
_ROWS_AT_ONCE = 1 << 6
"""Rows between two checks of the amount read: one value may be as long as the file."""
_LEAST_ROW = 6
"""Bytes of an empty row: its pointer, two sizes, its number, and a type."""


@dataclass(frozen=True, slots=True)
class StoredTable:
    """SQLite's storage of a table.

    Args:
        name: Its name.
        root: Number of its root page; 0 if it has none.
        types: Declared type of each column in stored order. ``None`` for columns of a primary key: they may stand for
            the row's number, which is not stored.
    """

    name: str
    root: int
    types: Mapping[str, str | None]

    def positions(self, columns: Sequence[str]) -> list[int]:
        """Return the stored positions of ``columns``.

        Raises:
            NotPlainError: one of them is not declared as an integer, so a stored integer may stand for another value.
        """
        if not self.root or any("INT" not in (self.types[name] or "").upper() for name in columns):
            raise NotPlainError("a column that is not declared as an integer")
        order = list(self.types)
        return [order.index(name) for name in columns]


def plain_batches(path: Path, table: StoredTable, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield all rows of integer ``columns`` as ``int64``, in the order of the file.

    Raises:
        NotPlainError: before the first batch or later: only SQLite itself should read the rows that follow.
    """
    names = list(columns)
    for decoded in read_integers(path, table.root, len(table.types), table.positions(names)):
        arrays = [
            nulls(column.rows, pa.int64()) if column.values is None else pa.array(column.values, mask=column.missing)
            for column in decoded
        ]
        yield pa.RecordBatch.from_arrays(arrays, names=names)


def sql_batches(
    path: Path, connection: sqlite3.Connection, source: str, integers: Sequence[str], texts: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Stream columns of ``source``, the text after FROM in a query, in its order.

    Integers come as ``int64``, texts as ``binary``, since they may hold any bytes.

    Args:
        path: The database; no program may be writing to it.
        connection: The same database, opened.
        source: Table with its conditions, in SQL.
        integers: Columns of integers.
        texts: Columns of texts.

    Raises:
        TypeError, pyarrow.ArrowException: a value does not fit the type of its column.
        sqlite3.Error, OSError: SQLite refuses the query, finds the file damaged, or a value does not fit; or there are
            more rows or bytes than the file can hold.
    """
    room = _Room(path.stat().st_size)
    as_bytes = [f"CAST({quoted(name)} AS BLOB)" for name in texts]
    selected = ", ".join([*map(quoted, integers), *as_bytes])
    cursor = connection.execute(f"SELECT {selected} FROM {source}")  # noqa: S608 (quoted)
    rows: list[tuple[Any, ...]] = []
    while len(rows) <= FEW_ROWS:
        some = cursor.fetchmany(_ROWS_AT_ONCE)
        room.take(len(some), sum(len(text) for row in some for text in row[len(integers) :] if text))
        rows += some
        if len(some) < _ROWS_AT_ONCE:
            break
    if len(rows) > FEW_ROWS:
        del rows
        yield from _driver_batches(path, source, integers, texts)
        return
    columns = [[row[index] for row in rows] for index in range(len(integers) + len(texts))]
    numbers = [_numbers(name, pa.array(values)) for name, values in zip(integers, columns, strict=False)]
    words = [pa.array(values, pa.binary()) for values in columns[len(integers) :]]
    yield pa.RecordBatch.from_arrays([*numbers, *words], names=[*integers, *texts])


class _Room:
    """Upper limits for the content of a file. Pages that a damaged tree names many times would exceed them.

    Args:
        size: Bytes of the file.
    """

    def __init__(self, size: int) -> None:
        self._rows = size // _LEAST_ROW
        self._bytes = 4 * size  # numbers grow when converted to texts, and UTF-16 when converted to UTF-8

    def take(self, rows: int, size: int) -> None:
        """Count ``rows`` and ``size`` bytes of texts.

        Raises:
            OSError: the file cannot hold that much.
        """
        self._rows -= rows
        self._bytes -= size
        if self._rows < 0 or self._bytes < 0:
            raise OSError("More rows or texts than the file has room for")


def _driver_batches(path: Path, source: str, integers: Sequence[str], texts: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield batches by the driver. It types a column by its first batch, so texts have a separate flag for null."""
    from adbc_driver_sqlite import dbapi  # noqa: PLC0415 (takes longer to load than most traces take to read)

    columns = [quoted(name) for name in integers]
    columns += [f"ifnull(CAST({quoted(name)} AS BLOB), x'')" for name in texts]
    columns += [f"{quoted(name)} IS NULL" for name in texts]
    query = f"SELECT {', '.join(columns)} FROM {source}"  # noqa: S608 (quoted)
    room = _Room(path.stat().st_size)
    texts_end = len(integers) + len(texts)
    try:
        with dbapi.connect(read_only_uri(path)) as connection, connection.cursor() as cursor:
            cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": str(BATCH_ROWS)})
            cursor.execute(query)
            for batch in cursor.fetch_record_batch():
                words = batch.columns[len(integers) : texts_end]
                room.take(batch.num_rows, sum(pc.sum(pc.binary_length(word)).as_py() or 0 for word in words))
                numbers = [_numbers(name, column) for name, column in zip(integers, batch.columns, strict=False)]
                # Separate flags distinguish null from empty.
                flags = (pc.equal(flag, 0) for flag in batch.columns[texts_end:])
                nothing = pa.scalar(None, pa.binary())
                words = [pc.if_else(*pair, nothing) for pair in zip(flags, words, strict=True)]
                yield pa.RecordBatch.from_arrays([*numbers, *words], names=[*integers, *texts])
    except dbapi.Error as error:
        raise OSError(str(error)) from error


def _numbers(name: str, values: Array) -> Array:
    """Return ``values`` as ``int64``; their type is the one that SQLite stored."""
    if not pa.types.is_int64(values.type) and not pa.types.is_null(values.type):
        raise TypeError(f"{values.type} in {name}, a column of integers")
    return values.cast(pa.int64())
