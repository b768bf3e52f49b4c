"""Steps resampled in blocks of neighbours, whose means scatter as those of other recordings of the run would.

Neighbouring steps are similar (a full shuffle buffer, a clock that drops), or alternate (two batches at once every
other step, a log line every tenth). Blocks keep both: they hold whole periods, and as many steps as are similar.

    steps    ▁ █ ▁ █ ▁ █ ▁ █ ▁ █ ▁ █      drawn one by one, a resample may hold eight long ones of twelve;
    blocks  |▁ █|▁ █|▁ █|▁ █|▁ █|▁ █|     drawn in periods, half of it is long ones, as in every recording
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Times = npt.NDArray[np.int64 | np.float64]
"""Durations of steps in the order in which they ran, ns. For parts of a step they are not whole numbers."""
Figures = npt.NDArray[np.float64]
"""Figures of runs or of resamples: one number each, or one row each with a column for every figure."""

RESAMPLES = 2_000
"""Number of resamples. The ends of the interval move by less than a twentieth of its width from seed to seed."""
ENOUGH = 10_000
"""Most steps drawn. Of more, this many are drawn, and their scatter is scaled to all by the root of their number."""
FEWEST_BLOCKS = 4
"""Least number of blocks in a recording, and of repetitions of a period."""
_CELLS = 2_000_000
"""Numbers held at once while resampling."""
_SHORTEST = 1e-3
"""Shortest duration of a unit of work, ns."""

_RETURNS = 0.4
"""Least autocorrelation of steps that are a period apart ..."""
_BY_CHANCE = 3.0
"""... and least number of standard deviations by which it exceeds chance ..."""
_DIPS = 0.4
"""... and least dip in between. Steps that drift are most similar to their neighbours."""
_AS_ALIKE = 0.15
"""The shortest period whose autocorrelation is below the best by at most this counts: 2 of 2, 4, 6, ..."""

_T_975 = (
    *(12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281),
    *(2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860),
    *(2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423),
)
"""Quantiles of Student's t for a two-sided interval of 95 %, by degrees of freedom from 1 on."""
Z_975 = 1.95996


@dataclass(frozen=True, slots=True)
class Resamples:
    """Means of resampled steps.

    Args:
        means: A row for every resample, a column for every figure.
        seen: The means of all steps.
        scale: Factor by which the scatter of the actual number of steps exceeds that of ``means``.
        freedom: Degrees of freedom of that scatter: the drawn blocks minus one.
    """

    means: Figures
    seen: Figures
    scale: float
    freedom: int

    def deviations(self) -> Figures:
        """Return the deviations of the means from those of all steps."""
        return (self.means - self.seen) * self.scale

    def deviations_of_logarithms(self) -> Figures:
        """Return the deviations of their logarithms. A duration of zero counts as the shortest duration."""
        return (np.log(np.maximum(self.means, _SHORTEST)) - np.log(self.seen)) * self.scale


