"""Measures of the whole runs of both sides, and the parts that their time divides into."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traceviz.compare.changes.recorded import why_not
from traceviz.compare.effect import Ends, interval_of_runs, typical
from traceviz.compare.options import Limits
from traceviz.compare.outcome import Outcome, outcome_of
from traceviz.compare.sides.measures import Measure, endings, measures_of, stopped, was_busy
from traceviz.compare.sides.sides import Side, rows, whole
from traceviz.core.units import Unit
from traceviz.report import MEASURES, Better

BETTER, WORSE = "better", "worse"
"""Verdicts on a measure beside :attr:`Outcome.NO_CHANGE` and :attr:`Outcome.UNKNOWN`."""
EPOCHS, EPOCH, TRAINING = "epochs", "epoch_ns", "training_ns"
"""Measures that tell how long was trained, and how fast."""


@dataclass(frozen=True, slots=True)
class MeasureChange:
    """A measure that both sides have.

    Args:
        key: Its stable name.
        label: Its name for people.
        unit: Base unit.
        better: Which change is a gain; empty where neither is.
        base: Its value on the base, over several runs the geometric mean.
        new: The same of the new side.
        runs: Runs of the base and of the new side that have it.
        interval: 95 % interval of the change as shares of the base: between runs where a side has several, else within
            them; ``None`` where neither is known.
        verdict: ``better``, ``worse``, ``no change`` or ``cannot judge``; empty where no change is a gain.
        about: What the values are made of.
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
        """The change as a share of the base; ``None`` of a base of zero."""
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
        """Positive where the new side takes longer."""
        return self.new_ns - self.base_ns


@dataclass(frozen=True, slots=True)
class MeasureChanges:
    """Measures of both sides, in the order of the report, and the exclusive parts of the runs.

    Args:
        changes: Only what both sides have.
        parts: Empty where a side does not tell them.
        stopped: How runs ended that did not end by themselves, of the base and of the new side.
        why_not: Why nothing can be compared; empty where something can.
    """

    changes: tuple[MeasureChange, ...] = ()
    parts: tuple[PartChange, ...] = ()
    stopped: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    why_not: str = ""

    def of(self, key: str) -> MeasureChange | None:
        """The change of a measure; ``None`` where a side does not have it."""
        return next((change for change in self.changes if change.key == key), None)


def compare_measures(base: Side, new: Side, limits: Limits) -> MeasureChanges:
    """Every measure that both sides have, whatever it is."""
    stops = endings(base), endings(new)
    if why := why_not(base, new, MEASURES, "figures of the whole run"):
        return MeasureChanges(stopped=stops, why_not=why)
    before, after = measures_of(base), measures_of(new)
    is_busy = was_busy(base) or was_busy(new)
    changes = tuple(_change(before[key], after[key], limits, is_busy=is_busy) for key in before if key in after)
    if not changes:
        return MeasureChanges(stopped=stops, why_not="no figure of the whole run is known of both sides")
    return MeasureChanges(changes, _parts(base, new), stops)


_TIMES = frozenset({"ns", "per_second", "joule"})
"""Units of measures that other programs on the machine change."""


def _change(base: Measure, new: Measure, limits: Limits, *, is_busy: bool) -> MeasureChange:
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


def _verdict(ratio: float, interval: Ends | None, limits: Limits, better: Better) -> str:
    outcome = outcome_of(ratio, interval, limits)
    if outcome in {Outcome.NO_CHANGE, Outcome.UNKNOWN}:
        return outcome.value
    return BETTER if (ratio > 0) == (better == "higher") else WORSE


def _parts(base: Side, new: Side) -> tuple[PartChange, ...]:
    """The parts that the time of the runs divides into; those that were stopped are left out."""
    sides = [parts_of(side) for side in (base, new)]
    if not all(sides):
        return ()
    labels = {key: label for side in reversed(sides) for key, (label, _) in side.items()}
    order = dict.fromkeys(key for side in sides for key in side)
    return tuple(PartChange(key, labels[key], *(side.get(key, ("", 0.0))[1] for side in sides)) for key in order)


def parts_of(side: Side) -> dict[str, tuple[str, float]]:
    """Label and mean time of every part; nothing where a run does not tell them."""
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
