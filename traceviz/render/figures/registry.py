"""All figures: their declarations, and the figures of a report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import cast

from traceviz.core.errors import UsageError
from traceviz.core.registry import (
    Registry,
    find_fault_of_plugin,
    instance_of,
    is_own,
    load_home,
    plugin_error,
    warn_of_plugin,
)
from traceviz.render.figures.values import Figure, NoFigure
from traceviz.report import COMPARISON, POPULATION, SCHEMA, TREND, Report


@dataclass(frozen=True, slots=True)
class FigureEntry:
    """A figure before it is loaded.

    Args:
        name: Its name for ``--figure``.
        homes: Module and function (``module:attribute``) that make it, by the schema of the reports that may have it.
            The function takes a report, and returns a value of :mod:`traceviz.render.figures.values`.
    """

    name: str
    homes: Mapping[str, str]


_HERE = "traceviz.render.figures"
_OWN = (
    FigureEntry("steps", {SCHEMA: f"{_HERE}.of_reports:steps"}),
    FigureEntry("utilization", {SCHEMA: f"{_HERE}.of_reports:utilization"}),
    FigureEntry("curve", {COMPARISON: f"{_HERE}.over_tags:curve"}),
    FigureEntry("scaling", {COMPARISON: f"{_HERE}.over_tags:scaling"}),
    FigureEntry("sides", {COMPARISON: f"{_HERE}.of_comparisons:sides"}),
    FigureEntry("classes", {COMPARISON: f"{_HERE}.of_comparisons:classes"}),
    FigureEntry("parts", {COMPARISON: f"{_HERE}.of_comparisons:parts"}),
    FigureEntry("quality", {SCHEMA: f"{_HERE}.of_reports:quality", COMPARISON: f"{_HERE}.of_reports:quality"}),
    FigureEntry("kernels", {COMPARISON: f"{_HERE}.of_comparisons:kernels"}),
    FigureEntry("api", {SCHEMA: f"{_HERE}.of_reports:api", COMPARISON: f"{_HERE}.of_comparisons:api"}),
    FigureEntry("api_changes", {COMPARISON: f"{_HERE}.of_comparisons:api_changes"}),
    FigureEntry("resources", {COMPARISON: f"{_HERE}.of_comparisons:resources"}),
    FigureEntry("frameworks", {POPULATION: f"{_HERE}.of_archives:frameworks"}),
    FigureEntry("verdicts", {POPULATION: f"{_HERE}.of_archives:verdicts"}),
    FigureEntry("at_stake", {POPULATION: f"{_HERE}.of_archives:at_stake"}),
    FigureEntry("outliers", {POPULATION: f"{_HERE}.of_archives:outliers"}),
    FigureEntry("trend", {TREND: f"{_HERE}.of_archives:trend"}),
)
"""The figures of traceviz. By default, the first one that a report has is drawn."""

FIGURES: Registry[FigureEntry] = Registry(
    "figure", "traceviz.figures", {entry.name: entry for entry in _OWN}, instance_of(FigureEntry), attrgetter("name")
)
"""All figures by name, those of plugins last. Entry points name values of :class:`FigureEntry`."""


def own_names(*schemas: str) -> tuple[str, ...]:
    """Return the names of traceviz's figures that reports of these schemas may have, in the order of the schemas."""
    return tuple(dict.fromkeys(entry.name for schema in schemas for entry in _OWN if schema in entry.homes))


def check_figure(name: str, *schemas: str) -> None:
    """Reject a figure that does not exist, or that no report of these schemas has. No figure is loaded.

    Raises:
        UsageError: there is no such figure; the error lists those that exist.
    """
    entry = FIGURES.find(name)
    if schemas and entry.homes.keys().isdisjoint(schemas):
        known = (other.name for other in FIGURES.all() if not other.homes.keys().isdisjoint(schemas))
        raise UsageError(f"Figures {name!r} are of {owners(name)}.", fix=f"Known here: {', '.join(known)}.")


_OWNERS = {SCHEMA: "single traces", COMPARISON: "comparisons", POPULATION: "archives", TREND: "trends"}


def owners(name: str) -> str:
    """Return the reports that have a figure of this name: ``single traces and comparisons``."""
    homes = FIGURES.find(name).homes if name in FIGURES else {}
    return " and ".join(owner for schema, owner in _OWNERS.items() if schema in homes)


def figure(report: Report, name: str | None = None) -> Figure:
    """Return the figure of this ``name``; without a name, the first figure that ``report`` has.

    Raises:
        UsageError: there is no such figure, or this report does not have it; the error lists the available ones.
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
    """Return the figure of this name; ``None`` if the report does not have it."""
    made = _made(report, name)
    return None if isinstance(made, NoFigure) else made


def figures(report: Report) -> Iterator[tuple[str, Figure]]:
    """Return name and value of each figure that ``report`` has, in their order."""
    for entry in FIGURES.all():
        made = _made(report, entry.name)
        if not isinstance(made, NoFigure):
            yield entry.name, made


def _made(report: Report, name: str) -> Figure | NoFigure:
    home = FIGURES.find(name).homes.get(report.schema) if name in FIGURES else None
    if home is None:
        return NoFigure(f"figures of this name are of {owners(name)}")
    make = cast("Callable[[Report], Figure | NoFigure]", load_home(home))
    if is_own(home):
        return make(report)
    try:
        return make(report)
    except Exception as error:  # noqa: BLE001 (a plugin may raise anything; pages and other figures need nothing of it)
        warn_of_plugin(find_fault_of_plugin(error) or plugin_error(None, f"figure {name!r} in {home}", error))
        return NoFigure(f"its plugin failed: {type(error).__name__}")
