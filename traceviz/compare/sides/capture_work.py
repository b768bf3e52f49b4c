"""Work of whole captures by name, for sides without steps: compiled programs, kernels, operators, ranges."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from traceviz.compare.kernel_pairs import Events, PerStep
from traceviz.compare.sides.measures import Measure
from traceviz.compare.sides.sides import Side, grid, rows, whole
from traceviz.core.resampling import Z_975
from traceviz.core.units import Value
from traceviz.report import BY_SHAPE, Report


@dataclass(frozen=True, slots=True)
class WorkKind:
    """A kind of events whose total is the work of a capture.

    Args:
        name: Name of the basis, and slug of the section of a comparison.
        slug: Section of a report.
        title: Its grid.
        time: Column of the time of each name, without that of events inside.
        words: Name of the total for people.
        events: Name of the events for people.
        group: Column of their family; empty for none.
        is_per_run: True if time is compared per run of the largest event: a run of a program is a unit of work.
    """

    name: str
    slug: str
    title: str
    time: str
    words: str
    events: str
    group: str = ""
    is_per_run: bool = False


PROGRAMS = WorkKind(
    "programs",
    "device_programs",
    "By program",
    "total_ns",
    "time of compiled programs per run",
    "compiled programs",
    is_per_run=True,
)
KERNELS = WorkKind("kernels", "kernels", "", "total_ns", "kernel time", "kernels", "family")
OPERATORS = WorkKind("operators", "operators", "", "host_self_ns", "host time of operators", "operators")
OPS = WorkKind("framework_ops", "framework_ops", "By op", "host_self_ns", "host time of ops", "ops")
RANGES = WorkKind("ranges", "ranges", "With running numbers as N", "total_ns", "time of ranges", "ranges")
LANES = WorkKind("lanes", "lanes", "Events, without those inside", "self_ns", "time of events", "events")
WORK = {f"work.{kind.name}": kind for kind in (PROGRAMS, KERNELS, OPERATORS, OPS, LANES)}
"""Kinds by the key of their basis; the best evidence of a device's work first."""

_COMPILATION = re.compile(r"\(\d+\)$")
"""Number of a compilation: ``jit_step(12190760917235803885)``. The same program has another after every change."""


def capture_events(side: Side, kind: WorkKind) -> Events:
    """Return calls and time by name of whole captures, per run of the side; empty if a report lacks them."""
    sums: dict[str, tuple[int, int, str]] = {}
    for report in side.reports:
        table = grid(report, kind.slug, kind.title)
        if table is None:
            return {}  # not recorded in every run
        for row in rows(table):
            name = _name(row, kind)
            calls, total, _ = sums.get(name, (0, 0, ""))
            group = str(row.get(kind.group) or "")
            sums[name] = calls + whole(row["calls"]), total + whole(row.get(kind.time)), group
    runs = len(side.reports)
    return {
        name: PerStep(Fraction(calls, runs), Fraction(total, runs), group)
        for name, (calls, total, group) in sums.items()
    }


def _name(row: Mapping[str, Value], kind: WorkKind) -> str:
    name = str(row["op"] if "op" in row else row["name"])
    return _COMPILATION.sub("", name) if kind.is_per_run else name


_DEVICE_TIME = {
    "ranges": ("With running numbers as N", "device_busy_ns"),
    "operators": ("", "device_self_ns"),
}
"""Sections that divide the time of devices by the place in the program, with their grid and column."""


def device_time(side: Side, slug: str) -> dict[str, Fraction]:
    """Return the time of devices per run of a side, by range or operator of whole captures."""
    title, column = _DEVICE_TIME[slug]
    sums: dict[str, int] = {}
    for row in (row for report in side.reports for row in rows(grid(report, slug, title))):
        sums[str(row["name"])] = sums.get(str(row["name"]), 0) + whole(row.get(column))
    return {name: Fraction(total, len(side.reports)) for name, total in sums.items()}


def work_of(side: Side, key: str) -> Measure | None:
    """Return the total of a kind of work in each run of a side; ``None`` if a run did not record it."""
    kind = WORK[key]
    totals = [_total(report, kind) for report in side.reports]
    known = [total for total in totals if total is not None and total[0] > 0]
    if not known or len(known) < len(totals):
        return None
    within = None
    if len(known) == 1 and known[0][1] is not None:
        value, half = known[0]
        within = max(value - half, value / 2), value + half
    return Measure(key, kind.words, "ns", "lower", tuple(value for value, _ in known), within)


def _total(report: Report, kind: WorkKind) -> tuple[float, float] | tuple[float, None] | None:
    """Return the total and half of its 95 % interval, by the scatter of the events of each name and launch shape."""
    table = rows(grid(report, kind.slug, kind.title))
    if not table:
        return None
    total = sum(whole(row.get(kind.time)) for row in table)
    shaped = rows(grid(report, kind.slug, BY_SHAPE))  # launches of one shape scatter less than all of a name
    is_whole = sum(whole(row["total_ns"]) for row in shaped) == total
    runs = max(table, key=lambda row: whole(row.get(kind.time)))["calls"] if kind.is_per_run else 1
    divisor = max(whole(runs), 1)
    scatters = [(row.get("calls"), row.get("stddev_ns")) for row in (shaped if is_whole else table)]
    if not any(isinstance(stddev, int | float) and stddev > 0 for _, stddev in scatters):
        return total / divisor, None
    variance = sum(whole(calls) * float(stddev) ** 2 for calls, stddev in scatters if isinstance(stddev, int | float))
    return total / divisor, Z_975 * math.sqrt(variance) / divisor
