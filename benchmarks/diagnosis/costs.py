"""Costs: means with a spread and outliers, from one random sequence for each use."""

from __future__ import annotations

import math
from random import Random

OUTLIERS = 0.02
"""Share of draws that are outliers, in a world with a spread."""
OUTLIER_FACTOR = (2.0, 5.0)
"""An outlier is this many times as large."""


class Costs:
    """Draws of costs around their means.

    Args:
        seed: Seed of the world.
        spread: Standard deviation of the logarithm of a cost; 0 makes each cost its mean.
    """

    def __init__(self, seed: int, spread: float) -> None:
        self._seed = seed
        self._spread = spread
        self._sequences: dict[str, Random] = {}

    def draw(self, use: str, mean_ns: float) -> int:
        """Return a cost in nanoseconds. Draws for other uses do not change it."""
        if mean_ns <= 0:
            return 0
        if not self._spread:
            return round(mean_ns)
        sequence = self.sequence(use)
        factor = math.exp(sequence.gauss(-(self._spread**2) / 2, self._spread))
        if sequence.random() < OUTLIERS:
            factor *= sequence.uniform(*OUTLIER_FACTOR)
        return max(1, round(mean_ns * factor))

    def sequence(self, use: str) -> Random:
        """Return the random sequence of a use."""
        if use not in self._sequences:
            self._sequences[use] = Random(f"{self._seed}/{use}")
        return self._sequences[use]
