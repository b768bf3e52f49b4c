"""Columns of an SQLite table as Arrow batches: the one place where rows of SQLite become arrays.

Everything above asks for columns by name and gets batches of 64-bit integers and binary strings; how they are
decoded is nobody else's business.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa

BATCH_ROWS = 1 << 16
"""Rows of one batch: 22 columns of 64 bits make 11 MB, enough to make per-batch work invisible."""


def sqlite_uri(path: Path) -> str:
    """URI that opens ``path`` without locking it, without a journal, and without writing anything beside it."""
    return f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"


def quoted(name: str) -> str:
    """``name`` as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def read_columns(path: Path, table: str, columns: Mapping[str, str], where: str = "") -> Iterator[pa.RecordBatch]:
    """Stream ``SELECT`` of ``columns`` (output name to SQL expression) from ``table``, in the order of the file.

    Integers come as ``int64``, texts that are cast to BLOB as ``binary``. A column takes its type from the first
    batch, where it must not be text throughout null: null texts need a default in their expression.

    Args:
        path: The database, which nobody may be writing.
        table: Name of the table.
        columns: Output columns.
        where: SQL condition of the rows wanted; empty for all.

    Raises:
        OSError: a page cannot be decoded, or a value does not fit the type of its column.
        adbc_driver_manager.Error: SQLite refuses the query.
    """
    from adbc_driver_sqlite import dbapi  # noqa: PLC0415 (loads a driver; not needed to identify files)

    selected = ", ".join(f"{expression} AS {quoted(name)}" for name, expression in columns.items())
    query = f"SELECT {selected} FROM {quoted(table)}" + (f" WHERE {where}" if where else "")  # noqa: S608 (quoted)
    with dbapi.connect(sqlite_uri(path)) as connection, connection.cursor() as cursor:
        cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": str(BATCH_ROWS)})
        cursor.execute(query)
        yield from cursor.fetch_record_batch()
