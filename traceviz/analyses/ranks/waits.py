"""Time in which ranks wait for others, and compute nothing.

Ranks meet in collectives and in transfers between two of them, and each waits there for the one that arrives last.
Collectives are compared call by call (:mod:`.collective_skew`). Transfers between two ranks have no common number, but
their steps have. If the rank with the most work of its own in a step communicates less than another rank, the other one
waits for it by the difference: even without any transfer, it could not go on before::

    rank 0   |--own work--|~~~~~wait~~~~~|-transfer-|        works less, and communicates longer by as much
    rank 1   |---------own work----------|-transfer-|        works most
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from traceviz.analyses.derived.device.names import rank_numbers, stated_ranks
from traceviz.analyses.derived.frames import bounds, having
from traceviz.analyses.derived.host.classes import host_classes
from traceviz.analyses.derived.host.collectives import joint_collectives
from traceviz.analyses.derived.view import TraceView, once_per_trace
from traceviz.analyses.ranks.collective_skew import Skew, collective_skew
from traceviz.analyses.ranks.stragglers import find_rounds
from traceviz.core.arrays.intervals import IntervalSet


@dataclass(frozen=True, slots=True)
class Waiting:
    """Time in which a rank waits for others.

    Args:
        classes: Its classes of step time, collectives of the host among communication.
        compared: Time at the start of compared collectives, as long as the wait in them, in which communication runs
            and nothing computes.
        away: That time, and the communication that could not be compared. That is all communication if not all ranks
            were compared. Else it is transfers between two ranks, what the host communicates, and what only some ranks
            recorded.
        for_work: The part of communication that could not be compared in which it waits for the rank with the most work
            of its own in a step. Its length is known for each step, and is divided among the communication of the step.
    """

    classes: Mapping[str, IntervalSet]
    compared: IntervalSet
    away: IntervalSet
    for_work: IntervalSet

    @property
    def known(self) -> IntervalSet:
        """All waits whose length is known."""
        return self.compared.union(self.for_work)


@dataclass(frozen=True, slots=True)
class Waits:
    """Waits of all ranks of a job.

    Args:
        skew: Arrivals at the collectives that ranks have in common.
        compared: True if the collectives of all ranks could be compared.
        of_ranks: The waits of each rank, by ``process_id``.
    """

    skew: Skew
    compared: bool
    of_ranks: Mapping[int, Waiting]


def are_ranks(trace: TraceView) -> bool:
    """Return whether several processes are ranks of one job, as those that use devices are taken to be."""
    if len(rank_numbers(trace)) < 2:
        return False
    return bool(trace.rank_busy or stated_ranks(trace) or joint_collectives(trace).height)


@once_per_trace
def find_waits(trace: TraceView, tolerance: float) -> Waits:
    """Return the waits of all ranks. ``tolerance`` is that of :func:`collective_skew`."""
    numbers = rank_numbers(trace)
    skew = collective_skew(trace, tolerance)
    compared = set(numbers) <= set(skew.arrivals["process_id"])
    waits = {process: _wait_of(trace, process, skew, compared=compared) for process in numbers}
    return Waits(skew, compared, _with_waits_for_work(trace, waits))


def known_waits(trace: TraceView, tolerance: float) -> dict[int, IntervalSet]:
    """Return the waits of each rank whose length is known, by ``process_id``; empty if none are.

    ``tolerance`` is that of :func:`collective_skew`.
    """
    if not are_ranks(trace):
        return {}
    waits = find_waits(trace, tolerance)
    known = {process: own.known for process, own in waits.of_ranks.items()}
    return known if waits.skew.arrivals.height or any(map(len, known.values())) else {}


def _wait_of(trace: TraceView, process: int, skew: Skew, *, compared: bool) -> Waiting:
    """Return the waits of the rank of ``process``, without those for the work of others."""
    classes = host_classes(trace)[process].sets
    communication = classes["communication"]
    arrivals = having(skew.arrivals, "process_id", process)
    starts = arrivals["start_ns"].to_numpy()
    waits = IntervalSet.of(starts, starts + arrivals["wait_ns"].to_numpy()).intersect(communication)
    if not compared:
        return Waiting(classes, waits, communication, IntervalSet.empty())
    whole = IntervalSet.of(starts, starts + arrivals["dur_ns"].to_numpy())
    return Waiting(classes, waits, waits.union(communication.subtract(whole)), IntervalSet.empty())


def _with_waits_for_work(trace: TraceView, waits: dict[int, Waiting]) -> dict[int, Waiting]:
    """Return ``waits`` with :attr:`Waiting.for_work`."""
    common = find_rounds(trace).common
    if set(common["process_id"]) != set(waits):
        return waits
    rounds = {process: bounds(having(common, "process_id", process)) for process in waits}
    away = np.array([waits[process].away.overlap(*own) for process, own in rounds.items()])
    work = np.array([ends - starts for starts, ends in rounds.values()]) - away
    most, columns = work.argmax(axis=0), np.arange(work.shape[1])
    # Steps of ranks that do not wait for one another differ in length: then the others do not communicate longer.
    less = np.minimum(work[most, columns] - work, away - away[most, columns])
    found = {}
    for place, (process, own) in enumerate(waits.items()):
        starts, ends = rounds[process]
        rest = own.away.subtract(own.compared)
        unknown = rest.overlap(starts, ends)
        further = np.clip(less[place] - (away[place] - unknown), 0, unknown)
        part = np.divide(further, unknown, out=np.zeros(further.size), where=unknown > 0)
        inside, order = rest.intersect(IntervalSet.of(starts, ends)), np.argsort(starts)
        step = order[np.searchsorted(starts[order], inside.starts, "right") - 1]
        lasting = np.rint(part[step] * inside.durations).astype(np.int64)
        found[process] = replace(own, for_work=IntervalSet.of(inside.starts, inside.starts + lasting))
    return found
