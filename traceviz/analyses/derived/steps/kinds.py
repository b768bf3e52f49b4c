"""Test for two kinds of steps, such as quick ones and waiting ones; their median is then not a typical step.

The logarithms of the durations are divided in two, if that explains most of their variance (Otsu 1979). Halves of a
single normal distribution explain 2/π = 64 % of it, and of a uniform one 75 %.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traceviz.core.arrays.intervals import Array

EXPLAINED = 0.85
"""Minimum share of the variance that the division into two kinds must explain."""
FACTOR = 2.0
"""Minimum ratio of the medians of both kinds."""
SHARE = 0.2
"""Minimum share of all steps in each kind."""
COUNT = 3
"""Minimum number of steps in each kind."""


@dataclass(frozen=True, slots=True)
class TwoKinds:
    """Steps of two kinds: the number of each, and their median duration in nanoseconds."""

    quick: int
    quick_ns: float
    slow: int
    slow_ns: float


def two_kinds(durations: Array) -> TwoKinds | None:
    """Return the two kinds of steps; ``None`` if the durations show only one kind.

    Args:
        durations: Durations of the steps in nanoseconds, in any order. Those of 0 count as 1.
    """
    ordered = np.sort(durations)
    logs = np.log(np.maximum(ordered, 1).astype(np.float64))
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