def resample(table: Times, generator: np.random.Generator) -> Resamples:
    """Resample steps: the circular block bootstrap of Politis and Romano (1992).

    Args:
        table: Steps by columns. The first is the duration, which determines the block length.
        generator: Random number generator.
    """
    count, length = len(table), block_length(table[:, 0])
    blocks = max(round(min(count, ENOUGH) / length), 1)
    # Sums over the ``length`` steps from each step on. After the last step, the first follow.
    around = np.concatenate([table, table[: length - 1]])
    until = np.concatenate([np.zeros_like(table[:1]), around.cumsum(axis=0)])
    sums = until[length:] - until[:-length]
    rows = max(_CELLS // (blocks * table.shape[1]), 1)
    sizes = (min(rows, RESAMPLES - begin) for begin in range(0, RESAMPLES, rows))
    parts = [sums[generator.integers(count, size=(size, blocks))].sum(axis=1) for size in sizes]
    at_least = max(blocks, 2)  # a block less than are drawn is free to vary
    scale = math.sqrt(at_least / (at_least - 1) * blocks * length / count)
    return Resamples(np.concatenate(parts) / (blocks * length), table.mean(axis=0), scale, at_least - 1)


def block_length(times: Times) -> int:
    """Return the number of steps to resample together: whole periods of similar steps; at most a quarter of all."""
    every = period(times)
    whole = times.size // every
    sums = times[: whole * every].reshape(whole, every).sum(axis=1)
    return every * _similar_neighbours(sums)


def _similar_neighbours(times: Times) -> int:
    """Return the number of similar neighbours, by Carlstein (1986) for the correlation found; 1 if none are similar.

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
    """Return the number of steps after which durations repeat: 2 if long and short ones alternate, 1 if none repeat.

    A period is a peak of the autocorrelation. Its multiples are peaks as well; the first counts. A period that is
    not found makes the interval wider than necessary, never too narrow.
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
    """Return the autocorrelation of steps that are 0, 1, ... ``lags`` apart. Sums of few pairs are scaled to all."""
    deviations = times - times.mean()
    power = np.abs(np.fft.rfft(deviations, 2 * times.size)) ** 2
    products = np.fft.irfft(power)[: lags + 1]
    if not products[0]:
        return np.zeros(lags + 1)
    scaled: Figures = products / products[0] * times.size / (times.size - np.arange(lags + 1))
    return scaled


def student(freedom: float) -> float:
    """Return the quantile of Student's t for a two-sided interval of 95 %.

    It interpolates the table by the inverse of ``freedom``, and extrapolates by the expansion in that inverse.
    """
    if freedom < len(_T_975):
        whole = max(math.floor(freedom), 1)
        above = (1 / whole - 1 / max(freedom, 1.0)) * whole * (whole + 1)
        return _T_975[whole - 1] * (1 - above) + _T_975[whole] * above
    z = Z_975
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def mean_interval(times: Times, seed: int = 0) -> tuple[float, float] | None:
    """Return the 95 % interval of the mean of steps of one recording; ``None`` if there are too few steps.

    Args:
        times: Steps in the order in which they ran.
        seed: Seed of the resampling; the same seed gives the same interval.
    """
    if times.size < 2 * FEWEST_BLOCKS or times.min() < 0 or not times.any():
        return None
    drawn = resample(times.reshape(-1, 1), np.random.default_rng(seed))
    ends = np.quantile(drawn.deviations_of_logarithms()[:, 0], (0.025, 0.975)) * student(drawn.freedom) / Z_975
    low, high = (float(times.mean() * math.exp(end)) for end in ends)
    return low, high


def quantile_interval(times: Times, share: float) -> tuple[float, float] | None:
    """Return the 95 % interval of a quantile, between two of the measured values; ``None`` if there are too few values.

    Similar neighbours count as one. The ranks are those of the binomial distribution: for the median of six
    values the smallest and the largest, for the 95th percentile of fewer than 72 none.

    Args:
        times: Values in the order in which they were measured.
        share: Quantile: 0.5 is the median.
    """
    count = times.size // block_length(times) if times.size else 0
    if not count:
        return None
    numbers = np.arange(count + 1)
    factorials = np.concatenate([[0.0], np.log(np.arange(1, count + 1)).cumsum()])
    ways = factorials[count] - factorials - factorials[::-1]
    below = np.exp(ways + numbers * math.log(share) + (count - numbers) * math.log1p(-share)).cumsum()
    lower = int(np.searchsorted(below, 0.025, "right"))  # at least this many values are surely below
    upper = int(np.searchsorted(below, 0.975)) + 1
    if not 1 <= lower < upper <= count:
        return None
    ordered = np.sort(times)
    first, last = math.ceil((lower - 1) / count * times.size), math.ceil(upper / count * times.size) - 1
    return float(ordered[first]), float(ordered[last])
