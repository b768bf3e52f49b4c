"""Sort event tables by start, as the contract requires, without a second copy of any column."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceviz.core.arrays.sweeps import put_in_order
from traceviz.parsers.shared.arrays.arrow import pc


def in_order(table: pa.Table) -> pa.Table:
    """Return ``table`` with its rows sorted by start in place, or unchanged.

    The caller owns the memory. The table stays unchanged if values of a column are null, if a column has several chunks
    or lies in read-only memory, or if rows are far from their places.
    """
    starts = table["start_ns"]
    if starts.num_chunks != 1 or np.all((times := starts.to_numpy())[1:] >= times[:-1]):
        return table
    names = [name for name in table.column_names if name != "start_ns" and not _is_alike(table[name])]
    found = [_memory(table[name]) for name in (*names, "start_ns")]
    columns = [column for column in found if column is not None]
    if len({column.ctypes.data for column in columns}) == len(found):
        put_in_order(times, columns)
    return table


def _is_alike(column: pa.ChunkedArray[Any]) -> bool:
    """Return whether all values are null or equal, so that their order does not matter."""
    if column.null_count == len(column):
        return True
    values: Any = column.chunk(0)
    numbers = values.indices if pa.types.is_dictionary(values.type) else values
    if column.num_chunks != 1 or column.null_count or not pa.types.is_integer(numbers.type):
        return False
    bounds = pc.min_max(numbers)
    return bool(bounds["min"] == bounds["max"])


def _memory(column: pa.ChunkedArray[Any]) -> npt.NDArray[Any] | None:
    """Return the numbers of a column in place; ``None`` if they cannot be moved."""
    if column.num_chunks != 1 or column.null_count:
        return None
    values: Any = column.chunk(0)
    numbers = values.indices if pa.types.is_dictionary(values.type) else values
    buffer = numbers.buffers()[1] if pa.types.is_integer(numbers.type) else None
    if buffer is None or not buffer.is_mutable:
        return None
    whole = np.frombuffer(buffer, numbers.type.to_pandas_dtype())
    return whole[numbers.offset : numbers.offset + len(numbers)]
