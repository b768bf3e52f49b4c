"""The difference between two sides in one figure per step, with an interval, and the outcome of a comparison.

The figure is the mean steady step, because a program's throughput follows from it. It does not follow from the median:
if steps take turns (8 and 232 ms), the median is one kind of step or a value in between. Medians are shown next to the
mean.

Steps of one run are resampled in blocks (:mod:`traceviz.core.resampling`). Blocks hold whole periods and cover the
correlation of neighbours. The interval is widened for few blocks, as Student's t interval is wider than the normal one
(Hesterberg 2015, "What teachers should know about the bootstrap"). docs/compare.md states how often it is right.

Runs differ by more than their steps show (another node, another memory layout). If a side has several runs, the run is
therefore the unit: Welch's interval for the difference of the mean logarithms of the runs' figures. Suppose one side
has two runs that scatter ten times as much as the six of the other. Pooled variance would find a difference in 41 of
100 pairs of equal sides, Welch's in 8. A side with a single run has no variance and borrows that of the other.

The interval is computed for the ratio of both sides: a cause that slows a machine down slows all its steps by the same
share. So no interval shows a gain of more than a whole step, and exchanging the sides inverts the interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from traceviz.compare.options import Limits
from traceviz.core.resampling import Z_975, Figures, Resamples, Times, resample, student
from traceviz.report.verdicts import VerdictCode


class Outcome(StrEnum):
    """The verdict on the new side."""

    FASTER = "faster"
    SLOWER = "slower"
    NO_CHANGE = "no change"
    UNKNOWN = "cannot judge"

    @property
    def code(self) -> VerdictCode:
        """The verdict code of a comparison with this outcome."""
        return VerdictCode(self.value.replace(" ", "-"))


def outcome_of(ratio: float, interval: tuple[float, float] | None, limits: Limits) -> Outcome:
    """Return the outcome of a change of a figure, as share of the base. An increase is slower.

    Args:
        ratio: The change.
        interval: Its 95 % interval; ``None`` for two single figures, where only a large change is judged.
        limits: Limits from which a change counts as a difference.
    """
    if interval is None:
        is_difference = abs(ratio) >= limits.alone
    else:
        low, high = interval
        is_difference = low > 0 or high < 0
        if not is_difference and max(-low, high) <= limits.widest:
            return Outcome.NO_CHANGE
        if is_difference and abs(ratio) < limits.min_effect:
            return Outcome.NO_CHANGE
    if not is_difference:
        return Outcome.UNKNOWN
    return Outcome.SLOWER if ratio > 0 else Outcome.FASTER


@dataclass(frozen=True, slots=True)
class Effect:
    """Difference of the mean step of the new side from that of the base.

    Args:
        base_ns: Mean step of the base; over several runs, the :func:`typical` value of their means.
        new_ns: Mean step of the new side.
        low_ns: Lower end of the 95 % interval of ``new_ns - base_ns``, computed from their ratio at ``base_ns``.
            ``None`` for two single figures, which do not show chance.
        high_ns: Its upper end.
        base_median_ns: Median step of the base, shown next to the mean; combined over runs like means. ``None`` for
            figures of whole runs.
        new_median_ns: Median step of the new side.
        runs: True if the interval covers the spread between runs, false if only between steps of one run per side.
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
        """Positive if the new side is slower."""
        return self.new_ns - self.base_ns

    @property
    def ratio(self) -> float:
        """The difference as a share of the base."""
        return self.difference_ns / self.base_ns

    @property
    def median_ratio(self) -> float | None:
        """The difference of the medians as a share of the base's median."""
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
        """Speed of the new side as a multiple of the base's."""
        return self.base_ns / self.new_ns

    @property
    def speedup_interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the speed-up."""
        if self.interval is None:
            return None
        low, high = self.interval
        return 1 / (1 + high), 1 / (1 + low)


def effect(base: Sequence[Times], new: Sequence[Times], seed: int = 0) -> Effect:
    """Compute the difference of the mean steps.

    Args:
        base: Steps of every run of the base; none is empty, and no mean is zero.
        new: Steps of every run of the new side.
        seed: Seed of the resampling; the same seed gives the same interval.
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
        sides = _resample(base[0].reshape(-1, 1), new[0].reshape(-1, 1), seed)
        ends = (ratio + _ends(sides, [side.deviations_of_logarithms() for side in sides]))[:, 0].tolist()
    low, high = (base_ns * _change(end) for end in ends)
    before, after = (typical(np.array([np.median(run) for run in side])) for side in (base, new))
    return Effect(base_ns, new_ns, low, high, before, after, has_runs)


Ends = tuple[float, float]
"""Lower and upper end of an interval."""


