"""A trace on standard input: ``-``. Traces are read in several passes, so it is copied to a temporary file.

The file has the name of standard input, because reports and messages name traces after their files.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from traceviz.core.errors import OutputError, UnknownFormatError, UsageError
from traceviz.core.process.temporary import temporary_folder

NAME = "standard input"
NAMES = frozenset({"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"})
_STDIN = 0
_BLOCK = 1 << 20
_RESERVE = 64 << 20
"""Bytes of disk space that are left free."""
_TAKEN = "traceviz.standard_input"


def file_for(value: str, ctx: click.Context | None) -> str:
    """Return ``value`` or, if it means standard input, the path of a file with its content.

    The file is removed when the command ends.

    Raises:
        UsageError: it is named twice, or is a terminal.
        UnknownFormatError: it is empty, or cannot be read.
        OutputError: there is no space for it.
    """
    if value not in NAMES or ctx is None:
        return value
    if _TAKEN in ctx.meta:
        raise UsageError("Standard input is named twice.", "It can be read once.", "Name one trace by its path.")
    if os.isatty(_STDIN):
        raise UsageError(
            "Standard input is a terminal.", "A trace comes from a file or a pipe.", "traceviz report - < FILE"
        )
    ctx.meta[_TAKEN] = str(ctx.with_resource(_copied()))
    return str(ctx.meta[_TAKEN])


def named(text: str) -> str:
    """Replace the path of the file in a text by the name of standard input."""
    ctx = click.get_current_context(silent=True)
    path = ctx.meta.get(_TAKEN) if ctx else None
    return text if path is None else text.replace(path, NAME)


@contextmanager
def _copied() -> Iterator[Path]:
    with temporary_folder() as folder:
        path = folder / NAME
        with path.open("xb", buffering=0) as file:
            while block := _next_block():
                system = os.statvfs(path)
                why = f"Less than {_RESERVE >> 20} MiB are left." * (system.f_bavail * system.f_frsize < _RESERVE)
                try:
                    if not why:
                        file.write(block)
                except OSError as error:
                    why = f"{error.strerror}."
                if why:
                    raise OutputError(
                        "There is no space for standard input.",
                        why,
                        f"It is kept in {folder.parent} while it is read: "
                        "make space, or name another folder in TMPDIR.",
                    )
        if not path.stat().st_size:
            raise UnknownFormatError("Standard input is empty.", fix="See whether what writes into the pipe failed.")
        yield path


def _next_block() -> bytes:
    try:
        return os.read(_STDIN, _BLOCK)
    except OSError as error:
        why = "It is closed." if error.errno == errno.EBADF else f"{error.strerror}."
        raise UnknownFormatError("Standard input cannot be read.", why, "Name the trace by its path.") from error
