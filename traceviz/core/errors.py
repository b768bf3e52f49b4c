"""Every error that reaches the user: what happened, why, and what to do next.

An error carries its three sentences separately, so that a terminal, a notebook and a log can lay them out as they like.
It also has the exit code of the command line (see ``docs/commands.md``).
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, ClassVar

from traceviz.core.sanitize import one_line


class TracevizError(Exception):
    """Base of all errors that traceviz raises on purpose.

    Args:
        what: The event, with the facts that matter (a path, a version, a name).
        why: The cause, if it is known.
        fix: The next thing to do, ideally a command to run.

    All three quote text from traces, names and libraries. So each is bounded, on one line, and without characters that
    control a terminal. Where traceviz itself breaks lines, it passes :class:`traceviz.core.sanitize.Lines`.
    """

    exit_code: ClassVar[int] = 3

    def __init__(self, what: str, why: str = "", fix: str = "") -> None:
        self.what, self.why, self.fix = map(one_line, (what, why, fix))
        super().__init__(" ".join(filter(None, (self.what, self.why, self.fix))))

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to pickle the error for another process, in its three parts."""
        return type(self), (self.what, self.why, self.fix)


class TracevizWarning(UserWarning):
    """A condition of the machine or of the settings that changes no result, and that the user can remove.

    The command line prints it as a line on stderr. It is not part of a report, which describes a trace.
    """


_MOST_SUGGESTED = 3


_SLIP = 0.85
"""Similarity from which two names differ by a typing error only."""


def _nearest(name: str, known: list[str]) -> list[str]:
    """Return the ``known`` name that is nearly ``name``, else those that contain it as a word or as the start of one.

    Otherwise return the name with the most similar spelling.
    """
    word = name.strip().lower().replace("-", "_").replace(" ", "_").strip("_")
    if slip := get_close_matches(word, known, 1, _SLIP):
        return slip
    holds = (
        [other for other in known if f"_{word}" in f"_{other.lower()}"]
        if len(word) > 1 and not word.isdecimal()
        else []
    )
    return holds[:_MOST_SUGGESTED] or get_close_matches(name, known, 1) or get_close_matches(word, known, 1)


class UsageError(TracevizError):
    """The request itself is wrong: an unknown name, options that contradict each other."""

    exit_code: ClassVar[int] = 2

    @classmethod
    def unknown(cls, kind: str, name: str, known: Iterable[str]) -> UsageError:
        """Make the error for an unknown ``kind``: it lists the existing names and suggests the nearest."""
        names = sorted(set(known), key=lambda known_name: (len(known_name) * known_name.isdecimal(), known_name))
        if not names:
            return cls(f"There is no {kind} {name!r}.", f"No {kind} is known here.")
        near = _nearest(name, names)
        suggestion = f"Did you mean {' or '.join(map(repr, near))}?" if near else ""
        separator = "; " if any("," in known_name for known_name in names) else ", "
        return cls(f"There is no {kind} {name!r}.", suggestion, f"Known: {separator.join(names)}.")


class NotInReportError(UsageError, KeyError):
    """The report has no such section, table or fact."""

    def __str__(self) -> str:
        """Return the sentences; a ``KeyError`` would show them in quotes."""
        return Exception.__str__(self)


class OutputExistsError(UsageError):
    """The output already exists, and ``--force`` was not given."""

    @classmethod
    def at(cls, path: object) -> OutputExistsError:
        """Make the error that refuses to overwrite ``path``."""
        return cls(
            f"{path} already exists.",
            "Nothing was written.",
            "Give --force to replace it, or another -o.",
        )


class OutputError(TracevizError):
    """The output cannot be written to the given place."""


class WorkerError(TracevizError):
    """The processes or the cluster that should do the work are not available."""


class CommandNotFoundError(TracevizError):
    """The command to record does not exist."""

    exit_code: ClassVar[int] = 127


class NotExecutableError(TracevizError):
    """The command to record exists and cannot be executed."""

    exit_code: ClassVar[int] = 126


class UnknownFormatError(TracevizError):
    """No reader, or more than one, recognises the file."""


class MissingToolError(TracevizError):
    """The format is known, but a program that decodes it is missing or too old."""


class DamagedTraceError(TracevizError):
    """The format is known, and the file breaks its rules."""


class UnreadableError(TracevizError):
    """The system does not let traceviz read a trace: it is gone, access is denied, or its disk fails."""


class OutOfMemoryError(TracevizError):
    """The work needs more memory than is available."""


class MissingTableError(TracevizError, AttributeError):
    """The trace does not contain the requested table."""

    @classmethod
    def named(cls, table: str, present: Iterable[str]) -> MissingTableError:
        """Make the error for a missing ``table``: it lists the tables that are ``present``."""
        return cls(
            f"The trace has no table {table!r}.",
            "The capture did not record it (which is not the same as recording none).",
            f"Present: {', '.join(sorted(present)) or 'none'}.",
        )


class PluginError(TracevizError):
    """A plugin that the request needs cannot be loaded, or fails."""


class SchemaError(TracevizError):
    """A table does not match its declaration in :mod:`traceviz.trace.schema`."""


class NoVerdictError(TracevizError):
    """The data cannot support the required verdict."""

    exit_code: ClassVar[int] = 4


class GateFailedError(TracevizError):
    """The run does not meet a gate."""

    exit_code: ClassVar[int] = 1
