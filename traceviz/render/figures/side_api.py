"""Shares of CUDA API time by function, a bar for each side."""

from __future__ import annotations

from collections.abc import Iterable

from traceviz.core.units import counted
from traceviz.render.figures.reading import about, grid_with, number, rows, text
from traceviz.render.figures.values import Axis, NoFigure, Part, StackedBars, StackedRow
from traceviz.report import Report

NOTABLE = 0.01
"""Functions with at least this share in any bar get a part of their own."""
MOST = 11
"""Limit of parts of their own; more colours could not be distinguished."""
OTHER = "other"
"""Key of the part of all other functions."""

Shares = dict[str, dict[str, float]]
"""Shares by function, by the name of the bar."""


def api(report: Report) -> StackedBars | NoFigure:
    """Draw shares of the API time of the whole captures, for each side that recorded it."""
    shares = _of_sides(report)
    if len(shares) < 2:
        return NoFigure("calls of the CUDA API were not recorded on two sides")
    return stacked_shares("CUDA API time by function", f"{about(report)}: whole captures", shares, "side")


def _of_sides(report: Report) -> Shares:
    every = grid_with(report, "cuda_api", "side", "name", "share_of_api")
    if every is not None:
        return shares_by(every_row for every_row in _triples(rows(every)))
    grid = grid_with(report, "cuda_api", "name", "base_share", "new_share", "share_difference")
    if grid is None:
        return {}
    names = {fact.key: text(fact.value) for fact in report.run}
    table = list(rows(grid))
    return shares_by(
        (names.get(side, side), text(row["name"]), number(row[f"{side}_share"]) or 0.0)
        for side in ("base", "new")
        for row in table
    )


def _triples(table: Iterable[object]) -> Iterable[tuple[str, str, float]]:
    for row in table:
        assert isinstance(row, dict)
        yield text(row["side"]), text(row["name"]), number(row["share_of_api"]) or 0.0


def shares_by(triples: Iterable[tuple[str, str, float]]) -> Shares:
    """Collect shares by bar and function, in their order."""
    found: Shares = {}
    for bar, name, share in triples:
        of_bar = found.setdefault(bar, {})
        of_bar[name] = of_bar.get(name, 0.0) + max(share, 0.0)
    return found


def stacked_shares(title: str, subtitle: str, shares: Shares, rows_label: str) -> StackedBars:
    """Draw bars of all shares: functions with 1 % in any bar, the largest first, and the sum of the others."""
    most = {
        name: max(of_bar.get(name, 0.0) for of_bar in shares.values()) for of_bar in shares.values() for name in of_bar
    }
    notable = sorted((name for name in most if most[name] >= NOTABLE), key=lambda name: (-most[name], name))[:MOST]
    hidden = len(most) - len(notable)
    bars = tuple(StackedRow(bar, tuple(_parts(of_bar, notable))) for bar, of_bar in shares.items())
    notes = (f"{counted(hidden, 'other function')}, none with much time in any bar.",) if hidden else ()
    return StackedBars(
        title, subtitle, Axis("share of CUDA API time", "ratio", 0.0, 1.0), bars, rows_label, notes=notes
    )


def _parts(shares: dict[str, float], notable: list[str]) -> Iterable[Part]:
    yield from (Part(name, name, shares.get(name, 0.0), shares.get(name, 0.0)) for name in notable)
    rest = sum(share for name, share in shares.items() if name not in notable)
    if rest > 0:
        yield Part(OTHER, "other functions", rest, rest)
