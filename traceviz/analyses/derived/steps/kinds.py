"""Whether steps come in two kinds, such as quick ones and those that wait: their median is then no typical step.

The logarithms of the durations are divided in two where that explains most of their variance (Otsu 1979). Of a single
normal distribution, halves explain 2/π = 64 % of it, of an even one 75 %.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traceviz.core.arrays.intervals import Array

EXPLAINED = 0.85
"""Share of the variance that the division into two kinds must explain."""
FACTOR = 2.0
"""How many times as long as those of the other kind the steps of a kind must be, by their medians."""
SHARE = 0.2
"""Share of all steps that each kind must have, and"""
COUNT = 3
"""the number of steps that it must have at least."""


@dataclass(frozen=True, slots=True)
class TwoKinds:
    """Steps of two kinds: how many there are of each, and their median duration in nanoseconds."""

    quick: int
    quick_ns: float
    slow: int
    slow_ns: float


def two_kinds(durations: Array) -> TwoKinds | None:
    """The two kinds of steps; ``None`` where they are of one kind, as far as their durations tell.

    Args:
        durations: Of the steps, in nanoseconds, none of them 0; in any order.
    """
    ordered = np.sort(durations)
    logs = np.log(ordered.astype(np.float64))
    spread = logs.var() * logs.size
    if logs.size < 2 * COUNT or spread <= 0:
        return None
    quick = np.arange(1, logs.size)
    below = np.cumsum(logs)[:-1] / quick
    above = (logs.sum() - below * quick) / (logs.size - quick)
    explained = quick * (logs.size - quick) / logs.size * (above - below) ** 2 / spread
    best = int(np.argmax(explained))
    count = best + 1
    least = max(COUNT, SHARE * logs.size)
    medians = float(np.median(ordered[:count])), float(np.median(ordered[count:]))
    distinct = explained[best] >= EXPLAINED and medians[1] >= FACTOR * medians[0]
    if not distinct or min(count, logs.size - count) < least:
        return None
    return TwoKinds(count, medians[0], logs.size - count, medians[1])
