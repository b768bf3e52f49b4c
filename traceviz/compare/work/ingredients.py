"""Composition of a side's steps, from the operators, ops or kernels of its reports: how much of each, and how often.

Operators are the best evidence. Kernels replace them if none were recorded, or if graphs launch the work.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from traceviz.compare.sides.sides import Side, fact, grid, rows
from traceviz.compare.work.kinds import Kind, bare_name, counts_once, is_around, is_gradient, kind_of
from traceviz.core.units import Value
from traceviz.report import EVERY_STEP, Report

Source = Literal["operators", "ops", "kernels"]
"""PyTorch's operators, ops of TensorFlow and JAX, kernels of a device."""

ATTRIBUTED = 0.5
"""Below this share of the device's work, operators do not show what a step computes."""
_FAMILIES = {
    "convolution": Kind.CONVOLUTION,
    "gemm": Kind.PRODUCT,
    "attention": Kind.ATTENTION,
    "recurrent": Kind.RECURRENT,
    "rnn": Kind.RECURRENT,
}
"""Kinds of the families of kernels."""
_ANYTHING: Mapping[Source, re.Pattern[str]] = {
    "operators": re.compile(r"^(?!aten::|autograd::|Optimizer\.|torch::autograd)"),
    "ops": re.compile(r"(?i)^(?:PjitFunction|_?Xla\w*|.*fusion|custom-call|\w*PartitionedCall|while|call|body)$"),
    "kernels": re.compile(r"^(?:unknown|fusion)$"),
}
"""Operators, types of ops and families of kernels that may do anything."""


@dataclass(frozen=True, slots=True)
class Ingredients:
    """Composition of a step of a side.

    Args:
        source: The evidence.
        calls: Forward calls per step by kind; kinds without calls are missing.
        shares: Share of the time of operators or kernels by kind, gradients included.
        gradients: Share of that time in operators that compute gradients.
        unknown: Share of it in operators or kernels that may be of any kind.
        names: Share of it by name without its library, and calls per step.
    """

    source: Source
    calls: Mapping[Kind, float]
    shares: Mapping[Kind, float]
    gradients: float
    unknown: float
    names: Mapping[str, tuple[float, float]] = field(repr=False)

    def share(self, kind: Kind) -> float:
        """Return the share of the time of operators or kernels in a kind."""
        return self.shares.get(kind, 0.0)

    @property
    def matrix(self) -> float:
        """Share of the time in all kinds together."""
        return sum(self.shares.values())


@dataclass(frozen=True, slots=True)
class _Work:
    """Work of one name in a step: calls, and time in any unit."""

    name: str
    calls: float
    time: float
    kind: Kind | None


def ingredients(side: Side) -> Mapping[Source, Ingredients]:
    """Return the known composition of a side's steps, by source; empty if no source shows it."""
    known: dict[Source, Ingredients] = {}
    readers: tuple[tuple[Source, Callable[[Side], list[_Work]]], ...] = (
        ("operators", _operators),
        ("ops", _ops),
        ("kernels", _kernels),
    )
    for source, read in readers:
        work = read(side)
        total = sum(one.time for one in work)
        if total > 0:
            known[source] = _sum_up(source, work, total)
    return known


def _sum_up(source: Source, work: list[_Work], total: float) -> Ingredients:
    shares: dict[Kind, float] = {}
    names: dict[str, tuple[float, float]] = {}
    for one in work:
        if one.kind is not None:
            shares[one.kind] = shares.get(one.kind, 0.0) + one.time / total
        name = one.name if source == "kernels" else bare_name(one.name)
        share, calls = names.get(name, (0.0, 0.0))
        names[name] = share + one.time / total, calls + one.calls
    gradients = sum(one.time for one in work if is_gradient(one.name)) / total
    anything = _ANYTHING[source]
    unknown = sum(one.time for one in work if one.kind is None and anything.search(one.name)) / total
    return Ingredients(source, _count_calls(work, source), shares, gradients, unknown, names)


def _count_calls(work: Iterable[_Work], source: Source) -> dict[Kind, float]:
    """Count forward calls per step by kind.

    Nested operators count once. Operators that only call others of their kind do not count.
    """
    counted: dict[Kind, float] = {}
    for one in work:
        if one.kind is None or (source != "kernels" and (is_gradient(one.name) or is_around(one.name))):
            continue
        before = counted.get(one.kind, 0.0)
        nested = source == "operators" and not counts_once(one.name)
        counted[one.kind] = max(before, one.calls) if nested else before + one.calls
    return counted


