"""Calls that nest on their threads, as a tree over arrays, and sums over the tree.

::

    row 0   |----------------------------|          parent -1
    row 1       |-----------|                       parent  0
    row 2         |--|                              parent  1
    row 3                     |----|                parent  0

A sweep over the starts and ends of nested events finds the innermost event of a thread at every moment::

    range    |----------------------------|
    op           |-----------|
    call            |---|
    owner    |-r-|o-|-c-|-o--|-----r------|
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from traceviz.analyses.derived.frames import bounds, taken
from traceviz.core.arrays.intervals import Array, nesting
from traceviz.core.arrays.nested import (
    Codes,
    Rows,
    contexts,
    nearest,
    nested,
    nesting_order,
    running,
    stretches,
    topmost,
)


@dataclass(frozen=True, slots=True, eq=False)
class CallTree:
    """Calls sorted by thread and start, the outer before the inner.

    Args:
        calls: The calls. Rows in all arrays of the tree are rows of this frame.
        starts: Start of each call in nanoseconds.
        ends: End of each call.
        depth: Number of calls around each call.
        parent: Row of the innermost call around each call, or -1.
        nests: True if no call ends after a call around it.
    """

    calls: pl.DataFrame
    starts: Array
    ends: Array
    depth: Rows
    parent: Rows
    nests: bool

    @classmethod
    def of(cls, calls: pl.DataFrame, keep: tuple[str, ...] | None = None) -> CallTree:
        """Return the tree of ``calls``: ``thread_id, op_id, start_ns``, and ``end_ns`` or ``dur_ns``.

        If calls have the same start and end, the one with the smaller ``op_id`` is around the other. If these are equal
        too, the first one is around the other. The tree's calls have all columns, or only ``keep``, which must include
        ``thread_id``: with millions of calls, each column takes memory.
        """
        starts, ends = bounds(calls)
        threads = calls["thread_id"].to_numpy().astype(np.int64, copy=False)
        order = nesting_order(threads, starts, ends, calls["op_id"].to_numpy())
        kept = calls if keep is None else calls.select(keep)
        del calls  # the caller may have freed them, and two copies of millions of calls take too much memory
        if order is not None:
            kept = taken(kept, order)
            threads = kept["thread_id"].to_numpy().astype(np.int64, copy=False)
            starts, ends = starts[order], ends[order]
        found = nested(threads, starts, ends)
        depth, parent = found or nesting(starts, ends, threads)
        return cls(kept, starts, ends, depth, parent, nests=found is not None or not _cross(ends, parent))

    @property
    def durations(self) -> Array:
        """Length of each call in nanoseconds."""
        return self.ends - self.starts

    def around(self, threads: npt.ArrayLike, moments: npt.ArrayLike) -> Array:
        """Return the row of the innermost call that runs on each of ``threads`` at each of ``moments``, or -1.

        A call that starts at the moment counts; a call that ends at it does not.
        """
        own = self.calls["thread_id"].to_numpy().astype(np.int64)
        keys, times = (np.ascontiguousarray(values, np.int64) for values in (threads, moments))
        return running(own, self.starts, self.ends, self.parent, keys, times).astype(np.int64, copy=False)

    def around_known(self, work: pl.DataFrame, thread: str, moment: str) -> Array:
        """Apply :meth:`around` to two columns of ``work``; the result is -1 if the moment is not known."""
        moments = work[moment]
        around = self.around(work[thread].fill_null(-1).to_numpy(), moments.fill_null(0).to_numpy())
        return np.where(moments.is_null().to_numpy(), -1, around)

    def sums(self, rows: Rows, values: npt.ArrayLike) -> Array:
        """Return the sum of ``values`` per call that ``rows`` assigns them to; rows of -1 are ignored."""
        total = np.zeros(self.calls.height, np.int64)
        known = rows >= 0
        np.add.at(total, rows[known], np.asarray(values, np.int64)[known])
        return total

    def children(self, values: Array) -> Array:
        """Return, for each call, the sum of ``values`` over the calls directly inside it."""
        return self.sums(self.parent, values)

    def totals(self, values: Array) -> Array:
        """Return, for each call, its own value plus those of all calls inside it."""
        total = values.astype(np.int64, copy=True)
        for level in range(int(self.depth.max(initial=0)), 0, -1):  # once per depth, not per call
            rows = np.flatnonzero(self.depth == level)
            np.add.at(total, self.parent[rows], total[rows])
        return total

    def common(self, first: Array, second: Array) -> Array:
        """Return the row of the innermost call that is, or is around, both of two calls (rows), or -1."""
        one, other = first.copy(), second.copy()
        while (apart := (one >= 0) & (other >= 0) & (one != other)).any():  # at most twice per depth
            deeper = self.depth[one] >= self.depth[other]
            one[apart & deeper] = self.parent[one[apart & deeper]]
            other[apart & ~deeper] = self.parent[other[apart & ~deeper]]
        return np.where(one == other, one, -1)

    def nearest(self, selected: npt.NDArray[np.bool_]) -> Rows:
        """Return, for each call, the row of the innermost ``selected`` call that is it or is around it, or -1."""
        return nearest(self.parent, selected)

    def topmost(self, selected: npt.NDArray[np.bool_]) -> Rows:
        """Return, for each call, the row of the outermost ``selected`` call that is it or is around it, or -1."""
        return topmost(self.parent, selected)

    def contexts(self, codes: Codes) -> Contexts:
        """Group the calls that have the same of ``codes`` and lie in calls of the same group."""
        of_call, first = contexts(self.parent, codes)
        above = self.parent[first]
        return Contexts(of_call, first, np.where(above >= 0, of_call[above], np.int32(-1)))


@dataclass(frozen=True, slots=True, eq=False)
class Contexts:
    """Calls grouped by code and by the calls around them: a loop makes millions of calls in few contexts.

    Args:
        of_call: The context of each call.
        first: The first call of each context.
        parent: The context around each context, which precedes it, or -1.
    """

    of_call: Codes
    first: Codes
    parent: Rows


def _cross(ends: Array, parent: Rows) -> bool:
    """Return whether any call ends after the call around it."""
    inside = np.flatnonzero(parent >= 0)
    return bool((ends[inside] > ends[parent[inside]]).any())


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """Time intervals, disjoint on each thread, and the row of the innermost call in each."""

    starts: Array
    ends: Array
    owner: Rows

    def of(self, keep: npt.NDArray[np.bool_]) -> Segments:
        """Return the segments that ``keep`` marks."""
        return Segments(self.starts[keep], self.ends[keep], self.owner[keep])


def innermost(tree: CallTree, wanted: npt.NDArray[np.bool_] | None = None) -> Segments:
    """Return the innermost call of each thread at every moment at which one runs; calls of no duration own none.

    If ``wanted`` is given, return only segments of those calls: with millions of calls, each segment takes memory.

    If calls of a thread cross instead of nesting, a moment belongs to the running call that started last.
    """
    threads = tree.calls["thread_id"].to_numpy().astype(np.int64)
    depth = None if tree.nests else tree.depth
    return Segments(*stretches(threads, tree.starts, tree.ends, tree.parent, wanted, depth))
