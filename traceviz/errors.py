"""Every error that reaches a person: what happened, why, and what to do next.

An error carries its three sentences apart, so that the terminal, a notebook and a log can lay them out
as they like, and the exit code of the command line that it stands for (see ``docs/commands.md``).
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import ClassVar


class TracevizError(Exception):
    """Base of all errors that traceviz raises on purpose.

    Args:
        what: What happened, with the facts that matter (a path, a version, a name).
        why: The cause, where it is known.
        fix: The next thing to do, ideally a command to run.
    """

    exit_code: ClassVar[int] = 3

    def __init__(self, what: str, why: str = "", fix: str = "") -> None:
        self.what = what
        self.why = why
        self.fix = fix
        super().__init__(" ".join(part for part in (what, why, fix) if part))


class UsageError(TracevizError):
    """The request itself cannot be met: an unknown name, options that contradict each other."""

    exit_code: ClassVar[int] = 2

    @classmethod
    def unknown(cls, kind: str, name: str, known: Iterable[str]) -> UsageError:
        """Name something that does not exist, what does, and what may be meant."""
        names = sorted(known)
        near = get_close_matches(name, names, 1)
        meant = f"Did you mean {near[0]!r}?" if near else ""
        between = "; " if any("," in one for one in names) else ", "
        return cls(f"There is no {kind} {name!r}.", meant, f"Known: {between.join(names)}.")


class OutputExistsError(UsageError):
    """The output is already there, and ``--force`` was not given."""

    @classmethod
    def at(cls, path: object) -> OutputExistsError:
        """Refuse to overwrite ``path``."""
        return cls(
            f"{path} already exists.",
            "Nothing was written.",
            "Give --force to replace it, or another -o.",
        )


class OutputError(TracevizError):
    """The output cannot be written where it was asked for."""


class WorkerError(TracevizError):
    """Processes or a cluster that were to do the work cannot be had."""


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


class MissingTableError(TracevizError, AttributeError):
    """A table was asked for that this trace does not contain."""

    @classmethod
    def named(cls, table: str, present: Iterable[str]) -> MissingTableError:
        """Say which table is missing and which are there."""
        return cls(
            f"The trace has no table {table!r}.",
            "The capture did not record it (which is not the same as recording none).",
            f"Present: {', '.join(sorted(present)) or 'none'}.",
        )


class SchemaError(TracevizError):
    """A table does not match its declaration in :mod:`traceviz.schema`."""


class NoVerdictError(TracevizError):
    """A verdict was required that the data cannot support."""

    exit_code: ClassVar[int] = 4


class GateFailedError(TracevizError):
    """A condition that the run had to meet is not met."""

    exit_code: ClassVar[int] = 1
