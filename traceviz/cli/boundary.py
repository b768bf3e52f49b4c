"""The one way of errors and messages to a person: whatever they quote, what is printed is harmless, short and in words.

Errors of traceviz say what happened, why, and what to do; foreign ones are put into such words. Anything else is a
defect: what is printed of it helps to mend it, and holds nothing private.
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
from traceviz.core.sanitize import Lines, bounded, one_line, sentence
from traceviz.untrusted.errors import defect, in_our_words
from traceviz.version import __version__

DEFECT = 70
"""Exit code where traceviz itself is at fault (``EX_SOFTWARE`` of sysexits.h)."""
OWN_FAILURE = 125
"""``collect`` ends with the program's exit code; this one means that ``collect`` itself failed, as with ``timeout``."""
DEBUG = "TRACEVIZ_DEBUG"
"""Environment variable that asks for tracebacks."""


def say(line: str) -> None:
    """Print a line on stderr, or :class:`traceviz.core.sanitize.Lines`; that nobody can read it is no error."""
    with suppress(OSError):
        click.echo(one_line(line), err=True)


@contextmanager
def warnings_as_messages() -> Iterator[None]:
    """Print our warnings as lines on stderr, each text once; those of libraries stay as Python has them."""
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
    """Print what is wrong with the command line, as click does it; the message quotes what was typed."""
    page = StringIO()
    if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):  # its message is the help
        error.show(page)
    else:
        message = sentence(bounded(error.format_message()))
        click.UsageError(message, getattr(error, "ctx", None)).show(page)
    say(Lines.of(*page.getvalue().splitlines()))


def conclude(error: BaseException, command: click.Command, arguments: Sequence[str]) -> int:
    """Print the error that ended a command, which is none of click's.

    Args:
        error: What was raised.
        command: The outermost command.
        arguments: What was typed after its name.

    Returns:
        The exit code: that of the error, 3 where something foreign failed, :data:`DEFECT` where traceviz did.

    Raises:
        Stopped: the error is what became of a request to end.
    """
    interrupts.check()
    if os.environ.get(DEBUG, "0") not in {"", "0"}:
        say(Lines.of(*"".join(traceback.format_exception(error)).splitlines()))
    names, options = _typed(command, arguments)
    ours = error if isinstance(error, TracevizError) else in_our_words(error, f"{names} cannot be completed.")
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


def _typed(command: click.Command, arguments: Sequence[str]) -> tuple[str, list[str]]:
    """The command as it was typed, and the names of its options: no values, which may be private."""
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
