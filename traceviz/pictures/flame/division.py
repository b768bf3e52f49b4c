"""What the time of a flame graph is divided by: the class of step time that the rank is in meanwhile.

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
"""Time that belongs to no class: outside of the capture, or of a process that no rank is known for."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One class of time, of every process that it is known of."""

    key: str
    label: str
    sets: dict[int, IntervalSet]


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Stretches of time of processes: one value per stretch in each array."""

    processes: Array
    starts: Array
    ends: Array


@dataclass(frozen=True, slots=True, eq=False)
class Division:
    """The classes of a trace, and the time that counts.

    Args:
        parts: Classes of the whole capture, by priority; no two share time of a process.
        host: Time of the host in steady steps by process; ``None`` where there are no steps: then all time counts.
        device: The same for what devices begin.
        whole: What counts, in words.
        steps: Steady steps; 0 for none.
    """

    parts: tuple[Part, ...]
    host: dict[int, IntervalSet] | None
    device: dict[int, IntervalSet] | None
    whole: str
    steps: int

    def within_host(self) -> Division:
        """The same classes, as far as they lie in time that counts for the host."""
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
        """Which moments of the host count."""
        return _contained(self.host, processes, moments)

    def begins_of_device(self, processes: Array, moments: Array) -> Mask:
        """Which moments of devices count."""
        return _contained(self.device, processes, moments)

    def covered(self, spans: Spans) -> Array:
        """Nanoseconds of each stretch that lie in any class."""
        found = np.zeros(spans.starts.size, np.int64)
        for process in np.unique(spans.processes):
            rows = np.flatnonzero(spans.processes == process)
            sets = [part.sets[process] for part in self.parts if process in part.sets]
            whole = IntervalSet.empty().union(*sets)
            found[rows] = whole.overlap(spans.starts[rows], spans.ends[rows])
        return found

    def times(self, spans: Spans, owners: Rows, count: int) -> Array:
        """Nanoseconds of each owner in each class: ``count`` rows; stretches of negative owners are left out."""
        total = np.zeros((len(self.parts), count), np.int64)
        known = np.unique(spans.processes)
        for process in known:
            mine = owners if known.size == 1 else np.where(spans.processes == process, owners, -1)
            for column, part in enumerate(self.parts):
                if process in part.sets and len(part.sets[process]):
                    part.sets[process].add_overlap(spans.starts, spans.ends, mine, total[column])
        return np.ascontiguousarray(total.T)

    def outside(self, spans: Spans, owners: Rows, times: Array) -> Array:
        """Nanoseconds of each owner that :meth:`times` has in no class; none where only steps count."""
        if self.host is not None:
            return np.zeros(times.shape[0], np.int64)
        whole = np.zeros(times.shape[0], np.int64)
        known = owners >= 0
        np.add.at(whole, owners[known], (spans.ends - spans.starts)[known])
        return np.asarray(whole - times.sum(axis=1))


@once_per_trace
def division(trace: TraceView) -> Division:
    """The classes of all ranks; processes beside a single rank (workers of a loader) have those of the rank."""
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
