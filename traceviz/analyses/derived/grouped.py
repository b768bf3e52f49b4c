"""Statistics by group in one pass: rows get group numbers, and one sort answers all quantiles.

A value and its group number fit one 64-bit integer, unless a trace is damaged. Sorted, the integers lie group by group
in order of their values. Sums, extremes and quantiles of all groups are then lookups::

    group  1  0  1  0  1            sorted   0:3  0:9  1:2  1:4  1:8
    value  4  9  8  3  2            starts   ^         ^
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
"""Integers serve as their own codes if their range is at most this many values per row."""
_LEAST_PLACES = 1 << 16
_FEW = 1 << 10
"""With fewer codes than this, each block of rows has most of them."""
_BLOCK = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """The rows of a frame, grouped by the values of some columns.

    Args:
        keys: One row per group, with the grouping columns; names are text.
        codes: The group of each row.
    """

    keys: pl.DataFrame
    codes: npt.NDArray[np.int32]

    @classmethod
    def of(cls, frame: pl.DataFrame, *columns: str) -> Self:
        """Group ``frame`` by ``columns``; null counts as a value."""
        codes, count = np.zeros(frame.height, np.int32), 1
        for column in columns:
            own, values = _coded(frame[column])
            if count == 1:
                codes, count = own.astype(np.int32, copy=False), values
            elif values > 1:
                codes, count = _dense(codes.astype(np.int64) * values + own, count * values)
        firsts = pl.Series(_first_rows(codes, count).astype(np.uint32))  # polars' own index type
        return cls(pl.DataFrame([as_text(frame[column][firsts]) for column in columns]), codes)

    def __len__(self) -> int:
        return self.keys.height

    def coarser(self, *columns: str) -> Groups:
        """Group the same rows by fewer columns."""
        joined = Groups.of(self.keys, *columns)
        return Groups(joined.keys, joined.codes[self.codes])

    @property
    def counts(self) -> Array:
        """Number of rows per group."""
        return summed(self.codes, None, len(self))

    def sums(self, values: npt.NDArray[np.integer]) -> Array:
        """Return the sum of ``values``, one per row, in each group."""
        return summed(self.codes, values.astype(np.int64, copy=False), len(self))

    def distinct(self, values: pl.Series) -> Array:
        """Return the number of different ``values`` in each group."""
        own, count = _coded(values)
        if len(self) * count > max(_SPREAD * len(values), _LEAST_PLACES):
            both = np.unique(self.codes.astype(np.int64) * count + own)
            return np.bincount(both // count, minlength=len(self)).astype(np.int64)
        there = np.zeros((len(self), count), bool)
        there[self.codes, own] = True
        return np.asarray(there.sum(axis=1, dtype=np.int64))

    def ordered(self, values: pl.Series) -> Ordered:
        """Sort ``values``, one per row, within their groups; nulls are omitted."""
        codes, numbers = self.codes, values
        if values.null_count():
            known = values.is_not_null()
            codes, numbers = codes[known.to_numpy()], values.filter(known)
        return Ordered.of(codes, numbers.to_numpy(), len(self))


@dataclass(frozen=True, slots=True, eq=False)
class Ordered:
    """Values of groups, sorted within each group.

    Args:
        values: The values, group by group.
        begins: Start index of each group, and the end of the last one.
    """

    values: Sorted
    begins: Array

    @classmethod
    def of(cls, codes: npt.NDArray[np.integer], values: npt.NDArray[np.integer], count: int) -> Self:
        """Sort ``values`` of ``count`` groups, numbered from 0."""
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
        """Number of values per group."""
        return np.diff(self.begins)

    def sums(self) -> Array:
        """Return the sum of each group."""
        total = np.zeros(self.begins.size - 1, np.int64)
        there = np.flatnonzero(self.counts)
        if there.size:
            total[there] = np.add.reduceat(self.values, self.begins[there], dtype=np.int64)
        return total

    def means(self) -> Reals:
        """Return the mean of each group; NaN for a group without values."""
        sums = self.sums().astype(np.float64)
        there = np.flatnonzero(self.counts)
        extremes = self.values[self.begins[there]], self.values[self.begins[there + 1] - 1]
        most = max((float(np.abs(ends.astype(np.float64)).max()) for ends in extremes if ends.size), default=0.0)
        if most * self.values.size >= _WIDEST:  # integer sums of damaged times overflow
            sums[there] = np.add.reduceat(self.values, self.begins[there], dtype=np.float64)
        with np.errstate(invalid="ignore"):
            return np.asarray(sums / self.counts)

    def at(self, ranks: npt.NDArray[np.integer]) -> Array:
        """Return the value of this rank (from 0) in each group; undefined for a group without values."""
        if not self.values.size:
            return np.zeros(ranks.size, np.int64)
        return self.values[np.minimum(self.begins[:-1] + ranks, self.values.size - 1)].astype(np.int64)

    def medians(self) -> Reals:
        """Return the median of each group: for an even number of values, the mean of the middle two."""
        counts = self.counts
        low, high = self.at(np.maximum(counts - 1, 0) // 2), self.at(counts // 2)
        return low + (high - low) / 2

    def quantiles(self, share: float) -> Array:
        """Return the value nearest to this quantile in each group."""
        places = np.maximum(self.counts - 1, 0) * share
        return self.at(np.floor(places + 0.5).astype(np.int64))

    def deviations(self) -> Reals:
        """Return the sample standard deviation (n - 1) of each group; 0 for a single value."""
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
    """Return slices that together cover ``rows``, so that intermediate results stay in the processor's cache."""
    return (slice(begin, begin + _BLOCK) for begin in range(0, rows, _BLOCK))


