"""The TensorFlow profiler's sweep, which assigns every moment of a step to one kind of event.

The boundaries of a step's events are sorted by time. At the same time, ends come before starts, and higher kinds come
first. A start raises the current kind to its own if that is higher. An end that leaves no event of the *current* kind
lowers it to the highest lower kind that still runs. Each gap between two boundaries belongs to the kind that is current
after the first of them::

    kind 2        |---|
    kind 1     |--------|
    current  0 |1 | 2 |1| 0

An event without duration ends before it starts. Its end lowers nothing. Its start raises the current kind, although no
event of that kind runs any more. The time that follows counts for the past event until a boundary changes the kind.
This defect of the original is kept here, because the purpose is to get its figures::

    kind 1        i      (an instant)
    kind 0   |----------|
    current  |0 |1 ...    until another event of kind 1 ends, or a higher one starts and ends
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from traceviz.core.arrays.intervals import Array

Flags = npt.NDArray[np.bool_]
Kinds = npt.NDArray[np.int8]

_CODES = 512
"""Factor for a boundary's place among those of the same time: start or end, with at most 256 kinds each."""


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Gaps between consecutive boundaries of one step, disjoint, sorted by step and time; some have no length.

    Args:
        step: Step of the gap, as given to :func:`sweep`.
        starts: Starts, in nanoseconds.
        ends: Ends, in nanoseconds.
        kind: Kind to which the gap belongs; 0 if no event runs.
    """

    step: Array
    starts: Array
    ends: Array
    kind: Kinds


@dataclass(frozen=True, slots=True, eq=False)
class _Boundaries:
    step: Array
    times: Array
    kind: Kinds
    is_start: Flags

    @property
    def opens_step(self) -> Flags:
        """True if the boundary is the first one of its step."""
        return np.concatenate([[True], self.step[1:] != self.step[:-1]])


def sweep(step: Array, starts: Array, ends: Array, kind: Kinds) -> Spans:
    """Assign the time between events to kinds, step by step. The module docstring has the rules.

    Args:
        step: Step of each event: a number from 0.
        starts: Start of each event, in nanoseconds from the start of the trace, below 2**54 (208 days).
        ends: End of each event; not before its start.
        kind: Kind of each event, 1 to 127; a higher one takes precedence.

    Returns:
        The gaps between boundaries; none for steps without events.
    """
    if not step.size:
        return Spans(step, starts, ends, kind)
    times = np.concatenate([starts, ends])
    kinds = np.concatenate([kind, kind])
    is_start = np.repeat([True, False], starts.size)
    steps = np.concatenate([step, step])
    rank = is_start * 256 + (255 - kinds.astype(np.int64))
    order = np.lexsort((times * _CODES + rank, steps))
    boundaries = _Boundaries(steps[order], times[order], kinds[order], is_start[order])
    inner = ~boundaries.opens_step[1:]  # the last boundary of a step opens no gap
    current = _current_kind(boundaries)
    starts, ends = boundaries.times[:-1], boundaries.times[1:]
    return Spans(boundaries.step[:-1][inner], starts[inner], ends[inner], current[:-1][inner])


def _current_kind(boundaries: _Boundaries) -> Kinds:
    """Return the current kind after each boundary.

    Kinds are handled from the highest down. A kind is current if its own start set it last and the end of its last
    event has not cleared it yet. No higher kind may be current. If a higher kind has just ended, the kind is current if
    one of its events runs.
    """
    position = np.arange(boundaries.times.size)
    opens = boundaries.opens_step
    current = np.zeros(boundaries.times.size, dtype=np.int8)
    above = np.zeros(boundaries.times.size, dtype=bool)
    for kind in np.unique(boundaries.kind)[::-1]:
        own = boundaries.kind == kind
        running = np.cumsum(np.where(boundaries.is_start, own, -own.astype(np.int32)), dtype=np.int64)
        begins = own & boundaries.is_start
        resumes = opens.copy()
        resumes[1:] |= above[:-1] & ~above[1:]
        decides = begins | resumes | (own & ~boundaries.is_start & (running == 0))
        holds = begins | (resumes & (running > 0))
        last = np.maximum.accumulate(np.where(decides, position, 0))
        mine = holds[last] & ~above
        current[mine] = kind
        above |= mine
    return current
