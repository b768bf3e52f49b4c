"""All figures, the one that says most first. Each is a function from a report to a figure, or why there is none."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from traceviz.errors import UsageError
from traceviz.render.figures.values import Figure, NoFigure
from traceviz.report import COMPARISON, POPULATION, SCHEMA, TREND, Report

_FUNCTIONS = {
    SCHEMA: {
        "steps": "steps:steps",
        "utilization": "utilization:utilization",
        "api": "api:api",
    },
    COMPARISON: {
        "curve": "over_tags:curve",
        "scaling": "over_tags:scaling",
        "sides": "sides:sides",
        "classes": "sides:classes",
        "parts": "sides:parts",
        "kernels": "changes:kernels",
        "api": "side_api:api",
        "api_changes": "changes:api_changes",
        "resources": "resources:resources",
    },
    POPULATION: {
        "frameworks": "frameworks:frameworks",
        "verdicts": "population:verdicts",
        "at_stake": "population:at_stake",
        "outliers": "population:outliers",
    },
    TREND: {"trend": "trend:trend"},
}
"""Module and function of each figure, by the schema of a report and its name.

The first that a report has is drawn where nobody names one.
"""

FIGURES: tuple[str, ...] = tuple(dict.fromkeys(name for functions in _FUNCTIONS.values() for name in functions))
"""Names of all figures."""


def names(*schemas: str) -> tuple[str, ...]:
    """Names of the figures that reports of these schemas may have, in their order."""
    return tuple(dict.fromkeys(name for schema in schemas for name in _FUNCTIONS[schema]))


def check_figure(name: str, *schemas: str) -> None:
    """Refuse a figure that does not exist, or that no report of these schemas has, without loading those that do.

    Raises:
        UsageError: there is no such figure; the error lists those that there are.
    """
    known = names(*schemas) if schemas else FIGURES
    if name not in FIGURES:
        raise UsageError.unknown("figure", name, known)
    if name not in known:
        raise UsageError(f"Figures {name!r} are of {_owners(name)}.", fix=f"Known here: {', '.join(known)}.")


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


def figure_or_none(report: Report, name: str) -> Figure | None:
    """The figure of this name; ``None`` where the report has none."""
    made = _made(report, name)
    return None if isinstance(made, NoFigure) else made


def figures(report: Report) -> Iterator[tuple[str, Figure]]:
    """Name and value of each figure that ``report`` has, in their order."""
    for name in _FUNCTIONS.get(report.schema, ()):
        made = _made(report, name)
        if not isinstance(made, NoFigure):
            yield name, made


def _made(report: Report, name: str) -> Figure | NoFigure:
    place = _FUNCTIONS.get(report.schema, {}).get(name)
    if place is None:
        return NoFigure(f"figures of this name are of {_owners(name)}")
    module, _, function = place.partition(":")
    made: Figure | NoFigure = getattr(import_module(f"traceviz.render.figures.{module}"), function)(report)
    return made


_OWNERS = {SCHEMA: "single traces", COMPARISON: "comparisons", POPULATION: "archives", TREND: "trends"}


def _owners(name: str) -> str:
    """What reports have a figure of this name: ``single traces and comparisons``."""
    return " and ".join(owner for schema, owner in _OWNERS.items() if name in _FUNCTIONS[schema])
