"""The standard streams of the command line, and the handling of output that cannot be written.

A write to stdout that fails raises :class:`OutputError` once; what Python still writes at its exit is dropped. A write
to stderr never fails, because the exit code matters more.
"""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from typing import TYPE_CHECKING, TextIO, cast

from traceviz.core.errors import OutputError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

STDIN, STDOUT, STDERR = range(3)


def guard() -> None:
    """Replace Python's stdout and stderr by ours. Closed streams are opened such that using them fails.

    Otherwise the next file that is opened gets the number of the closed stream, and receives its output.
    """
    for number, mode in ((STDIN, os.O_WRONLY), (STDOUT, os.O_RDONLY), (STDERR, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, mode)  # programs that we start do not inherit it: theirs is closed, too
            if opened != number:
                os.dup2(opened, number, inheritable=False)
                os.close(opened)
    sys.stdout = _text(_Stdout(STDOUT, "w", closefd=False), sys.stdout)
    sys.stderr = _text(_Stderr(STDERR, "w", closefd=False), sys.stderr, errors="backslashreplace")


def _text(raw: io.RawIOBase, like: TextIO | None, errors: str = "strict") -> TextIO:
    """Return a text stream on ``raw``, with the settings of the stream that it replaces."""
    if not isinstance(like, io.TextIOWrapper):
        return io.TextIOWrapper(io.BufferedWriter(raw), encoding="utf-8", errors=errors, line_buffering=True)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=like.encoding,
        errors=like.errors,
        line_buffering=like.line_buffering,
        write_through=like.write_through,
    )


class _Stream(io.FileIO):
    """A stream that waits if it cannot write at once, as on a terminal that another program set to non-blocking."""

    def write(self, data: ReadableBuffer, /) -> int:
        while (written := cast("int | None", super().write(data))) is None:
            select.select((), (self,), ())
        return written


class _Stdout(_Stream):
    has_failed = False

    def write(self, data: ReadableBuffer, /) -> int:
        if self.has_failed:
            return _length(data)
        try:
            return super().write(data)
        except OSError as error:
            self.has_failed = True
            if error.errno == errno.EPIPE:
                raise  # `| head`: click ends quietly
            why = "It is closed" if error.errno == errno.EBADF else error.strerror
            raise OutputError(
                "The output cannot be written to stdout.", f"{why}.", "Redirect it to a place that can be written."
            ) from error


class _Stderr(_Stream):
    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except OSError:
            return _length(data)


def _length(data: ReadableBuffer) -> int:
    return len(memoryview(data).cast("B"))
