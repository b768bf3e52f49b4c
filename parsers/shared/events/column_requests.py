"""What can be asked of a raw table whose columns are made whole, instead of streamed; and the answers.

Few distinct values mean codes: a number for each row, and what the numbers stand for.
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
from traceviz.parsers.shared.events.row_filter import Keep
from traceviz.parsers.shared.prefetch.queue import Ahead
from traceviz.trace import schema

_buffer: Any = pa.py_buffer
"""Memory of a NumPy array, not copied; the stubs of pyarrow do not know that it can."""

Codes = npt.NDArray[np.int32]


class NotPlainError(Exception):
    """The table holds something that only SQLite itself should decode."""


@dataclass(frozen=True, slots=True)
class Number:
    """An integer column less ``less``. What is ``unset``, or does not fit ``kind`` (16, 32 or 64 bits), is null."""

    column: str
    kind: pa.DataType
    less: int = 0
    unset: int | None = None


@dataclass(frozen=True, slots=True)
class Lasting:
    """How long after ``start`` ``end`` is; null where it is before."""

    end: str
    start: str


@dataclass(frozen=True, slots=True)
class Combination:
    """A code for each distinct combination of integer columns, up to six."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Label:
    """A code for each distinct text of a column and, where that is null, for each distinct integer of another one."""

    text: str
    number: str | None = None


Wish = Number | Lasting | Combination | Label


@dataclass(frozen=True, slots=True, eq=False)
class NumberColumn:
    """A column of integers.

    Args:
        array: The column; ``None`` where it was only measured.
        least: The smallest value, as it is stored; ``None`` where there is none.
        most: The greatest value, as it is stored.
        missing: Rows that are null.
        beyond: Those of them whose value did not fit, or was negative.
    """

    array: Array | None
    least: int | None
    most: int | None
    missing: int
    beyond: int


@dataclass(frozen=True, slots=True, eq=False)
class CodeColumn:
    """Codes and what they stand for.

    Args:
        codes: The code of each row; ``None`` where they were only measured.
        keys: The columns of what each code stands for, in the order of the first rows that have it.
        rows: How many rows have each code (int64).
    """

    codes: Codes | None
    keys: pa.RecordBatch
    rows: npt.NDArray[np.int64]

    @property
    def missing(self) -> int:
        """Rows without a value: what a code stands for says which."""
        return 0

    def spread(self, values: Array, *, last: bool = False) -> Array:
        """``values``, one for each code, as a column of rows.

        Args:
            values: NumberColumn of 16, 32 or 64 bits, or dictionary-encoded words.
            last: The codes are not needed any more: their memory may be used.
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


def alike(rows: int) -> CodeColumn:
    """Codes of rows of which nothing is known: all have the same, the only one."""
    some = min(rows, 1)
    keys = pa.RecordBatch.from_arrays([pa.nulls(some, pa.int64())], names=["nothing"])
    return CodeColumn(np.zeros(rows, np.int32), keys, np.array([rows] * some, np.int64))


class WholeTable(Protocol):
    """A raw table whose columns are made whole."""

    def begin(self, ahead: Ahead, wishes: Sequence[Wish], measured: Sequence[Wish], room: int) -> int:
        """Begin to make columns of all rows, for :meth:`columns` and :meth:`measure`, unless that is not worth it.

        Args:
            ahead: Does it.
            wishes: The columns; times as they are stored.
            measured: What is measured only.
            room: Bytes that they may take.

        Returns:
            Bytes that they take; 0 where nothing was begun.
        """
        ...

    def close(self) -> None:
        """Let go of what was begun, and nobody asked for."""

    def measure(self, keeps: Sequence[Keep], wishes: Sequence[Wish]) -> tuple[int, list[Result]]:
        """How many rows count, and of their columns what is known without making them.

        Raises:
            NotPlainError: the table has to be streamed.
        """
        ...

    def parts(self, count: int) -> Sequence[WholeTable]:
        """The table as so many tables, or fewer, one after the other."""
        ...

    def columns(
        self, keeps: Sequence[Keep], wishes: Sequence[Wish], progress: Callable[[int], None]
    ) -> tuple[int, list[Result]]:
        """The rows that count, as columns.

        Args:
            keeps: Which rows count.
            wishes: The columns.
            progress: Is told how many rows are done, again and again.

        Raises:
            NotPlainError: the table has to be streamed.
        """
        ...
