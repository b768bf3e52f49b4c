"""A side of a comparison: per-step figures of its reports, in arrays comparable with those of the other side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from traceviz.compare.effect import typical
from traceviz.compare.kernel_pairs import Events, PerStep
from traceviz.core.resampling import Times, period
from traceviz.core.units import Value
from traceviz.report import BY_STEP, EVERY_STEP, IN_STEPS, TAG, Grid, Report
from traceviz.trace.names.framework_signs import name_and_version


@dataclass(frozen=True)
class Side:
    """One or several runs of the same program.

    Args:
        label: Display name.
        reports: A report of each run.
        per: Units of work per step (samples of a batch, ...); durations are per unit.
        why_base: Why it is the base by default: ``the first given``; empty if the user named the base.
    """

    label: str
    reports: tuple[Report, ...] = field(repr=False)
    per: Fraction = Fraction(1)
    why_base: str = ""

    @cached_property
    def runs(self) -> tuple[Times, ...]:
        """Durations of the steady steps of every run that has any, in order, ns.

        If a step does several units of work, these are durations per unit, which need not be whole. If a job has
        several ranks, each of its steps counts once, as the mean of the ranks: see
        :func:`traceviz.compare.sides.sides.of_the_job`.
        """
        return tuple(self.per_unit(of_the_job(run[DURATION], run.job)) for run in self._with_steps)

    def per_unit(self, times: Times) -> Times:
        """Convert durations of steps to durations per unit of work."""
        return times if self.per == 1 else times.astype(np.float64) / float(self.per)

    @cached_property
    def steps(self) -> int:
        """Number of steady steps of all runs; a step of several ranks is one."""
        return sum(times.size for times in self.runs)

    @cached_property
    def mean_ns(self) -> float | None:
        """Mean step; over several runs, their geometric mean; ``None`` without steps."""
        return typical(np.array([run.mean() for run in self.runs])) if self.runs else None

    @cached_property
    def period(self) -> int | None:
        """Steps after which durations repeat, the largest over the runs; 1 without repetition."""
        return max(map(period, self.runs), default=None)

    @cached_property
    def median_ns(self) -> float | None:
        """Median step; several runs are combined as in :attr:`mean_ns`."""
        return typical(np.array([np.median(run) for run in self.runs])) if self.runs else None

    @cached_property
    def rank_steps(self) -> int:
        """Number of steady steps, each counted once per rank: the divisor of sums over all ranks."""
        return sum(self.rank_steps_by_run)

    @cached_property
    def rank_steps_by_run(self) -> tuple[int, ...]:
        """The same for each of :attr:`reports`; 0 for runs without steady steps."""
        return tuple(run.job.size for run in self._every_run)

    @cached_property
    def ranks(self) -> int:
        """Ranks with steady steps, the most of any run."""
        return max((np.unique(run["process"]).size for run in self._with_steps), default=0)

    @cached_property
    def stepless(self) -> int:
        """Number of runs without steady steps, which no figure per step covers."""
        return self.rank_steps_by_run.count(0)

    @cached_property
    def classes(self) -> Mapping[str, Times]:
        """Nanoseconds of each exclusive class in every steady step of every rank; they add up to its duration.

        It is empty if a report does not list the steps one by one.
        """
        runs = self._with_steps
        if not runs or any(grid(report, "breakdown", BY_STEP) is None for report in self._reports_with_steps):
            return {}
        keys = dict.fromkeys(key for run in runs for key in run.columns if key not in _OF_STEP)
        return {key: np.concatenate([run[key] for run in runs]) for key in keys}

    @cached_property
    def measured(self) -> frozenset[str]:
        """Classes that every run measured; in other runs their time counts as another class."""
        columns = [frozenset(run.columns) for run in self._with_steps] if self.classes else []
        return frozenset.intersection(*columns) - _OF_STEP if columns else frozenset()

    def tables(self, keys: Sequence[str]) -> tuple[Times, ...]:
        """Return the steps of every run as in :attr:`runs`, by columns: their sum, and the classes ``keys``."""
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
        """Kernels in steady steps by name, with their family; none if they were not recorded."""
        return self.events("kernels", group="family")

    def events(self, slug: str, key: str = "name", group: str = "") -> Events:
        """Return events in steady steps over all runs, per step or per unit of its work.

        Args:
            slug: Section: ``kernels``, ``cuda_api`` or ``copies``.
            key: Column that identifies them.
            group: Further column to keep.

        Returns:
            Events by that column; empty if a report of the side lacks the section, as they were not recorded.
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
        """Return a sum over all steady steps per step of a rank, or per unit of work; exact."""
        return Fraction(total, max(self.rank_steps, 1)) / self.per

    @cached_property
    def class_labels(self) -> Mapping[str, str]:
        """Display names of the classes, by key."""
        tables = (grid(report, "breakdown", BY_STEP) for report in self.reports)
        columns = (column for by_step in tables if by_step is not None for column in by_step.columns)
        return {column.name: column.label for column in columns if column.name not in _OF_STEP}

    @cached_property
    def tags(self) -> Mapping[str, str]:
        """Tags from ``traceviz collect --tag`` on which all runs agree."""
        return _common_values([tags(report) for report in self.reports])

    @property
    def groups(self) -> Mapping[str, str]:
        """Values to group by on which all runs agree: :attr:`tags`, the framework, the number of computing devices."""
        return _common_values([grouping(report) for report in self.reports])

    def facts(self, slug: str, key: str) -> tuple[Value, ...]:
        """Return a fact of every run that has it."""
        return tuple(value for report in self.reports if (value := fact(report, slug, key)) is not None)

    @property
    def recorders(self) -> frozenset[str]:
        """Names of the collectors that recorded run folders, from ``nsys 2026.2.1, resources``."""
        parts = (part.split() for names in self.facts("run", "recorded_by") for part in str(names).split(","))
        return frozenset(words[0] for words in parts if words)

    def mean(self, slug: str, key: str) -> float | None:
        """Return the mean of a numeric fact over the runs that have it."""
        numbers = [value for value in self.facts(slug, key) if isinstance(value, int | float)]
        return float(np.mean(numbers)) if numbers else None

    def run_fact(self, key: str) -> tuple[str, ...]:
        """Return the distinct values of a fact about the runs (format, framework, devices, ...)."""
        values = (fact.value for report in self.reports for fact in report.run if fact.key == key)
        return tuple(dict.fromkeys(str(value) for value in values if value is not None))


