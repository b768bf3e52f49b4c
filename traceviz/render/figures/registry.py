"""All figures, the one that says most first. Each is a function from a report to a figure, or why there is none."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from traceviz.errors import UsageError
from traceviz.render.figures.values import Figure, NoFigure
from traceviz.report import Report

_FUNCTIONS = {
    "curve": "curve:curve",
    "steps": "steps:steps",
    "utilization": "utilization:utilization",
    "api": "api:api",
}
"""Module and function of each figure, by its name. The first that a report has is drawn where nobody names one."""

FIGURES: tuple[str, ...] = tuple(_FUNCTIONS)
"""Names of all figures."""


def check_figure(name: str) -> None:
    """Refuse a figure that does not exist, without loading those that do.

    Raises:
        UsageError: there is no such figure; the error lists those that exist.
    """
    if name not in _FUNCTIONS:
        raise UsageError.unknown("figure", name, FIGURES)


def figure(report: Report, name: str | None = None) -> Figure:
    """The figure of this ``name``; without one, the first of :data:`FIGURES` that ``report`` has.

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


def figures(report: Report) -> Iterator[tuple[str, Figure]]:
    """Name and value of each figure that ``report`` has, in the order of :data:`FIGURES`."""
    for name in FIGURES:
        made = _made(report, name)
        if not isinstance(made, NoFigure):
            yield name, made


def _made(report: Report, name: str) -> Figure | NoFigure:
    module, _, function = _FUNCTIONS[name].partition(":")
    made: Figure | NoFigure = getattr(import_module(f"traceviz.render.figures.{module}"), function)(report)
    return made
