"""Statistics by group in one pass: the groups of a frame's rows as numbers, and one sort that answers all quantiles.

A value and the number of its group fit one integer of 64 bits, unless a trace is damaged. Sorted, these lie group by
group in order of their values: sums, extremes and quantiles of all groups are then looked up::

    group  1  0  1  0  1            sorted   0:3  0:9  1:2  1:4  1:8
    value  4  9  8  3  2            begins   ^         ^
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
import polars as pl

from traceviz.core.arrays.intervals import Array
from traceviz.core.arrays.nested import alike
from traceviz.core.arrays.sweeps import squares, summed

Reals = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Sorted = npt.NDArray[np.int64] | npt.NDArray[np.uint32]

_WIDEST = 2.0**62
_SPREAD = 4
"""Integers that spread over so many values for each row, at most, are their own codes."""
_LEAST_PLACES = 1 << 16
_FEW = 1 << 10
"""Codes of which each block of rows has most."""
_BLOCK = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """The rows of a frame by the values of some of its columns.

    Args:
        keys: One row for each group, with the columns that tell groups apart; names are text.
        codes: The group of each row.
    """

    keys: pl.DataFrame
    codes: npt.NDArray[np.int32]

    @classmethod
    def of(cls, frame: pl.DataFrame, *columns: str) -> Self:
        """Group ``frame`` by ``columns``; nulls are values like others."""
        codes, count = np.zeros(frame.height, np.int32), 1
        for column in columns:
            own, values = _coded(frame[column])
            if count == 1:
                codes, count = own.astype(np.int32, copy=False), values
            elif values > 1:
                codes, count = _dense(codes.astype(np.int64) * values + own, count * values)
        firsts = pl.Series(_first_rows(codes, count).astype(np.uint32))  # as wide as polars counts
        return cls(pl.DataFrame([as_text(frame[column][firsts]) for column in columns]), codes)

    def __len__(self) -> int:
        return self.keys.height

    def coarser(self, *columns: str) -> Groups:
        """The same rows by fewer columns."""
        joined = Groups.of(self.keys, *columns)
        return Groups(joined.keys, joined.codes[self.codes])

    @property
    def counts(self) -> Array:
        """Rows of each group."""
        return summed(self.codes, None, len(self))

    def sums(self, values: npt.NDArray[np.integer]) -> Array:
        """The sum of ``values``, one for each row, in each group."""
        return summed(self.codes, values.astype(np.int64, copy=False), len(self))

    def distinct(self, values: pl.Series) -> Array:
        """How many different ``values`` the rows of each group have."""
        own, count = _coded(values)
        if len(self) * count > max(_SPREAD * len(values), _LEAST_PLACES):
            both = np.unique(self.codes.astype(np.int64) * count + own)
            return np.bincount(both // count, minlength=len(self)).astype(np.int64)
        there = np.zeros((len(self), count), bool)
        there[self.codes, own] = True
        return np.asarray(there.sum(axis=1, dtype=np.int64))

    def ordered(self, values: pl.Series) -> Ordered:
        """``values``, one for each row, in order within their groups; nulls are left out."""
        codes, numbers = self.codes, values
        if values.null_count():
            known = values.is_not_null()
            codes, numbers = codes[known.to_numpy()], values.filter(known)
        return Ordered.of(codes, numbers.to_numpy(), len(self))


@dataclass(frozen=True, slots=True, eq=False)
class Ordered:
    """Values of groups, in order within each.

    Args:
        values: The values, group by group.
        begins: Where each group begins, and the end of the last.
    """

    values: Sorted
    begins: Array

    @classmethod
    def of(cls, codes: npt.NDArray[np.integer], values: npt.NDArray[np.integer], count: int) -> Self:
        """Sort ``values`` of groups from 0 to ``count``."""
        begins = np.concatenate([[0], np.cumsum(summed(codes.astype(np.int32, copy=False), None, count))])
        if not values.size:
            return cls(values.astype(np.int64), begins)
        least, most = int(values.min()), int(values.max())
        bits = (most - least).bit_length()
        if bits + max(count - 1, 1).bit_length() > 63:
            return cls(values.astype(np.int64)[np.lexsort((values, codes))], begins)
        is_narrow = bits + max(count - 1, 1).bit_length() <= 32 and least >= 0 and most < 1 << 32
        both: Sorted = np.empty(values.size, np.uint32) if is_narrow else np.empty(values.size, np.int64)
        for part in _blocks(values.size):
            both[part] = (values[part].astype(np.int64) - least) | (codes[part].astype(np.int64) << bits)
        both.sort()
        for part in _blocks(values.size):
            both[part] &= (1 << bits) - 1
            both[part] += least
        return cls(both, begins)

    @property
    def counts(self) -> Array:
        """Values of each group."""
        return np.diff(self.begins)

    def sums(self) -> Array:
        """The sum of each group."""
        total = np.zeros(self.begins.size - 1, np.int64)
        there = np.flatnonzero(self.counts)
        if there.size:
            total[there] = np.add.reduceat(self.values, self.begins[there], dtype=np.int64)
        return total

    def means(self) -> Reals:
        """The mean of each group; not a number for one without values."""
        sums = self.sums().astype(np.float64)
        there = np.flatnonzero(self.counts)
        extremes = self.values[self.begins[there]], self.values[self.begins[there + 1] - 1]
        most = max((float(np.abs(ends.astype(np.float64)).max()) for ends in extremes if ends.size), default=0.0)
        if most * self.values.size >= _WIDEST:  # sums of damaged times wrap
            sums[there] = np.add.reduceat(self.values, self.begins[there], dtype=np.float64)
        with np.errstate(invalid="ignore"):
            return np.asarray(sums / self.counts)

    def at(self, ranks: npt.NDArray[np.integer]) -> Array:
        """The value with this rank of each group, from 0; anything for a group without values."""
        if not self.values.size:
            return np.zeros(ranks.size, np.int64)
        return self.values[np.minimum(self.begins[:-1] + ranks, self.values.size - 1)].astype(np.int64)

    def medians(self) -> Reals:
        """The median of each group: of an even number of values, the mean of the middle two."""
        counts = self.counts
        low, high = self.at(np.maximum(counts - 1, 0) // 2), self.at(counts // 2)
        return low + (high - low) / 2

    def quantiles(self, share: float) -> Array:
        """The value nearest to this quantile of each group."""
        places = np.maximum(self.counts - 1, 0) * share
        return self.at(np.floor(places + 0.5).astype(np.int64))

    def deviations(self) -> Reals:
        """The standard deviation of each group, of the sample (n - 1); 0 for a single value."""
        means = self.means()
        sums = np.zeros(means.size)
        for part in _blocks(self.values.size):
            first = max(int(np.searchsorted(self.begins, part.start, side="right")) - 1, 0)
            last = int(np.searchsorted(self.begins, part.stop, side="left"))
            values = self.values[part].astype(np.int64, copy=False)
            begins = np.clip(self.begins[first : last + 1] - part.start, 0, values.size)
            sums[first:last] += squares(values, begins, means[first:last])
        return np.sqrt(sums / np.maximum(self.counts - 1, 1))


def _blocks(rows: int) -> Iterator[slice]:
    """Slices that together cover ``rows``: intermediate results of each stay in the cache."""
    return (slice(begin, begin + _BLOCK) for begin in range(0, rows, _BLOCK))


def counted(column: pl.Series) -> pl.DataFrame:
    """The distinct values of ``column``, null being one, in any order, and ``len``, how many rows have each."""
    most = None if column.dtype != pl.Int32 or column.null_count() or not len(column) else column.max()
    if isinstance(most, int) and most < _LEAST_PLACES and isinstance(least := column.min(), int) and least >= 0:
        counts = summed(column.to_numpy(), None, most + 1)
        there = np.flatnonzero(counts)
        return pl.DataFrame([pl.Series(column.name, there, column.dtype), pl.Series("len", counts[there])])
    groups = Groups.of(column.to_frame(), column.name)
    return groups.keys.with_columns(pl.Series("len", groups.counts))


def as_text(column: pl.Series) -> pl.Series:
    """``column`` with its names as text; numbers stay what they are."""
    return column.cast(pl.String) if isinstance(column.dtype, pl.Categorical | pl.Enum) else column


def _coded(column: pl.Series) -> tuple[npt.NDArray[np.integer], int]:
    """A number from 0 for each distinct value of ``column``, null being one, and how many numbers there are."""
    if column.dtype == pl.String:
        column = column.cast(pl.Categorical)
    if isinstance(column.dtype, pl.Categorical | pl.Enum):
        column = column.to_physical()
    if not column.dtype.is_integer():
        column = column.rank("dense")
    if not len(column) or column.null_count() == len(column):
        return np.zeros(len(column), np.int32), 1
    least, most = int(column.min()), int(column.max())  # type: ignore[arg-type]  # integers
    if least == most and not column.null_count():
        return np.zeros(len(column), np.int32), 1
    missing = column.is_null().to_numpy() if column.null_count() else None
    numbers = (column.fill_null(least) if missing is not None else column).to_numpy()
    if most - least >= _SPREAD * len(column):
        _, numbers = np.unique(numbers, return_inverse=True)
        least, most = 0, int(numbers.max())
    codes = np.subtract(numbers, least, dtype=np.int32 if most < _LEAST_PLACES and least >= 0 else np.int64)
    if missing is not None:
        codes[missing] = most - least + 1
    return _dense(codes, most - least + 1 + (missing is not None))


def _dense(codes: npt.NDArray[np.integer], count: int) -> tuple[npt.NDArray[np.int32], int]:
    """``codes`` below ``count`` renumbered without gaps, and how many there are."""
    if count > max(_SPREAD * codes.size, _LEAST_PLACES):
        distinct, dense = np.unique(codes, return_inverse=True)
        return dense.astype(np.int32), distinct.size
    if codes.dtype == np.int32:  # NumPy would copy these codes to look them up
        there = summed(codes.astype(np.int32, copy=False), None, count) > 0
    else:
        there = np.zeros(count, bool)
        there[codes] = True
    if there.all():
        return codes.astype(np.int32, copy=False), count
    number = np.cumsum(there, dtype=np.int32) - 1
    return number[codes].astype(np.int32, copy=False), int(there.sum())


def first_of_each(codes: npt.NDArray[np.int32]) -> Array:
    """The first row with each code, in their order; codes may be any, mostly few."""
    if not codes.size or codes.min() < 0 or codes.max() >= _FEW:
        return np.asarray(alike(codes)[1], np.int64)
    counts = summed(codes, None, int(codes.max()) + 1)
    dense = np.cumsum(counts > 0) - 1
    step, firsts = max(_BLOCK, 4 * counts.size), np.full(int(dense[-1]) + 1, codes.size)
    for begin in range(0, codes.size, step):
        found, rows = np.unique(codes[begin : begin + step], return_index=True)
        np.minimum.at(firsts, dense[found], rows + begin)
        if firsts.max() < codes.size:
            break
    return np.sort(firsts)


def _first_rows(codes: npt.NDArray[np.int32], count: int) -> Array:
    """The first row of each of ``count`` groups, all of which have one: mostly, all are met soon."""
    firsts = np.full(count if codes.size else 0, -1, np.int64)
    step = max(_BLOCK, 4 * count)
    for begin in range(0, codes.size, step):
        block = codes[begin : begin + step]
        own = np.full(count, -1, np.int64)
        own[block[::-1]] = np.arange(begin + block.size - 1, begin - 1, -1)  # the last that is written stays
        firsts = np.where(firsts < 0, own, firsts)
        if firsts.min() >= 0:
            break
    return firsts
