"""One figure of a report as an SVG."""

from __future__ import annotations

from typing import ClassVar

from traceviz.render.figures.registry import figure
from traceviz.render.options import RenderOptions
from traceviz.render.svg.draw import WIDTH, svg
from traceviz.report import Report


class SvgRenderer:
    """The figure that is asked for, else the one that says most; layouts of text do not matter."""

    name: ClassVar[str] = "svg"

    def render(self, report: Report, options: RenderOptions) -> str:
        """An ``<svg>`` element that stands alone.

        Raises:
            UsageError: there is no such figure, or this report has none; the error lists those that it has.
        """
        return svg(figure(report, options.figure), options.pixels or WIDTH) + "\n"
