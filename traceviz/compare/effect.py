"""The difference between two sides in one figure per step, with an interval.

Steps of one run are resampled in blocks, since neighbours are alike (a full shuffle buffer, a clock that sinks): the
circular block bootstrap of Politis and Romano (1992), with blocks of the length that Carlstein (1986) gives for the
correlation found. The quantiles are widened as Hesterberg (2015, "What teachers should know about the bootstrap") does
for few observations, here blocks. In pairs without a difference, 2 to 6 % of these intervals leave out zero.

Where a side has several runs, runs differ by more than their steps tell (another node, another memory layout), and the
run is the unit: Student's interval for the difference of the means of the runs' figures, with the variance pooled over
both sides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

Times = npt.NDArray[np.int64 | np.float64]
"""Durations of steps in the order in which they ran, ns; of parts of a step no whole numbers."""

RESAMPLES = 2_000
"""Enough that the ends of the interval move by less than a twentieth of its width from seed to seed."""
_CELLS = 2_000_000
"""Numbers held at once while resampling."""
_T_975 = (
    *(12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281),
    *(2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860),
    *(2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423),
)
"""Quantiles of Student's t for a two-sided interval of 95 %, by degrees of freedom from 1 on."""
_Z_975 = 1.95996


@dataclass(frozen=True, slots=True)
class Effect:
    """How much the median step of the new side differs from that of the base.

    Args:
        base_ns: Median step of the base; over several runs, the mean of their medians.
        new_ns: The same of the new side.
        low_ns: Lower end of the 95 % interval of ``new_ns - base_ns``.
        high_ns: Its upper end.
        runs: Whether it tells of the spread between runs, or only between the steps of one run on each side.
    """

    base_ns: float
    new_ns: float
    low_ns: float
    high_ns: float
    runs: bool

    @property
    def difference_ns(self) -> float:
        """Positive where the new side is slower."""
        return self.new_ns - self.base_ns

    @property
    def ratio(self) -> float:
        """The difference as a share of the base."""
        return self.difference_ns / self.base_ns

    @property
    def interval(self) -> tuple[float, float]:
        """The interval as shares of the base; no step gains more than all of it."""
        return max(self.low_ns / self.base_ns, -1.0), self.high_ns / self.base_ns

    @property
    def speedup(self) -> float:
        """How many times as fast the new side is."""
        return self.base_ns / self.new_ns


def effect(base: Sequence[Times], new: Sequence[Times], seed: int = 0) -> Effect:
    """Difference of the median steps.

    Args:
        base: Steps of every run of the base; none is empty, and no median is zero.
        new: The same of the new side.
        seed: Of the resampling; the same seed gives the same interval.
    """
    medians = [np.array([np.median(run) for run in side]) for side in (base, new)]
    base_ns, new_ns = (float(side.mean()) for side in medians)
    has_runs = len(base) + len(new) > 2
    if has_runs:
        half = _half_width(*medians)
        low, high = new_ns - base_ns - half, new_ns - base_ns + half
    else:
        drawn = [_medians(side[0], generator) for side, generator in zip((base, new), _generators(seed), strict=True)]
        low, high = np.quantile(drawn[1] - drawn[0], _ends(base[0], new[0])).tolist()
    return Effect(base_ns, new_ns, low, high, has_runs)


def _half_width(base: npt.NDArray[np.float64], new: npt.NDArray[np.float64]) -> float:
    """Half of Student's interval for the difference of two means with pooled variance."""
    freedom = base.size + new.size - 2
    squares = float(((base - base.mean()) ** 2).sum() + ((new - new.mean()) ** 2).sum())
    return _student(freedom) * math.sqrt(squares / freedom * (1 / base.size + 1 / new.size))


def _student(freedom: int) -> float:
    """Quantile of Student's t for a two-sided interval of 95 %; beyond the table by its expansion in 1 / freedom."""
    if freedom <= len(_T_975):
        return _T_975[freedom - 1]
    z = _Z_975
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def _ends(*sides: Times) -> tuple[float, float]:
    """Quantiles of the resampled figures that are the ends of the interval."""
    blocks = max(min(side.size // block_length(side) for side in sides), 2)
    tail = NormalDist().cdf(-_student(blocks - 1) * math.sqrt(blocks / (blocks - 1)))
    return tail, 1 - tail


def _generators(seed: int) -> tuple[np.random.Generator, np.random.Generator]:
    """Independent streams for base and new side."""
    base, new = np.random.SeedSequence(seed).spawn(2)
    return np.random.default_rng(base), np.random.default_rng(new)


def _medians(times: Times, generator: np.random.Generator) -> npt.NDArray[np.float64]:
    return np.concatenate([np.median(times[drawn], axis=1) for drawn in resampled(times, generator)])


def mean_differences(base: Times, new: Times, seed: int = 0) -> npt.NDArray[np.float64]:
    """Intervals of the differences of the mean of every column.

    Args:
        base: Steps by columns; the first is the step's duration, by which neighbours are found alike.
        new: The same columns of the new side.
        seed: Of the resampling.

    Returns:
        Lower and upper ends, two rows.
    """
    drawn = [
        np.concatenate([side[index].mean(axis=1) for index in resampled(side[:, 0], generator, side.shape[1])])
        for side, generator in zip((base, new), _generators(seed), strict=True)
    ]
    ends: npt.NDArray[np.float64] = np.quantile(drawn[1] - drawn[0], _ends(base[:, 0], new[:, 0]), axis=0)
    return ends


def resampled(times: Times, generator: np.random.Generator, width: int = 1) -> Iterator[npt.NDArray[np.intp]]:
    """Indices of steps, resampled :data:`RESAMPLES` times in blocks: a row each, some rows at a time."""
    count, length = times.size, block_length(times)
    blocks, within = -(-count // length), np.arange(length)
    rows = max(_CELLS // (count * width), 1)
    for begin in range(0, RESAMPLES, rows):
        firsts = generator.integers(count, size=(min(rows, RESAMPLES - begin), blocks, 1))
        yield ((firsts + within) % count).reshape(len(firsts), -1)[:, :count]


def block_length(times: Times) -> int:
    """Steps that are resampled together: 1 where neighbours are not alike, at most a quarter of all."""
    count = times.size
    deviations = times - times.mean()
    variance = float(deviations @ deviations)
    if count < 8 or not variance:
        return 1
    correlation = min(float(deviations[1:] @ deviations[:-1]) / variance, 0.95)
    if correlation <= 2 / math.sqrt(count):  # what chance alone may show
        return 1
    ideal = math.pow(math.sqrt(6) * correlation / (1 - correlation**2), 2 / 3) * math.cbrt(count)
    return min(math.ceil(ideal), count // 4)
