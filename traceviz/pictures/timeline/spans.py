"""Spans of one lane, and their rows, in which spans do not overlap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from traceviz.core.arrays.nested import Codes
from traceviz.report.pictures.values import Array, LaneKind

MOST_ROWS = 200
"""Limit of the rows of a lane; spans that overlap or nest further are not drawn."""

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Seat:
    """Identity and position of a lane.

    Args:
        key: Stable key, unique in the timeline.
        label: Readable label.
        kind: Kind of its spans.
        process_id: Process that it belongs to; -1 for none.
        thread_id: Thread that it belongs to; -1 for none.
        place: Position among lanes of its kind.
    """

    key: str
    label: str
    kind: LaneKind
    process_id: int
    thread_id: int = -1
    place: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Spans of one lane.

    Args:
        starts: Start in nanoseconds.
        durations: Nanoseconds; 0 for an event that never ended, as in the whole report.
        names: Number of the name.
        origins: Number of the event among all events of the trace.
    """

    starts: Array
    durations: Array
    names: Codes
    origins: Array

    def at(self, rows: npt.NDArray[np.integer] | Mask | slice) -> Spans:
        """Return the spans at these positions."""
        return Spans(self.starts[rows], self.durations[rows], self.names[rows], self.origins[rows])

    def in_order(self) -> Spans:
        """Sort spans by start; of those with the same start, the longest comes first."""
        later = self.starts[1:] - self.starts[:-1]
        if not self.starts.size or np.all((later > 0) | ((later == 0) & (self.durations[1:] <= self.durations[:-1]))):
            return self
        return self.at(np.lexsort((-self.durations, self.starts)))


def row_numbers(starts: Array, ends: Array, most: int = MOST_ROWS) -> Codes:
    """Return the first row that is free at the start of each span; -1 beyond ``most`` rows.

    ::

        |---- 0 ----|        |-- 0 --|
           |-- 1 --|  |---- 1 ----|
              |-- 2 --|

    One pass per row, not per span: the spans of a row do not depend on the rows below it.

    Args:
        starts: Start of each, ascending; of those with the same start, the longest comes first.
        ends: End of each.
        most: Limit of rows.
    """
    rows = np.full(starts.size, -1, np.int32)
    left = np.arange(starts.size)
    for row in range(most):
        if not left.size:
            break
        taken = _first_fit(starts[left], ends[left])
        rows[left[taken]] = row
        left = left[~taken]
    return rows


def _first_fit(starts: Array, ends: Array) -> Mask:
    """Return a mask of the spans in one row: the first, then each next span that starts after the last one ended.

    Spans that start after all earlier spans have ended are always taken. If a span between two such spans ends after
    the first of them, the row is followed span by span.
    """
    reach = np.maximum.accumulate(ends)
    outer = np.ones(starts.size, bool)
    outer[1:] = starts[1:] >= reach[:-1]
    around = np.flatnonzero(outer)
    cluster = np.cumsum(outer) - 1
    crosses = np.maximum.reduceat(reach, around) > ends[around]
    if crosses.any():
        members = np.flatnonzero(crosses[cluster])
        outer[members] = _followed(starts[members], ends[members])
    return outer


def _followed(starts: Array, ends: Array) -> Mask:
    """Compute :func:`_first_fit` by doubling: from each span to the next that fits, then the 2nd, 4th and 8th next."""
    count = starts.size
    following = np.maximum(np.searchsorted(starts, ends), np.arange(1, count + 1))
    following = np.append(following, count)
    taken = np.zeros(count + 1, bool)
    taken[0] = True
    for _ in range(count.bit_length()):
        taken[following[taken]] = True
        following = following[following]
    return taken[:count]