def counted(column: pl.Series) -> pl.DataFrame:
    """Return the distinct values of ``column`` (null counts as one), in any order, and their number of rows ``len``."""
    most = None if column.dtype != pl.Int32 or column.null_count() or not len(column) else column.max()
    if isinstance(most, int) and most < _LEAST_PLACES and isinstance(least := column.min(), int) and least >= 0:
        counts = summed(column.to_numpy(), None, most + 1)
        there = np.flatnonzero(counts)
        return pl.DataFrame([pl.Series(column.name, there, column.dtype), pl.Series("len", counts[there])])
    groups = Groups.of(column.to_frame(), column.name)
    return groups.keys.with_columns(pl.Series("len", groups.counts))


def as_text(column: pl.Series) -> pl.Series:
    """Return ``column`` with its names as text; numbers do not change."""
    return column.cast(pl.String) if isinstance(column.dtype, pl.Categorical | pl.Enum) else column


def _coded(column: pl.Series) -> tuple[npt.NDArray[np.integer], int]:
    """Return a number from 0 for each distinct value of ``column`` (null counts as one), and how many there are."""
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
    """Renumber ``codes`` below ``count`` without gaps; return them and their number."""
    if count > max(_SPREAD * codes.size, _LEAST_PLACES):
        distinct, dense = np.unique(codes, return_inverse=True)
        return dense.astype(np.int32), distinct.size
    if codes.dtype == np.int32:  # indexing with these codes would copy them
        there = summed(codes.astype(np.int32, copy=False), None, count) > 0
    else:
        there = np.zeros(count, bool)
        there[codes] = True
    if there.all():
        return codes.astype(np.int32, copy=False), count
    number = np.cumsum(there, dtype=np.int32) - 1
    return number[codes].astype(np.int32, copy=False), int(there.sum())


def first_of_each(codes: npt.NDArray[np.int32]) -> Array:
    """Return the first row with each code, in row order; codes may be arbitrary, but are usually few."""
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
    """Return the first row of each of ``count`` groups; none is empty. Usually the first rows include all groups."""
    firsts = np.full(count if codes.size else 0, -1, np.int64)
    step = max(_BLOCK, 4 * count)
    for begin in range(0, codes.size, step):
        block = codes[begin : begin + step]
        own = np.full(count, -1, np.int64)
        own[block[::-1]] = np.arange(begin + block.size - 1, begin - 1, -1)  # the last write wins
        firsts = np.where(firsts < 0, own, firsts)
        if firsts.min() >= 0:
            break
    return firsts
