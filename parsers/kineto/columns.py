"""Columns of a decoded trace as NumPy arrays: texts as codes and words, numbers with a mask of known values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from traceviz.parsers.shared.arrays.arrow import Array as Arrow
from traceviz.parsers.shared.arrays.arrow import DictionaryArray
from traceviz.parsers.shared.arrays.operations import NONE, Array, at, looked_up
from traceviz.parsers.shared.events.columns import Numbers, encoded, masked

_FEW = 127

Columns = dict[str, Any]
"""Columns of a table by name: NumPy or Arrow arrays."""


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """A column of texts.

    Args:
        codes: Per row the position of its text in ``words`` (int32, or int8 on request), :data:`NONE` for no text.
        words: The distinct texts.
    """

    codes: Array
    words: Sequence[str]

    @classmethod
    def of(cls, column: pl.Series, *, narrow: bool = False) -> Words:
        """Return the texts of a categorical column; ``narrow``: as int8 if there are few."""
        coded: Any = column.rechunk().to_arrow()
        words = coded.dictionary.to_pylist()
        kind = pa.int8() if narrow and len(words) <= _FEW else pa.int32()
        return cls(coded.indices.cast(kind).fill_null(NONE).to_numpy(zero_copy_only=False), words)

    def at(self, rows: Array) -> Words:
        """Return the texts of ``rows``."""
        return Words(at(self.codes, rows), self.words)

    def each(self, function: Callable[[str], Any], otherwise: Any, kind: Any) -> Array:
        """Return ``function`` of the text of each row, called once per text; ``otherwise`` for rows without a text."""
        answers = np.array([function(word) for word in self.words] + [otherwise], dtype=kind)
        return looked_up(answers, self.codes)

    def map_texts(self, function: Callable[[str], str | None]) -> DictionaryArray:
        """Return ``function`` of each text as a dictionary column, null if it returns ``None`` or there is no text."""
        return encoded(self.codes, [function(word) for word in self.words])

    def to_arrow(self) -> DictionaryArray:
        """Return the texts as a dictionary column."""
        return encoded(self.codes, self.words)


def texts(frame: pl.DataFrame, name: str, rows: Array) -> Words:
    """Return a column of texts at ``rows``; without any text if no event has such an argument."""
    if name not in frame.columns:
        return Words(np.full(rows.size, NONE, np.int32), ())
    return Words.of(frame[name].gather(rows))


def numbers(frame: pl.DataFrame, name: str, rows: Array, axis: int | None = None) -> Numbers:
    """Return a column of numbers at ``rows``; all unknown if no event has such an argument.

    ``axis``: The position in a column of triples.
    """
    if name not in frame.columns:
        return Numbers(np.zeros(rows.size, np.int64), np.zeros(rows.size, dtype=bool))
    column = frame[name].gather(rows)
    if axis is not None:
        column = column.arr.get(axis)
    if not column.null_count():
        return Numbers(column.to_numpy(), np.ones(column.len(), dtype=bool))
    return Numbers(column.fill_null(0).to_numpy(), ~column.is_null().to_numpy())


def first_known(first: Numbers, second: Numbers) -> Numbers:
    """Return ``first``, or ``second`` where the first is unknown."""
    return Numbers(np.where(first.known, first.value, second.value), first.known | second.known)


def narrow(numbers: Numbers, kind: pa.DataType) -> Arrow:
    """Return whole numbers as a column of ``kind``, null if unknown, negative, or too large for it."""
    most = 2 ** (kind.bit_width - 1) - 1
    fits = numbers.known & (numbers.value >= 0) & (numbers.value <= most)
    return masked(np.where(fits, numbers.value, 0), ~fits, kind)
