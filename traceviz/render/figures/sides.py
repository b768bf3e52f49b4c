"""Sides of a comparison: the time of each with its interval, and the parts of the times."""

from __future__ import annotations

from collections.abc import Sequence

from traceviz.core.units import Value, format_value
from traceviz.render.figures.reading import Row, about, column, grid_with, number, rows, text, titled
from traceviz.render.figures.values import Axis, Interval, Intervals, NoFigure, Part, StackedBars, StackedRow
from traceviz.report import CLASSES_OF_SIDES, PARTS_OF_SIDES, Report

_EFFECT = "effect"
_BASE = "base"


def sides(report: Report) -> Intervals | NoFigure:
    """Draw the time of each side with its 95 % interval, followed by its speed-up."""
    grid = grid_with(report, _EFFECT, "side", "mean_ns", "low_ns", "high_ns")
    if grid is None or not any(number(row["mean_ns"]) is not None for row in rows(grid)):
        return NoFigure("no side has a time")
    table = list(rows(grid))
    base = next((row for row in table if row["verdict"] == _BASE), table[0])
    several = any((number(row["runs"]) or 0) > 1 for row in table)
    has_ends = any(number(row["low_ns"]) is not None for row in table)
    of = "between runs where a side has several" if several else "of the steps of one run"
    label = column(grid, "mean_ns").label
    return Intervals(
        f"{label} of each side",
        about(report),
        Axis(label.lower(), "ns"),
        tuple(
            Interval(
                text(row["side"]),
                text(row["side"]),
                number(row["mean_ns"]),
                number(row["low_ns"]),
                number(row["high_ns"]),
                detail=_detail(row["speedup_low"], row["speedup_high"]),
                beside=_beside(row["mean_ns"], row["speedup"], text(row["verdict"])),
            )
            for row in table
        ),
        interval=f"95 % interval, {of}" if has_ends else "",
        reference=number(base["mean_ns"]),
        reference_label=text(base["side"]),
    )


def _beside(time: Value, speedup: Value, verdict: str) -> str:
    """Return ``6.27 s · 2.78× faster``; for a side without a time, the reason: ``crashed: out of memory``."""
    factor = None if verdict == _BASE else number(speedup)
    judged = verdict if factor is None else f"{format_value(factor, 'factor')} {verdict}"
    return judged if number(time) is None else f"{format_value(time, 'ns')} · {judged}"


def _detail(low: Value, high: Value) -> str:
    ends = [number(end) for end in (low, high)]
    if None in ends:
        return ""
    first, last = (format_value(end, "factor") for end in ends)
    return f"speed-up {first} to {last}, 95 % interval"


def classes(report: Report) -> StackedBars | NoFigure:
    """Draw the mean step of each side by its exclusive classes."""
    return _stacked(report, CLASSES_OF_SIDES, "class", "Mean step by class of time", "mean step")


def parts(report: Report) -> StackedBars | NoFigure:
    """Draw the whole run of each side by its exclusive parts."""
    return _stacked(report, PARTS_OF_SIDES, "part", "Whole run by its parts", "time of the run")


def _stacked(report: Report, title: str, key: str, heading: str, axis: str) -> StackedBars | NoFigure:
    grid = titled(report, _EFFECT, title)
    if grid is None:
        return NoFigure("the reports do not list the classes of every step" if key == "class" else "no run has parts")
    table = list(rows(grid))
    drawn = _in_order([row for row in table if (number(row["mean_ns"]) or 0) > 0], key)
    labels = {text(row[key]): text(row["label"]) for row in reversed(table)}
    times = {(text(row["side"]), text(row[key])): number(row["mean_ns"]) for row in table}
    bars = []
    for side in dict.fromkeys(text(row["side"]) for row in table):
        of_side = {one: max(times.get((side, one)) or 0.0, 0.0) for one in drawn}
        whole = sum(of_side.values())
        bars.append(
            StackedRow(
                side,
                tuple(
                    Part(one if key == "class" else f"part {one}", labels[one], time, time / whole if whole else 0.0)
                    for one, time in of_side.items()
                ),
            )
        )
    if not drawn:
        return NoFigure("no side has a time")
    missing = [(side.label, labels[one]) for side in bars for one in drawn if times.get((side.label, one), 0.0) is None]
    notes = tuple(f"{side} does not measure {name}: its time there is in other classes." for side, name in missing[:3])
    return StackedBars(heading, about(report), Axis(axis, "ns"), tuple(bars), rows_label="side", notes=notes)


def _in_order(table: Sequence[Row], key: str) -> list[str]:
    """Order the parts of the bars as in the side with the most of them: parts follow each other in time."""
    of_sides: dict[str, list[str]] = {}
    for row in table:
        of_sides.setdefault(text(row["side"]), []).append(text(row[key]))
    return list(dict.fromkeys(one for names in sorted(of_sides.values(), key=len, reverse=True) for one in names))
