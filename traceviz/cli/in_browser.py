"""Pages of HTML go to a file, or to the user's browser; not to a terminal."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import click

from traceviz.cli.boundary import say
from traceviz.core.errors import OutputError, UsageError

HTML, TERMINAL = "html", "terminal"
OPEN_HELP = "Open the page in a browser; implies --format html."


def chosen_format(ctx: click.Context, _: click.Parameter, value: str | None) -> str:
    """The format that was asked for; without one, a page where it is to be opened: for the option ``--format``."""
    return value or (HTML if ctx.params.get("opens") else TERMINAL)


def check_page(format_name: str, output: Path | None, *, opens: bool) -> None:
    """Refuse a page that would go to a terminal, and to open what is none, before the work instead of after it.

    Raises:
        UsageError: the format cannot go there.
    """
    if opens and format_name != HTML:
        raise UsageError(f"--open shows a page, and --format {format_name} is none.", fix="Leave out one of the two.")
    if format_name == HTML and output is None and not opens and sys.stdout.isatty():
        raise UsageError(
            "A page of HTML is nothing to read in a terminal.",
            fix="Write it to a file: -o report.html; or open it in a browser: --open.",
        )


def open_in_browser(path: Path) -> None:
    """Open a file in the user's browser, or say that there is none."""
    import webbrowser

    if not webbrowser.open(path.resolve().as_uri()):
        say(f"traceviz: no browser could be started here: open {path} in yours")


def temporary_page(text: str) -> Path:
    """A new file that only the user can read, and that stays; where it is is said.

    Raises:
        OutputError: it cannot be written.
    """
    try:
        handle, name = tempfile.mkstemp(prefix="traceviz-", suffix=".html")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise OutputError(
            "The page cannot be written to a temporary file.", f"{error.strerror}.", "Name a file: -o report.html."
        ) from error
    say(f"traceviz: the page: {name}")
    return Path(name)
