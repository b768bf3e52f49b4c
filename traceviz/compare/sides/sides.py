"""One side of a comparison: figures of its reports per step, in arrays that line up with those of the other side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from traceviz.compare.effect import typical
from traceviz.compare.kernel_pairs import Events, PerStep
from traceviz.compare.sides.job_steps import job_steps, of_the_job
from traceviz.core.resampling import Times, period
from traceviz.core.units import Value
from traceviz.report import BY_STEP, EVERY_STEP, IN_STEPS, TAG, Grid, Report
from traceviz.trace.names.framework_signs import name_and_version


@dataclass(frozen=True)
class Side:
    """One or several runs of the same thing.

    Args:
        label: What people call it.
        reports: A report of each run.
        per: How many units of work (samples of a batch, ...) a step does; durations are of one of them.
        why_base: Why others are compared with it, where nobody said so: ``the first given``; else empty.
    """

    label: str
    reports: tuple[Report, ...] = field(repr=False)
    per: Fraction = Fraction(1)
    why_base: str = ""

    @cached_property
    def runs(self) -> tuple[Times, ...]:
        """Durations of the steady steps of every run that has any, in order, ns.

        Where a step does several units of work, durations of one unit, which need not be whole. Where a job has
        several ranks, its step once: their mean, see :func:`traceviz.compare.sides.job_steps.of_the_job`.
        """
        return tuple(self.per_unit(of_the_job(run[DURATION], run.job)) for run in self._with_steps)

    def per_unit(self, times: Times) -> Times:
        """Durations of steps as those of one unit of their work."""
        return times if self.per == 1 else times.astype(np.float64) / float(self.per)

    @cached_property
    def steps(self) -> int:
        """Number of steady steps of all runs; what several ranks do together is one."""
        return sum(times.size for times in self.runs)

    @cached_property
    def mean_ns(self) -> float | None:
        """Mean step, over several runs the geometric mean of theirs; ``None`` without steps."""
        return typical(np.array([run.mean() for run in self.runs])) if self.runs else None

    @cached_property
    def period(self) -> int | None:
        """After how many steps durations return, in the run where they take longest to; 1 where they do not."""
        return max(map(period, self.runs), default=None)

    @cached_property
    def median_ns(self) -> float | None:
        """Median step, over several runs as :attr:`mean_ns`."""
        return typical(np.array([np.median(run) for run in self.runs])) if self.runs else None

    @cached_property
    def rank_steps(self) -> int:
        """The same with every step counted once for each rank: the divisor of sums over all ranks."""
        return sum(self.rank_steps_by_run)

    @cached_property
    def rank_steps_by_run(self) -> tuple[int, ...]:
        """The same of each of :attr:`reports`; 0 of runs without steady steps."""
        return tuple(run.job.size for run in self._every_run)

    @cached_property
    def ranks(self) -> int:
        """Ranks that have steady steps, in the run that has most of them."""
        return max((np.unique(run["process"]).size for run in self._with_steps), default=0)

    @cached_property
    def stepless(self) -> int:
        """Number of runs without steady steps, which no figure per step covers."""
        return self.rank_steps_by_run.count(0)

    @cached_property
    def classes(self) -> Mapping[str, Times]:
        """Nanoseconds of each exclusive class in every steady step of every rank; they add up to its duration.

        Empty where a report does not list the steps one by one.
        """
        runs = self._with_steps
        if not runs or any(grid(report, "breakdown", BY_STEP) is None for report in self._reports_with_steps):
            return {}
        keys = dict.fromkeys(key for run in runs for key in run.columns if key not in _OF_STEP)
        return {key: np.concatenate([run[key] for run in runs]) for key in keys}

    @cached_property
    def measured(self) -> frozenset[str]:
        """Classes that every run measured; elsewhere their time counts as another class."""
        columns = [frozenset(run.columns) for run in self._with_steps] if self.classes else []
        return frozenset.intersection(*columns) - _OF_STEP if columns else frozenset()

    def tables(self, keys: Sequence[str]) -> tuple[Times, ...]:
        """Steps of every run as in :attr:`runs`, by columns: their sum, and the classes ``keys``."""
        parts = ([run[key] for key in keys] for run in self._with_steps)
        stacked = (np.stack([np.sum(columns, axis=0), *columns], axis=1) for columns in parts)
        return tuple(
            self.per_unit(of_the_job(table, run.job)) for table, run in zip(stacked, self._with_steps, strict=True)
        )

    @cached_property
    def _every_run(self) -> tuple[_RunSteps, ...]:
        return tuple(map(_run_steps, self.reports))

    @cached_property
    def _with_steps(self) -> tuple[_RunSteps, ...]:
        return tuple(run for run in self._every_run if run.job.size)

    @cached_property
    def _reports_with_steps(self) -> tuple[Report, ...]:
        steps = zip(self.reports, self.rank_steps_by_run, strict=True)
        return tuple(report for report, count in steps if count)

    @cached_property
    def kernels(self) -> Events:
        """Kernels in steady steps by name, with their family; none where they were not recorded."""
        return self.events("kernels", group="family")

    def events(self, slug: str, key: str = "name", group: str = "") -> Events:
        """Events in steady steps over all runs, per step or per unit of its work.

        Args:
            slug: Section: ``kernels``, ``cuda_api`` or ``copies``.
            key: Column by which they are told apart.
            group: Column to keep besides.

        Returns:
            None where a report of the side has no such section: they were not recorded.
        """
        sums: dict[str, tuple[int, int, str]] = {}
        for report in self._reports_with_steps or self.reports:
            events = grid(report, slug, IN_STEPS)
            if events is None:
                return {}
            for row in rows(events):
                calls, total, _ = sums.get(str(row[key]), (0, 0, ""))
                kind = str(row[group]) if group else ""
                sums[str(row[key])] = calls + whole(row["calls"]), total + whole(row["total_ns"]), kind
        return {
            name: PerStep(self.per_step(calls), self.per_step(total), kind)
            for name, (calls, total, kind) in sums.items()
        }

    def per_step(self, total: int) -> Fraction:
        """A sum over all steady steps per step of a rank, or per unit of work; exact."""
        return Fraction(total, max(self.rank_steps, 1)) / self.per

    @cached_property
    def class_labels(self) -> Mapping[str, str]:
        """What people call the classes, by key."""
        tables = (grid(report, "breakdown", BY_STEP) for report in self.reports)
        columns = (column for by_step in tables if by_step is not None for column in by_step.columns)
        return {column.name: column.label for column in columns if column.name not in _OF_STEP}

    @cached_property
    def tags(self) -> Mapping[str, str]:
        """Tags that ``traceviz collect --tag`` gave the runs, as far as all agree."""
        return _agreed([tags(report) for report in self.reports])

    @property
    def groups(self) -> Mapping[str, str]:
        """What runs can be grouped by, as far as all agree: :attr:`tags`, and the framework."""
        return _agreed([grouping(report) for report in self.reports])

    def facts(self, slug: str, key: str) -> tuple[Value, ...]:
        """A fact of every run that has it."""
        return tuple(value for report in self.reports if (value := fact(report, slug, key)) is not None)

    @property
    def recorders(self) -> frozenset[str]:
        """Names of the collectors that recorded run folders, from ``nsys 2026.2.1, resources``."""
        parts = (part.split() for names in self.facts("run", "recorded_by") for part in str(names).split(","))
        return frozenset(words[0] for words in parts if words)

    def mean(self, slug: str, key: str) -> float | None:
        """Mean of a numeric fact over the runs that have it."""
        numbers = [value for value in self.facts(slug, key) if isinstance(value, int | float)]
        return float(np.mean(numbers)) if numbers else None

    def run_fact(self, key: str) -> tuple[str, ...]:
        """Distinct values of a fact about the runs (format, framework, devices, ...)."""
        values = (fact.value for report in self.reports for fact in report.run if fact.key == key)
        return tuple(dict.fromkeys(str(value) for value in values if value is not None))


DURATION = "dur_ns"
_FRAMEWORK = "framework"
"""Fact about a run that groups like a tag of this name."""
_DEVICES = "devices"
"""Section whose count of devices that compute groups likewise."""
_OF_STEP = frozenset({"step", "process", DURATION})


@dataclass(frozen=True, slots=True)
class _RunSteps:
    """Columns of the steady steps of a run, a row for each step of each rank; ``job`` numbers the job's steps."""

    columns: Mapping[str, npt.NDArray[np.int64]]
    job: npt.NDArray[np.intp]

    def __getitem__(self, key: str) -> npt.NDArray[np.int64]:
        """A column; nothing but zeros where there is none."""
        return self.columns.get(key, np.zeros(self.job.size, np.int64))