def _operators(side: Side) -> list[_Work]:
    """Return PyTorch's operators in steady steps; none if most device work is not attributed to operators."""
    if any(_number(fact(report, "operators", "graph_unknown_share")) > 0 for report in side.reports):
        return []
    attributed = side.facts("operators", "attributed_share")
    if any(_number(share) < ATTRIBUTED for share in attributed):
        return []
    on_device = _any_value(side, "operators", "device_self_per_step_ns")
    time = "device_self_per_step_ns" if on_device else "host_self_per_step_ns"
    work = []
    for report, weight in _weigh_reports(side):
        for row in rows(next(report.grids("operators"), None)):
            if row.get("calls_per_step") is not None:
                name = str(row["name"])
                amounts = _number(row["calls_per_step"]) * weight, _number(row.get(time)) * weight
                work.append(_Work(name, *amounts, kind_of(name)))
    return _merge_names(work)


def _ops(side: Side) -> list[_Work]:
    """Return ops of TensorFlow and JAX by type, over the whole captures; calls are roughly those of a mean step."""
    on_device = _any_value(side, "framework_ops", "device_ns")
    time = "device_ns" if on_device else "host_self_ns"
    work = []
    for report, weight in _weigh_reports(side):
        steps = max(len(rows(grid(report, "steps", EVERY_STEP))), 1)
        for row in rows(grid(report, "framework_ops", "By type")):
            name = str(row["type"])
            amounts = _number(row["calls"]) * weight / steps, _number(row.get(time)) * weight / steps
            work.append(_Work(name, *amounts, kind_of(name)))
    return _merge_names(work)


def _kernels(side: Side) -> list[_Work]:
    """Return families of kernels in steady steps, without those that move data between devices."""
    per = side.per
    return [
        _Work(event.group, float(event.calls * per), float(event.ns * per), _FAMILIES.get(event.group))
        for event in side.kernels.values()
        if event.group != "communication"
    ]


def _weigh_reports(side: Side) -> Iterator[tuple[Report, float]]:
    """Yield reports with steady steps, and their share of all steps."""
    total = side.rank_steps
    for report, steps in zip(side.reports, side.rank_steps_by_run, strict=True):
        if steps:
            yield report, steps / total


def _merge_names(work: Iterable[_Work]) -> list[_Work]:
    """Merge work of the same name in several runs."""
    by_name: dict[str, _Work] = {}
    for one in work:
        before = by_name.get(one.name)
        known = (before.calls, before.time) if before else (0.0, 0.0)
        by_name[one.name] = _Work(one.name, known[0] + one.calls, known[1] + one.time, one.kind)
    return list(by_name.values())


def _any_value(side: Side, slug: str, column: str) -> bool:
    """Return whether any row of the first grid of a section has a number above zero in a column."""
    tables = (next(report.grids(slug), None) for report in side.reports)
    return any(_number(row.get(column)) > 0 for table in tables for row in rows(table))


def _number(value: Value) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


_WHOLE = 0.03
"""Largest relative distance of a factor from a whole number."""
_MOST = 0.8
"""Share of the time with the same factor from which the factor holds for all."""


def as_often(one: Ingredients, other: Ingredients) -> float | None:
    """Return the factor by which the other side calls everything more often, if it is a whole number of at least two.

    Accumulated gradients over several batches per step have this effect. Below one, the other side calls less often.
    """
    common = one.names.keys() & other.names.keys()
    factors = sorted((other.names[name][1] / one.names[name][1], name) for name in common if one.names[name][1])
    times = {name: one.names[name][0] for _, name in factors}
    middle = _find_middle(factors, times)
    if not middle:
        return None
    whole = round(max(middle, 1 / middle))
    if whole < 2 or abs(max(middle, 1 / middle) / whole - 1) > _WHOLE:
        return None
    agree = sum(times[name] for factor, name in factors if abs(factor / middle - 1) <= _WHOLE)
    return middle if agree >= _MOST else None


def _find_middle(factors: Iterable[tuple[float, str]], times: dict[str, float]) -> float:
    """Return the factor at the middle of the time; zero if there is none."""
    left = sum(times.values()) / 2
    for factor, name in factors:
        left -= times[name]
        if left <= 0:
            return factor
    return 0.0
