"""Parquet files from anywhere: opened and read so that what is damaged is found here, and not by whoever uses the rows.

Arrow reads a file whose footer contradicts itself, and codes of words that do not exist: later code would read memory
that is not there, or name a column that exists twice.
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
"""What Arrow raises for a file that is damaged, or whose types it does not read; names may be no UTF-8."""


def open_parquet(source: Path | pa.NativeFile) -> pq.ParquetFile:
    """The file, opened; whoever opens it closes it.

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
    """All rows, and those of ``columns`` that there are; ``None`` for all.

    Raises:
        OSError, ValueError, OverflowError, pyarrow.ArrowException: as :func:`open_parquet`; or a page is damaged, a
            text is no UTF-8, or a code stands for no word.
    """
    with open_parquet(source) as file:
        names = file.schema_arrow.names
        table = file.read(names if columns is None else [name for name in names if name in columns])
        return _checked(table, file.metadata.num_rows)


def read_group(file: pq.ParquetFile, group: int, names: list[str]) -> pa.Table:
    """The rows of one row group.

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
    metadata = file.metadata  # not of columns: where their statistics contradict each other, asking for them aborts
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    if sum(group.num_rows for group in groups) != metadata.num_rows:
        raise pa.ArrowInvalid(f"The footer says {metadata.num_rows} rows, and its parts have another number.")


def least_bytes(path: Path) -> int:
    """Memory that all rows of a file take at the least, by its footer: a page of a few bytes may hold billions.

    Raises:
        OSError, ValueError, OverflowError, pyarrow.ArrowException: as :func:`open_parquet`.
    """
    with open_parquet(path) as file:
        columns = map(file.schema.column, range(file.metadata.num_columns))
        return int(file.metadata.num_rows * sum(_BYTES.get(column.physical_type, 4) for column in columns))


_BYTES = {"BOOLEAN": 0.125, "INT64": 8, "DOUBLE": 8, "INT96": 8}
"""Width of values; all others are four bytes wide, or codes of texts."""
