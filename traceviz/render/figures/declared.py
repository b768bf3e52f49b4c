"""Declarations of all figures, without loading any, so that commands can check names at their start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter

from traceviz.core.errors import UsageError
from traceviz.core.registry import Registry, instance_of
from traceviz.report import COMPARISON, POPULATION, SCHEMA, TREND


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
    FigureEntry("steps", {SCHEMA: f"{_HERE}.steps:steps"}),
    FigureEntry("utilization", {SCHEMA: f"{_HERE}.utilization:utilization"}),
    FigureEntry("curve", {COMPARISON: f"{_HERE}.over_tags:curve"}),
    FigureEntry("scaling", {COMPARISON: f"{_HERE}.over_tags:scaling"}),
    FigureEntry("sides", {COMPARISON: f"{_HERE}.sides:sides"}),
    FigureEntry("classes", {COMPARISON: f"{_HERE}.sides:classes"}),
    FigureEntry("parts", {COMPARISON: f"{_HERE}.sides:parts"}),
    FigureEntry("kernels", {COMPARISON: f"{_HERE}.changes:kernels"}),
    FigureEntry("api", {SCHEMA: f"{_HERE}.api:api", COMPARISON: f"{_HERE}.side_api:api"}),
    FigureEntry("api_changes", {COMPARISON: f"{_HERE}.changes:api_changes"}),
    FigureEntry("resources", {COMPARISON: f"{_HERE}.resources:resources"}),
    FigureEntry("frameworks", {POPULATION: f"{_HERE}.frameworks:frameworks"}),
    FigureEntry("verdicts", {POPULATION: f"{_HERE}.population:verdicts"}),
    FigureEntry("at_stake", {POPULATION: f"{_HERE}.population:at_stake"}),
    FigureEntry("outliers", {POPULATION: f"{_HERE}.population:outliers"}),
    FigureEntry("trend", {TREND: f"{_HERE}.trend:trend"}),
)
"""The figures of traceviz. By default, the first one that a report has is drawn."""

FIGURES: Registry[FigureEntry] = Registry(
    "figure", "traceviz.figures", {entry.name: entry for entry in _OWN}, instance_of(FigureEntry), attrgetter("name")
)
"""All figures by name, those of plugins last. Entry points name values of :class:`FigureEntry`."""


def own_names(*schemas: str) -> tuple[str, ...]:
    """Return the names of traceviz's figures that reports of these schemas may have, in the order of the schemas."""
    return tuple(dict.fromkeys(entry.name for schema in schemas for entry in _OWN if schema in entry.homes))


def home_of(schema: str, name: str) -> str | None:
    """Return the home of the figure of this name for reports of ``schema``; ``None`` if they never have it."""
    return FIGURES.find(name).homes.get(schema) if name in FIGURES else None


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
