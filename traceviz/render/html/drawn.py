"""Figures of a report in its page: those of :mod:`traceviz.render.figures`, in the colours of the page."""

from __future__ import annotations

from markupsafe import Markup

from traceviz.render.figures.registry import figures
from traceviz.render.html.components.element import element, joined, shown
from traceviz.render.svg.draw import svg
from traceviz.report import Report

_WIDTH = 960


def figure_parts(report: Report) -> Markup:
    """All figures that ``report`` has, one below the other; nothing where it has none."""
    return joined(
        element(
            "div",
            Markup(svg(figure, _WIDTH, standalone=False)),  # noqa: S704 (what is in it is escaped there)
            class_="tv-scroll tv-drawn",
            role="group",
            tabindex=0,
            aria_label=shown(figure.title),
        )
        for _, figure in figures(report)
    )
