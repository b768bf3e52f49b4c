"""The one place that prints errors and messages. The output is safe, short and in sentences, for any quoted text.

Errors of traceviz state what happened, why, and what to do; foreign ones are converted to such sentences. Anything else
is a defect: its output helps to fix it, and contains nothing private.
"""

from __future__ import annotations

import os
import platform
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import StringIO
from typing import Any

import click

from traceviz.cli import standard_input
from traceviz.cli.lazy import LazyGroup
from traceviz.core.errors import TracevizError, TracevizWarning
from traceviz.core.process import interrupts
from traceviz.core.registry import find_fault_of_plugin
from traceviz.core.sanitize import Lines, bounded, one_line, sentence
from traceviz.untrusted.errors import defect, in_our_words
from traceviz.version import __version__

DEFECT = 70
"""Exit code if traceviz itself is at fault (``EX_SOFTWARE`` of sysexits.h)."""
OWN_FAILURE = 125
"""Exit code if ``collect`` itself failed, as with ``timeout``; otherwise it ends with the program's exit code."""
_OF_CLICK = "Error: "
"""Start of click's messages; all of ours start with ``error:``."""
DEBUG = "TRACEVIZ_DEBUG"
"""Environment variable that enables tracebacks."""


def say(line: str) -> None:
    """Print a line, or :class:`traceviz.core.sanitize.Lines`, on stderr; ignore a closed stderr."""
    with suppress(OSError):
        click.echo(one_line(line), err=True)


@contextmanager
def warnings_as_messages() -> Iterator[None]:
    """Print our warnings as lines on stderr, each text once; warnings of libraries stay unchanged."""
    with warnings.catch_warnings():
        warnings.simplefilter("default", TracevizWarning)
        shown = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *others: Any, **extra: Any) -> None:
            if issubclass(category, TracevizWarning):
                say(f"warning: {message}")
            else:
                shown(message, category, *others, **extra)

        warnings.showwarning = show
        yield


def complain(error: TracevizError) -> None:
    """Print one of our errors: what happened, why, and what to do."""
    what, why, fix = map(standard_input.named, (error.what, error.why, error.fix))
    _say_error(what, *why.splitlines(), *fix.splitlines())


def complain_of_usage(error: click.ClickException) -> None:
    """Print an error in the command line, as click does; the message quotes what was typed."""
    page = StringIO()
    if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):  # its message is the help
        error.show(page)
    else:
        message = sentence(bounded(error.format_message()))
        click.UsageError(message, getattr(error, "ctx", None)).show(page)
    lines = page.getvalue().splitlines()
    at = next((place for place, line in enumerate(lines) if line.startswith(_OF_CLICK)), len(lines))
    for usage in (Lines.of(*lines[:at]),) * (at > 0):
        say(usage)
    if at < len(lines):
        _say_error(lines[at].removeprefix(_OF_CLICK), *lines[at + 1 :])


def conclude(error: BaseException, command: click.Command, arguments: Sequence[str]) -> int:
    """Print the error that ended a command, if it is not one of click's.

    Args:
        error: The error that was raised.
        command: The outermost command.
        arguments: Arguments that were typed after its name.

    Returns:
        The exit code: that of the error, 3 for a foreign failure (also in a plugin), :data:`DEFECT` for one of
        traceviz.

    Raises:
        Stopped: the error results from a request to end.
    """
    interrupts.check()
    if os.environ.get(DEBUG, "0") not in {"", "0"}:
        say(Lines.of(*"".join(traceback.format_exception(error)).splitlines()))
    names, options = _parse_typed(command, arguments)
    ours = error if isinstance(error, TracevizError) else in_our_words(error, f"{names} cannot be completed.")
    ours = ours or find_fault_of_plugin(error)
    if ours is not None:
        complain(ours)
        return ours.exit_code
    _say_error(
        "This is a defect of traceviz.",
        f"{defect(error)}, in {' '.join((names, *options))}",
        f"traceviz {__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}",
        "Please report these lines to those who maintain your copy of traceviz: they hold no data of yours.",
        f"{DEBUG}=1 shows the traceback, which may quote paths and names.",
    )
    return DEFECT


def _say_error(what: str, *lines: str) -> None:
    with suppress(OSError):
        click.secho("error: ", fg="red", bold=True, nl=False, err=True)
    say(what)
    for line in lines:
        say(f"  {line}")


def _parse_typed(command: click.Command, arguments: Sequence[str]) -> tuple[str, list[str]]:
    """Return the command as it was typed, and the names of its options, without values, which may be private."""
    names, rest = ["traceviz"], list(arguments)
    while isinstance(command, click.Group):
        name = next((word for word in rest if word in command.commands), None)
        if name is None:
            break
        rest = rest[rest.index(name) + 1 :]
        command = command.load(name) if isinstance(command, LazyGroup) else command.commands[name]
        names.append(name)
    own = rest[: rest.index("--")] if "--" in rest else rest
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    options = dict.fromkeys(word.partition("=")[0] for word in own)
    return " ".join(names), [option for option in options if option in known]
