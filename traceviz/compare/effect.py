"""The difference between two sides in one figure per step, with an interval.

The figure is the mean steady step: what a program does in an hour follows from it, and not from the median, which of
steps that take turns (8 and 232 ms) is one kind of them, or what lies between. The medians stand beside it.

Steps of one run are resampled in blocks that hold whole periods and what neighbours have in common
(:mod:`traceviz.core.resampling`). The interval is widened for few blocks, as Student's is against the normal one
(Hesterberg 2015, "What teachers should know about the bootstrap"). docs/compare.md has how often it is right.

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
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traceviz.core.resampling import Z_975, Figures, Resamples, Times, resample, student


@dataclass(frozen=True, slots=True)
class Effect:
    """How much the mean step of the new side differs from that of the base.

    Args:
        base_ns: Mean step of the base; over several runs, what :func:`typical` says of their means.
        new_ns: The same of the new side.
        low_ns: Lower end of the 95 % interval of ``new_ns - base_ns``: of their ratio, at ``base_ns``; ``None`` of two
            single figures, which tell nothing of chance.
        high_ns: Its upper end.
        base_median_ns: Median step of the base, for beside the mean; over several runs, as their means. ``None`` of
            figures of whole runs.
        new_median_ns: The same of the new side.
        runs: Whether the interval covers the spread between runs, or only that between steps of one run a side.
    """

    base_ns: float
    new_ns: float
    low_ns: float | None
    high_ns: float | None
    base_median_ns: float | None
    new_median_ns: float | None
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
    def median_ratio(self) -> float | None:
        """The difference of the medians as a share of that of the base."""
        if self.base_median_ns is None or self.new_median_ns is None:
            return None
        return self.new_median_ns / self.base_median_ns - 1

    @property
    def interval(self) -> tuple[float, float] | None:
        """The interval as shares of the base."""
        if self.low_ns is None or self.high_ns is None:
            return None
        return self.low_ns / self.base_ns, self.high_ns / self.base_ns

    @property
    def speedup(self) -> float:
        """How many times as fast the new side is."""
        return self.base_ns / self.new_ns

    @property
    def speedup_interval(self) -> tuple[float, float] | None:
        """The same as 95 % interval."""
        if self.interval is None:
            return None
        low, high = self.interval
        return 1 / (1 + high), 1 / (1 + low)


def effect(base: Sequence[Times], new: Sequence[Times], seed: int = 0) -> Effect:
    """Difference of the mean steps.

    Args:
        base: Steps of every run of the base; none is empty, and no mean is zero.
        new: The same of the new side.
        seed: Of the resampling; the same seed gives the same interval.
    """
    means = [np.array([[run.mean()] for run in side]) for side in (base, new)]
    base_ns, new_ns = (typical(side[:, 0]) for side in means)
    ratio, has_runs = math.log(new_ns / base_ns), len(base) + len(new) > 2
    if are_copies(base, new):
        ends = [0.0, 0.0]
    elif has_runs:
        half = float(half_widths(np.log(means[0]), np.log(means[1]))[0])
        ends = [ratio - half, ratio + half]
    else:
        sides = _resampled(base[0].reshape(-1, 1), new[0].reshape(-1, 1), seed)
        ends = (ratio + _ends(sides, [side.deviations_of_logarithms() for side in sides]))[:, 0].tolist()
    low, high = (base_ns * _change(end) for end in ends)
    before, after = (typical(np.array([np.median(run) for run in side])) for side in (base, new))
    return Effect(base_ns, new_ns, low, high, before, after, has_runs)


Ends = tuple[float, float]
"""Lower and upper end of an interval."""


def effect_of_runs(base: Sequence[float], new: Sequence[float], within: Sequence[Ends | None] = (None, None)) -> Effect:
    """Difference of a time of whole runs.

    Args:
        base: The time of every run of the base, ns; above zero.
        new: The same of the new side.
        within: Interval of the time within the run, of each side that has one run and states it.
    """
    base_ns, new_ns = (typical(np.array(side)) for side in (base, new))
    ends = interval_of_runs(base, new, within)
    low, high = (None, None) if ends is None else (base_ns * end for end in ends)
    return Effect(base_ns, new_ns, low, high, None, None, runs=len(base) + len(new) > 2)


def interval_of_runs(
    base: Sequence[float], new: Sequence[float], within: Sequence[Ends | None] = (None, None)
) -> Ends | None:
    """95 % interval of the change of a figure of whole runs, as shares of the base.

    Between runs, where a side has several: Welch's, of the logarithms. Of one run on each side what the runs state of
    themselves. ``None`` where neither can be had, or a figure is not above zero.
    """
    if sorted(base) == sorted(new):  # the same recordings, or a count: no difference, and no room for chance
        return 0.0, 0.0
    ends = [end for side in within if side is not None for end in side]
    if min(*base, *new, *ends) <= 0:
        return None
    ratio = math.log(typical(np.array(new)) / typical(np.array(base)))
    if len(base) + len(new) > 2:
        figures = [np.log(np.array(side)).reshape(-1, 1) for side in (base, new)]
        half = float(half_widths(*figures)[0])
    elif len(ends) == 2 * len(within):
        half = math.hypot(*(math.log(high / low) / 2 for low, high in zip(ends[::2], ends[1::2], strict=True)))
    else:
        return None
    return _change(ratio - half), _change(ratio + half)


def _change(logarithm: float) -> float:
    """A change as share of the base, from the logarithm of the ratio; within 10¹³ times as much or as little."""
    return math.expm1(min(max(logarithm, -_FARTHEST), _FARTHEST))


_FARTHEST = 30.0
"""Ends of intervals lie within this power of e (10¹³ times as much): of two runs that differ a hundredfold they could
reach beyond all numbers, and their inverse be none."""


def typical(figures: Figures) -> float:
    """Geometric mean of the figures of runs, ns: one run in ten on a busy machine does not double it.

    The interval is of this figure. Its ratios multiply along a path.
    """
    if figures.min() <= 0 or figures.min() == figures.max():
        return float(figures.min())
    return float(np.exp(np.log(figures).mean()))


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
        borrowed: Figures = student(pooled) * np.sqrt(squares.sum(axis=0) / pooled * inverse.sum())
        return borrowed
    errors = squares / (counts - 1) * inverse
    spread = (errors**2 / (counts - 1)).sum(axis=0)
    total = errors.sum(axis=0)
    freedom = np.divide(total**2, spread, out=np.full_like(total, pooled), where=spread > 0)
    half: Figures = np.array([student(degrees) for degrees in freedom]) * np.sqrt(total)
    return half


def _resampled(base: Times, new: Times, seed: int) -> list[Resamples]:
    """Means of both tables of steps, resampled by independent streams of chance."""
    streams = map(np.random.default_rng, np.random.SeedSequence(seed).spawn(2))
    return [resample(table, stream) for table, stream in zip((base, new), streams, strict=True)]


def _ends(sides: Sequence[Resamples], deviations: Sequence[Figures]) -> Figures:
    """Ends of the interval of the difference of resampled figures, from what was measured: two rows.

    Quantiles of resampled figures assume endless blocks. For few blocks the interval is widened as Student's is, by
    those of the side that has fewer: how long blocks have to be is found in the same steps, and that is worth some.
    Quantiles further out would be as wide, but would depend on a handful of resamples.
    """
    wider = student(min(side.freedom for side in sides)) / Z_975
    ends: Figures = np.quantile(deviations[1] - deviations[0], (0.025, 0.975), axis=0) * wider
    return ends


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
        sides = _resampled(base[0], new[0], seed)
        seen = sides[1].seen - sides[0].seen
        return seen + _ends(sides, [side.deviations() for side in sides])
    means = [np.stack([run.mean(axis=0) for run in side]) for side in (base, new)]
    steps = [np.array([len(run) for run in side]) for side in (base, new)]
    weights = [counts / counts.sum() for counts in steps]  # a mean over all steps, so each run weighs by its steps
    before, after = (shares @ side for shares, side in zip(weights, means, strict=True))
    half = half_widths(means[0], means[1], weights)
    return np.stack([after - before - half, after - before + half])
