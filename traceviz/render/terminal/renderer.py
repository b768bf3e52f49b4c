"""The report for a terminal, drawn with rich."""

from __future__ import annotations

from typing import ClassVar

from traceviz.render.options import RenderOptions, has_first_screen, select
from traceviz.report import Report


class TerminalRenderer:
    """Text of the requested width; ANSI colour only if requested.

    The header uses ``source``, ``producer``, ``producer_version``, ``framework``, ``device`` or ``devices`` and
    ``span_ns`` of the run facts.
    """

    name: ClassVar[str] = "terminal"

    def render(self, report: Report, options: RenderOptions) -> str:
        """Render the page, without trailing spaces, ended by a newline."""
        from traceviz.render.terminal.page import first_page, page  # noqa: PLC0415 (rich takes 0.1 s to import)

        if has_first_screen(report, options):
            return first_page(report, options)
        return page(select(report, options.sections), options)