DURATION = "dur_ns"
_FRAMEWORK = "framework"
"""Fact about a run that groups like a tag of this name."""
_DEVICES = "devices"
"""Section whose count of computing devices groups like a tag."""
_OF_STEP = frozenset({"step", "process", DURATION})


@dataclass(frozen=True, slots=True)
class _RunSteps:
    """Columns of the steady steps of a run, a row per step and rank; ``job`` numbers the job's steps."""

    columns: Mapping[str, npt.NDArray[np.int64]]
    job: npt.NDArray[np.intp]

    def __getitem__(self, key: str) -> npt.NDArray[np.int64]:
        """Return a column; zeros if there is none."""
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
    """Return the durations of the steady steps of all ranks of a report, ns; empty if it has none."""
    return _run_steps(report)[DURATION]


def grid(report: Report, slug: str, title: str) -> Grid | None:
    """Return the grid of a section by its title; ``None`` if there is none."""
    return next((table for table in report.grids(slug) if table.title == title), None)


def rows(table: Grid | None) -> list[dict[str, Value]]:
    """Return rows as mappings by column name; none if there is no table."""
    if table is None:
        return []
    names = [column.name for column in table.columns]
    return [dict(zip(names, row, strict=True)) for row in table.rows]


def column_arrays(table: Grid) -> dict[str, npt.NDArray[np.int64]]:
    """Return columns of whole numbers as arrays."""
    numbers = [[whole(value) for value in row] for row in table.rows]
    array = np.array(numbers, np.int64).reshape(-1, len(table.columns))
    return {column.name: array[:, index] for index, column in enumerate(table.columns)}


def fact(report: Report, slug: str, key: str) -> Value:
    """Return a fact of a report; ``None`` if it was not measured."""
    try:
        return report.fact(slug, key)
    except KeyError:
        return None


