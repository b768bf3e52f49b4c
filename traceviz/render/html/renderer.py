"""The report as a page for a browser."""

from __future__ import annotations

from typing import ClassVar

from traceviz.render.options import RenderOptions
from traceviz.report import Report


class HtmlRenderer:
    """One file that loads nothing; ``top`` limits the rows shown before a table is unfolded."""

    name: ClassVar[str] = "html"

    def render(self, report: Report, options: RenderOptions) -> str:
        """Render the page, without a timeline; width and colour have no effect."""
        from traceviz.render.html.page import page  # noqa: PLC0415 (other formats need none of it)

        return page(report, options)
