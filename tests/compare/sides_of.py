"""Sides of comparisons made of step times, without any trace."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from traceviz.compare.sides.sides import Side
from traceviz.core.resampling import Times
from traceviz.report import Column, Grid, Report, Section, Verdict
from traceviz.report.verdicts import VerdictCode


def report(durations: Sequence[int], **classes: Sequence[int]) -> Report:
    """Return a report of steady steps whose classes are given; without any, all is host compute."""
    parts = classes or {"host_compute": durations}
    columns = (
        Column("step", "Step", "id"),
        Column("process", "Process", "id"),
        Column("dur_ns", "Duration", "ns"),
        *(Column(key, key, "ns") for key in parts),
    )
    rows = tuple((index, 0, *values) for index, values in enumerate(zip(durations, *parts.values(), strict=True)))
    section = Section("breakdown", "Step time breakdown", (Grid(columns, rows, "By step", audience="machine"),))
    return Report((), Verdict(VerdictCode.NOT_INPUT_BOUND, "Not input-bound."), (section,))


def side(label: str, *runs: Sequence[int]) -> Side:
    """Return a side of runs with these steps."""
    return Side(label, tuple(report([int(value) for value in run]) for run in runs))


def turns(generator: np.random.Generator, count: int, medians: Sequence[float], spread: float) -> Times:
    """Return log-normal steps that take turns: their medians return, from any of them on."""
    first = int(generator.integers(len(medians)))
    median = np.resize(np.roll(np.array(medians), first), count)
    return np.rint(median * np.exp(spread * generator.standard_normal(count))).astype(np.int64)


def steps(generator: np.random.Generator, count: int, median_ns: float, spread: float, alike: float = 0.0) -> Times:
    """Return log-normal steps; ``alike`` is the correlation of neighbours."""
    noise = generator.standard_normal(count)
    for index in range(1, count):
        noise[index] = alike * noise[index - 1] + np.sqrt(1 - alike**2) * noise[index]
    return np.rint(median_ns * np.exp(spread * noise)).astype(np.int64)
