"""Figures of reports, comparisons, archives and trends on their pages: the same values as in SVG files and in the terminal."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup

from traceviz.render.figures.registry import figure_or_none
from traceviz.render.html.components.element import element, joined
from traceviz.render.svg.draw import svg
from traceviz.report import COMPARISON, POPULATION, SCHEMA, TREND, Report

_SHOWN: Mapping[str, tuple[str, ...]] = {
    SCHEMA: ("steps", "api", "utilization"),
    COMPARISON: (*("sides", "curve", "scaling", "classes", "parts", "kernels", "api", "api_changes", "resources"),),
    POPULATION: ("frameworks", "at_stake", "outliers"),
    TREND: ("trend",),
}
"""Names of the figures of a page, by the schema of its report: what was asked first, then where it comes from."""
_WIDE, _NARROW = 960, 400
"""Pixels of a figure on screens, and on those of telephones, where letters of the wide one would be too small."""


def figures_of(report: Report, *, for_telephones: bool = True) -> Markup:
    """All figures that the report has, below one another; empty where it has none.

    Args:
        report: Any report document.
        for_telephones: Draw each for narrow screens as well; the style sheet of a page shows one of the two.
    """
    drawn = (figure_or_none(report, name) for name in _SHOWN.get(report.schema, ()))
    return joined(
        element(
            "figure",
            element("div", _markup(svg(one, _WIDE, standalone=False)), class_="tv-wide-figure"),
            element("div", _markup(svg(one, _NARROW, standalone=False)), class_="tv-narrow-figure")
            if for_telephones
            else "",
            class_="tv-drawn",
        )
        for one in drawn
        if one is not None
    )


def _markup(drawn: str) -> Markup:
    """An SVG, in which every text is escaped."""
    return Markup(drawn)  # noqa: S704
