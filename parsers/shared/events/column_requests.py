"""Requests for columns of a raw table that are decoded whole, not streamed; and their results.

Columns with few distinct values become codes: a number for each row, and the value of each number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceviz.parsers.shared.arrays.arrow import Array
from traceviz.parsers.shared.arrays.native import decoder
from traceviz.parsers.shared.events.mapping import Keep
from traceviz.parsers.shared.prefetch import Prefetch
from traceviz.trace import schema

_buffer: Any = pa.py_buffer
"""View of a NumPy array as a buffer, without a copy; the stubs of pyarrow do not declare this."""

Codes = npt.NDArray[np.int32]


class NotPlainError(Exception):
    """The table holds a value that only SQLite itself should decode."""


@dataclass(frozen=True, slots=True)
class Number:
    """An integer column less ``less``. Values equal to ``unset``, or too large for ``kind``, are null.

    ``kind`` has 16, 32 or 64 bits.
    """

    column: str
    kind: pa.DataType
    less: int = 0
    unset: int | None = None


@dataclass(frozen=True, slots=True)
class DurationRequest:
    """Time from ``start`` to ``end``; null if ``end`` is earlier."""

    end: str
    start: str


@dataclass(frozen=True, slots=True)
class Combination:
    """A code for each distinct combination of integer columns, up to six."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Label:
    """A code for each distinct text of a column and, if that is null, for each distinct integer of another one."""

    text: str
    number: str | None = None


ColumnRequest = Number | DurationRequest | Combination | Label


@dataclass(frozen=True, slots=True, eq=False)
class NumberColumn:
    """A column of integers.

    Args:
        array: The column; ``None`` if it was only measured.
        least: The smallest value, as it is stored; ``None`` if there is none.
        most: The greatest value, as it is stored.
        missing: Rows that are null.
        beyond: Those of them whose value did not fit or was negative.
    """

    array: Array | None
    least: int | None
    most: int | None
    missing: int
    beyond: int


@dataclass(frozen=True, slots=True, eq=False)
class CodeColumn:
    """Codes and their values.

    Args:
        codes: The code of each row; ``None`` if they were only measured.
        keys: The columns of the values, in the order of the first row with each code.
        rows: Number of rows with each code (int64).
    """

    codes: Codes | None
    keys: pa.RecordBatch
    rows: npt.NDArray[np.int64]

    @property
    def missing(self) -> int:
        """Rows without a value: none, because codes also stand for null."""
        return 0

    def spread(self, values: Array, *, last: bool = False) -> Array:
        """Return ``values``, one for each code, as a column of rows.

        Args:
            values: NumberColumn of 16, 32 or 64 bits, or dictionary-encoded texts.
            last: True if the codes are no longer needed and their memory may be reused.
        """
        if pa.types.is_dictionary(values.type):
            return pa.DictionaryArray.from_arrays(self.spread(values.indices, last=last), values.dictionary)
        assert self.codes is not None
        size, kind = self.codes.size, values.type.to_pandas_dtype()
        if values.null_count == len(values):
            return schema.nulls(size, values.type)
        numbers = np.ascontiguousarray(values.fill_null(0).to_numpy(zero_copy_only=False), kind)
        are_alike = not values.null_count and bool(np.all(numbers == numbers[:1])) and bool(numbers.size)
        if are_alike and not numbers[0]:
            return pa.Array.from_buffers(values.type, size, [None, schema.zeros(size * numbers.itemsize)])
        if are_alike:
            out = self.codes.view(kind) if last and numbers.itemsize == 4 else np.empty(size, kind)
            out[:] = numbers[0]
            return pa.Array.from_buffers(values.type, size, [None, _buffer(out)])
        library = decoder()
        assert library is not None
        known = None
        if values.null_count:
            flags = np.empty(size, np.bool_)
            valid = values.is_valid().to_numpy(zero_copy_only=False)
            library.recode(self.codes, valid, 1, flags.view(np.uint8))
            known = _buffer(np.packbits(flags, bitorder="little"))
        out = self.codes.view(kind) if last and numbers.itemsize == 4 else np.empty(size, kind)
        library.recode(self.codes, numbers, numbers.itemsize, out)
        return pa.Array.from_buffers(values.type, size, [known, _buffer(out)])


Result = NumberColumn | CodeColumn


def same_codes(rows: int) -> CodeColumn:
    """Return codes for rows without known values: all have the same, only code."""
    some = min(rows, 1)
    keys = pa.RecordBatch.from_arrays([pa.nulls(some, pa.int64())], names=["nothing"])
    return CodeColumn(np.zeros(rows, np.int32), keys, np.array([rows] * some, np.int64))


class WholeTable(Protocol):
    """A raw table whose columns are decoded whole."""

    def prefetch(
        self, prefetch: Prefetch, requests: Sequence[ColumnRequest], measured: Sequence[ColumnRequest], room: int
    ) -> int:
        """Start to decode columns of all rows, for :meth:`columns` and :meth:`measure`, if that is worthwhile.

        Args:
            prefetch: Does the work.
            requests: The columns; times as they are stored.
            measured: Columns that are only measured.
            room: Bytes that they may take.

        Returns:
            Bytes that they take; 0 if nothing was started.
        """
        ...

    def close(self) -> None:
        """Release prefetched columns that were not requested."""

    def measure(self, keeps: Sequence[Keep], requests: Sequence[ColumnRequest]) -> tuple[int, list[Result]]:
        """Return the number of rows that count, and facts about their columns without decoding these.

        Raises:
            NotPlainError: the table has to be streamed.
        """
        ...

    def parts(self, count: int) -> Sequence[WholeTable]:
        """Return the table as ``count`` tables, or fewer, one after the other."""
        ...

    def columns(
        self, keeps: Sequence[Keep], requests: Sequence[ColumnRequest], progress: Callable[[int], None]
    ) -> tuple[int, list[Result]]:
        """Return the rows that count, as columns.

        Args:
            keeps: Filters of the rows that count.
            requests: The columns.
            progress: Receives the number of finished rows, repeatedly.

        Raises:
            NotPlainError: the table has to be streamed.
        """
        ...
