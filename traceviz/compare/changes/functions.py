"""Functions of the program whose time changed most, by samples of the stack of the main thread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from traceviz.compare.sides.sides import Side, fact, rows, whole
from traceviz.core.units import Value

_MOST = 0.8
"""Share of the largest change from which a function that it calls explains it as well, and is more precise."""
_PART = 0.5
"""Share of the change of the whole from which a function is named."""
_MATTERS = 0.05
"""Share of the base's time from which the change of a function is named: sampled shares scatter."""
_SCRIPT = "the script "
"""Start of the name of the code of a module."""


@dataclass(frozen=True, slots=True)
class FunctionChange:
    """A function with most of the change, or a line of code outside of functions.

    Args:
        name: The function of the program, or the line.
        called: A function of a library within it that has most of the change too; empty if there is none.
        base_ns: Time in it and what it calls; per step if both sides have steps.
        new_ns: The same for the new side.
        share: Share of the change of the whole.
        per_step: True if times are per step.
    """

    name: str
    called: str
    base_ns: float
    new_ns: float
    share: float
    per_step: bool


def compare_functions(base: Side, new: Side) -> FunctionChange | None:
    """Return the function with most of the difference of the main threads; ``None`` if none explains half of it."""
    per_step = bool(base.steps and new.steps)
    before, after = (_times(side, per_step=per_step) for side in (base, new))
    if not before or not after:
        return None
    totals = [max(times.values()) for times in (before, after)]
    difference = totals[1] - totals[0]
    if abs(difference) < _MATTERS * totals[0]:
        return None
    own = _own(base) | _own(new)
    shares = {name: (after.get(name, 0.0) - before.get(name, 0.0)) / difference for name in before | after}
    named = {name: share for name, share in shares.items() if name in own and not name.startswith(_SCRIPT)}
    name = _most_precise(named, before, after)
    if name is None:
        return None
    size = max(before.get(name, 0.0), after.get(name, 0.0))
    inside = {
        other: share
        for other, share in shares.items()
        if other not in own and max(before.get(other, 0.0), after.get(other, 0.0)) <= size
    }
    called = _most_precise(inside, before, after, least=_MOST * named[name])
    return FunctionChange(name, called or "", before.get(name, 0.0), after.get(name, 0.0), named[name], per_step)


def _most_precise(
    shares: Mapping[str, float], before: Mapping[str, float], after: Mapping[str, float], least: float = _PART
) -> str | None:
    """Return the function with the least time among those with nearly all of the largest change."""
    largest = max(shares.values(), default=0.0)
    if largest < least:
        return None
    candidates = [name for name, share in shares.items() if share >= _MOST * largest]
    return min(candidates, key=lambda name: (max(before.get(name, 0.0), after.get(name, 0.0)), name))


def _rows(side: Side) -> list[list[dict[str, Value]]]:
    """Return the rows of the functions of each run; none for a run that did not sample stacks."""
    tables = []
    for report in side.reports:
        found = [rows(grid) for grid in report.grids("host_time")]
        tables.append(next((table for table in found if table and "inclusive_ns" in table[0]), []))
    return tables


def _times(side: Side, *, per_step: bool) -> dict[str, float]:
    """Return the time of each function with what it calls, per step or per run; empty if a run has none."""
    tables = _rows(side)
    sums: dict[str, float] = {}
    for report, table in zip(side.reports, tables, strict=True):
        steps_ns = whole(fact(report, "host_time", "steps_ns"))
        if not table or (per_step and not steps_ns):
            return {}
        scale = (side.mean_ns or 0.0) / steps_ns if per_step else 1.0
        for row in table:
            name, time = str(row["function"]), row["inclusive_ns"]
            if isinstance(time, int | float):
                sums[name] = sums.get(name, 0.0) + time * scale / len(tables)
    return sums


def _own(side: Side) -> set[str]:
    """Return the functions of the program; all of them, if a report does not say whose they are."""
    return {str(row["function"]) for table in _rows(side) for row in table if row.get("own") in {True, None}}
