"""Sweeps over sorted times, and sums by group, in compiled code (:mod:`traceviz.core.arrays.library`).

A set is given by its starts and its ends: sorted, disjoint, not touching, none empty.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from traceviz.core.arrays.library import library

Array = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Reals = npt.NDArray[np.float64]
Bounds = tuple[Array, Array]
"""Starts and ends."""


def merged(begin: Array, finish: Array) -> Bounds:
    """Return the union of the intervals from ``begin`` to ``finish`` in any order; empty ones contribute nothing."""
    starts, ends = np.empty(begin.size, np.int64), np.empty(begin.size, np.int64)
    count = library.merge(begin, finish, starts, ends)
    if count < 0:
        order = np.argsort(begin, kind="stable")
        count = library.merge(begin[order], finish[order], starts, ends)
    return _trimmed(starts, count), _trimmed(ends, count)


def united(one: Bounds, other: Bounds) -> Bounds:
    """Return the union of two sets."""
    return _of_two(library.unite, one, other)


def intersected(one: Bounds, other: Bounds) -> Bounds:
    """Return the intersection of two sets."""
    return _of_two(library.intersect, one, other)


def subtracted(one: Bounds, other: Bounds) -> Bounds:
    """Return the first of two sets without the other."""
    return _of_two(library.subtract, one, other)


def running(begin: Array, finish: Array, at_least: int) -> Bounds:
    """Return the times in which ``at_least`` or more intervals run at once. No interval may be empty."""
    begin, finish = _in_order(begin, finish)
    starts, ends = np.empty(begin.size, np.int64), np.empty(begin.size, np.int64)
    count = library.concurrent(begin, finish, starts, ends, at_least)
    return _trimmed(starts, count), _trimmed(ends, count)


def ended(bounds: Bounds, moments: Array) -> Array:
    """Count the members of a set that have ended by each of ``moments``."""
    counts = np.empty(moments.size, dtype=np.int64)
    library.ended(bounds[1], moments, counts)
    return counts


def before(bounds: Bounds, moments: Array) -> Array:
    """Return the nanoseconds of a set that lie before each of ``moments``."""
    spent = np.empty(moments.size, dtype=np.int64)
    library.before(*bounds, done_before(bounds), moments, spent)
    return spent


def shared(bounds: Bounds, begin: Array, finish: Array) -> Array:
    """Return the nanoseconds that each of the intervals from ``begin`` to ``finish`` has in common with a set."""
    common = np.empty(begin.size, dtype=np.int64)
    library.shared(*bounds, done_before(bounds), begin, finish, common)
    return common


def weighed(bounds: Bounds, begin: Array, finish: Array, loads: Array, full: int) -> float:
    """Return the time of a set, weighted by the sum of the ``loads`` that run at each moment, at most ``full``.

    Args:
        bounds: The set.
        begin: The start of each load.
        finish: Its end. A load that ends before it starts does not count.
        loads: The loads.
        full: Upper limit of the sum.
    """
    return float(library.weigh(*bounds, *_in_order(begin, finish, loads), full))


def _in_order(begin: Array, *others: Array) -> tuple[Array, ...]:
    """Return rows in order of ``begin``. Rows of tables mostly are in order, and then they are not copied."""
    if np.all(begin[1:] >= begin[:-1]):
        return begin, *others
    order = np.argsort(begin, kind="stable")
    return begin[order], *(other[order] for other in others)


def summed(codes: Codes, values: Array | None, count: int) -> Array:
    """Return the sum of the ``values`` of each of ``count`` groups, or its number of rows, by the group of each row."""
    totals = np.zeros(count, np.int64)
    columns = (codes,) if values is None else (codes, values)
    library.add_by(*(np.ascontiguousarray(column) for column in columns), totals)
    return totals


def squares(values: Array, begins: Array, means: Reals) -> Reals:
    """Return, for each group, the sum of the squared deviations of its ``values`` from its mean.

    Args:
        values: The values, group by group.
        begins: Position of the first value of each group, and the end of the last group.
        means: The mean of each group.
    """
    sums = np.zeros(means.size)
    library.squares(np.ascontiguousarray(values), begins, means, sums)
    return sums


def _of_two(sweep: Callable[..., int], one: Bounds, other: Bounds) -> Bounds:
    most = one[0].size + other[0].size
    starts, ends = np.empty(most, np.int64), np.empty(most, np.int64)
    count = sweep(*one, *other, starts, ends)
    return _trimmed(starts, count), _trimmed(ends, count)


def _trimmed(values: Array, count: int) -> Array:
    """Return the first ``count`` of ``values``, without keeping much more in memory than these."""
    return values[:count] if 2 * count > values.size else values[:count].copy()


def done_before(bounds: Bounds) -> Array:
    """Return the nanoseconds of all members before each member of a set, and before the end of time."""
    done = np.empty(bounds[0].size + 1, np.int64)
    done[0] = 0
    np.cumsum(bounds[1] - bounds[0], out=done[1:])
    return done


# Sorting of rows that nearly come by time, as profilers write them, in their own memory -------------------------------
#
# Threads deliver their records in pieces, so rows are some hundreds of places from where they belong:
#
#     thread 1   10 14 19             in the file   10 14 19 12 15 22         in order   10 12 14 15 19 22
#     thread 2            12 15 22

FURTHEST = 1 << 20
"""Largest distance of a row from its place, in rows. The sort holds a window of this many; others sort another way."""


def put_in_order(times: Array, columns: Sequence[npt.NDArray[Any]]) -> bool:
    """Sort ``columns`` of one length by ``times``, in their own memory. Equal times keep their order.

    Args:
        times: Their times; not one of the columns, unless it is the last.
        columns: Columns of 1, 2, 4 or 8 bytes.

    Returns:
        True if they are in order now. False if a row is too far from its place; then nothing was moved.
    """
    rows = np.empty(times.size, np.int32)
    distance = library.order_times(times, rows)
    if not 0 <= distance <= FURTHEST:
        return False
    for column in columns if distance else ():
        library.move(rows, column.itemsize, distance, column.view(f"u{column.itemsize}"))
    return True
