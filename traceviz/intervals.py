"""Interval algebra on integer nanoseconds, vectorised: union, gaps, intersection, overlap, priorities, nesting.

All intervals are half-open, ``[start, end)``. An :class:`IntervalSet` is sorted, disjoint and without empty
members, so that set operations are sorts and cumulative sums over arrays; nothing here loops over events.

::

    raw        |----A----|        |--C--|
                    |----B----|
    union      |--------------|   |-----|
    complement |              |---|     |   (within the span)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from traceviz import nested

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
        begin, finish = _array(starts), _array(ends)
        keep = finish > begin
        begin, finish = begin[keep], finish[keep]
        if begin.size == 0:
            return cls.empty()
        if np.any(begin[1:] < begin[:-1]):
            order = np.argsort(begin, kind="stable")
            begin, finish = begin[order], finish[order]
        reach = np.maximum.accumulate(finish)
        first = np.empty(begin.size, dtype=bool)  # True where a new merged interval begins
        first[0] = True
        np.greater(begin[1:], reach[:-1], out=first[1:])
        heads = np.flatnonzero(first)
        tails = np.append(heads[1:] - 1, begin.size - 1)
        return cls(begin[heads], reach[tails])

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

    def union(self, *others: IntervalSet) -> IntervalSet:
        """Nanoseconds in this set or in any of ``others``."""
        sets = (self, *others)
        return IntervalSet.of(np.concatenate([s.starts for s in sets]), np.concatenate([s.ends for s in sets]))

    def complement(self, start: int, end: int) -> IntervalSet:
        """Nanoseconds of ``[start, end)`` that are not in this set."""
        inside = self.clip(start, end)
        return IntervalSet.of(np.concatenate([[start], inside.ends]), np.concatenate([inside.starts, [end]]))

    def clip(self, start: int, end: int) -> IntervalSet:
        """The part of this set within ``[start, end)``."""
        return IntervalSet.of(np.maximum(self.starts, start), np.minimum(self.ends, end))

    def intersect(self, other: IntervalSet) -> IntervalSet:
        """Nanoseconds in both sets."""
        if not len(self) or not len(other):
            return IntervalSet.empty()
        low = int(min(self.starts[0], other.starts[0]))
        high = int(max(self.ends[-1], other.ends[-1]))
        return self.complement(low, high).union(other.complement(low, high)).complement(low, high)

    def subtract(self, other: IntervalSet) -> IntervalSet:
        """Nanoseconds in this set and not in ``other``."""
        if not len(self) or not len(other):
            return self
        return self.intersect(other.complement(int(self.starts[0]), int(self.ends[-1])))

    def before(self, times: npt.ArrayLike) -> Array:
        """Nanoseconds of this set that lie before each of ``times``."""
        moments = _array(times)
        spent = np.empty(moments.size, dtype=np.int64)
        done = self._done()
        for block in _blocks(moments.size):
            spent[block] = self._before(moments[block], *done)
        return spent

    def overlap(self, starts: npt.ArrayLike, ends: npt.ArrayLike) -> Array:
        """Nanoseconds that each of the intervals ``[starts[i], ends[i])`` shares with this set.

        The intervals may overlap each other and come in any order.
        """
        begin, finish = _array(starts), _array(ends)
        done = self._done()
        found = nested.shared(self.starts, self.ends, done[0], begin, finish)
        if found is not None:
            return found
        shared = np.empty(begin.size, dtype=np.int64)
        for block in _blocks(begin.size):
            first, last = begin[block], np.maximum(begin[block], finish[block])
            shared[block] = self._before(last, *done) - self._before(first, *done)
        return shared

    def add_overlap(self, starts: Array, ends: Array, owners: nested.Rows, totals: Array) -> None:
        """Add :meth:`overlap` of each interval to ``totals`` at its owner; negative owners have none."""
        done = self._done()
        if nested.add_shared(self.starts, self.ends, done[0], _array(starts), _array(ends), owners, totals):
            return
        known = owners >= 0
        np.add.at(totals, owners[known], self.overlap(starts[known], ends[known]))

    def _done(self) -> tuple[Array, Array]:
        """For each member, and for the end of time: nanoseconds of all members before it, and where it begins."""
        return np.concatenate([[0], np.cumsum(self.durations)]), np.append(self.starts, np.iinfo(np.int64).max)

    def _before(self, moments: Array, done: Array, begins: Array) -> Array:
        index = np.searchsorted(self.ends, moments, side="right")  # members that ended by then
        begin = begins[index]
        return np.asarray(done[index] + (np.maximum(moments, begin) - begin))

    def contains(self, times: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Whether each of ``times`` lies in this set."""
        moments = _array(times)
        if not len(self):
            return np.zeros(moments.shape, dtype=bool)
        index = np.searchsorted(self.starts, moments, side="right") - 1
        return np.asarray((index >= 0) & (moments < self.ends[np.maximum(index, 0)]))


_BLOCK = 1 << 15


def _blocks(count: int) -> Iterator[slice]:
    """Slices that together cover ``count`` items: intermediate results of each stay in the cache."""
    return (slice(start, start + _BLOCK) for start in range(0, count, _BLOCK))


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
    times = np.concatenate([begin[keep], finish[keep]])
    steps = np.concatenate([np.ones(keep.sum(), np.int64), -np.ones(keep.sum(), np.int64)])
    order = np.lexsort((steps, times))  # at one instant, ends come before starts: half-open
    times, running = times[order], np.cumsum(steps[order])
    busy = running >= at_least
    return IntervalSet.of(times[:-1][busy[:-1]], times[1:][busy[:-1]]) if times.size else IntervalSet.empty()


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
    if (found := nested.nested(groups, begin, finish)) is not None:
        return found
    count = begin.size
    order = nested.nesting_order(groups, begin, finish, np.arange(count))  # outer before inner, then as given
    order = np.arange(count) if order is None else order
    depth, parent = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    depth_sorted, parent_sorted = _nested_in_order(begin[order], finish[order], groups[order])
    depth[order] = depth_sorted
    parent[order] = np.where(parent_sorted >= 0, order[parent_sorted], -1)
    return depth, parent


def _nested_in_order(begin: Array, finish: Array, groups: Array) -> tuple[Array, Array]:
    """:func:`nesting` of rows sorted by (group, begin, -finish)."""
    if (found := nested.nested(groups, begin, finish)) is not None:
        return found
    count = begin.size
    depth_sorted = _depths(begin, finish, groups)
    parent_sorted = np.full(count, -1, dtype=np.int64)
    position = np.arange(count)
    for level in range(1, int(depth_sorted.max(initial=0)) + 1):  # once per depth, not per event
        children = position[depth_sorted == level]
        candidates = position[depth_sorted == level - 1]
        parent_sorted[children] = candidates[np.searchsorted(candidates, children) - 1]
    return depth_sorted, parent_sorted


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
