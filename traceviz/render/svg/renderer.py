"""One figure of a report as an SVG."""

from __future__ import annotations

from typing import ClassVar

from traceviz.render.figures.registry import figure
from traceviz.render.options import RenderOptions
from traceviz.render.svg.draw import WIDTH, svg
from traceviz.report import Report


class SvgRenderer:
    """The requested figure, or the most informative one; text layout options have no effect."""

    name: ClassVar[str] = "svg"

    def render(self, report: Report, options: RenderOptions) -> str:
        """Render a standalone ``<svg>`` element.

        Raises:
            UsageError: there is no such figure, or this report does not have it; the error lists the available ones.
        """
        return svg(figure(report, options.figure), options.pixels or WIDTH) + "\n"
