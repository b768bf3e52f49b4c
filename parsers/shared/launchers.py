"""Processes that launched device work, where several processes count their correlation ids from the same number.

Work of one queue of a device is of one process. Of several processes with calls of the same ids it is the one whose
calls all come before the work, and of these the one whose calls come shortest before it::

    process a   call 1   call 2                                 1 and 2 begin after the calls of a; 1 begins
    process b               call 1   call 2                     before the call of b
    queue          work 1       work 2                          ->  a
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traceviz.parsers.shared.arrays import Array

_SAMPLED = 4096
"""Work of a queue that is looked at."""


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
        """Those at ``rows``."""
        return Numbered(self.group[rows], self.ids[rows], self.start[rows])


def is_ambiguous(calls: Numbered) -> bool:
    """Whether calls of different processes share an id."""
    distinct = [np.unique(calls.ids[calls.group == process]).size for process in np.unique(calls.group)]
    return sum(distinct) > np.unique(calls.ids).size


def launchers(calls: Numbered, work: Numbered, processes: int, queues: int) -> Array:
    """Return the process (int32) of each queue; of equally likely ones the one that has the fewest queues so far."""
    work = work.taken(_sampled(work.group, queues))
    impossible = np.zeros((queues, processes), np.int64)
    waited = np.zeros((queues, processes))
    for process in range(processes):
        delay = _delays(calls.taken(np.flatnonzero(calls.group == process)), work)
        known = delay >= 0
        impossible[:, process] = np.bincount(work.group[~known], minlength=queues)
        waited[:, process] = np.bincount(work.group[known], delay[known], minlength=queues)
    chosen = np.zeros(queues, np.int32)
    owned = np.zeros(processes, np.int64)
    for queue in range(queues):
        chosen[queue] = np.lexsort((owned, waited[queue], impossible[queue]))[0]
        owned[chosen[queue]] += 1
    return chosen


def _sampled(group: Array, groups: int) -> Array:
    """Rows of each group, evenly spaced ones of large groups."""
    order = np.argsort(group, kind="stable")
    counts = np.bincount(group, minlength=groups)
    place = np.arange(group.size) - np.repeat(np.cumsum(counts) - counts, counts)
    step = np.repeat(-(-counts // _SAMPLED), counts)
    return order[place % np.maximum(step, 1) == 0]


def _delays(calls: Numbered, work: Numbered) -> Array:
    """From the last call with its id that starts before each piece of work to its start (ns); -1 without one."""
    order = np.lexsort((calls.start, calls.ids))
    calls = calls.taken(order)
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
