"""The option ``--figure``: which figure of a report an SVG shows."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from traceviz.core.errors import UsageError
from traceviz.render.figures import declared

SVG = "svg"
"""Format that is one figure."""
PICTURE_WIDTH_HELP = "Columns of the page, up to 1000 (the terminal's, or 100 when piped); pixels of an SVG (720)."


def figure_option(*schemas: str) -> Callable[[Any], Any]:
    """The option of a command whose documents have one of these schemas; a figure that they never have is refused."""
    known = declared.names(*schemas)

    def chosen(_: click.Context, __: click.Parameter, name: str | None) -> str | None:
        if name is not None:
            declared.check_figure(name, *schemas)
        return name

    def completed(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
        return [name for name in known if name.startswith(begun)]

    listed = ", ".join(known) + " (the first of these that there is)" * (len(known) > 1)
    return click.option(
        "--figure", metavar="NAME", callback=chosen, shell_complete=completed, help=f"Figure of an SVG: {listed}."
    )


def check_drawn(figure: str | None, format_name: str, output: Path | None) -> None:
    """Refuse a figure where the format draws none, and a picture in a terminal, before the work instead of after it.

    Raises:
        UsageError: the figure is refused.
    """
    if figure is not None and format_name != SVG:
        raise UsageError(
            f"--figure {figure} is a picture, and --format {format_name} shows none of a report's figures alone.",
            fix=f"Add --format {SVG}.",
        )
    if format_name == SVG and output is None and sys.stdout.isatty():
        raise UsageError("An SVG is nothing to read in a terminal.", fix="Write it to a file: -o figure.svg.")
