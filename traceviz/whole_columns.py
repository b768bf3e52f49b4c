"""Columns as analyses need them: each in one piece, and without memory where all its values are zeros or nulls.

A file of many row groups is read as many pieces. Whoever uses a column as an array would copy it together each time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceviz import schema

_compute: Any = pc
_buffer: Any = pa.py_buffer
"""What the stubs of pyarrow do not know: dictionaries of bounds, and memory of NumPy arrays as it is."""


def in_one_piece(given: list[pa.Table]) -> pa.Table:
    """The only table of ``given``, which is taken from there, each column in one piece.

    Where nobody else holds it, the pieces of a column are let go of before the next is made.
    """
    table = given.pop()
    declared, columns = table.schema, table.columns
    del table
    whole: list[Any] = []
    while columns:
        whole.append(_whole(columns.pop(0)))
    return pa.table(whole, schema=declared)


def _whole(column: pa.ChunkedArray[Any]) -> Any:
    """``column`` in one piece."""
    if not len(column):
        return column
    if column.null_count == len(column):
        return schema.nulls(len(column), column.type)
    if pa.types.is_dictionary(column.type):
        joined: Any = column.unify_dictionaries().combine_chunks()
        joined = joined if isinstance(joined, pa.DictionaryArray) else joined.chunk(0)
        return pa.DictionaryArray.from_arrays(_or_zeros(joined.indices), joined.dictionary)
    if not column.null_count and pa.types.is_integer(column.type) and _are_zeros(column):
        return zeros(len(column), column.type)
    return column.combine_chunks()


def _or_zeros(codes: pa.Array[Any]) -> pa.Array[Any]:
    """The same codes; those of one word, as many columns have, without memory."""
    return codes if codes.null_count or not _are_zeros(codes) else zeros(len(codes), codes.type)


def _are_zeros(values: Any) -> bool:
    if values[0].as_py() != 0:  # as in most columns of which not all are: no pass over them
        return False
    bounds = _compute.min_max(values).as_py()
    return bool(bounds["min"] == bounds["max"] == 0)


def zeros(rows: int, kind: pa.DataType) -> Any:
    """An array of ``rows`` zeros of the integer type ``kind``, in memory that is never touched: it costs nothing."""
    return pa.Array.from_buffers(kind, rows, [None, _buffer(np.zeros(rows, kind.to_pandas_dtype()))])
