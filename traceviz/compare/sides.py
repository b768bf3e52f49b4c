"""One side of a comparison: what its reports say per step, in arrays that line up with those of the other side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from traceviz.compare.effect import Times
from traceviz.report import Facts, Grid, Report
from traceviz.units import Value

BY_STEP, EVERY_STEP, IN_STEPS = "By step", "Every step", "In steady steps"
"""Titles of the machine grids of reports that comparisons read."""
TAG = "tag."
"""Begin of the keys of facts that are tags of a run."""


@dataclass(frozen=True, slots=True)
class Sums:
    """Events of one name in steady steps, over all runs of a side: per step by :meth:`Side.per_step`."""

    calls: int
    total_ns: int
    group: str = ""


@dataclass(frozen=True)
class Side:
    """One or several runs of the same thing.

    Args:
        label: What people call it.
        reports: A report of each run.
        per: How many units of work (samples of a batch, ...) a step does; durations are of one of them.
    """

    label: str
    reports: tuple[Report, ...]
    per: Fraction = Fraction(1)

    @cached_property
    def runs(self) -> tuple[Times, ...]:
        """Durations of the steady steps of every run that has any, in order, ns; ranks after one another.

        Of one unit of work each, and then no whole numbers, where a step does several.
        """
        found = (steady_steps(report) for report in self.reports)
        return tuple(self.per_unit(times) for times in found if times.size)

    def per_unit(self, times: Times) -> Times:
        """Durations of steps as those of one unit of their work."""
        return times if self.per == 1 else times.astype(np.float64) / float(self.per)

    @cached_property
    def steps(self) -> int:
        """Number of steady steps of all runs."""
        return sum(times.size for times in self.runs)

    @cached_property
    def classes(self) -> Mapping[str, Times]:
        """Nanoseconds of each exclusive class in every steady step; the classes of a step add up to it.

        Empty where a report does not tell of the steps one by one.
        """
        grids = [grid(report, "breakdown", BY_STEP) for report in self.reports]
        columns = [column_arrays(one) for one in grids if one is not None]
        if not columns or len(columns) < len(self.reports):
            return {}
        keys = dict.fromkeys(key for one in columns for key in one if key not in _OF_STEP)
        return {key: np.concatenate([one.get(key, np.zeros_like(one["dur_ns"])) for one in columns]) for key in keys}

    def sums(self, slug: str, key: str = "name", group: str = "") -> Mapping[str, Sums] | None:
        """Events in steady steps by the column ``key`` of section ``slug``, over all runs.

        Args:
            slug: ``kernels``, ``cuda_api`` or ``copies``.
            key: Column by which they are told apart.
            group: Column to keep besides.

        Returns:
            ``None`` where a report of the side has no such section: not measured, which is not the same as none.
        """
        found: dict[str, Sums] = {}
        for report in self.reports:
            one = grid(report, slug, IN_STEPS)
            if one is None:
                return None
            for row in rows(one):
                name, kind = str(row[key]), str(row[group]) if group else ""
                before = found.get(name, Sums(0, 0, kind))
                calls, total = before.calls + whole(row["calls"]), before.total_ns + whole(row["total_ns"])
                found[name] = Sums(calls, total, kind)
        return found

    def per_step(self, total: int) -> Fraction:
        """A sum over all steady steps per step, or per unit of work; exact."""
        return Fraction(total, max(self.steps, 1)) / self.per

    @cached_property
    def class_labels(self) -> Mapping[str, str]:
        """What people call the classes, by key."""
        grids = (grid(report, "breakdown", BY_STEP) for report in self.reports)
        columns = (column for one in grids if one is not None for column in one.columns)
        return {column.name: column.label for column in columns if column.name not in _OF_STEP}

    @cached_property
    def tags(self) -> Mapping[str, str]:
        """Tags of the runs, as ``traceviz collect --tag`` gave them, in which they all agree."""
        first, *others = [tags(report) for report in self.reports] or [{}]
        return {key: value for key, value in first.items() if all(other.get(key) == value for other in others)}

    def facts(self, slug: str, key: str) -> tuple[Value, ...]:
        """A fact of every run that has it."""
        return tuple(value for report in self.reports if (value := fact(report, slug, key)) is not None)

    def mean(self, slug: str, key: str) -> float | None:
        """Mean of a numeric fact over the runs that have it."""
        numbers = [value for value in self.facts(slug, key) if isinstance(value, int | float)]
        return float(np.mean(numbers)) if numbers else None

    def run_fact(self, key: str) -> tuple[str, ...]:
        """What the runs say of themselves (format, framework, devices, ...), each answer once."""
        said = (one.value for report in self.reports for one in report.run if one.key == key)
        return tuple(dict.fromkeys(str(value) for value in said if value is not None))


_OF_STEP = frozenset({"step", "process", "dur_ns"})


def steady_steps(report: Report) -> Times:
    """Durations of the steady steps of a report, ns; empty where it has none."""
    by_step = grid(report, "breakdown", BY_STEP)
    if by_step is not None:
        return column_arrays(by_step)["dur_ns"]
    every = grid(report, "steps", EVERY_STEP)
    found = [whole(row["dur_ns"]) for row in rows(every) if not row["warmup"]] if every is not None else []
    return np.array(found, np.int64)


def grid(report: Report, slug: str, title: str) -> Grid | None:
    """The grid of a section by its title; ``None`` where there is none."""
    blocks = (block for section in report.sections if section.slug == slug for block in section.blocks)
    return next((block for block in blocks if isinstance(block, Grid) and block.title == title), None)


def rows(found: Grid) -> list[dict[str, Value]]:
    """Rows by name of the column."""
    names = [column.name for column in found.columns]
    return [dict(zip(names, row, strict=True)) for row in found.rows]


def column_arrays(found: Grid) -> dict[str, npt.NDArray[np.int64]]:
    """Columns of whole numbers."""
    table = np.array([[whole(value) for value in row] for row in found.rows], np.int64).reshape(-1, len(found.columns))
    return {column.name: table[:, index] for index, column in enumerate(found.columns)}


def fact(report: Report, slug: str, key: str) -> Value:
    """A fact of a report, ``None`` where it was not measured."""
    try:
        return report.fact(slug, key)
    except KeyError:
        return None


def tags(report: Report) -> dict[str, str]:
    """Tags of the run that a report is about; none where it is about something else."""
    sections = (section for section in report.sections if section.slug == "run")
    facts = (one for section in sections for block in section.blocks if isinstance(block, Facts) for one in block.facts)
    return {one.key.removeprefix(TAG): str(one.value) for one in facts if one.key.startswith(TAG)}


def whole(value: Value) -> int:
    """A whole number of a report, 0 where it has none there."""
    return int(value) if isinstance(value, int | float) else 0


def apportioned(parts: Sequence[Fraction], total: int) -> list[int]:
    """Whole numbers that add up to ``total``, each less than one away from its part: the largest remainders go up.

    Args:
        parts: Exact numbers.
        total: Their sum, rounded.
    """
    floors = [part.numerator // part.denominator for part in parts]
    missing = total - sum(floors)
    largest = sorted(range(len(parts)), key=lambda index: (floors[index] - parts[index], index))
    for index in largest[:missing]:
        floors[index] += 1
    return floors
