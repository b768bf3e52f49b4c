"""Options that commands of ``traceviz archive`` share: selection of traces, and output of the page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from traceviz.cli.options import (
    OPEN_HELP,
    PAGE_WIDTH,
    PICTURE_WIDTH_HELP,
    WIDTH_HELP,
    check_destination,
    chosen_format,
    figure_option,
    option_group,
    page_width,
    show,
    wants_color,
)

if TYPE_CHECKING:
    from traceviz.report import Report

Command = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class PageOptions:
    """Options for printing a document.

    Args:
        format_name: Name of the renderer.
        output: File to write to; ``None`` for stdout.
        force: Replace an existing file.
        width: Columns of the page; ``None`` for those of the terminal.
        opens: Open the page in a browser.
        sections: Slugs of the sections to print; empty for all.
        figure: Name of the figure that an SVG shows; ``None`` for the most informative one.
    """

    format_name: str
    output: Path | None
    force: bool
    width: int | None
    opens: bool
    sections: tuple[str, ...] = ()
    figure: str | None = None

    def __post_init__(self) -> None:
        """Refuse a destination that cannot show the format, before the work.

        Raises:
            UsageError: the format cannot be written there.
        """
        check_destination(self.format_name, self.output, opens=self.opens)

    def print(self, report: Report, top: int | None = None, *, first_screen: bool = False) -> None:
        """Print a report, with ``top`` rows per table; with ``first_screen``, only its first screen."""
        from traceviz.render.options import RenderOptions
        from traceviz.render.registry import renderer

        width, color = self.width or page_width(), wants_color(self.output)
        layout = RenderOptions(width, color, top, self.sections or None, first_screen, self.figure, self.width)
        text = renderer(self.format_name).render(report, layout)
        show(text, self.output, force=self.force, opens=self.opens)


def page_options(
    formats: str, *, has_sections: bool = False, figures_of: tuple[str, ...] = ()
) -> Callable[[Command], Command]:
    """Return the decorator for print options, which the command receives as its parameter ``page``.

    Args:
        formats: The formats, for the help.
        has_sections: True if sections can be chosen.
        figures_of: Schemas of the documents, if an SVG can show a figure of them.
    """
    options = (
        *((click.option("--section", "sections", multiple=True, metavar="NAME", help=_SECTIONS),) * has_sections),
        click.option("--format", "format_name", callback=chosen_format, metavar="NAME", help=formats),
        *((figure_option(*figures_of),) if figures_of else ()),
        click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to this file instead of stdout."),
        click.option("--force", is_flag=True, help="Replace an existing output file."),
        click.option("--open", "opens", is_flag=True, is_eager=True, help=OPEN_HELP),
        click.option("--width", type=PAGE_WIDTH, help=PICTURE_WIDTH_HELP if figures_of else WIDTH_HELP),
    )

    return option_group("page", PageOptions, *options)


_SECTIONS = "Only this section; may be repeated."


def where_option(command: Command) -> Command:
    """Add the condition on traces."""
    condition = click.option(
        "--where", "condition", metavar="SQL", help="Only traces that meet this condition, e.g. \"format = 'kineto'\"."
    )
    return condition(command)
