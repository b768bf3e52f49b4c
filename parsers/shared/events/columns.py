"""NumPy arrays as columns of the contract: dictionaries from codes, nulls by a mask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from traceviz.parsers.shared.arrays.arrow import Array as Arrow
from traceviz.parsers.shared.arrays.arrow import DictionaryArray
from traceviz.parsers.shared.arrays.operations import NONE, Array, take, used
from traceviz.trace import schema

_buffer: Any = pa.py_buffer
"""View of a NumPy array as a buffer, without a copy; the stubs of pyarrow do not declare this."""


def encoded(codes: Array, words: Sequence[str | None]) -> DictionaryArray:
    """Return a dictionary column from positions in ``words``. Negative positions and positions of ``None`` are null.

    The dictionary holds the words in use, each once, even if ``words`` holds one twice.
    """
    recode = np.full(len(words), NONE, dtype=np.int32)
    positions = np.flatnonzero(used(codes, len(words)))
    in_use = [words[position] for position in positions.tolist()]
    distinct = dict.fromkeys(in_use)
    distinct.pop(None, None)
    if len(distinct) == len(in_use):  # the usual case: no duplicates
        recode[positions] = np.arange(len(in_use), dtype=np.int32)
    else:
        place: dict[str | None, int] = {word: number for number, word in enumerate(distinct)}
        recode[positions] = [place.get(word, NONE) for word in in_use]
    indices: Any = nullable(take(recode, codes), pa.int32())
    return pa.DictionaryArray.from_arrays(indices, pa.array(list(distinct), pa.string()))


def nullable(values: Array, kind: pa.DataType) -> Arrow:
    """Return whole numbers as an Arrow column of ``kind``, null if negative. They are copied only to widen them."""
    return masked(values, values < 0, kind)


def table(name: str, columns: Mapping[str, Any]) -> pa.Table:
    """Return columns as the contract's table ``name``; nullable columns that are missing become null."""
    declared = schema.table(name).arrow
    rows = len(columns["start_ns"])
    arrays = (columns[field.name] if field.name in columns else schema.nulls(rows, field.type) for field in declared)
    return pa.table([_typed(array, field.type) for array, field in zip(arrays, declared, strict=True)], schema=declared)


def _typed(values: Any, kind: pa.DataType) -> Any:
    array = pa.array(values) if isinstance(values, np.ndarray) else values
    return array if array.type.equals(kind) else array.cast(kind)


def with_column(table: pa.Table, name: str, values: Any) -> pa.Table:
    """Return ``table`` with other ``values`` in its column ``name``."""
    at = table.column_names.index(name)
    return table.set_column(at, table.schema.field(at), values)


def recoded(words: Sequence[str | None], codes: Any) -> DictionaryArray:
    """Return a dictionary column from Arrow positions in ``words``, which may hold duplicates; null stays null."""
    distinct: Any = pa.array(words, pa.string()).dictionary_encode()
    return pa.DictionaryArray.from_arrays(distinct.indices.take(codes), distinct.dictionary)


def masked(values: Array, missing: Array, kind: pa.DataType) -> Arrow:
    """Return numbers as an Arrow column of ``kind``, null where ``missing`` (bool). Copied only to widen them."""
    column = np.ascontiguousarray(values, kind.to_pandas_dtype())
    known = _buffer(np.packbits(~missing, bitorder="little")) if missing.any() else None
    array: Arrow = pa.Array.from_buffers(kind, column.size, [known, _buffer(column)])
    return array


def constant(word: str, rows: int) -> DictionaryArray:
    """Return a dictionary column of one word."""
    return encoded(np.zeros(rows, dtype=np.int32), [word])


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """A number per event, or none.

    Args:
        value: The numbers.
        known: Whether the event has one (bool).
    """

    value: Array
    known: Array

    def arrow(self, kind: pa.DataType) -> Arrow:
        """Return an Arrow column, null if there is no number."""
        return masked(self.value, ~self.known, pa.from_numpy_dtype(self.value.dtype)).cast(kind)
