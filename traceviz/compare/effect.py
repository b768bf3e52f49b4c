"""The difference between two sides in one figure per step, with an interval.

Steps of one run are resampled in blocks, since neighbours are alike (a full shuffle buffer, a clock that sinks): the
circular block bootstrap of Politis and Romano (1992), with blocks of the length that Carlstein (1986) gives for the
correlation found. The interval is widened for few observations, here blocks, as Student's is against the normal one
(Hesterberg 2015, "What teachers should know about the bootstrap"). In pairs without a difference, 1 to 8 % of these
intervals leave out zero; of neighbours that are much alike (a correlation of 0.8), 10 % of 20 to 30 steps, and 14 to
24 % of 12 or fewer, as so few do not show it.

Where a side has several runs, runs differ by more than their steps tell (another node, another memory layout), and the
run is the unit: Welch's interval for the difference of the means of the logarithms of the runs' figures. Were the
variance pooled, a side of two runs that scatter ten times as much as the six of the other would be called different in
41 of 100 pairs of equals; by Welch it is in 8. A side of a single run has no variance of its own and borrows that of
the other.

The interval is that of the ratio of both sides: what makes a machine slower makes all its steps slower by the same
share. So no interval tells of a gain of more than all of a step, and with the sides exchanged it is the inverse.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Times = npt.NDArray[np.int64 | np.float64]
"""Durations of steps in the order in which they ran, ns; of parts of a step no whole numbers."""
Figures = npt.NDArray[np.float64]
"""Figures of runs or of resamples: a number for each, or a row for each and a column for every figure of it."""

RESAMPLES = 2_000
"""Enough that the ends of the interval move by less than a twentieth of its width from seed to seed."""
_CELLS = 2_000_000
"""Numbers held at once while resampling."""
ENOUGH = 10_000
"""Most steps drawn. Of more, this many are drawn, and their scatter is scaled to all by the root of their number."""
_SHORTEST = 1e-3
"""Shortest duration of a unit of work, ns."""
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
        base_ns: Median step of the base; over several runs, what :func:`typical` says of their medians.
        new_ns: The same of the new side.
        low_ns: Lower end of the 95 % interval of ``new_ns - base_ns``: of their ratio, at ``base_ns``.
        high_ns: Its upper end.
        runs: Whether the interval covers the spread between runs, or only that between steps of one run a side.
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
        """The interval as shares of the base."""
        return self.low_ns / self.base_ns, self.high_ns / self.base_ns

    @property
    def speedup(self) -> float:
        """How many times as fast the new side is."""
        return self.base_ns / self.new_ns

    @property
    def speedup_interval(self) -> tuple[float, float]:
        """The same as 95 % interval."""
        low, high = self.interval
        return 1 / (1 + high), 1 / (1 + low)


def effect(base: Sequence[Times], new: Sequence[Times], seed: int = 0) -> Effect:
    """Difference of the median steps.

    Args:
        base: Steps of every run of the base; none is empty, and no median is zero.
        new: The same of the new side.
        seed: Of the resampling; the same seed gives the same interval.
    """
    medians = [np.array([[np.median(run)] for run in side]) for side in (base, new)]
    base_ns, new_ns = (typical(side[:, 0]) for side in medians)
    ratio, has_runs = math.log(new_ns / base_ns), len(base) + len(new) > 2
    if are_copies(base, new):
        ends = [0.0, 0.0]
    elif has_runs:
        half = float(half_widths(np.log(medians[0]), np.log(medians[1]))[0])
        ends = [ratio - half, ratio + half]
    else:
        drawn = [_medians(side[0], generator) for side, generator in zip((base, new), _generators(seed), strict=True)]
        ends = _ends(drawn[1] - drawn[0], np.array(ratio), base[0], new[0]).tolist()
    low, high = (base_ns * math.expm1(end) for end in ends)
    return Effect(base_ns, new_ns, low, high, has_runs)


def typical(medians: Figures) -> float:
    """Geometric mean of the medians of runs, ns: one run in ten on a busy machine does not double it.

    The interval is of this figure. Its ratios multiply along a path.
    """
    if medians.size == 1 or medians.min() <= 0:
        return float(medians.min())
    return float(np.exp(np.log(medians).mean()))


def are_copies(base: Sequence[Times], new: Sequence[Times]) -> bool:
    """Whether both sides are the same recordings: then there is no difference, and no room for chance.

    Args:
        base: Every run: steps, or steps by columns.
        new: The same of the new side; the order of runs and of steps may be another.
    """
    return len(base) == len(new) and sorted(map(recording, base)) == sorted(map(recording, new))


def recording(run: Times) -> bytes:
    """Fingerprint of a recording, the same for its copies: its steps, each column sorted."""
    return np.sort(run, axis=0).astype(np.float64).tobytes()


def half_widths(base: Figures, new: Figures, weights: Sequence[Figures] | None = None) -> Figures:
    """Half of the 95 % interval of the difference of the means over runs, for every column: Welch's.

    Args:
        base: A row for every run.
        new: The same columns of the other side; of both together there are three runs or more.
        weights: Share of every run in the mean of its side, equal where not given. The mean scatters more where they
            differ.
    """
    counts = np.array([[len(base)], [len(new)]])
    squares = np.stack([((side - side.mean(axis=0)) ** 2).sum(axis=0) for side in (base, new)])
    inverse = 1 / counts if weights is None else np.array([[shares @ shares] for shares in weights])
    pooled = int(counts.sum()) - 2
    if counts.min() == 1:
        borrowed: Figures = _student(pooled) * np.sqrt(squares.sum(axis=0) / pooled * inverse.sum())
        return borrowed
    errors = squares / (counts - 1) * inverse
    spread = (errors**2 / (counts - 1)).sum(axis=0)
    total = errors.sum(axis=0)
    freedom = np.divide(total**2, spread, out=np.full_like(total, pooled), where=spread > 0)
    half: Figures = np.array([_student(degrees) for degrees in freedom]) * np.sqrt(total)
    return half


def _student(freedom: float) -> float:
    """Quantile of Student's t for a two-sided interval of 95 %.

    Between the lines of the table by the inverse of ``freedom``; beyond it by the expansion in that.
    """
    if freedom < len(_T_975):
        whole = max(math.floor(freedom), 1)
        above = (1 / whole - 1 / max(freedom, 1.0)) * whole * (whole + 1)
        return _T_975[whole - 1] * (1 - above) + _T_975[whole] * above
    z = _Z_975
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def _ends(drawn: Figures, seen: Figures, *sides: Times) -> Figures:
    """Ends of the interval of measured figures (``seen``), from those of resampled steps: two rows.

    Quantiles of resampled figures assume endless blocks. For few blocks the interval is widened as Student's is.
    Quantiles further out would be as wide, but would depend on a handful of resamples.
    """
    blocks = max(min(side.size // block_length(side) for side in sides), 2)
    wider = _student(blocks - 1) / _Z_975 * math.sqrt(blocks / (blocks - 1))
    ends: Figures = seen + (np.quantile(drawn, (0.025, 0.975), axis=0) - seen) * wider
    return ends


def _generators(seed: int) -> tuple[np.random.Generator, np.random.Generator]:
    """Independent streams for base and new side."""
    base, new = np.random.SeedSequence(seed).spawn(2)
    return np.random.default_rng(base), np.random.default_rng(new)


def _medians(times: Times, generator: np.random.Generator) -> Figures:
    """Logarithms of the medians of resampled steps; no time at all counts as the shortest duration."""
    drawn = np.concatenate([np.median(times[index], axis=1) for index in resampled(times, generator)])
    return _of_all(np.log(np.maximum(drawn, _SHORTEST)), np.log(np.median(times)), times.size)


def _of_all(drawn: Figures, seen: np.float64 | Figures, count: int) -> Figures:
    """Figures of resampled steps, scaled to the scatter that drawing all steps would give."""
    return drawn if count <= ENOUGH else seen + (drawn - seen) * math.sqrt(ENOUGH / count)


def mean_differences(base: Sequence[Times], new: Sequence[Times], seed: int = 0) -> Figures:
    """Intervals of the differences of the mean of every column.

    Args:
        base: Every run: steps by columns; the first is the step's duration, by which neighbours are found alike.
        new: The same columns of the new side.
        seed: Of the resampling.

    Returns:
        Lower and upper ends, two rows: between steps of a single run on each side, else between runs.
    """
    if are_copies(base, new):
        return np.zeros((2, base[0].shape[1]))
    if len(base) + len(new) == 2:
        drawn = [_means(side[0], generator) for side, generator in zip((base, new), _generators(seed), strict=True)]
        seen = new[0].mean(axis=0) - base[0].mean(axis=0)
        return _ends(drawn[1] - drawn[0], seen, base[0][:, 0], new[0][:, 0])
    means = [np.stack([run.mean(axis=0) for run in side]) for side in (base, new)]
    steps = [np.array([len(run) for run in side]) for side in (base, new)]
    weights = [counts / counts.sum() for counts in steps]  # a mean over all steps, so each run weighs by its steps
    before, after = (shares @ side for shares, side in zip(weights, means, strict=True))
    half = half_widths(means[0], means[1], weights)
    return np.stack([after - before - half, after - before + half])


def _means(table: Times, generator: np.random.Generator) -> Figures:
    """Means of every column over resampled steps."""
    parts = [table[index].mean(axis=1) for index in resampled(table[:, 0], generator, table.shape[1])]
    return _of_all(np.concatenate(parts), table.mean(axis=0), len(table))


def resampled(times: Times, generator: np.random.Generator, width: int = 1) -> Iterator[npt.NDArray[np.intp]]:
    """Indices of steps, resampled :data:`RESAMPLES` times in blocks: a row each, some rows at a time."""
    count, length = times.size, block_length(times)
    most = min(count, ENOUGH)
    blocks, within = -(-most // length), np.arange(length)
    rows = max(_CELLS // (most * width), 1)
    for begin in range(0, RESAMPLES, rows):
        firsts = generator.integers(count, size=(min(rows, RESAMPLES - begin), blocks, 1))
        yield ((firsts + within) % count).reshape(len(firsts), -1)[:, :most]


def block_length(times: Times) -> int:
    """Steps that are resampled together: 1 where neighbours are not alike, at most a quarter of all.

    The correlation measured in n steps is too small by (1 + 4ρ) / n on average (Marriott and Pope 1954), which is
    added. Without it, one in ten pairs of equals of a dozen steps with a correlation of 0.5 would be called different.
    """
    count = times.size
    deviations = times - times.mean()
    variance = float(deviations @ deviations)
    if count < 8 or not variance:
        return 1
    seen = float(deviations[1:] @ deviations[:-1]) / variance
    correlation = min(seen + (1 + 4 * seen) / count, 0.95)
    if correlation <= 1.5 / math.sqrt(count):  # chance alone rarely exceeds this
        return 1
    ideal = math.pow(math.sqrt(6) * correlation / (1 - correlation**2), 2 / 3) * math.cbrt(count)
    return min(math.ceil(ideal), count // 4)
