"""The cause of being late that all ranks share.

Ranks wait for the last one, so each step is as slow as its slowest rank. A cause that all ranks have varies from rank
to rank, and makes another one late in each step. The wait is then a consequence of that cause; no rank is to blame::

    rank 0   |--input--|--compute--|~~~wait~~~|            |----input----|--compute--|
    rank 1   |----input----------------|--compute--|       |-input-|--compute--|~wait~|

If only the late rank has the cause, its own work is the problem. Waits for input are no work: they are the cause even
if only the late rank has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from traceviz.analyses.derived.frames import bounds, having
from traceviz.analyses.derived.host.classes import DEVICE_CLASSES
from traceviz.analyses.ranks.stragglers import Rounds
from traceviz.analyses.ranks.waits import Waiting

EXPLAINS = 0.5
"""A class explains that ranks are late if it is at least this part of what late ranks do more than the others."""
SHARED = 0.5
"""All ranks have a cause if the others spend at least this part of the late rank's excess in it, too."""


@dataclass(frozen=True, slots=True)
class SharedLateness:
    """A class of step time that makes ranks late, and that all ranks have, or that is no work of theirs.

    Args:
        key: The class.
        excess_ns: Time that the slowest rank of a step spends in it more than the mean of the others, over all steps.
        others_ns: Mean time of the others in it, over the same steps.
    """

    key: str
    excess_ns: int
    others_ns: int


def find_shared_lateness(rounds: Rounds, waits: Mapping[int, Waiting]) -> SharedLateness | None:
    """Return the cause of lateness that all ranks share; ``None`` if there is none, or devices are late by computing.

    Args:
        rounds: The steps of all ranks. Those are compared that all ranks have.
        waits: The classes of each rank and its waits for others, by ``process_id``.
    """
    common = rounds.common
    if not rounds.are_steps or set(common["process_id"]) != set(waits):
        return None
    own = {process: bounds(having(common, "process_id", process)) for process in waits}
    lasting = np.array([ends - starts - waits[p].away.overlap(starts, ends) for p, (starts, ends) in own.items()])
    late = lasting.argmax(axis=0)
    columns = np.arange(late.size)
    more = _more_than_others(lasting, late, columns)
    best: SharedLateness | None = None
    for key in next(iter(waits.values())).classes:
        if key == "communication":
            continue
        times = np.array([waits[process].classes[key].overlap(*own[process]) for process in own])
        excess = _more_than_others(times, late, columns)
        if excess > (best.excess_ns if best else 0):
            best = SharedLateness(key, round(excess), round(float(times[late, columns].sum()) - excess))
    if best is None or best.key in DEVICE_CLASSES or best.excess_ns < EXPLAINS * more:
        return None
    is_shared = best.others_ns >= SHARED * best.excess_ns or best.key == "input_wait"
    return best if is_shared else None


def _more_than_others(times: np.ndarray, late: np.ndarray, columns: np.ndarray) -> float:
    """Return by how much the late ranks exceed the mean of the others, summed over steps (columns)."""
    of_late = times[late, columns]
    others = (times.sum(axis=0) - of_late) / (times.shape[0] - 1)
    return float((of_late - others).sum())
