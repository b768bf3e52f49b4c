"""Figures of a report in its page: those of :mod:`traceviz.render.figures`, in the colours of the page.

Each figure is drawn twice: at the width of a page, and at that of a phone, where the letters of the first would be too
small. The style sheet shows one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain

from markupsafe import Markup

from traceviz.core.registry import is_own
from traceviz.render.figures.registry import FIGURES, figure_or_none, figures
from traceviz.render.figures.values import Curves, Figure, Panel, StackedBars
from traceviz.render.html.components.element import element, joined, shown
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
    parts, folds = [], []
    for figure, why in chain.from_iterable(_pieces(one) for one in found if one is not None):
        drawn = [
            element("div", Markup(svg(figure, _WIDTHS[name], standalone=False)), class_=name)  # noqa: S704 (escaped)
            for name in (tuple(_WIDTHS) if for_telephones and not why else (_WIDE,))
        ]
        whole = element("figure", joined(drawn), class_="tv-drawn")
        if why:
            summary = element("summary", f"{shown(figure.title)} ({why})")
            folds.append(element("details", summary, whole, class_="tv-folded"))
        else:
            parts.append(whole)
    return element("div", joined((*parts, *folds)), class_="tv-figures") if parts or folds else Markup()


def _pieces(figure: Figure) -> Iterator[tuple[Figure, str]]:
    """Return the figure in up to two pieces, with the reason to fold one: a single step, or curves that stay level."""
    if isinstance(figure, StackedBars) and figure.upright and len(figure.rows) == 1:
        yield figure, "one step"
        return
    if isinstance(figure, Curves) and not figure.marks:
        level = tuple(panel for panel in figure.panels if is_level(panel))
        rest = tuple(panel for panel in figure.panels if panel not in level)
        if rest:
            yield replace(figure, panels=rest), ""
        if level:
            yield replace(figure, panels=level, notes=() if rest else figure.notes), "level throughout"
        return
    yield figure, ""


_LEVEL = 0.02
"""Part of its axis, or of its largest value, within which a curve counts as level."""


def is_level(panel: Panel) -> bool:
    """Return whether all curves of the panel stay level. A curve with intervals or of one point does not count."""
    for line in panel.lines:
        values = [point.y for point in line.points if point.y is not None]
        if len(values) < 2 or any(point.low is not None for point in line.points):
            return False
        whole = 1.0 if panel.axis.unit == "ratio" else max(map(abs, values))
        if max(values) - min(values) > _LEVEL * whole:
            return False
    return bool(panel.lines)
