"""Figures of reports, loaded when they are made; :mod:`traceviz.render.figures.declared` lists them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

from traceviz.core.errors import UsageError
from traceviz.core.registry import find_fault_of_plugin, is_own, load_home, plugin_error, warn_of_plugin
from traceviz.render.figures.declared import FIGURES, check_figure, home_of, owners
from traceviz.render.figures.values import Figure, NoFigure
from traceviz.report import Report


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
    home = home_of(report.schema, name)
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
