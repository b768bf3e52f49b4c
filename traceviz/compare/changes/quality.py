"""Quality of what the programs learned: final and best figures of both sides, with the scatter of repeats.

A figure is judged by its final value: how much further it is from perfect, as a share of how far the base is. Of a loss
that is the loss itself, of an accuracy what is missing to 1. So 98 → 85 % is seven times the errors, not 13 % less.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from traceviz.compare.changes.recorded import why_not
from traceviz.compare.effect import Ends, half_widths
from traceviz.compare.options import Limits
from traceviz.compare.outcome import Outcome, outcome_of
from traceviz.compare.sides.measures import stopped
from traceviz.compare.sides.sides import Side, grid, rows
from traceviz.core.units import Value
from traceviz.report import STATED, Better

QUALITY = "quality"
"""Slug of the section, of a report and of a comparison."""
BETTER, WORSE, ALIKE = "better", "worse", "alike"
"""Verdicts on a figure beside :attr:`Outcome.UNKNOWN`."""
PARTS = ("validation", "test", None, "train")
"""Parts of the data, the one first that tells most of the quality."""
_WAYS: tuple[Better, ...] = ("lower", "higher")
_POINT = 0.01
"""What is missing to a perfect figure counts as no less: from 0.9995 to 0.999 errors do not double."""
_PERCENT = 100.0
_LARGEST = 1e100
"""A larger value is none that a training keeps in 32 bits: it diverged."""


@dataclass(frozen=True, slots=True)
class Stated:
    """A figure on one side.

    Args:
        split: The part of the data, where the name tells it.
        better: Which way is better; empty where the name does not tell.
        final: The last value of every run that states it; ``None`` where it was not finite.
        best: Mean of the best values; ``None`` without a direction.
        best_epoch: Mean epoch of the best, counted from 0; ``None`` where no run tells it.
    """

    split: str | None
    better: Better
    final: tuple[float | None, ...]
    best: float | None
    best_epoch: float | None

    @property
    def values(self) -> tuple[float, ...]:
        """The last values that are finite."""
        return tuple(value for value in self.final if value is not None)

    @property
    def mean(self) -> float | None:
        """Mean of the last values; ``None`` where one is not finite."""
        return float(np.mean(self.values)) if self.values and len(self.values) == len(self.final) else None

    @property
    def scatter(self) -> float | None:
        """Standard deviation of the last values between repeats; ``None`` of fewer than two."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else None


@dataclass(frozen=True, slots=True)
class QualityChange:
    """A figure that both sides state.

    Args:
        label: Its name for people, the same on both sides.
        base, new: The figure on both sides.
        interval: 95 % interval of the difference of the final values, between runs; ``None`` of one run on each side.
        verdict: ``better``, ``worse``, ``alike`` or ``cannot judge``; empty without a direction.
    """

    label: str
    base: Stated
    new: Stated
    interval: Ends | None
    verdict: str

    @property
    def split(self) -> str | None:
        """The part of the data, where the name tells it."""
        return self.base.split

    @property
    def better(self) -> Better:
        """Which way is better; empty where the name does not tell."""
        return self.base.better

    @property
    def difference(self) -> float | None:
        """New minus base, of the means of the final values."""
        before, after = self.base.mean, self.new.mean
        return None if before is None or after is None else after - before

    @property
    def is_of_repeats(self) -> bool:
        """Whether the scatter of repeats is known."""
        return self.interval is not None


@dataclass(frozen=True, slots=True)
class QualityChanges:
    """Figures that both sides state, those that tell most of the quality first."""

    changes: tuple[QualityChange, ...] = ()
    why_not: str = ""

    @property
    def leading(self) -> QualityChange | None:
        """The one that stands beside the speed-up: of the most telling part of the data, the worst first."""
        with_direction = [change for change in self.changes if change.better]
        part = [change for change in with_direction if change.split == with_direction[0].split]
        return min(part, key=lambda change: (_GRAVITY.index(change.verdict), change.better == "lower"), default=None)


_GRAVITY = (WORSE, BETTER, Outcome.UNKNOWN.value, ALIKE)


def compare_quality(base: Side, new: Side, limits: Limits) -> QualityChanges:
    """Every figure that both sides state."""
    if why := why_not(base, new, QUALITY, "figures of quality"):
        return QualityChanges(why_not=why)
    before, after = stated_of(base), stated_of(new)
    changes = [_change(label, known, after[label], limits) for label, known in before.items() if label in after]
    if not changes:
        return QualityChanges(why_not="no figure of quality is stated on both sides")
    return QualityChanges(tuple(sorted(changes, key=_place)))