def effect_of_runs(base: Sequence[float], new: Sequence[float], within: Sequence[Ends | None] = (None, None)) -> Effect:
    """Compute the difference of a time of whole runs.

    Args:
        base: The time of every run of the base, ns; above zero.
        new: The time of every run of the new side.
        within: For each side with a single run that states it: the interval of the time within that run.
    """
    base_ns, new_ns = (typical(np.array(side)) for side in (base, new))
    ends = interval_of_runs(base, new, within)
    low, high = (None, None) if ends is None else (base_ns * end for end in ends)
    return Effect(base_ns, new_ns, low, high, None, None, runs=len(base) + len(new) > 2)


def interval_of_runs(
    base: Sequence[float], new: Sequence[float], within: Sequence[Ends | None] = (None, None)
) -> Ends | None:
    """Return the 95 % interval of the change of a figure of whole runs, as shares of the base.

    If a side has several runs, use Welch's interval of the logarithms. With one run per side, use the intervals that
    the runs state. Return ``None`` if neither exists, or a figure is not above zero.
    """
    if sorted(base) == sorted(new):  # the same recordings, or a count: no difference and no chance variation
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
    """Convert a logarithm of a ratio to a change as share of the base, limited to a factor of 10¹³ either way."""
    return math.expm1(min(max(logarithm, -_FARTHEST), _FARTHEST))


_FARTHEST = 30.0
"""Largest exponent of e (a factor of 10¹³) for interval ends. Two runs that differ a hundredfold could otherwise
overflow, and have no inverse."""


def typical(figures: Figures) -> float:
    """Return the geometric mean of the figures of runs, ns: one run in ten on a busy machine does not double it.

    The interval is computed for this figure. Its ratios multiply along a path.
    """
    if figures.min() <= 0 or figures.min() == figures.max():
        return float(figures.min())
    return float(np.exp(np.log(figures).mean()))


def are_copies(base: Sequence[Times], new: Sequence[Times]) -> bool:
    """Return whether both sides are the same recordings: then there is no difference, and no chance variation.

    Args:
        base: Every run: steps, or steps by columns.
        new: The same for the new side. The order of runs and of steps may differ.
    """
    return len(base) == len(new) and sorted(map(recording, base)) == sorted(map(recording, new))


def recording(run: Times) -> bytes:
    """Return the fingerprint of a recording: its steps, each column sorted. Copies have the same fingerprint."""
    return np.sort(run, axis=0).astype(np.float64).tobytes()


def half_widths(base: Figures, new: Figures, weights: Sequence[Figures] | None = None) -> Figures:
    """Return half of Welch's 95 % interval of the difference of the means over runs, for every column.

    Args:
        base: A row for every run.
        new: The same columns of the other side. Both together have at least three runs.
        weights: Share of every run in the mean of its side; equal by default. The mean scatters more if they differ.
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


def _resample(base: Times, new: Times, seed: int) -> list[Resamples]:
    """Resample the means of both tables of steps with independent random streams."""
    streams = map(np.random.default_rng, np.random.SeedSequence(seed).spawn(2))
    return [resample(table, stream) for table, stream in zip((base, new), streams, strict=True)]


def _ends(sides: Sequence[Resamples], deviations: Sequence[Figures]) -> Figures:
    """Return the ends of the interval of the difference of resampled figures, relative to the measured difference: two
    rows.

    Quantiles of resampled figures assume unlimited blocks. For few blocks the interval is widened as Student's t
    interval is, by the side that has fewer. The same steps also determine the block length, which costs degrees of
    freedom. Wider quantiles would give the same width, but would depend on a handful of resamples.
    """
    wider = student(min(side.freedom for side in sides)) / Z_975
    ends: Figures = np.quantile(deviations[1] - deviations[0], (0.025, 0.975), axis=0) * wider
    return ends


def mean_differences(base: Sequence[Times], new: Sequence[Times], seed: int = 0) -> Figures:
    """Compute the intervals of the difference of the means, for every column.

    Args:
        base: Every run: steps by columns. The first column is the step's duration; it gives the correlation of
            neighbours.
        new: The same columns of the new side.
        seed: Seed of the resampling.

    Returns:
        Lower and upper ends, two rows: between steps for a single run per side, else between runs.
    """
    if are_copies(base, new):
        return np.zeros((2, base[0].shape[1]))
    if len(base) + len(new) == 2:
        sides = _resample(base[0], new[0], seed)
        seen = sides[1].seen - sides[0].seen
        return seen + _ends(sides, [side.deviations() for side in sides])
    means = [np.stack([run.mean(axis=0) for run in side]) for side in (base, new)]
    steps = [np.array([len(run) for run in side]) for side in (base, new)]
    weights = [counts / counts.sum() for counts in steps]  # a mean over all steps, so each run weighs by its steps
    before, after = (shares @ side for shares, side in zip(weights, means, strict=True))
    half = half_widths(means[0], means[1], weights)
    return np.stack([after - before - half, after - before + half])
