"""How often `traceviz compare` calls equal sides different, and how wide its interval is: the table of docs/compare.md.

    python benchmarks/interval_coverage.py [--pairs 400] [--steps 12,30]

Prints a row for every kind of steps: the share of pairs of equals whose 95 % interval leaves out zero, and the median
half width of the intervals, as shares of the step.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

import numpy as np

from traceviz.compare.effect import effect
from traceviz.core.resampling import Times

Draw = Callable[[np.random.Generator, int], Times]
COUNTS = "6,12,20,30,58,100,300"


def alike(correlation: float, spread: float = 0.05) -> Draw:
    """Draw log-normal steps whose neighbours are correlated."""

    def draw(generator: np.random.Generator, count: int) -> Times:
        noise = generator.standard_normal(count)
        for index in range(1, count):
            noise[index] = correlation * noise[index - 1] + math.sqrt(1 - correlation**2) * noise[index]
        return np.rint(1e7 * np.exp(spread * noise))

    return draw


def turns(*medians: float) -> Draw:
    """Draw steps with these alternating medians, starting at any of them."""

    def draw(generator: np.random.Generator, count: int) -> Times:
        first = int(generator.integers(len(medians)))
        median = np.resize(np.roll(medians, first), count)
        return np.rint(median * np.exp(0.05 * generator.standard_normal(count)))

    return draw


def by_chance(long: float, share: float) -> Draw:
    """Draw steps of 10 ms, some of them longer."""

    def draw(generator: np.random.Generator, count: int) -> Times:
        median = np.where(generator.random(count) < share, long, 1e7)
        return np.rint(median * np.exp(0.03 * generator.standard_normal(count)))

    return draw


KINDS: dict[str, Draw] = {
    "independent, scatter 5 %": alike(0),
    "independent, scatter 50 %": alike(0, 0.5),
    "one in twenty three times as long": by_chance(3e7, 0.05),
    "10 or 20 ms by chance": by_chance(2e7, 0.5),
    "8 and 232 ms in turns, scatter 5 %": turns(8e6, 2.32e8),
    "every tenth three times as long": turns(*[1e7] * 9, 3e7),
    "neighbours correlated by 0.5": alike(0.5),
    "neighbours correlated by 0.8": alike(0.8),
}


def cell(draw: Draw, count: int, pairs: int) -> str:
    """Return the false alarms and the half width: ``4 %, ± 1.9``."""
    generator, alarms, widths = np.random.default_rng(5), 0, []
    for seed in range(pairs):
        low, high = effect([draw(generator, count)], [draw(generator, count)], seed).interval
        alarms += not low <= 0 <= high
        widths.append((high - low) / 2 * 100)
    width = float(np.median(widths))
    return f"{alarms / pairs * 100:.0f} %, ± {width:.{1 if width < 9.95 else 0}f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=400)
    parser.add_argument("--steps", default=COUNTS)
    options = parser.parse_args()
    counts = [int(count) for count in options.steps.split(",")]
    print(f"| steps of each side | {' | '.join(map(str, counts))} |")
    print(f"|{'---|' * (len(counts) + 1)}")
    for name, draw in KINDS.items():
        print(f"| {name} | {' | '.join(cell(draw, count, options.pairs) for count in counts)} |", flush=True)


if __name__ == "__main__":
    main()