def _place(change: QualityChange) -> tuple[bool, int]:
    return not change.better, PARTS.index(change.split)


def stated_of(side: Side) -> dict[str, Stated]:
    """Every figure that a side states, by its label, over its runs that state it and were not stopped."""
    found: dict[str, list[Mapping[str, Value]]] = {}
    for report in (report for report in side.reports if not stopped(report)):
        for row in rows(grid(report, QUALITY, STATED)):
            found.setdefault(str(row.get("label")), []).append(row)
    return {label: _stated(of_runs) for label, of_runs in found.items()}


def _stated(of_runs: list[Mapping[str, Value]]) -> Stated:
    split, better = of_runs[0].get("split"), of_runs[0].get("better")
    return Stated(
        next((part for part in PARTS if part == split), None),
        next((way for way in _WAYS if way == better), ""),
        tuple(_number(row.get("last")) for row in of_runs),
        _mean(of_runs, "best"),
        _mean(of_runs, "best_epoch"),
    )


def _number(value: Value) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) <= _LARGEST else None


def _mean(of_runs: list[Mapping[str, Value]], column: str) -> float | None:
    values = [value for row in of_runs if (value := _number(row.get(column))) is not None]
    return float(np.mean(values)) if values else None


def _change(label: str, base: Stated, new: Stated, limits: Limits) -> QualityChange:
    interval = _interval(base, new)
    return QualityChange(
        label, base, new, interval, _verdict(label, base, new, interval, limits) if base.better else ""
    )


def _interval(base: Stated, new: Stated) -> Ends | None:
    """Welch's, of the difference of the means; a side of a single run borrows the scatter of the other."""
    before, after = (np.array(side.values).reshape(-1, 1) for side in (base, new))
    if base.mean is None or new.mean is None or before.size + after.size <= 2:
        return None
    half = float(half_widths(before, after)[0])
    difference = new.mean - base.mean
    return difference - half, difference + half


def _verdict(label: str, base: Stated, new: Stated, interval: Ends | None, limits: Limits) -> str:
    """Whether the new side is worse; a training that diverged is, where the other one did not."""
    if base.mean is None or new.mean is None:
        return _of_diverged(base, new)
    if interval is None and base.mean == new.mean:
        return ALIKE
    sign = 1 if base.better == "lower" else -1
    whole = _whole(label, base, new)
    missing = _missing(base, new, whole)
    ends = None
    if interval is not None:
        low, high = sorted(sign * end / missing for end in interval)
        ends = low, high
    outcome = outcome_of(sign * (new.mean - base.mean) / missing, ends, limits)
    if outcome is Outcome.UNKNOWN and interval is not None and _is_narrow(interval, whole):
        return ALIKE
    return _CALLED.get(outcome, outcome.value)


_CALLED = {Outcome.SLOWER: WORSE, Outcome.FASTER: BETTER, Outcome.NO_CHANGE: ALIKE}


def _of_diverged(base: Stated, new: Stated) -> str:
    """By the share of runs whose last value is not finite."""
    shares = [1 - len(side.values) / len(side.final) for side in (base, new)]
    if shares[0] == shares[1]:
        return Outcome.UNKNOWN.value
    return WORSE if shares[1] > shares[0] else BETTER


def _whole(label: str, base: Stated, new: Stated) -> float | None:
    """A perfect figure, where there is one: 1, or 100 of an accuracy in percent."""
    values = (*base.values, *new.values)
    if base.better != "higher" or min(values) < 0:
        return None
    whole = _PERCENT if label.endswith(("accuracy", "acc")) and max(values) > 1 else 1.0
    return whole if max(values) <= whole else None


def _missing(base: Stated, new: Stated, whole: float | None) -> float:
    """How far the base is from perfect; never nothing."""
    before, after = base.mean or 0.0, new.mean or 0.0
    if whole is not None:
        return max(whole - before, _POINT * whole)
    return abs(before) or abs(after) or 1.0


def _is_narrow(interval: Ends, whole: float | None) -> bool:
    """Whether the figure changes by no more than a point of percent, chance included."""
    return whole is not None and max(map(abs, interval)) <= _POINT * whole
