"""Interval algebra on integer nanoseconds, vectorised: union, gaps, intersection, overlap, priorities, nesting.

All intervals are half-open, ``[start, end)``. An :class:`IntervalSet` is sorted, disjoint and without empty
members, so that set operations are sweeps over both sides (:mod:`traceviz.core.arrays.sweeps`). No Python loop
runs over events.

::

    raw        |----A----|        |--C--|
                    |----B----|
    union      |--------------|   |-----|
    complement |              |---|     |   (within the span)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Self

import numpy as np
import numpy.typing as npt

from traceviz.core.arrays import nested, sweeps

Array = npt.NDArray[np.int64]


def _array(values: npt.ArrayLike) -> Array:
    return np.ascontiguousarray(values, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class IntervalSet:
    """A set of nanoseconds as sorted, disjoint, non-empty, non-touching intervals ``[starts[i], ends[i])``."""

    starts: Array
    ends: Array

    @classmethod
    def empty(cls) -> Self:
        """The set without members."""
        nothing = np.empty(0, dtype=np.int64)
        return cls(nothing, nothing)

    @classmethod
    def span(cls, start: int, end: int) -> Self:
        """The single interval ``[start, end)``; empty where ``end <= start``."""
        return cls.of(_array([start]), _array([end]))

    @classmethod
    def of(cls, starts: npt.ArrayLike, ends: npt.ArrayLike) -> Self:
        """Union of the intervals ``[starts[i], ends[i])``, in any order, overlapping or not.

        Intervals with ``end <= start`` contribute nothing.
        """
        return cls(*sweeps.merged(_array(starts), _array(ends)))

    def __len__(self) -> int:
        return int(self.starts.size)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, IntervalSet):
            return NotImplemented
        return np.array_equal(self.starts, other.starts) and np.array_equal(self.ends, other.ends)

    __hash__ = None  # type: ignore[assignment]

    @property
    def durations(self) -> Array:
        """Length of each member."""
        return self.ends - self.starts

    @property
    def total(self) -> int:
        """Nanoseconds in the set."""
        return int(self.durations.sum())

    @property
    def _bounds(self) -> sweeps.Bounds:
        return _array(self.starts), _array(self.ends)

    def union(self, *others: IntervalSet) -> IntervalSet:
        """Nanoseconds in this set or in any of ``others``."""
        sets = [one for one in (self, *others) if len(one)]
        return IntervalSet(*reduce(sweeps.united, (one._bounds for one in sets))) if sets else self  # noqa: SLF001

    def complement(self, start: int, end: int) -> IntervalSet:
        """Nanoseconds of ``[start, end)`` that are not in this set."""
        return IntervalSet.span(start, end).subtract(self)

    def clip(self, start: int, end: int) -> IntervalSet:
        """The part of this set within ``[start, end)``."""
        return self.intersect(IntervalSet.span(start, end))

    def intersect(self, other: IntervalSet) -> IntervalSet:
        """Nanoseconds in both sets."""
        return IntervalSet(*sweeps.intersected(self._bounds, other._bounds))

    def subtract(self, other: IntervalSet) -> IntervalSet:
        """Nanoseconds in this set and not in ``other``."""
        return IntervalSet(*sweeps.subtracted(self._bounds, other._bounds))

    def before(self, times: npt.ArrayLike) -> Array:
        """Nanoseconds of this set that lie before each of ``times``."""
        return sweeps.before(self._bounds, _array(times))

    def overlap(self, starts: npt.ArrayLike, ends: npt.ArrayLike) -> Array:
        """Nanoseconds that each of the intervals ``[starts[i], ends[i])`` shares with this set.

        The intervals may overlap each other and come in any order.
        """
        return sweeps.shared(self._bounds, _array(starts), _array(ends))

    def add_overlap(self, starts: Array, ends: Array, owners: nested.Rows, totals: Array) -> None:
        """Add :meth:`overlap` of each interval to ``totals`` at its owner; negative owners have none."""
        done = sweeps.done_before(self._bounds)
        if nested.add_shared(self.starts, self.ends, done, _array(starts), _array(ends), owners, totals):
            return
        known = owners >= 0
        np.add.at(totals, owners[known], self.overlap(starts[known], ends[known]))

    def weighed(self, starts: Array, ends: Array, loads: Array, full: int) -> float:
        """Time of this set multiplied with the sum of the ``loads`` that run at each moment, at most ``full``."""
        return sweeps.weighed(self._bounds, starts, ends, loads, full)

    def contains(self, times: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Whether each of ``times`` lies in this set."""
        moments = _array(times)
        if not len(self):
            return np.zeros(moments.shape, dtype=bool)
        if len(self) == 1:
            return np.asarray((moments >= self.starts[0]) & (moments < self.ends[0]))
        index = self.ended_by(moments)
        return np.asarray((index < len(self)) & (moments >= self.starts[np.minimum(index, len(self) - 1)]))

    def ended_by(self, times: npt.ArrayLike) -> Array:
        """How many members have ended by each of ``times``."""
        return sweeps.ended(self._bounds, _array(times))


