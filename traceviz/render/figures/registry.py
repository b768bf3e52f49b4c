"""Figures of reports, loaded when they are made: see :mod:`traceviz.render.figures.declared` for which there are."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from traceviz.core.errors import UsageError
from traceviz.render.figures.declared import FUNCTIONS, check_figure, owners
from traceviz.render.figures.values import Figure, NoFigure
from traceviz.report import Report


def figure(report: Report, name: str | None = None) -> Figure:
    """The figure of this ``name``; without one, the first of all that ``report`` has.

    Raises:
        UsageError: there is no such figure, or this report has none; the error lists those that it has.
    """
    if name is None:
        drawn = next(figures(report), None)
        if drawn is None:
            raise UsageError("This report has no figure.", fix="Other formats have what it says: --format markdown.")
        return drawn[1]
    check_figure(name)
    made = _made(report, name)
    if isinstance(made, NoFigure):
        known = ", ".join(known for known, _ in figures(report))
        raise UsageError(
            f"This report has no figure {name!r}: {made.reason}.",
            fix=f"It has: {known}." if known else "It has no other figure either.",
        )
    return made


def figure_or_none(report: Report, name: str) -> Figure | None:
    """The figure of this name; ``None`` where the report has none."""
    made = _made(report, name)
    return None if isinstance(made, NoFigure) else made


def figures(report: Report) -> Iterator[tuple[str, Figure]]:
    """Name and value of each figure that ``report`` has, in their order."""
    for name in FUNCTIONS.get(report.schema, ()):
        made = _made(report, name)
        if not isinstance(made, NoFigure):
            yield name, made


def _made(report: Report, name: str) -> Figure | NoFigure:
    place = FUNCTIONS.get(report.schema, {}).get(name)
    if place is None:
        return NoFigure(f"figures of this name are of {owners(name)}")
    module, _, function = place.partition(":")
    made: Figure | NoFigure = getattr(import_module(f"traceviz.render.figures.{module}"), function)(report)
    return made
