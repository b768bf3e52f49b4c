"""Parquet files from any source, opened and read so that damage is found here, and not by users of the rows.

Arrow reads a file whose footer contradicts itself, and text codes that do not exist. Later code would read memory
outside of a buffer, or name a column that exists twice.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from traceviz.core.lazy_module import Later

if TYPE_CHECKING:
    import pyarrow.parquet as pq
else:
    pq = Later("pyarrow.parquet")

DAMAGE = (OSError, ValueError, OverflowError, pa.ArrowException)
"""Exceptions of Arrow for a file that is damaged, or has types that it does not read; names may not be UTF-8."""


def open_parquet(source: Path | pa.NativeFile) -> pq.ParquetFile:
    """Open the file; the caller closes it.

    Raises:
        OSError, ValueError, OverflowError, pyarrow.ArrowException: it is damaged (see :data:`DAMAGE`), has two columns
            of one name, or its numbers of rows contradict each other.
    """
    file = pq.ParquetFile(source)
    try:
        _check_footer(file)
    except BaseException:
        file.close()
        raise
    return file


def read_parquet(source: Path | pa.NativeFile, columns: frozenset[str] | None = None) -> pa.Table:
    """Read all rows, with the existing columns among ``columns``; ``None`` for all.

    Raises:
        OSError, ValueError, OverflowError, pyarrow.ArrowException: as :func:`open_parquet`; or a page is damaged, a
            text is not UTF-8, or a code has no text.
    """
    with open_parquet(source) as file:
        names = file.schema_arrow.names
        table = file.read(names if columns is None else [name for name in names if name in columns])
        return _checked(table, file.metadata.num_rows)


def read_group(file: pq.ParquetFile, group: int, names: list[str]) -> pa.Table:
    """Read the rows of one row group.

    Raises:
        OSError, ValueError, OverflowError, pyarrow.ArrowException: as :func:`read_parquet`.
    """
    return _checked(file.read_row_group(group, names), file.metadata.row_group(group).num_rows)


def _checked(table: pa.Table, rows: int) -> pa.Table:
    if table.num_rows != rows:
        raise pa.ArrowInvalid(f"The footer says {rows} rows, and there are {table.num_rows}.")
    table.validate(full=True)
    return table


def _check_footer(file: pq.ParquetFile) -> None:
    twice = [name for name, count in Counter(file.schema_arrow.names).items() if count > 1]
    if twice:
        raise pa.ArrowInvalid(f"Two columns are called {twice[0]!r}.")
    metadata = file.metadata  # no metadata of columns: asking for contradictory statistics aborts the process
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    if sum(group.num_rows for group in groups) != metadata.num_rows:
        raise pa.ArrowInvalid(f"The footer says {metadata.num_rows} rows, and its parts have another number.")


def least_bytes(path: Path) -> int:
    """Return the least memory for all rows of a file, by its footer: a page of a few bytes may hold billions of rows.

    Raises:
        OSError, ValueError, OverflowError, pyarrow.ArrowException: as :func:`open_parquet`.
    """
    with open_parquet(path) as file:
        columns = map(file.schema.column, range(file.metadata.num_columns))
        return int(file.metadata.num_rows * sum(_BYTES.get(column.physical_type, 4) for column in columns))


_BYTES = {"BOOLEAN": 0.125, "INT64": 8, "DOUBLE": 8, "INT96": 8}
"""Bytes per value; all others are four bytes wide, or codes of texts."""
