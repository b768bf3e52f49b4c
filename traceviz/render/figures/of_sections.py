"""Figures by the section of a report in which text shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from traceviz.render.figures.registry import figure_or_none
from traceviz.render.figures.values import Curves, StackedBars
from traceviz.report import COMPARISON, POPULATION, Block, Report, Timeline

_NAMES: Mapping[str, Mapping[str, str]] = {
    COMPARISON: {"curve": "curve", "scaling": "scaling", "cuda_api": "api", "resources": "resources"},
    POPULATION: {"cuda_api": "frameworks"},
}
"""Name of the figure of a section, by the schema of the report and the slug of the section."""
MOST_PANELS = 2
"""Limit of the panels of curves in text; tables and lanes show the others."""


def text_figures(report: Report) -> dict[str, Curves | StackedBars]:
    """Return the figures that text can draw, by the slug of their section."""
    found = {}
    for slug, name in _NAMES.get(report.schema, {}).items():
        if any(section.slug == slug for section in report.sections):
            made = figure_or_none(report, name)
            if isinstance(made, Curves | StackedBars):
                found[slug] = made
    return found


def without_lanes(blocks: Iterable[Block], picture: Curves | StackedBars | None) -> tuple[Block, ...]:
    """Return the blocks of a section without the lanes of timelines that its picture shows."""
    panels = picture.panels[:MOST_PANELS] if isinstance(picture, Curves) else ()
    shown = {f"{panel.axis.label}, {line.label}" for panel in panels for line in panel.lines}
    return tuple(
        replace(block, lanes=tuple(lane for lane in block.lanes if lane.label not in shown))
        if isinstance(block, Timeline)
        else block
        for block in blocks
    )