def tags(report: Report) -> dict[str, str]:
    """Return the tags of a report's run; none if it is not a report of a run."""
    facts = (fact for fact in report.facts("run") if fact.key.startswith(TAG))
    return {fact.key.removeprefix(TAG): str(fact.value) for fact in facts}


def grouping(report: Report) -> dict[str, str]:
    """Return the values that group the run of a report: its tags, and otherwise facts from its trace.

    These facts are the framework, and the number of devices that computed.
    """
    stated = next((fact.value for fact in report.run if fact.key == _FRAMEWORK), None)
    name, _ = name_and_version(None if stated is None else str(stated))
    devices = whole(fact(report, _DEVICES, "computing"))
    shown = {_FRAMEWORK: name or "", _DEVICES: str(devices or "")}
    return {key: value for key, value in shown.items() if value} | tags(report)


def _common_values(of_runs: Sequence[Mapping[str, str]]) -> dict[str, str]:
    first, *others = of_runs or [{}]
    return {key: value for key, value in first.items() if all(other.get(key) == value for other in others)}


def whole(value: Value) -> int:
    """Convert a number of a report to a whole number; 0 if the value is none."""
    return int(value) if isinstance(value, int | float) else 0


def apportion(parts: Sequence[Fraction], total: int) -> list[int]:
    """Round parts to whole numbers that add up to ``total``, each less than one from its part.

    The largest remainders are rounded up.

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


# Steps of a job; all its ranks do each step together ------------------------------------------------------------------
#
#     rank 0   | step 0 | step 1 | step 2 |          the ranks of a job wait for one another:
#     rank 1     | step 0 | step 1 | step 2 |        four ranks show one step four times
#
# Counting the steps of each rank would make a job of four ranks look four times as certain as it is. A step of the
# job is the mean of its ranks, so the classes of the ranks add up to it. Those of the slowest rank would not, because
# that is another rank in every step. Ranks in lockstep have the same mean over many steps as the slowest.


Whole = npt.NDArray[np.int64]
Index = npt.NDArray[np.intp]


def job_steps(process: Whole, step: Whole) -> Index:
    """Number the step of the job that each row belongs to, from 0 in order of first occurrence.

    Rows of several processes with the same number are one step. If a number recurs in one process (a second epoch), its
    second occurrences are one step. If processes share hardly any numbers, their n-th steps are one.

    Args:
        process: Process of every row; rows of a process are in order.
        step: Step number of every row.
    """
    if np.unique(process).size < 2:
        return np.arange(process.size)
    by_number = _same(step, _occurrence(process, step))
    most = int(np.unique(process, return_counts=True)[1].max())
    if by_number.max() + 1 - most <= (process.size - most) / 2:
        return by_number
    return _same(_occurrence(process, np.zeros_like(process)), np.zeros_like(process))


def _occurrence(process: Whole, number: Whole) -> Whole:
    """Count the earlier rows of the same process and number, for each row."""
    order = np.lexsort((np.arange(process.size), number, process))
    keys = np.stack([process[order], number[order]])
    begins = np.flatnonzero(np.r_[True, (np.diff(keys, axis=1) != 0).any(axis=0)])
    within = np.arange(process.size) - np.repeat(begins, np.diff(np.r_[begins, process.size]))
    occurrence = np.empty(process.size, np.int64)
    occurrence[order] = within
    return occurrence


def _same(number: Whole, occurrence: Whole) -> Index:
    """Return a number for every pair, in order of first occurrence."""
    keys = np.stack([number, occurrence], axis=1)
    _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    place = np.empty(first.size, np.intp)
    place[np.argsort(first)] = np.arange(first.size)
    return place[inverse.reshape(-1)]


def of_the_job(rows: npt.NDArray[np.int64], job: Index) -> npt.NDArray[np.int64 | np.float64]:
    """Return the mean over the ranks of every step of the job.

    Args:
        rows: A row for every step of every rank: durations, or columns of them.
        job: The step of the job that each row belongs to.

    Returns:
        The rows themselves if each is a step of its own; else their means, which need not be whole.
    """
    counts = np.bincount(job)
    if counts.size == len(rows):
        return rows
    sums = np.zeros((counts.size, *rows.shape[1:]), np.int64)
    np.add.at(sums, job, rows)
    return sums / counts.reshape(-1, *(1,) * (rows.ndim - 1))
