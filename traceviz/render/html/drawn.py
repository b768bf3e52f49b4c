"""Figures of a report in its page: those of :mod:`traceviz.render.figures`, in the colours of the page.

Each figure is drawn twice: at the width of a page, and at that of a phone, where the letters of the first would be too
small. The style sheet shows one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from markupsafe import Markup

from traceviz.core.registry import is_own
from traceviz.render.figures.registry import FIGURES, figure_or_none, figures
from traceviz.render.figures.values import Figure
from traceviz.render.html.components.element import element, joined
from traceviz.render.svg.draw import svg
from traceviz.report import COMPARISON, POPULATION, TREND, Report

_WIDE = "tv-wide-figure"
_WIDTHS = {_WIDE: 960, "tv-narrow-figure": 400}
"""Widths in pixels of both versions, by their class."""
_SHOWN: Mapping[str, tuple[str, ...]] = {
    COMPARISON: ("sides", "curve", "scaling", "classes", "parts", "kernels", "api", "api_changes", "resources"),
    POPULATION: ("frameworks", "at_stake", "outliers"),
    TREND: ("trend",),
}
"""Figures of a page, by the schema of its report: the results first, then their explanations."""


def figure_parts(report: Report, *, for_telephones: bool = True) -> Markup:
    """Draw all figures that ``report`` has, one below the other; empty if it has none.

    Args:
        report: Any report document.
        for_telephones: True to draw each for narrow screens as well; the style sheet of a page shows one of the two.
    """
    names = tuple(_WIDTHS) if for_telephones else (_WIDE,)
    return joined(
        element("figure", joined(_renditions(figure, names)), class_="tv-drawn") for figure in _figures(report)
    )


def _figures(report: Report) -> Iterator[Figure]:
    if report.schema not in _SHOWN:
        yield from (figure for _, figure in figures(report))
        return
    added = (entry.name for entry in FIGURES.all() if not is_own(entry.homes.get(report.schema, "traceviz.")))
    found = (figure_or_none(report, name) for name in (*_SHOWN[report.schema], *added))
    yield from (figure for figure in found if figure is not None)


def _renditions(figure: Figure, names: tuple[str, ...]) -> Iterator[Markup]:
    for name in names:
        drawn = Markup(svg(figure, _WIDTHS[name], standalone=False))  # noqa: S704 (what is in it is escaped there)
        yield element("div", drawn, class_=name)
