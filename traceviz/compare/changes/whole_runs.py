"""Changes of whole runs: measures such as total time and energy, parts of the run, and quality of the model.

A quality figure is judged by the distance of its final value from perfect, relative to that of the base. For a loss the
distance is the loss itself, for an accuracy the gap to 1. So 98 → 85 % is seven times the errors, not 13 % less.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from traceviz.compare.changes.figures import why_not
from traceviz.compare.effect import Ends, Outcome, half_widths, interval_of_runs, outcome_of, typical
from traceviz.compare.options import Limits
from traceviz.compare.sides.measures import Measure, endings, measures_of, stopped, was_busy
from traceviz.compare.sides.sides import Side, grid, rows, whole
from traceviz.core.units import Unit, Value
from traceviz.report import MEASURES, STATED, Better

BETTER, WORSE, ALIKE = "better", "worse", "alike"
"""Verdicts in addition to :attr:`Outcome.NO_CHANGE` (quality: ``alike``) and :attr:`Outcome.UNKNOWN`."""
EPOCHS, EPOCH, TRAINING = "epochs", "epoch_ns", "training_ns"
"""Measures of how long and how fast the run trained."""


def _verdict(ratio: float, interval: Ends | None, limits: Limits, better: Better) -> str:
    """Judge a relative change of a figure whose better direction is ``better``."""
    outcome = outcome_of(ratio, interval, limits)
    if outcome in {Outcome.NO_CHANGE, Outcome.UNKNOWN}:
        return outcome.value
    return BETTER if (ratio > 0) == (better == "higher") else WORSE


# Measures and parts ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MeasureChange:
    """A measure that both sides have.

    Args:
        key: Its stable name.
        label: Its name for people.
        unit: Base unit.
        better: Direction of a gain; empty if there is none.
        base: Value on the base; over several runs, the geometric mean.
        new: The same for the new side.
        runs: Runs of the base and of the new side that have it.
        interval: 95 % interval of the change as shares of the base: between runs if a side has several, else within
            them; ``None`` if neither is known.
        verdict: ``better``, ``worse``, ``no change`` or ``cannot judge``; empty if no change is a gain.
        about: Description of the values.
    """

    key: str
    label: str
    unit: Unit
    better: Better
    base: float
    new: float
    runs: tuple[int, int]
    interval: Ends | None
    verdict: str
    about: str

    @property
    def ratio(self) -> float | None:
        """The change as a share of the base; ``None`` for a base of zero."""
        return self.new / self.base - 1 if self.base else None


@dataclass(frozen=True, slots=True)
class PartChange:
    """A part of the run (start-up, steps, validation, ...): mean over the runs, ns."""

    key: str
    label: str
    base_ns: float
    new_ns: float

    @property
    def difference_ns(self) -> float:
        """Positive if the new side takes longer."""
        return self.new_ns - self.base_ns


@dataclass(frozen=True, slots=True)
class MeasureChanges:
    """Measures of both sides, in the order of the report, and the exclusive parts of the runs.

    Args:
        changes: Only measures that both sides have.
        parts: Empty if a side does not report them.
        stopped: Endings of the runs that did not end by themselves, for the base and the new side.
        why_not: Why nothing can be compared; empty if something can.
    """

    changes: tuple[MeasureChange, ...] = ()
    parts: tuple[PartChange, ...] = ()
    stopped: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    why_not: str = ""

    def of(self, key: str) -> MeasureChange | None:
        """Return the change of a measure; ``None`` if a side does not have it."""
        return next((change for change in self.changes if change.key == key), None)


def compare_measures(base: Side, new: Side, limits: Limits) -> MeasureChanges:
    """Compare every measure that both sides have."""
    stops = endings(base), endings(new)
    if why := why_not(base, new, MEASURES, "figures of the whole run"):
        return MeasureChanges(stopped=stops, why_not=why)
    before, after = measures_of(base), measures_of(new)
    is_busy = was_busy(base) or was_busy(new)
    changes = tuple(
        _compare_measure(before[key], after[key], limits, is_busy=is_busy) for key in before if key in after
    )
    if not changes:
        return MeasureChanges(stopped=stops, why_not="no figure of the whole run is known of both sides")
    return MeasureChanges(changes, _parts(base, new), stops)


_TIMES = frozenset({"ns", "per_second", "joule"})
"""Units of measures that are affected by other programs on the machine."""


def _compare_measure(base: Measure, new: Measure, limits: Limits, *, is_busy: bool) -> MeasureChange:
    before, after = (typical(np.array(side.values)) for side in (base, new))
    interval = interval_of_runs(base.values, new.values, (base.within, new.within))
    verdict = ""
    if base.better and before:
        is_chance = is_busy and base.unit in _TIMES and len(base.values) + len(new.values) == 2 and before != after
        told = _verdict(after / before - 1, interval, limits, base.better)
        verdict = Outcome.UNKNOWN.value if is_chance else told
    return MeasureChange(
        base.key,
        base.label,
        base.unit,
        base.better,
        before,
        after,
        (len(base.values), len(new.values)),
        interval,
        verdict,
        base.about if base.about == new.about else "; ".join(filter(None, (base.about, new.about))),
    )


def _parts(base: Side, new: Side) -> tuple[PartChange, ...]:
    """Return the parts that the time of the runs divides into; exclude stopped runs."""
    sides = [parts_of(side) for side in (base, new)]
    if not all(sides):
        return ()
    labels = {key: label for side in reversed(sides) for key, (label, _) in side.items()}
    order = dict.fromkeys(key for side in sides for key in side)
    return tuple(PartChange(key, labels[key], *(side.get(key, ("", 0.0))[1] for side in sides)) for key in order)


def parts_of(side: Side) -> dict[str, tuple[str, float]]:
    """Return label and mean time of every part; nothing if a run does not report them."""
    reports = [report for report in side.reports if not stopped(report)]
    tables = [
        [row for grid in report.grids("whole_run") for row in rows(grid) if "time_ns" in row] for report in reports
    ]
    told = [[row for row in table if "part" in row and "label" in row] for table in tables]
    if not told or not all(told):
        return {}
    sums: dict[str, tuple[str, float]] = {}
    for row in (row for table in told for row in table):
        label, total = sums.get(str(row["part"]), (str(row["label"]), 0.0))
        sums[str(row["part"])] = label, total + whole(row["time_ns"]) / len(told)
    return sums


# Quality --------------------------------------------------------------------------------------------------------------

QUALITY = "quality"
"""Slug of the section, in a report and in a comparison."""
PARTS = ("validation", "test", None, "train")
"""Parts of the data; the most informative about quality first."""
_WAYS: tuple[Better, ...] = ("lower", "higher")
_POINT = 0.01
"""Smallest distance to a perfect figure: from 0.9995 to 0.999 errors do not double."""
_PERCENT = 100.0
_LARGEST = 1e100
"""Largest valid value; a training in 32 bits with a larger value has diverged."""


@dataclass(frozen=True, slots=True)
class Stated:
    """A figure on one side.

    Args:
        split: The part of the data, if the name contains it.
        better: The better direction; empty if the name does not imply one.
        final: The last value of every run that states it; ``None`` if it was not finite.
        best: Mean of the best values; ``None`` without a direction.
        best_epoch: Mean epoch of the best, counted from 0; ``None`` if no run reports it.
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
        """Mean of the last values; ``None`` if one is not finite."""
        return float(np.mean(self.values)) if self.values and len(self.values) == len(self.final) else None

    @property
    def scatter(self) -> float | None:
        """Standard deviation of the last values between repeats; ``None`` for fewer than two."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else None


@dataclass(frozen=True, slots=True)
class QualityChange:
    """A figure that both sides state.

    Args:
        label: Its name for people, the same on both sides.
        base, new: The figure on both sides.
        interval: 95 % interval of the difference of the final values, between runs; ``None`` for one run per side.
        verdict: ``better``, ``worse``, ``alike`` or ``cannot judge``; empty without a direction.
    """

    label: str
    base: Stated
    new: Stated
    interval: Ends | None
    verdict: str

    @property
    def split(self) -> str | None:
        """The part of the data, if the name contains it."""
        return self.base.split

    @property
    def better(self) -> Better:
        """The better direction; empty if the name does not imply one."""
        return self.base.better

    @property
    def difference(self) -> float | None:
        """New minus base, for the means of the final values."""
        before, after = self.base.mean, self.new.mean
        return None if before is None or after is None else after - before

    @property
    def is_of_repeats(self) -> bool:
        """True if the scatter of repeats is known."""
        return self.interval is not None


@dataclass(frozen=True, slots=True)
class QualityChanges:
    """Figures that both sides state, the most informative about quality first."""

    changes: tuple[QualityChange, ...] = ()
    why_not: str = ""

    @property
    def leading(self) -> QualityChange | None:
        """The figure shown next to the speed-up: of the most informative part of the data, the worst."""
        with_direction = [change for change in self.changes if change.better]
        part = [change for change in with_direction if change.split == with_direction[0].split]
        return min(part, key=lambda change: (_GRAVITY.index(change.verdict), change.better == "lower"), default=None)


_GRAVITY = (WORSE, BETTER, Outcome.UNKNOWN.value, ALIKE)


def compare_quality(base: Side, new: Side, limits: Limits) -> QualityChanges:
    """Compare every figure that both sides state."""
    if why := why_not(base, new, QUALITY, "figures of quality"):
        return QualityChanges(why_not=why)
    before, after = stated_figures(base), stated_figures(new)
    changes = [_compare_figure(label, known, after[label], limits) for label, known in before.items() if label in after]
    if not changes:
        return QualityChanges(why_not="no figure of quality is stated on both sides")
    return QualityChanges(tuple(sorted(changes, key=_sort_key)))


def _sort_key(change: QualityChange) -> tuple[bool, int]:
    return not change.better, PARTS.index(change.split)


def stated_figures(side: Side) -> dict[str, Stated]:
    """Return every figure that a side states, by label, over its runs that state it and were not stopped."""
    found: dict[str, list[Mapping[str, Value]]] = {}
    for report in (report for report in side.reports if not stopped(report)):
        for row in rows(grid(report, QUALITY, STATED)):
            found.setdefault(str(row.get("label")), []).append(row)
    return {label: _sum_up_runs(of_runs) for label, of_runs in found.items()}


def _sum_up_runs(of_runs: list[Mapping[str, Value]]) -> Stated:
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


def _compare_figure(label: str, base: Stated, new: Stated, limits: Limits) -> QualityChange:
    """Compare final values with Welch's interval; a side with a single run borrows the scatter of the other."""
    before, after = (np.array(side.values).reshape(-1, 1) for side in (base, new))
    interval = None
    if base.mean is not None and new.mean is not None and before.size + after.size > 2:
        half, difference = float(half_widths(before, after)[0]), new.mean - base.mean
        interval = difference - half, difference + half
    verdict = _quality_verdict(label, base, new, interval, limits) if base.better else ""
    return QualityChange(label, base, new, interval, verdict)