def union_all(sets: Iterable[IntervalSet]) -> IntervalSet:
    """Nanoseconds in any of ``sets``."""
    return IntervalSet.empty().union(*sets)


def exclusive(layers: Iterable[tuple[str, IntervalSet]], start: int, end: int, rest: str) -> dict[str, IntervalSet]:
    """Give every nanosecond of ``[start, end)`` to the first layer that contains it, and what is left to ``rest``.

    The returned sets are disjoint and add up to ``end - start`` exactly.

    ::

        layer 1    |###|      |##|
        layer 2  |-------|      |----|
        result   |2|-1-|2|rest|1-|-2-|rest|
    """
    free = IntervalSet.span(start, end)
    owned: dict[str, IntervalSet] = {}
    for name, layer in layers:
        owned[name] = layer.intersect(free)
        free = free.subtract(layer)
    owned[rest] = free
    return owned


def concurrency(starts: npt.ArrayLike, ends: npt.ArrayLike, at_least: int) -> IntervalSet:
    """Nanoseconds in which ``at_least`` or more of the given intervals run at once."""
    begin, finish = _array(starts), _array(ends)
    keep = finish > begin
    return IntervalSet(*sweeps.running(begin[keep], finish[keep], at_least))


def nesting(starts: npt.ArrayLike, ends: npt.ArrayLike, group: npt.ArrayLike) -> tuple[Array, Array]:
    """Depth and parent of intervals that nest properly within each ``group`` (a thread, for example).

    Args:
        starts: Starts, any order.
        ends: Ends; an interval that shares both ends with another counts as inside the one that comes first.
        group: Group of each interval; intervals of different groups never nest.

    Returns:
        ``(depth, parent)`` in the order of the arguments: depth from 0, and the index of the innermost interval
        around each, -1 at depth 0.
    """
    begin, finish, groups = _array(starts), _array(ends), _array(group)
    if (found := nested.crossing(groups, begin, finish)) is not None:
        return found[0].astype(np.int64), found[1].astype(np.int64)
    count = begin.size
    order = nested.nesting_order(groups, begin, finish, np.arange(count))  # outer before inner, then as given
    order = np.arange(count) if order is None else order
    depth, parent = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    depth_sorted, parent_sorted = _nested_in_order(begin[order], finish[order], groups[order])
    depth[order] = depth_sorted
    parent[order] = np.where(parent_sorted >= 0, order[parent_sorted], -1)
    return depth, parent


def _nested_in_order(begin: Array, finish: Array, groups: Array) -> tuple[Array, Array]:
    """:func:`nesting` of rows sorted by (group, begin, -finish), also where some cross."""
    if (found := nested.crossing(groups, begin, finish)) is not None:
        return found[0].astype(np.int64), found[1].astype(np.int64)
    depth = _depths(begin, finish, groups)
    parent, position = np.full(begin.size, -1, dtype=np.int64), np.arange(begin.size)
    for level in range(1, int(depth.max(initial=0)) + 1):  # once per depth, not per event
        children = position[depth == level]
        candidates = position[depth == level - 1]
        parent[children] = candidates[np.searchsorted(candidates, children) - 1]
    return depth, parent


def _depths(begin: Array, finish: Array, groups: Array) -> Array:
    """Open intervals around each one; rows sorted by (group, begin, -finish).

    Depth = rows before it in sorted order - rows that ended by its begin, both counted over this and all earlier
    groups. Times are replaced by their ranks, so that (group, time) fits one sortable integer whatever the clock.
    """
    count = begin.size
    if count == 0:
        return np.empty(0, dtype=np.int64)
    lasting = np.maximum(finish, begin + 1)  # an instant must not end before it has begun
    _, rank = np.unique(np.concatenate([begin, lasting]), return_inverse=True)
    _, dense = np.unique(groups, return_inverse=True)
    width = 2 * count
    begins = dense * width + rank[:count]
    ends = np.sort(dense * width + rank[count:])
    ended = np.searchsorted(ends, begins, side="right")
    return np.asarray(np.arange(count) - ended, dtype=np.int64)
