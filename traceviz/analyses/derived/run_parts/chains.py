"""Interned stacks as arrays: what holds for any frame of a stack, without a loop over stacks.

``parents[i]`` is the position of the caller, and the last entry stands for nobody. Each doubling looks twice as far
out, so that stacks of 128 frames take seven::

    parents    nobody <- 0 <- 1 <- 2 <- 3
    jump       one frame out, then two, then four
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from traceviz.analyses.derived.view import TraceView, once_per_trace
from traceviz.intervals import Array

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Chains:
    """All stacks of a trace by position: each is its innermost frame, with the frames around it.

    Args:
        frames: ``stack_id, parent_id, function, file, line, origin``, sorted by ``stack_id``; text as text.
    """

    frames: pl.DataFrame

    @property
    def nobody(self) -> int:
        """The position that stands for none."""
        return self.frames.height

    @cached_property
    def parents(self) -> Array:
        """Position of each stack's caller, with an entry for nobody, which calls itself.

        A caller comes before what it calls: what says otherwise has none, so that nothing is around itself.
        """
        places = self.positions(self.frames["parent_id"].fill_null(-1))
        callers = np.where(places < np.arange(self.nobody), places, self.nobody)
        return np.append(callers, self.nobody)

    def positions(self, stack_ids: pl.Series) -> Array:
        """Where these stacks are; :attr:`nobody` for those that are not there."""
        ids = self.frames["stack_id"].to_numpy()
        wanted = stack_ids.to_numpy()
        if not ids.size:
            return np.zeros(wanted.size, np.int64)
        places = np.searchsorted(ids, wanted)
        nearest = np.minimum(places, ids.size - 1)
        return np.where(ids[nearest] == wanted, nearest, self.nobody)

    @cached_property
    def depths(self) -> Array:
        """Number of frames around each stack's innermost one; 0 for nobody."""
        jump = self.parents
        depths = (jump < self.nobody).astype(np.int64)
        while np.any(jump < self.nobody):
            depths, jump = depths + depths[jump], jump[jump]
        return depths

    def outermost(self, flags: Flags) -> Array:
        """Position of the outermost flagged frame of each stack, :attr:`nobody` where none is; entry for nobody."""
        return self._found(flags, outer_first=True)

    def innermost(self, flags: Flags) -> Array:
        """The same for the innermost one."""
        return self._found(flags, outer_first=False)

    def _found(self, flags: Flags, *, outer_first: bool) -> Array:
        found = np.append(np.where(flags, np.arange(self.nobody), self.nobody), self.nobody)
        jump = self.parents
        while np.any(jump < self.nobody):
            further = found[jump]
            first, second = (further, found) if outer_first else (found, further)
            found, jump = np.where(first < self.nobody, first, second), jump[jump]
        return found

    def inclusive(self, positions: Array, times: Array) -> Array:
        """Time of each frame with all that it calls, from times of innermost frames; the entry for nobody is all."""
        total = np.zeros(self.parents.size, np.int64)
        np.add.at(total, positions, times)
        inner_first = np.argsort(-self.depths[: self.nobody], kind="stable")
        edges = np.flatnonzero(np.diff(self.depths[inner_first])) + 1
        for level in np.split(inner_first, edges):  # once per depth, not per stack
            np.add.at(total, self.parents[level], total[level])
        return total


@once_per_trace
def chains(trace: TraceView) -> Chains:
    """The stacks of ``trace``."""
    texts = pl.col("function", "file", "origin").cast(pl.String)
    return Chains(trace.frame("stack_frames", "stack_id", "parent_id", texts, "line").sort("stack_id"))
