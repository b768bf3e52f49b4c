"""The division of flame graph time by the class of step time of the rank at that moment.

::

    steps     |---- 0 ----|---- 1 ----|            steady: the time that counts
    classes   |in|compute-|in|compute-|            of the rank
    call      |--load--|                           input 3, compute 5
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traceviz.analyses.derived.host.classes import CLASSES, host_classes
from traceviz.analyses.derived.judged_time import host_time, steady_time
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.derived.view import TraceView, once_per_trace
from traceviz.core.arrays.intervals import Array, IntervalSet
from traceviz.core.arrays.nested import Mask, Rows
from traceviz.core.units import format_number

OUTSIDE = ("outside", "no class known")
"""Time of no class: outside the capture, or of a process without a known rank."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One class of time, for every process that has it."""

    key: str
    label: str
    sets: dict[int, IntervalSet]


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Intervals of processes: one value per interval in each array."""

    processes: Array
    starts: Array
    ends: Array


@dataclass(frozen=True, slots=True, eq=False)
class Division:
    """The classes of a trace, and the time that counts.

    Args:
        parts: Classes of the whole capture, by priority; no two share time of a process.
        host: Time of the host in steady steps by process; ``None`` if there are no steps: then all time counts.
        device: The same for work of devices.
        whole: The counted time as text.
        steps: Steady steps; 0 for none.
    """

    parts: tuple[Part, ...]
    host: dict[int, IntervalSet] | None
    device: dict[int, IntervalSet] | None
    whole: str
    steps: int

    def within_host(self) -> Division:
        """Return the same classes, limited to counted host time."""
        if self.host is None:
            return self
        nothing = IntervalSet.empty()
        parts = tuple(
            Part(
                part.key,
                part.label,
                {process: owned.intersect(self.host.get(process, nothing)) for process, owned in part.sets.items()},
            )
            for part in self.parts
        )
        return Division(parts, self.host, self.device, self.whole, self.steps)

    def begins_of_host(self, processes: Array, moments: Array) -> Mask:
        """Return a mask of the moments in counted host time."""
        return _contained(self.host, processes, moments)

    def begins_of_device(self, processes: Array, moments: Array) -> Mask:
        """Return a mask of the moments in counted device time."""
        return _contained(self.device, processes, moments)

    def covered(self, spans: Spans) -> Array:
        """Return the nanoseconds of each interval that lie in any class."""
        found = np.zeros(spans.starts.size, np.int64)
        for process in np.unique(spans.processes):
            rows = np.flatnonzero(spans.processes == process)
            sets = [part.sets[process] for part in self.parts if process in part.sets]
            whole = IntervalSet.empty().union(*sets)
            found[rows] = whole.overlap(spans.starts[rows], spans.ends[rows])
        return found

    def times(self, spans: Spans, owners: Rows, count: int) -> Array:
        """Return nanoseconds by owner (``count`` rows) and class; intervals of negative owners are ignored."""
        total = np.zeros((len(self.parts), count), np.int64)
        known = np.unique(spans.processes)
        for process in known:
            mine = owners if known.size == 1 else np.where(spans.processes == process, owners, -1)
            for column, part in enumerate(self.parts):
                if process in part.sets and len(part.sets[process]):
                    part.sets[process].add_overlap(spans.starts, spans.ends, mine, total[column])
        return np.ascontiguousarray(total.T)

    def outside(self, spans: Spans, owners: Rows, times: Array) -> Array:
        """Return the nanoseconds of each owner that are in no class; zeros if only steps count."""
        if self.host is not None:
            return np.zeros(times.shape[0], np.int64)
        whole = np.zeros(times.shape[0], np.int64)
        known = owners >= 0
        np.add.at(whole, owners[known], (spans.ends - spans.starts)[known])
        return np.asarray(whole - times.sum(axis=1))


@once_per_trace
def division(trace: TraceView) -> Division:
    """Divide time by the classes of all ranks; a single rank's classes also apply to its loader workers."""
    classes = host_classes(trace)
    ranks = {rank: classes[rank].sets for rank in trace.ranks}
    others = set(trace.frame("processes", "process_id")["process_id"].to_list()) - set(ranks)
    if len(ranks) == 1:
        ranks |= dict.fromkeys(others, next(iter(ranks.values())))
    parts = tuple(
        Part(known.key, known.label, {process: sets[known.key] for process, sets in ranks.items()}) for known in CLASSES
    )
    steps = training_steps(trace).steady.height
    if not steps:
        return Division(parts, None, None, "the whole capture", 0)
    host, device = host_time(trace), steady_time(trace)
    if len(trace.ranks) == 1 and trace.ranks[0] in host:
        host = dict.fromkeys(ranks, host[trace.ranks[0]])
    words = f"{format_number(steps)} steady step{'s' if steps > 1 else ''}"
    return Division(parts, host, device, words, steps)


def _contained(windows: dict[int, IntervalSet] | None, processes: Array, moments: Array) -> Mask:
    if windows is None:
        return np.ones(moments.size, np.bool_)
    inside = np.zeros(moments.size, np.bool_)
    for process, window in windows.items():
        inside |= (processes == process) & window.contains(moments)
    return inside
