"""The largest changes by name from the base to the new side: kernels, functions of the CUDA API."""

from __future__ import annotations

from collections.abc import Sequence

from traceviz.core.units import Unit, format_value
from traceviz.render.figures.reading import Row, grid_with, number, rows, text
from traceviz.render.figures.values import Axis, NoFigure, SignedBar, SignedBars
from traceviz.report import Better, Report

MOST = 12
"""Limit of the bars of a figure; a note sums the smaller changes."""
_LEAST = 0.002
"""Share of the largest change below which a change is too small to draw."""


def kernels(report: Report) -> SignedBars | NoFigure:
    """Draw kernel time per step of the base and the new side, by kernel."""
    grid = grid_with(report, "kernels", "name", "status", "difference_ns")
    if grid is None:
        return NoFigure("kernels were not compared")
    return _changes("Kernels that changed most", _pair(report, grid.title), list(rows(grid)), "kernel", _KERNELS)


def api_changes(report: Report) -> SignedBars | NoFigure:
    """Draw time in functions of the CUDA API per step; without steady steps, shares of the API time."""
    grid = grid_with(report, "cuda_api", "name", "share_difference", "difference_ns")
    if grid is None:
        return NoFigure("calls of the CUDA API were not compared")
    table = list(rows(grid))
    title = "CUDA functions that changed most"
    if any(number(row["difference_ns"]) is not None for row in table):
        return _changes(title, _pair(report, "per step, on average"), table, "function", "functions")
    names = ("base_share", "new_share", "share_difference")
    return _changes(title, _pair(report, "whole captures"), table, "function", "functions", names, "ratio")


def _pair(report: Report, of: str) -> str:
    """Name both sides: ``slow → fast: per step, on average``."""
    facts = {fact.key: text(fact.value) for fact in report.run}
    between = f"{facts.get('base', '')} → {facts.get('new', '')}"
    return of if of.startswith(between) else f"{between}: {of}"


_KERNELS = "kernels"
_SAME = "same"
"""Status of names whose time did not change."""
_TIMES = ("base_ns", "new_ns", "difference_ns")


def _changes(  # noqa: PLR0917 (what is drawn, and its words)
    title: str,
    subtitle: str,
    table: Sequence[Row],
    noun: str,
    nouns: str,
    names: tuple[str, str, str] = _TIMES,
    unit: Unit = "ns",
) -> SignedBars | NoFigure:
    base, new, difference = names
    changed = [(row, change) for row in table if row.get("status") != _SAME and (change := number(row[difference]))]
    ordered = sorted(changed, key=lambda pair: -abs(pair[1]))
    drawn = [pair for pair in ordered[:MOST] if abs(pair[1]) >= _LEAST * abs(ordered[0][1])]
    if not drawn:
        return NoFigure(f"no {noun} changed")
    bars = tuple(
        SignedBar(
            text(row["name"]),
            text(row["name"]),
            change,
            f"{format_value(row[base], unit)} → {format_value(row[new], unit)}",
            _remark(text(row.get("status"))),
        )
        for row, change in drawn
    )
    left = ordered[len(drawn) :]
    rest = format_value(round(sum(change for _, change in left)), "ns") if unit == "ns" else ""
    more = f"{len(left):,} more {nouns if len(left) > 1 else noun} changed{f', by {rest} together' if rest else ''}."
    label = "change of time" if unit == "ns" else "change of the share of API time"
    better: Better = "lower" if nouns == _KERNELS else ""  # a longer call may wait for work that got faster
    return SignedBars(title, subtitle, Axis(label, unit), bars, better, (more,) if left else ())


def _remark(status: str) -> str:
    """Return the status of a new, gone or renamed kernel; the bar shows other changes."""
    return status if status in {"new", "gone", "renamed"} else ""