def _run_steps(report: Report) -> _RunSteps:
    by_step = grid(report, "breakdown", BY_STEP)
    if by_step is None:
        steady = [row for row in rows(grid(report, "steps", EVERY_STEP)) if not row["warmup"] and not row.get("cut")]
        columns = {key: np.array([whole(row[key]) for row in steady], np.int64) for key in sorted(_OF_STEP)}
    else:
        columns = column_arrays(by_step)
    return _RunSteps(columns, job_steps(columns["process"], columns["step"]))


def steady_steps(report: Report) -> Times:
    """Durations of the steady steps of all ranks of a report, ns; empty where it has none."""
    return _run_steps(report)[DURATION]


def grid(report: Report, slug: str, title: str) -> Grid | None:
    """The grid of a section by its title; ``None`` where there is none."""
    return next((table for table in report.grids(slug) if table.title == title), None)


def rows(table: Grid | None) -> list[dict[str, Value]]:
    """Rows by name of the column; none where there is no table."""
    if table is None:
        return []
    names = [column.name for column in table.columns]
    return [dict(zip(names, row, strict=True)) for row in table.rows]


def column_arrays(table: Grid) -> dict[str, npt.NDArray[np.int64]]:
    """Columns of whole numbers."""
    numbers = [[whole(value) for value in row] for row in table.rows]
    array = np.array(numbers, np.int64).reshape(-1, len(table.columns))
    return {column.name: array[:, index] for index, column in enumerate(table.columns)}


