"""The report as a page that a browser opens."""

from __future__ import annotations

from typing import ClassVar

from traceviz.render.options import RenderOptions
from traceviz.report import Report


class HtmlRenderer:
    """One file that loads nothing; ``top`` limits the rows that are to be seen before a table is unfolded."""

    name: ClassVar[str] = "html"

    def render(self, report: Report, options: RenderOptions) -> str:
        """The page, without a timeline; width and colour do not matter."""
        from traceviz.render.html.page import page  # noqa: PLC0415 (other formats need none of it)

        return page(report, options)
