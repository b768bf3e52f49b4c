"""Interval algebra on integer nanoseconds, vectorised: union, gaps, intersection, overlap, priorities, nesting.

All intervals are half-open, ``[start, end)``. An :class:`IntervalSet` is sorted and disjoint, without empty members.
So set operations are sweeps over two sets (:mod:`traceviz.core.arrays.sweeps`). No Python loop runs over events.

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
    """Set of nanoseconds as sorted, disjoint, non-empty, non-touching intervals ``[starts[i], ends[i])``.

    :meth:`of` makes one from any intervals. Args are contiguous arrays that already are as described.
    """

    starts: Array
    ends: Array

    @classmethod
    def empty(cls) -> Self:
        """Return the set without members."""
        nothing = np.empty(0, dtype=np.int64)
        return cls(nothing, nothing)

    @classmethod
    def span(cls, start: int, end: int) -> Self:
        """Return the single interval ``[start, end)``, or an empty set if ``end <= start``."""
        if end <= start:
            return cls.empty()
        return cls(np.array([start], dtype=np.int64), np.array([end], dtype=np.int64))

    @classmethod
    def of(cls, starts: npt.ArrayLike, ends: npt.ArrayLike) -> Self:
        """Return the union of the intervals ``[starts[i], ends[i])``, in any order, overlapping or not.

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
        return self.starts, self.ends

    def union(self, *others: IntervalSet) -> IntervalSet:
        """Return the nanoseconds in this set or in any of ``others``."""
        sets = [one for one in (self, *others) if len(one)]
        return IntervalSet(*reduce(sweeps.united, (one._bounds for one in sets))) if sets else self  # noqa: SLF001

    def complement(self, start: int, end: int) -> IntervalSet:
        """Return the nanoseconds of ``[start, end)`` that are not in this set."""
        return IntervalSet.span(start, end).subtract(self)

    def clip(self, start: int, end: int) -> IntervalSet:
        """Return the part of this set within ``[start, end)``."""
        return self.intersect(IntervalSet.span(start, end))

    def intersect(self, other: IntervalSet) -> IntervalSet:
        """Return the nanoseconds in both sets."""
        return IntervalSet(*sweeps.intersected(self._bounds, other._bounds))

    def subtract(self, other: IntervalSet) -> IntervalSet:
        """Return the nanoseconds in this set and not in ``other``."""
        return IntervalSet(*sweeps.subtracted(self._bounds, other._bounds))

    def before(self, times: npt.ArrayLike) -> Array:
        """Return the nanoseconds of this set that lie before each of ``times``."""
        return sweeps.before(self._bounds, _array(times))

    def overlap(self, starts: npt.ArrayLike, ends: npt.ArrayLike) -> Array:
        """Return the nanoseconds that each interval ``[starts[i], ends[i])`` shares with this set.

        The intervals may overlap each other and come in any order.
        """
        return sweeps.shared(self._bounds, _array(starts), _array(ends))

    def add_overlap(self, starts: Array, ends: Array, owners: nested.Rows, totals: Array) -> None:
        """Add :meth:`overlap` of each interval to ``totals`` at its owner. A negative owner means none."""
        done = sweeps.done_before(self._bounds)
        nested.add_shared(self.starts, self.ends, done, _array(starts), _array(ends), owners, totals)

    def weighed(self, starts: Array, ends: Array, loads: Array, full: int) -> float:
        """Return the time of this set, weighted by the sum of the running ``loads``, which is capped at ``full``."""
        return sweeps.weighed(self._bounds, starts, ends, loads, full)

    def contains(self, times: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Return whether each of ``times`` lies in this set."""
        moments = _array(times)
        if not len(self):
            return np.zeros(moments.shape, dtype=bool)
        if len(self) == 1:
            return np.asarray((moments >= self.starts[0]) & (moments < self.ends[0]))
        index = self.ended_by(moments)
        return np.asarray((index < len(self)) & (moments >= self.starts[np.minimum(index, len(self) - 1)]))

    def ended_by(self, times: npt.ArrayLike) -> Array:
        """Return the number of members that have ended by each of ``times``."""
        return sweeps.ended(self._bounds, _array(times))


def union_all(sets: Iterable[IntervalSet]) -> IntervalSet:
    """Return the nanoseconds in any of ``sets``."""
    return IntervalSet.empty().union(*sets)


def exclusive(layers: Iterable[tuple[str, IntervalSet]], start: int, end: int, rest: str) -> dict[str, IntervalSet]:
    """Give every nanosecond of ``[start, end)`` to the first layer that contains it, and all others to ``rest``.

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
    """Return the nanoseconds in which ``at_least`` or more of the given intervals run at once."""
    begin, finish = _array(starts), _array(ends)
    keep = finish > begin
    return IntervalSet(*sweeps.running(begin[keep], finish[keep], at_least))


def nesting(starts: npt.ArrayLike, ends: npt.ArrayLike, group: npt.ArrayLike) -> tuple[Array, Array]:
    """Return depth and parent of intervals that nest properly within each ``group`` (a thread, for example).

    Args:
        starts: Starts, in any order.
        ends: Ends. Of intervals with the same start and end, the first contains the later ones.
        group: Group of each interval. Intervals of different groups never nest.

    Returns:
        ``(depth, parent)`` in the order of the arguments: depth from 0, and the index of the innermost interval
        around each, -1 at depth 0.
    """
    begin, finish, groups = _array(starts), _array(ends), _array(group)
    if (found := nested.crossing(groups, begin, finish)) is not None:
        return found[0].astype(np.int64), found[1].astype(np.int64)
    count = begin.size
    order = nested.nesting_order(groups, begin, finish, np.arange(count))  # outer before inner, then as given
    assert order is not None
    found = nested.crossing(groups[order], begin[order], finish[order])
    assert found is not None
    depth, parent = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    depth[order], parent[order] = found[0], np.where(found[1] >= 0, order[found[1]], -1)
    return depth, parent
