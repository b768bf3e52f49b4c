"""The innermost event of a thread at every moment: a sweep over the starts and ends of nested events.

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
