"""Measures of whole runs for every run of a side: total time, time per epoch, samples per second, energy, ...

Reports state them in section ``measures``, each with its unit and better direction. This module therefore knows no
measure by name, except those that only a run that ended by itself has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast, get_args

from traceviz.compare.sides.sides import Side, fact, grid, rows
from traceviz.core.units import UNITS, Unit, Value
from traceviz.report import MEASURES, Better, Report

FINISHED = "finished"
"""Outcome of a run that ended by itself."""
_OF_THE_WHOLE = frozenset(
    {
        *("total_ns", "training_ns", "epochs", "steps"),
        *("energy_j", "host_memory_peak_bytes", "device_memory_peak_bytes"),
    }
)
"""Measures that are meaningless for a stopped run: it would have taken longer, and perhaps used more."""

BUSY = "busy-machine"
"""Code of the note that other programs kept the program waiting for cores."""

_LEAST, _MOST = 1e-30, 1e30
"""Limits of valid figures. Ratios beyond them, as in damaged saved reports, overflow."""
Ends = tuple[float, float]
"""Lower and upper end of an interval."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure of the runs of a side.

    Args:
        key: Its stable name.
        label: Display name.
        unit: Base unit.
        better: Direction of a gain; empty if there is none.
        values: Its value in every run that has it; at least one.
        within: 95 % interval within the run, if the side has a single run that states one.
        about: Short description of the value.
    """

    key: str
    label: str
    unit: Unit
    better: Better
    values: tuple[float, ...]
    within: Ends | None = None
    about: str = ""


def measures_of(side: Side) -> dict[str, Measure]:
    """Return the measures by key, in the order of the reports."""
    found: dict[str, list[Mapping[str, Value]]] = {}
    for report in side.reports:
        for row in _read_stated(report):
            found.setdefault(str(row["key"]), []).append(row)
    return {key: _measure(key, stated) for key, stated in found.items()}


def _read_stated(report: Report) -> Iterator[Mapping[str, Value]]:
    """Yield the rows of the measures of one run, except those that a stop makes meaningless."""
    left_out = set(_OF_THE_WHOLE) if stopped(report) else set()
    for row in rows(grid(report, MEASURES, MEASURES)):
        if _is_number(row.get("value")) and row.get("key") not in left_out:
            left_out.add(str(row["key"]))  # a run has one value, even if a saved report has more
            yield row


def _measure(key: str, stated: list[Mapping[str, Value]]) -> Measure:
    first = stated[0]
    unit, better = str(first.get("unit")), str(first.get("better") or "")
    ends = (first.get("low"), first.get("high")) if len(stated) == 1 else (None, None)
    return Measure(
        key,
        str(first.get("label") or key),
        cast("Unit", unit) if unit in UNITS else "number",
        cast("Better", better) if better in get_args(Better) else "",
        tuple(float(cast("float", row["value"])) for row in stated),
        (float(cast("float", ends[0])), float(cast("float", ends[1]))) if all(map(_is_number, ends)) else None,
        str(first.get("about") or ""),
    )


def _is_number(value: Value) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and (value == 0 or _LEAST <= abs(cast("float", value)) <= _MOST)


def stopped(report: Report) -> str:
    """Return how a stopped run ended, ``failed: out of memory``; empty if it ended by itself, or that is unknown."""
    outcome = fact(report, MEASURES, "outcome")
    if outcome in {None, FINISHED}:
        return ""
    reason = fact(report, MEASURES, "reason")
    return f"{outcome}: {reason}" if reason else str(outcome)


def endings(side: Side) -> tuple[str, ...]:
    """Return the distinct ways in which runs of a side were stopped."""
    return tuple(dict.fromkeys(filter(None, map(stopped, side.reports))))


def was_busy(side: Side) -> bool:
    """Return whether other programs used the machine during a run of a side, so that its times may be chance."""
    return busy_runs(side) > 0


def busy_runs(side: Side) -> int:
    """Return the number of runs of a side during which other programs used the machine."""
    return sum(any(note.code == BUSY for note in report.notes) for report in side.reports)
