"""Steps resampled in blocks of neighbours, whose means scatter as those of other recordings of the run would.

Neighbouring steps are alike (a full shuffle buffer, a clock that sinks), or take turns (two batches at once every other
step, a log line every tenth). Blocks keep both: they hold whole periods, as many as are alike.

    steps    ▁ █ ▁ █ ▁ █ ▁ █ ▁ █ ▁ █      drawn one by one, a resample may hold eight long ones of twelve;
    blocks  |▁ █|▁ █|▁ █|▁ █|▁ █|▁ █|     drawn in periods, half of it is long ones, as in every recording
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Times = npt.NDArray[np.int64 | np.float64]
"""Durations of steps in the order in which they ran, ns; of parts of a step no whole numbers."""
Figures = npt.NDArray[np.float64]
"""Figures of runs or of resamples: a number for each, or a row for each and a column for every figure of it."""

RESAMPLES = 2_000
"""Enough that the ends of the interval move by less than a twentieth of its width from seed to seed."""
ENOUGH = 10_000
"""Most steps drawn. Of more, this many are drawn, and their scatter is scaled to all by the root of their number."""
FEWEST_BLOCKS = 4
"""A recording has at least as many blocks, and a period comes at least as often."""
_CELLS = 2_000_000
"""Numbers held at once while resampling."""
_SHORTEST = 1e-3
"""Shortest duration of a unit of work, ns."""

_RETURNS = 0.4
"""Steps a period apart are as much alike at least, ..."""
_BY_CHANCE = 3.0
"""... more than by chance (by as many standard deviations), ..."""
_DIPS = 0.4
"""... and less alike by this in between: steps that drift are most alike next to each other."""
_AS_ALIKE = 0.15
"""The shortest period counts whose steps are less alike than those of the best by at most this: 2 of 2, 4, 6, ..."""


@dataclass(frozen=True, slots=True)
class Resamples:
    """Means of resampled steps.

    Args:
        means: A row for every resample, a column for every figure.
        seen: The means of all steps.
        scale: By how much the scatter of as many steps as there are exceeds that of ``means``.
        freedom: Degrees of freedom of that scatter: a block less than are drawn.
    """

    means: Figures
    seen: Figures
    scale: float
    freedom: int

    def deviations(self) -> Figures:
        """How far means are from those of all steps."""
        return (self.means - self.seen) * self.scale

    def deviations_of_logarithms(self) -> Figures:
        """How far their logarithms are; no time at all counts as the shortest duration."""
        return (np.log(np.maximum(self.means, _SHORTEST)) - np.log(self.seen)) * self.scale


def resample(table: Times, generator: np.random.Generator) -> Resamples:
    """Resample steps: the circular block bootstrap of Politis and Romano (1992).

    Args:
        table: Steps by columns; the first is the duration, by which neighbours are found alike.
        generator: Where chance comes from.
    """
    count, length = len(table), block_length(table[:, 0])
    blocks = max(round(min(count, ENOUGH) / length), 1)
    sums = _sums(table, length)
    rows = max(_CELLS // (blocks * table.shape[1]), 1)
    sizes = (min(rows, RESAMPLES - begin) for begin in range(0, RESAMPLES, rows))
    parts = [sums[generator.integers(count, size=(size, blocks))].sum(axis=1) for size in sizes]
    at_least = max(blocks, 2)  # a block less than are drawn is free to vary
    scale = math.sqrt(at_least / (at_least - 1) * blocks * length / count)
    return Resamples(np.concatenate(parts) / (blocks * length), table.mean(axis=0), scale, at_least - 1)


def _sums(table: Times, length: int) -> Times:
    """Sums over the ``length`` steps from each step on; the first follow on the last."""
    until = np.concatenate([np.zeros_like(table[:1]), np.concatenate([table, table[: length - 1]]).cumsum(axis=0)])
    sums: Times = until[length:] - until[:-length]
    return sums


def block_length(times: Times) -> int:
    """Steps that are resampled together: whole periods, as many as are alike; at most a quarter of all."""
    every = period(times)
    whole = times.size // every
    sums = times[: whole * every].reshape(whole, every).sum(axis=1)
    return every * _alike(sums)


def _alike(times: Times) -> int:
    """Neighbours that are alike: 1 where none are, by Carlstein (1986) for the correlation found.

    The correlation measured in n steps is too small by (1 + 4ρ) / n on average (Marriott and Pope 1954), which is
    added. Without it, one in ten pairs of equals of a dozen steps with a correlation of 0.5 would be called different.
    """
    count = times.size
    deviations = times - times.mean()
    variance = float(deviations @ deviations)
    if count < 2 * FEWEST_BLOCKS or not variance:
        return 1
    seen = float(deviations[1:] @ deviations[:-1]) / variance
    correlation = min(seen + (1 + 4 * seen) / count, 0.95)
    if correlation <= 0.5 / math.sqrt(count):  # less than chance gives; more than it rarely gives would miss drifts
        return 1
    ideal = math.pow(math.sqrt(6) * correlation / (1 - correlation**2), 2 / 3) * math.cbrt(count)
    return min(math.ceil(ideal), count // FEWEST_BLOCKS)


def period(times: Times) -> int:
    """After how many steps durations return: 2 where long and short ones take turns, 1 where nothing returns.

    A period is a peak of the autocorrelation; of its multiples, which are peaks as well, the first counts. One that is
    not found makes the interval wider than it need be, never too narrow.
    """
    longest = times.size // FEWEST_BLOCKS
    if longest < 2:
        return 1
    alike = autocorrelation(times, longest + 1)
    lags = np.arange(2, longest + 1)
    peaks = (alike[lags] > alike[lags - 1]) & (alike[lags] > alike[lags + 1])
    least = max(_RETURNS, _BY_CHANCE / math.sqrt(times.size))
    returns = (alike[lags] >= least) & (alike[lags] - np.minimum.accumulate(alike)[lags - 1] >= _DIPS)
    periods = lags[peaks & returns]
    if not periods.size:
        return 1
    return int(periods[alike[periods] >= alike[periods].max() - _AS_ALIKE][0])


def autocorrelation(times: Times, lags: int) -> Figures:
    """How much alike steps are that are 0, 1, ... ``lags`` apart; the sums of few pairs are scaled to those of all."""
    deviations = times - times.mean()
    power = np.abs(np.fft.rfft(deviations, 2 * times.size)) ** 2
    products = np.fft.irfft(power)[: lags + 1]
    if not products[0]:
        return np.zeros(lags + 1)
    scaled: Figures = products / products[0] * times.size / (times.size - np.arange(lags + 1))
    return scaled
