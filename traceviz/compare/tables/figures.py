"""Figures for tables of a study: the mean step, a measure of whole runs, a quality metric.

Each has a value for every side and a ratio of two sides, both with a 95 % interval.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast, get_args

import numpy as np

from traceviz.compare.compare import Comparison
from traceviz.compare.effect import effect, interval_of_runs, typical
from traceviz.compare.sides.basis import BASES, STEP, cell, counts
from traceviz.compare.sides.by_tags import natural, tag_label
from traceviz.compare.sides.measures import Measure, measures_of, stopped
from traceviz.compare.sides.sides import Side, grid, rows
from traceviz.compare.sides.units_of_work import per_unit, unit_of
from traceviz.core.errors import UsageError
from traceviz.core.resampling import mean_interval, student
from traceviz.core.units import Unit
from traceviz.report import STATED, Better

Values = tuple[str, ...]


def values_of(side: Side, tags: Sequence[str]) -> Values:
    """Return the values of some tags of a side."""
    return tuple(side.groups.get(tag, "") for tag in tags)


def in_order(values: Iterable[str], first: str) -> list[str]:
    """Return distinct values: numbers by size, words with that of the base first."""
    return sorted(set(values), key=lambda value: (number_of(value) is None and value != first, natural(value)))


def number_of(value: str) -> float | None:
    """Return a tag value as a number; ``None`` if it is none."""
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def label_of(tags: Sequence[str], values: Values) -> str:
    """Return the label ``torch, batch=32``."""
    return ", ".join(map(tag_label, tags, values))


def group_sides(comparison: Comparison, tags: Sequence[str]) -> dict[Values, list[Side]]:
    """Group sides by the values of some tags, in the order of those; without tags, all sides together."""
    base = comparison.sides[0]
    groups: dict[Values, list[Side]] = {}
    for side in comparison.sides:
        groups.setdefault(values_of(side, tags), []).append(side)
    places = {
        tag: in_order((side.groups.get(tag, "") for side in comparison.sides), base.groups.get(tag, "")) for tag in tags
    }
    ordered = sorted(
        groups, key=lambda values: [places[tag].index(value) for tag, value in zip(tags, values, strict=True)]
    )
    return {values: groups[values] for values in ordered}


QUALITY = "quality"
"""Slug of the section on the quality of the model."""
_PER_SECOND = "samples-per-second"
_UNIT = re.compile(r"-(?:ns|bytes|j)$")
_LARGEST = 700.0
"""Logarithm near that of the largest float."""
Ends = tuple[float, float]
"""Lower and upper end of an interval."""


@dataclass(frozen=True, slots=True)
class Value:
    """A figure of a side.

    Args:
        typical: The value; over several runs, their geometric mean.
        interval: Its 95 % interval: between runs, or within a single one; ``None`` if neither is known.
        runs: Number of runs behind it.
    """

    typical: float
    interval: Ends | None
    runs: int


@dataclass(frozen=True)
class Figure(ABC):
    """A figure that a table shows for every side.

    Args:
        name: Name for users and JSON: ``step``, ``total``, ``samples-per-second``, ``val_accuracy``.
        label: Display name.
        unit: Its base unit.
        better: Direction of a gain; empty if there is none.
        per: Tag of the units of work per step, if the figure is per unit and those of the sides are not.
    """

    name: str
    label: str
    unit: Unit
    better: Better
    per: str = ""

    @property
    def is_speed(self) -> bool:
        """True if twice, or half, of it is twice as fast."""
        return self.unit == "ns" or self.name.endswith("-per-second")

    @property
    def has_factor(self) -> bool:
        """True if a multiple of a value is meaningful. It is not for an accuracy, whose maximum is 1."""
        return bool(self.better)

    @abstractmethod
    def interval(self, side: Side) -> Ends | None:
        """Return the 95 % interval of the figure of a side: between its runs, or within a single one."""

    @abstractmethod
    def values(self, side: Side) -> Sequence[float]:
        """Return the figure of every run of a side that has it."""

    @abstractmethod
    def change(self, base: Side, new: Side) -> Ends | None:
        """Return the 95 % interval of the change between two sides, as shares of the base; ``None`` if there is
        none.
        """

    def typical(self, side: Side) -> float | None:
        """Return the figure of a side: the geometric mean of its runs; ``None`` if it was not measured."""
        values = self.values(side)
        return typical(np.array(values)) if values else None

    def value(self, side: Side) -> Value | None:
        """Return the figure of a side with its interval; ``None`` if it was not measured."""
        middle = self.typical(side)
        return None if middle is None else Value(middle, self.interval(side), len(self.values(side)))

    def ratio(self, base: Side, new: Side) -> float | None:
        """Return the figure of a side as a multiple of that of another."""
        before, after = self.typical(base), self.typical(new)
        return after / before if before and after is not None else None

    def gain(self, base: Side, new: Side) -> float | None:
        """Return how many times as good a side is as another: for a figure of speed, its speed-up.

        ``None`` if it was not measured, or a factor is meaningless.
        """
        ratio = self.ratio(base, new)
        if not ratio or not self.has_factor:
            return None
        return ratio if self.better == "higher" else 1 / ratio

    def is_better(self, value: float, than: float) -> bool:
        """Return whether a value is better than another."""
        return value > than if self.better == "higher" else value < than


@dataclass(frozen=True)
class MeanStep(Figure):
    """The mean steady step, or the time per unit of its work."""

    def interval(self, side: Side) -> Ends | None:
        """See :meth:`Figure.interval`."""
        runs = self._scale(side).runs
        return mean_interval(runs[0]) if len(runs) == 1 else _between(self.values(side))

    def values(self, side: Side) -> Sequence[float]:
        """See :meth:`Figure.values`."""
        return [float(run.mean()) for run in self._scale(side).runs]

    def change(self, base: Side, new: Side) -> Ends | None:
        """See :meth:`Figure.change`."""
        before, after = map(self._scale, (base, new))
        if not before.mean_ns or not after.mean_ns:
            return None
        return effect(before.runs, after.runs).interval

    def _scale(self, side: Side) -> Side:
        return per_unit((side,), self.per)[0] if self.per else side


@dataclass(frozen=True)
class OfRuns(Figure):
    """A measure of section ``measures``.

    Args:
        key: Its key there.
    """

    key: str = ""

    def interval(self, side: Side) -> Ends | None:
        """See :meth:`Figure.interval`."""
        measure = self._of(side)
        return None if measure is None else measure.within or _between(measure.values)

    def values(self, side: Side) -> Sequence[float]:
        """See :meth:`Figure.values`."""
        measure = self._of(side)
        return () if measure is None else measure.values

    def change(self, base: Side, new: Side) -> Ends | None:
        """See :meth:`Figure.change`."""
        before, after = self._of(base), self._of(new)
        if before is None or after is None:
            return None
        return interval_of_runs(before.values, after.values, (before.within, after.within))

    def _of(self, side: Side) -> Measure | None:
        return measures_of(side).get(self.key)


@dataclass(frozen=True)
class Learned(Figure):
    """The last value of a metric of section ``quality``: loss, accuracy, RMSE."""

    @property
    def has_factor(self) -> bool:
        """See :meth:`Figure.has_factor`."""
        return False

    def typical(self, side: Side) -> float | None:
        """See :meth:`Figure.typical`; the arithmetic mean of the runs, as metrics may be below zero."""
        values = self.values(side)
        return float(np.mean(values)) if values else None

    def interval(self, side: Side) -> Ends | None:
        """See :meth:`Figure.interval`."""
        values = self.values(side)
        if len(values) < 2:
            return None
        mean, half = float(np.mean(values)), _half_width(values)
        return mean - half, mean + half

    def values(self, side: Side) -> Sequence[float]:
        """See :meth:`Figure.values`."""
        values = [
            row.get("last")
            for report in side.reports
            if not stopped(report)
            for row in rows(grid(report, QUALITY, STATED))
            if row.get("name") == self.name
        ]
        return [float(value) for value in values if isinstance(value, int | float) and math.isfinite(value)]

    def change(self, base: Side, new: Side) -> Ends | None:
        """See :meth:`Figure.change`."""
        before, after = self.values(base), self.values(new)
        return interval_of_runs(before, after) if before and after else None


def spell_name(key: str) -> str:
    """Return ``latency-p95`` for ``latency_p95_ns``, ``host-memory-peak`` for ``host_memory_peak_bytes``."""
    return _UNIT.sub("", key.replace("_", "-"))


def stopped_runs(figure: Figure, sides: Iterable[Side]) -> Iterator[str]:
    """Report sides with runs that did not end by themselves, if no cell shows it."""
    for side in sides:
        said = counts(side)
        if said and (figure.values(side) or not cell(side)):
            yield f"{side.label}: {said}."


def _between(values: Sequence[float]) -> Ends | None:
    """Return the 95 % interval of the geometric mean over runs; ``None`` for one run."""
    if len(values) < 2 or min(values) <= 0:
        return None
    logs = [math.log(value) for value in values]
    mean, half = float(np.mean(logs)), _half_width(logs)
    return (math.exp(mean - half), math.exp(mean + half)) if mean + half < _LARGEST else None


def _half_width(values: Sequence[float]) -> float:
    """Return half of the 95 % interval of the mean of several values."""
    return student(len(values) - 1) * float(np.std(values, ddof=1)) / math.sqrt(len(values))


@dataclass(frozen=True)
class Known:
    """All figures that any side of a comparison has, by name."""

    comparison: Comparison

    @cached_property
    def figures(self) -> Mapping[str, Figure]:
        """All figures; the quality metrics precede the mean step."""
        per = self.comparison.options.per
        step = MeanStep(STEP.name, f"time per {unit_of(per)}" if per else STEP.words, "ns", "lower")
        names = {basis.key: basis for basis in BASES}
        measured = {
            key: OfRuns(
                names[key].name if key in names else spell_name(key),
                names[key].words if key in names else measure.label,
                measure.unit,
                measure.better,
                key=key,
            )
            for side in self.comparison.sides
            for key, measure in measures_of(side).items()
        }
        figures = {figure.name: figure for figure in (step, *measured.values())}
        return {**{name: figure for name, figure in self._learned.items() if name not in figures}, **figures}

    @cached_property
    def _learned(self) -> Mapping[str, Figure]:
        reports = (report for side in self.comparison.sides for report in side.reports)
        metrics = [row for report in reports for row in rows(grid(report, QUALITY, STATED))]
        found = {}
        for row in metrics:
            name, better = str(row.get("name") or ""), str(row.get("better") or "")
            direction = cast("Better", better) if better in get_args(Better) else ""
            found[name] = Learned(name, str(row.get("label") or name), "number", direction)
        return found

    def chosen(self, names: Sequence[str]) -> tuple[Figure, ...]:
        """Return the figures of these names, or the figure of the verdicts.

        Raises:
            UsageError: no side has one of them.
        """
        return tuple(map(self.named, names or (self.comparison.basis.name,)))

    def named(self, name: str) -> Figure:
        """Return the figure with a user's ``name``; ``samples_per_second`` equals ``samples-per-second``.

        Raises:
            UsageError: no side has it.
        """
        for candidate in (name, spell_name(name)):
            if candidate in self.figures:
                return self.figures[candidate]
        raise UsageError.unknown("measure", name, self.figures)

    @property
    def throughput(self) -> Figure | None:
        """Samples per second, if every side with steps has it."""
        figure = self.figures.get(_PER_SECOND)
        if figure is None or any(not figure.values(side) for side in self.comparison.sides if side.steps):
            return None
        return figure
