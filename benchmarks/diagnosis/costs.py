"""Costs: means with a spread and a tail of outliers, from one random sequence for each use."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from random import Random

OUTLIERS = 0.02
"""Share of draws that are outliers, in a world with a spread."""
TAIL, LEAST_OUTLIER, GREATEST_OUTLIER = 1.5, 2.0, 20.0
"""An outlier is at least twice as large as others, and more by a Pareto distribution with this exponent."""


class Costs:
    """Draws of costs around their means.

    Args:
        seed: Seed of the world.
        spread: Standard deviation of the logarithm of a cost; 0 makes each cost its mean.
    """

    def __init__(self, seed: int, spread: float) -> None:
        self._seed = seed
        self._spread = spread
        self._drawn = _drawn(seed, spread)
        self._uses: dict[str, _Use] = {}

    def draw(self, use: str, mean_ns: float, *, spread: float | None = None, outliers: float = OUTLIERS) -> int:
        """Return a cost in nanoseconds. Draws for other uses do not change it.

        ``spread`` and ``outliers`` replace those of the world; they are the same for all draws of a use.
        """
        if mean_ns <= 0:
            return 0
        if not self._spread:
            return round(mean_ns)
        found = self._uses.get(use)
        if found is None:
            found = self._uses[use] = _Use(*self._drawn.setdefault(use, (Random(f"{self._seed}/{use}"), [])))
        position = found.position
        found.position += 1
        if position == len(found.factors):
            spread = self._spread if spread is None else spread
            factor = math.exp(found.sequence.gauss(-(spread**2) / 2, spread))
            if found.sequence.random() < outliers:
                factor *= min(GREATEST_OUTLIER, LEAST_OUTLIER * found.sequence.paretovariate(TAIL))
            found.factors.append(factor)
        return max(1, round(mean_ns * found.factors[position]))


@dataclass(slots=True)
class _Use:
    """The factors of a use that any run has drawn, and the next one of this run."""

    sequence: Random
    factors: list[float]
    position: int = 0


@lru_cache(maxsize=1)
def _drawn(seed: int, spread: float) -> dict[str, tuple[Random, list[float]]]:
    """Return the sequence and the factors of each use. All runs of a world share them: a cause changes no factor."""
    del seed, spread
    return {}
