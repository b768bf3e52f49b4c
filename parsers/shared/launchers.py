"""Processes that launched device work, for processes whose correlation ids start from the same number.

All work of one queue of a device belongs to one process. Its calls start before the work. If several processes satisfy
that, the queues that started first belong to the processes that called first::

    process a   call 1   call 2                          queue x: not of b, whose call 1 starts after work 1
    process b        call 1   call 2                     queue y: of either; a has a queue, so it is of b
    queue x        work 1  work 2
    queue y             work 1     work 2
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traceviz.parsers.shared.arrays.operations import Array

_SAMPLED = 4096
"""Sampled pieces of work per queue."""
_CHANCE = 0.005
"""Share of a queue's work that may seem to start before its call: clocks of host and device differ a little."""


@dataclass(frozen=True, slots=True, eq=False)
class Numbered:
    """Calls of processes, or work of queues.

    Args:
        group: Process of each call or queue of each piece of work (integers from 0).
        ids: Correlation ids.
        start: Starts in ns.
    """

    group: Array
    ids: Array
    start: Array

    def taken(self, rows: Array) -> Numbered:
        """Return the rows at ``rows``."""
        return Numbered(self.group[rows], self.ids[rows], self.start[rows])


def is_ambiguous(calls: Numbered) -> bool:
    """Return whether calls of different processes share an id."""
    distinct = [np.unique(calls.ids[calls.group == process]).size for process in np.unique(calls.group)]
    return sum(distinct) > np.unique(calls.ids).size


def launchers(calls: Numbered, work: Numbered, processes: int, assumed: Array) -> Array:
    """Return the process (int32) of each queue.

    Args:
        calls: The calls.
        work: The work.
        processes: Number of processes.
        assumed: Assumed process of each queue, used if possible; -1 for none.
    """
    queues = assumed.size
    order = np.argsort(work.group, kind="stable")
    counts = np.bincount(work.group, minlength=queues)
    place = np.arange(work.group.size) - np.repeat(np.cumsum(counts) - counts, counts)
    step = np.repeat(-(-counts // _SAMPLED), counts)
    work = work.taken(order[place % np.maximum(step, 1) == 0])  # evenly spaced rows of large groups
    impossible = np.zeros((queues, processes), np.int64)
    first_call = np.full(processes, np.iinfo(np.int64).max)
    for process in range(processes):
        own = calls.taken(np.flatnonzero(calls.group == process))
        first_call[process] = own.start.min(initial=first_call[process])
        impossible[:, process] = np.bincount(work.group[waits(own, work) < 0], minlength=queues)
    allowed = impossible.min(axis=1) + np.bincount(work.group, minlength=queues) * _CHANCE
    first_work = np.full(queues, np.iinfo(np.int64).max)
    np.minimum.at(first_work, work.group, work.start)
    chosen = np.zeros(queues, np.int32)
    owned = np.zeros(processes, np.int64)
    for queue in np.argsort(first_work, kind="stable").tolist():
        likely = np.flatnonzero(impossible[queue] <= allowed[queue])
        chosen[queue] = likely[np.lexsort((first_call[likely], owned[likely], likely != assumed[queue]))[0]]
        owned[chosen[queue]] += 1
    return chosen


def waits(calls: Numbered, work: Numbered) -> Array:
    """Return the time (ns) to each piece of work from the last earlier call with its id; -1 without one."""
    ids = np.unique(np.r_[calls.ids, work.ids], return_inverse=True)[1].astype(np.int64)
    starts = np.r_[calls.start, work.start]
    # Calls and work in one order by id and start; calls first where both are equal.
    is_work = np.r_[np.zeros(calls.ids.size, bool), np.ones(work.ids.size, bool)]
    place = np.lexsort((is_work, starts, ids))
    latest = np.maximum.accumulate(np.where(is_work[place], -1, np.arange(place.size)))
    found = latest >= 0
    call = place[np.maximum(latest, 0)]
    found &= ids[call] == ids[place]
    delay = np.empty(place.size, np.int64)
    delay[place] = np.where(found, starts[place] - starts[call], -1)
    return delay[calls.ids.size :]
