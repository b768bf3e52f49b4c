"""Figures of a report in its page: those of :mod:`traceviz.render.figures`, in the colours of the page.

Each figure is drawn twice: at the width of a page, and at that of a phone, where the letters of the first would be too
small. The style sheet shows one of them.
"""

from __future__ import annotations

from collections.abc import Mapping

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
    COMPARISON: (
        "sides",
        "curve",
        "scaling",
        "classes",
        "parts",
        "quality",
        "kernels",
        "api",
        "api_changes",
        "resources",
    ),
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
    found: list[Figure | None]
    if report.schema in _SHOWN:
        added = (entry.name for entry in FIGURES.all() if not is_own(entry.homes.get(report.schema, "traceviz.")))
        found = [figure_or_none(report, name) for name in (*_SHOWN[report.schema], *added)]
    else:
        found = [figure for _, figure in figures(report)]
    parts = []
    for figure in (one for one in found if one is not None):
        drawn = [
            element("div", Markup(svg(figure, _WIDTHS[name], standalone=False)), class_=name)  # noqa: S704 (escaped)
            for name in (tuple(_WIDTHS) if for_telephones else (_WIDE,))
        ]
        parts.append(element("figure", joined(drawn), class_="tv-drawn"))
    return joined(parts)