def _quality_verdict(label: str, base: Stated, new: Stated, interval: Ends | None, limits: Limits) -> str:
    """Judge the final values; a training that diverged is worse than one that did not."""
    if base.mean is None or new.mean is None:
        shares = [1 - len(side.values) / len(side.final) for side in (base, new)]
        if shares[0] == shares[1]:
            return Outcome.UNKNOWN.value
        return WORSE if shares[1] > shares[0] else BETTER
    if interval is None and base.mean == new.mean:
        return ALIKE
    perfect = _perfect(label, base, new)
    of_loss = abs(base.mean) or abs(new.mean) or 1.0
    missing = of_loss if perfect is None else max(perfect - base.mean, _POINT * perfect)
    ends = None if interval is None else (interval[0] / missing, interval[1] / missing)
    verdict = _verdict((new.mean - base.mean) / missing, ends, limits, base.better)
    # A figure that changes by at most one percentage point, chance included, is the same.
    is_narrow = interval is not None and perfect is not None and max(map(abs, interval)) <= _POINT * perfect
    if verdict == Outcome.NO_CHANGE or (verdict == Outcome.UNKNOWN and is_narrow):
        return ALIKE
    return verdict


def _perfect(label: str, base: Stated, new: Stated) -> float | None:
    """Return the perfect value, if there is one: 1, or 100 for an accuracy in percent."""
    values = (*base.values, *new.values)
    if base.better != "higher" or min(values) < 0:
        return None
    perfect = _PERCENT if label.endswith(("accuracy", "acc")) and max(values) > 1 else 1.0
    return perfect if max(values) <= perfect else None