def fact(report: Report, slug: str, key: str) -> Value:
    """A fact of a report, ``None`` where it was not measured."""
    try:
        return report.fact(slug, key)
    except KeyError:
        return None


def tags(report: Report) -> dict[str, str]:
    """Tags of the run that a report is about; none where it is no report of a run."""
    facts = (fact for fact in report.facts("run") if fact.key.startswith(TAG))
    return {fact.key.removeprefix(TAG): str(fact.value) for fact in facts}


def grouping(report: Report) -> dict[str, str]:
    """What groups the run of a report: its tags; and what its trace shows where no tag says it.

    That is the framework, and the number of devices that computed.
    """
    stated = next((fact.value for fact in report.run if fact.key == _FRAMEWORK), None)
    name, _ = name_and_version(None if stated is None else str(stated))
    devices = whole(fact(report, _DEVICES, "computing"))
    shown = {_FRAMEWORK: name or "", _DEVICES: str(devices or "")}
    return {key: value for key, value in shown.items() if value} | tags(report)


def _agreed(of_runs: Sequence[Mapping[str, str]]) -> dict[str, str]:
    first, *others = of_runs or [{}]
    return {key: value for key, value in first.items() if all(other.get(key) == value for other in others)}


def whole(value: Value) -> int:
    """A number of a report as a whole number; 0 where the value is none."""
    return int(value) if isinstance(value, int | float) else 0


def apportioned(parts: Sequence[Fraction], total: int) -> list[int]:
    """Whole numbers that add up to ``total``, each less than one away from its part: largest remainders are rounded up.

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
