"""Spans of one lane, and the rows that they lie in so that none of a row overlap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from traceviz.core.arrays.nested import Codes
from traceviz.report.pictures.timeline import Array, LaneKind

MOST_ROWS = 200
"""Rows of a lane: what overlaps or nests further is not drawn."""

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Seat:
    """What a lane is, and where it is drawn.

    Args:
        key: Stable key, unique in the timeline.
        label: For people.
        kind: What it shows.
        process_id: Process that it belongs to; -1 for none.
        thread_id: Thread that it belongs to; -1 for none.
        place: Place among lanes of its kind.
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
        starts: Begin in nanoseconds.
        durations: Nanoseconds; of an event that never ended 0, as everywhere in a report.
        names: Number of the name.
        origins: Number of the event among all events of the trace.
    """

    starts: Array
    durations: Array
    names: Codes
    origins: Array

    def at(self, rows: npt.NDArray[np.integer] | Mask | slice) -> Spans:
        """Those at these positions."""
        return Spans(self.starts[rows], self.durations[rows], self.names[rows], self.origins[rows])

    def in_order(self) -> Spans:
        """These by start, and of those that begin together the longest first."""
        later = self.starts[1:] - self.starts[:-1]
        if not self.starts.size or np.all((later > 0) | ((later == 0) & (self.durations[1:] <= self.durations[:-1]))):
            return self
        return self.at(np.lexsort((-self.durations, self.starts)))


def row_numbers(starts: Array, ends: Array, most: int = MOST_ROWS) -> Codes:
    """For each span the first row that is free when it begins; -1 beyond ``most`` rows.

    ::

        |---- 0 ----|        |-- 0 --|
           |-- 1 --|  |---- 1 ----|
              |-- 2 --|

    One pass per row, not per span: what a row takes depends on nothing in the rows below it.

    Args:
        starts: Begin of each, ascending; of those that begin together, the longest comes first.
        ends: End of each.
        most: Rows that there may be.
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
    """Which spans one row takes: the first, then each time the next that begins when the last one has ended.

    Those that begin after all before them have ended are taken whatever lies between. Where what lies between reaches
    over the end of the one around it, the row has to be followed.
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
    """:func:`_first_fit` by steps of doubling length: from each span to the next that fits, the 2nd, 4th, 8th next."""
    count = starts.size
    following = np.maximum(np.searchsorted(starts, ends), np.arange(1, count + 1))
    following = np.append(following, count)
    taken = np.zeros(count + 1, bool)
    taken[0] = True
    for _ in range(count.bit_length()):
        taken[following[taken]] = True
        following = following[following]
    return taken[:count]
