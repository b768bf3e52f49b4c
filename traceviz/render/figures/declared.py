"""Which figures there are, the one that says most first, without loading any: commands check names at their start."""

from __future__ import annotations

from traceviz.core.errors import UsageError
from traceviz.report import COMPARISON, POPULATION, SCHEMA, TREND

FUNCTIONS = {
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

FIGURES: tuple[str, ...] = tuple(dict.fromkeys(name for functions in FUNCTIONS.values() for name in functions))
"""Names of all figures."""


def names(*schemas: str) -> tuple[str, ...]:
    """Names of the figures that reports of these schemas may have, in their order."""
    return tuple(dict.fromkeys(name for schema in schemas for name in FUNCTIONS[schema]))


def check_figure(name: str, *schemas: str) -> None:
    """Refuse a figure that does not exist, or that no report of these schemas has, without loading those that do.

    Raises:
        UsageError: there is no such figure; the error lists those that there are.
    """
    known = names(*schemas) if schemas else FIGURES
    if name not in FIGURES:
        raise UsageError.unknown("figure", name, known)
    if name not in known:
        raise UsageError(f"Figures {name!r} are of {owners(name)}.", fix=f"Known here: {', '.join(known)}.")


_OWNERS = {SCHEMA: "single traces", COMPARISON: "comparisons", POPULATION: "archives", TREND: "trends"}


def owners(name: str) -> str:
    """What reports have a figure of this name: ``single traces and comparisons``."""
    return " and ".join(owner for schema, owner in _OWNERS.items() if name in FUNCTIONS[schema])
