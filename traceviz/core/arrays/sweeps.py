"""Sweeps over sorted times, and sums by group: compiled where the package was built with a C compiler, else with NumPy.

Both give the same results. A set is given by its starts and its ends: sorted, disjoint, not touching, none empty.
``TRACEVIZ_SWEEPS=numpy`` in the environment does without what is compiled.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from importlib import import_module
from types import ModuleType

import numpy as np
import numpy.typing as npt

try:
    _compiled = import_module("traceviz.core.arrays._intervals")
except ImportError:
    library: ModuleType | None = None
else:
    library = None if os.environ.get("TRACEVIZ_SWEEPS") == "numpy" else _compiled

Array = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Reals = npt.NDArray[np.float64]
Bounds = tuple[Array, Array]
"""Starts and ends."""


def merged(begin: Array, finish: Array) -> Bounds:
    """Union of the intervals from ``begin`` to ``finish`` in any order; empty ones contribute nothing."""
    if library is not None:
        starts, ends = np.empty(begin.size, np.int64), np.empty(begin.size, np.int64)
        count = library.merge(begin, finish, starts, ends)
        if count < 0:
            order = np.argsort(begin, kind="stable")
            count = library.merge(begin[order], finish[order], starts, ends)
        return _trimmed(starts, count), _trimmed(ends, count)
    keep = finish > begin
    begin, finish = begin[keep], finish[keep]
    if begin.size == 0:
        return begin, finish
    if np.any(begin[1:] < begin[:-1]):
        order = np.argsort(begin, kind="stable")
        begin, finish = begin[order], finish[order]
    reach = np.maximum.accumulate(finish)
    first = np.empty(begin.size, dtype=bool)  # True where a new merged interval begins
    first[0] = True
    np.greater(begin[1:], reach[:-1], out=first[1:])
    heads = np.flatnonzero(first)
    tails = np.append(heads[1:] - 1, begin.size - 1)
    return begin[heads], reach[tails]


def united(one: Bounds, other: Bounds) -> Bounds:
    """What is in either of two sets."""
    if library is not None:
        return _of_two(library.unite, one, other)
    return merged(np.concatenate([one[0], other[0]]), np.concatenate([one[1], other[1]]))


def intersected(one: Bounds, other: Bounds) -> Bounds:
    """What is in both of two sets."""
    if library is not None:
        return _of_two(library.intersect, one, other)
    if not one[0].size or not other[0].size:
        return one[0][:0], one[1][:0]
    low, high = min(one[0][0], other[0][0]), max(one[1][-1], other[1][-1])
    outside = united(_complement(one, low, high), _complement(other, low, high))
    return _complement(outside, low, high)


def subtracted(one: Bounds, other: Bounds) -> Bounds:
    """What is in the first of two sets and not in the other."""
    if library is not None:
        return _of_two(library.subtract, one, other)
    if not one[0].size or not other[0].size:
        return one
    low, high = min(one[0][0], other[0][0]), max(one[1][-1], other[1][-1])
    return intersected(one, _complement(other, low, high))


def running(begin: Array, finish: Array, at_least: int) -> Bounds:
    """Time in which ``at_least`` or more intervals run at once; none of them is empty."""
    if library is not None:
        begin, finish = _in_order(begin, finish)
        starts, ends = np.empty(begin.size, np.int64), np.empty(begin.size, np.int64)
        count = library.running(begin, finish, starts, ends, at_least)
        return _trimmed(starts, count), _trimmed(ends, count)
    times = np.concatenate([begin, finish])
    steps = np.concatenate([np.ones(begin.size, np.int64), -np.ones(begin.size, np.int64)])
    order = np.lexsort((steps, times))  # at one instant, ends come before starts: half-open
    times, count_at = times[order], np.cumsum(steps[order])
    busy = count_at >= at_least
    return merged(times[:-1][busy[:-1]], times[1:][busy[:-1]])


def ended(bounds: Bounds, moments: Array) -> Array:
    """How many members of a set have ended by each of ``moments``."""
    if library is None:
        return np.searchsorted(bounds[1], moments, side="right")
    counts = np.empty(moments.size, dtype=np.int64)
    library.ended(bounds[1], moments, counts)
    return counts


def before(bounds: Bounds, moments: Array) -> Array:
    """Nanoseconds of a set that lie before each of ``moments``."""
    spent, done = np.empty(moments.size, dtype=np.int64), done_before(bounds)
    if library is not None:
        library.before(*bounds, done, moments, spent)
        return spent
    for block in _blocks(moments.size):
        spent[block] = _before(bounds, done, moments[block])
    return spent


def shared(bounds: Bounds, begin: Array, finish: Array) -> Array:
    """Nanoseconds that each of the intervals from ``begin`` to ``finish`` has in common with a set."""
    common = np.empty(begin.size, dtype=np.int64)
    done = done_before(bounds)
    if library is not None:
        library.shared(*bounds, done, begin, finish, common)
        return common
    for block in _blocks(begin.size):
        first, last = begin[block], np.maximum(begin[block], finish[block])
        common[block] = _before(bounds, done, last) - _before(bounds, done, first)
    return common


def weighed(bounds: Bounds, begin: Array, finish: Array, loads: Array, full: int) -> float:
    """Time of a set multiplied with the sum of the ``loads`` that run at each moment, at most ``full``.

    Args:
        bounds: The set.
        begin: When each load begins.
        finish: When it ends; one that ends before it begins is none.
        loads: The loads.
        full: More than this counts as this.
    """
    if library is not None:
        return float(library.weigh(*bounds, *_in_order(begin, finish, loads), full))
    times, steps = np.concatenate([begin, np.maximum(begin, finish)]), np.concatenate([loads, -loads])
    order = np.argsort(times, kind="stable")
    running = np.minimum(np.cumsum(steps[order])[:-1], full)
    return float((shared(bounds, times[order][:-1], times[order][1:]) * running.astype(np.float64)).sum())


def _in_order(begin: Array, *others: Array) -> tuple[Array, ...]:
    """Rows in order of ``begin``: those of tables mostly are, and are not copied then."""
    if np.all(begin[1:] >= begin[:-1]):
        return begin, *others
    order = np.argsort(begin, kind="stable")
    return begin[order], *(other[order] for other in others)


def summed(codes: Codes, values: Array | None, count: int) -> Array:
    """The sum of the ``values`` of each of ``count`` groups, or how many rows it has, by the group of each row."""
    totals = np.zeros(count, np.int64)
    if library is not None:
        columns = (codes,) if values is None else (codes, values)
        library.add_by(*(np.ascontiguousarray(column) for column in columns), totals)
    elif values is None:
        totals += np.bincount(codes, minlength=count)
    else:
        np.add.at(totals, codes, values)
    return totals


def squares(values: Array, begins: Array, means: Reals) -> Reals:
    """For each group, the sum of the squares of what its ``values`` are off its mean.

    Args:
        values: The values, group by group.
        begins: Where each group begins, and the end of the last.
        means: The mean of each.
    """
    sums = np.zeros(means.size)
    counts = np.diff(begins)
    if library is not None:
        library.squares(np.ascontiguousarray(values), begins, means, sums)
    elif (there := np.flatnonzero(counts)).size:
        off = values - np.repeat(means[there], counts[there])
        sums[there] = np.add.reduceat(off * off, begins[there])
    return sums


def _of_two(sweep: Callable[..., int], one: Bounds, other: Bounds) -> Bounds:
    most = one[0].size + other[0].size
    starts, ends = np.empty(most, np.int64), np.empty(most, np.int64)
    count = sweep(*one, *other, starts, ends)
    return _trimmed(starts, count), _trimmed(ends, count)


def _trimmed(values: Array, count: int) -> Array:
    """The first ``count`` of ``values``, without keeping much more in memory than these."""
    return values[:count] if 2 * count > values.size else values[:count].copy()


def _complement(bounds: Bounds, low: int, high: int) -> Bounds:
    """What of the time from ``low`` to ``high`` is not in a set that lies within it."""
    return merged(np.concatenate([[low], bounds[1]]), np.concatenate([bounds[0], [high]]))


def done_before(bounds: Bounds) -> Array:
    """For each member of a set, and for the end of time: nanoseconds of all members before it."""
    done = np.empty(bounds[0].size + 1, np.int64)
    done[0] = 0
    np.cumsum(bounds[1] - bounds[0], out=done[1:])
    return done


def _before(bounds: Bounds, done: Array, moments: Array) -> Array:
    index = np.searchsorted(bounds[1], moments, side="right")
    begins = np.append(bounds[0], np.iinfo(np.int64).max)[index]
    return np.asarray(done[index] + (np.maximum(moments, begins) - begins))


_BLOCK = 1 << 15


def _blocks(count: int) -> Iterator[slice]:
    """Slices that together cover ``count`` items: intermediate results of each stay in the cache."""
    return (slice(start, start + _BLOCK) for start in range(0, count, _BLOCK))
