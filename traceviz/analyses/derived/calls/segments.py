"""The innermost event of a thread at every moment: a sweep over the begins and ends of events that nest.

::

    range    |----------------------------|
    op           |-----------|
    call            |---|
    owner    |-r-|o-|-c-|-o--|-----r------|
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from traceviz.analyses.derived.calls.call_tree import CallTree
from traceviz.core.arrays.intervals import Array
from traceviz.core.arrays.nested import Rows, stretches


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """Stretches of time of threads, disjoint on each thread, and the row of the call that is innermost there."""

    starts: Array
    ends: Array
    owner: Rows

    def of(self, keep: npt.NDArray[np.bool_]) -> Segments:
        """Those that ``keep`` marks."""
        return Segments(self.starts[keep], self.ends[keep], self.owner[keep])


def innermost(tree: CallTree, wanted: npt.NDArray[np.bool_] | None = None) -> Segments:
    """The innermost call of each thread at every moment at which one is running; calls that last no time own none.

    Only stretches of ``wanted`` calls, where given: of millions each takes memory.

    Where calls of a thread cross instead of nesting, a moment belongs to the last call that began and is running then.
    """
    threads = tree.calls["thread_id"].to_numpy().astype(np.int64)
    depth = None if tree.nests else tree.depth
    if (found := stretches(threads, tree.starts, tree.ends, tree.parent, wanted, depth)) is not None:
        return Segments(*found)
    lasting = np.flatnonzero(tree.ends > tree.starts)
    threads = threads[lasting]
    times = np.concatenate([tree.starts[lasting], tree.ends[lasting]])
    owner = np.concatenate([lasting, tree.parent[lasting]])
    begins = np.repeat([1, 0], lasting.size)
    depth = tree.depth[lasting]
    inner_last = np.concatenate([depth, -depth])  # of begins the inner one comes last, of ends the outer one
    order = np.lexsort((inner_last, begins, times, np.tile(threads, 2)))
    times, owner, threads = times[order], owner[order], np.tile(threads, 2)[order]
    lasts = (times[1:] > times[:-1]) & (threads[1:] == threads[:-1])
    starts, ends, owner, threads = times[:-1], times[1:], owner[:-1], threads[:-1]
    starts, ends, owner, threads = starts[lasts], ends[lasts], owner[lasts], threads[lasts]
    row = np.maximum(owner, 0)
    is_running = (owner >= 0) & (tree.starts[row] <= starts) & (tree.ends[row] >= ends)
    if not tree.nests:
        owner[~is_running] = tree.around(threads[~is_running], starts[~is_running])
    known = owner >= 0
    return Segments(starts, ends, owner).of(known if wanted is None else known & wanted[owner])
