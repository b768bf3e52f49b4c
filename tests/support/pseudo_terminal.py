"""The command line in a terminal, as a user sees it; and what foreign text must not do to that terminal."""

import fcntl
import os
import pty
import re
import signal
import struct
import sys
import termios
import threading
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from unittest.mock import patch

from traceviz.cli.main import main

_CONCEALING = "\x1b[8;41m"
PAYLOAD = f"EVIL{_CONCEALING}\x1b]52;c;cm0gLXJm\x07\x9b2J\r\n\t\x08\x7f\x85\u202e\u2066\u2028\u200f"
"""Hides what follows, writes to the clipboard, clears the screen, reorders what follows; EVIL marks its place."""
_COLOUR = re.compile(r"\x1b\[(?:[0-9;]*)m")
_BAR = re.compile(r" {19,}\r|\r\x1b\[K")
"""Progress of ``collect``: a new line that is blank, and a line that is drawn again."""
_STEERS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


def seen(*arguments: object, columns: int = 80) -> tuple[int, str]:
    """Return exit code of ``traceviz ARGUMENTS`` in this process, and its output to a terminal of so many columns."""
    master, slave = pty.openpty()
    tty.setraw(slave)
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    received = bytearray()
    reading = threading.Thread(target=_read, args=(master, received))
    reading.start()
    handler = signal.getsignal(signal.SIGINT)
    try:
        with _standard_streams(slave):
            code = _run([*map(str, arguments)])
    finally:
        signal.signal(signal.SIGINT, handler)  # collect ignores it before it ends its process
        os.close(slave)
        reading.join()
        os.close(master)
    return code, received.decode()  # strictly: bytes that are no UTF-8 may steer an old terminal


def harm(page: str) -> list[str]:
    """Return the control sequences in a page, except line ends, the colours and the progress bar of traceviz."""
    foreign = [_CONCEALING] * page.count(_CONCEALING)
    return [*foreign, *_STEERS.findall(_BAR.sub("", _COLOUR.sub("", page)))]


def _run(arguments: list[str]) -> int:
    try:
        main(arguments, prog_name="traceviz")
    except SystemExit as ending:
        return ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    return 0


def _read(master: int, received: bytearray) -> None:
    try:
        while piece := os.read(master, 1 << 16):
            received.extend(piece)
    except OSError:  # the other end is closed
        return


@contextmanager
def _standard_streams(terminal: int) -> Iterator[None]:
    """Send standard output and error to ``terminal``, for compiled code as well."""
    kept = {number: os.dup(number) for number in (1, 2)}
    unset = {"COLUMNS", "LINES", "NO_COLOR"}
    plain = {name: value for name, value in os.environ.items() if name not in unset}
    streams = {
        number: TextIOWrapper(os.fdopen(os.dup(terminal), "wb"), "utf-8", line_buffering=True) for number in kept
    }
    try:
        for number in kept:
            os.dup2(terminal, number)
        with (
            patch.dict(os.environ, plain | {"TERM": "xterm-256color"}, clear=True),
            patch.object(sys, "stdout", streams[1]),
            patch.object(sys, "stderr", streams[2]),
        ):
            yield
            for stream in streams.values():
                stream.flush()
    finally:
        for number, copy in kept.items():
            os.dup2(copy, number)
            os.close(copy)
        for stream in streams.values():
            stream.close()
