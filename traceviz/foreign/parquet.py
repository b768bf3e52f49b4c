"""Parquet files from anywhere: opened and read so that what is damaged is found here, and not by whoever uses the rows.

Arrow reads a file whose footer contradicts itself, and codes of words that do not exist: later code would read memory
that is not there, or name a column that exists twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

DAMAGE = (OSError, ValueError, OverflowError, pa.ArrowException)
"""What Arrow raises for a file that is damaged, or whose types it does not read; names may be no UTF-8."""


Groups = Callable[[pq.FileMetaData], list[int]]
"""Which row groups of a file to read."""


def every_group(metadata: pq.FileMetaData) -> list[int]:
    """The numbers of all row groups."""
    return list(range(metadata.num_row_groups))


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


def read_parquet(
    source: Path | pa.NativeFile, columns: frozenset[str] | None = None, groups: Groups = every_group
) -> pa.Table:
    """The rows of some ``groups``, and those of ``columns`` that there are; ``None`` for all.

    Raises:
        OSError, ValueError, OverflowError, pyarrow.ArrowException: as :func:`open_parquet`; or a page is damaged, a
            text is no UTF-8, or a code stands for no word.
    """
    with open_parquet(source) as file:
        names = file.schema_arrow.names
        chosen = groups(file.metadata)
        table = file.read_row_groups(chosen, names if columns is None else [name for name in names if name in columns])
        stated = sum(file.metadata.row_group(number).num_rows for number in chosen)
        if table.num_rows != stated:
            raise pa.ArrowInvalid(f"The footer says {stated} rows, and there are {table.num_rows}.")
    table.validate(full=True)
    return table.replace_schema_metadata(None)  # what the file says of its parts is not true of the rows elsewhere


def _check_footer(file: pq.ParquetFile) -> None:
    twice = [name for name, count in Counter(file.schema_arrow.names).items() if count > 1]
    if twice:
        raise pa.ArrowInvalid(f"Two columns are called {twice[0]!r}.")
    metadata = file.metadata  # not of columns: where their statistics contradict each other, asking for them aborts
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    if sum(group.num_rows for group in groups) != metadata.num_rows:
        raise pa.ArrowInvalid(f"The footer says {metadata.num_rows} rows, and its parts have another number.")


def least_bytes(path: Path, groups: Groups = every_group) -> int:
    """Memory that rows of a file take at the least, by its footer: a page of a few bytes may hold billions.

    Raises:
        OSError, ValueError, OverflowError, pyarrow.ArrowException: as :func:`open_parquet`.
    """
    with open_parquet(path) as file:
        columns = map(file.schema.column, range(file.metadata.num_columns))
        rows = sum(file.metadata.row_group(number).num_rows for number in groups(file.metadata))
        return int(rows * sum(_BYTES.get(column.physical_type, 4) for column in columns))


_BYTES = {"BOOLEAN": 0.125, "INT64": 8, "DOUBLE": 8, "INT96": 8}
"""Width of values; all others are four bytes wide, or codes of texts."""
