"""The list of events of a large file is scanned in two halves beside each other, where a machine has two cores.

::

    file           {... "traceEvents": [ {..}, {..}, {..},   {..}, {..}, {..} ], ...}
    this thread     |-------- scan ---------------------->|                     |-->
    the other                                             |-------- scan ------>|
                                                     a likely event        where it stopped

Where the second half begins is a guess. It counts only if the scan of the first half comes to this very byte between
two events of a list: then one scan of all would have gone on there as the other has. Else what that found is forgotten,
and all is scanned in turn. Where the other stopped, at the end of the list or at something that is no whole event, the
walk goes on from there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import BinaryIO

from traceviz.core.errors import DamagedTraceError
from traceviz.parsers.kineto.decode.compiled import CompiledScanner
from traceviz.parsers.shared.json.stream import GZIP_MAGIC, TextStream
from traceviz.parsers.shared.json.walk import NEXT_EVENT, Step, Stop
from traceviz.parsers.shared.json.window import Window

LARGE_BYTES = 16 * 2**20
"""Smaller files are scanned before another thread gains anything."""
_SEARCHED_BYTES = 2**18
"""Events begin every few hundred bytes; between two long ones nothing is guessed."""


def second_half(path: Path, scanner: CompiledScanner, block_bytes: int, least: int | None = None) -> SecondHalf | None:
    """The scan of the second half of the file ``path``, which has begun; ``None`` where there is to be none.

    Args:
        path: The file.
        scanner: Takes the events of that half.
        block_bytes: How much text is looked at once.
        least: The length from which on a file is scanned in halves; ``None`` where this depends on the machine.
    """
    if least is None and _cores() < 2:
        return None
    try:
        file = path.open("rb")
    except OSError:  # who reads the file from its beginning says so
        return None
    begin = _likely_event(file, LARGE_BYTES if least is None else least)
    half = SecondHalf(file, begin, scanner, block_bytes)
    if not begin or not half.start():
        file.close()
        return None
    return half


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _likely_event(file: BinaryIO, least: int) -> int:
    """Where in the middle of a plain file an event seems to begin; 0 where nothing does."""
    try:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        if size < least or file.read(len(GZIP_MAGIC)) == GZIP_MAGIC:
            return 0
        file.seek(size // 2)
        match = NEXT_EVENT.search(file.read(_SEARCHED_BYTES))
    except OSError:
        return 0
    return size // 2 + match.end() if match is not None else 0


class SecondHalf:
    """A thread that scans the events of a file from ``begin`` on.

    Args:
        file: The file, which is closed at the end.
        begin: The byte at which an event seems to begin.
        scanner: Takes the events.
        block_bytes: How much text is looked at once.
    """

    def __init__(self, file: BinaryIO, begin: int, scanner: CompiledScanner, block_bytes: int) -> None:
        self.begin = begin
        self.read = 0
        """Bytes that it has read so far."""
        self._file, self._scanner, self._block_bytes = file, scanner, block_bytes
        self._stopped = False
        self._reached = 0
        self._thread = Thread(target=self._scan, name="traceviz-scan", daemon=True)

    def start(self) -> bool:
        """Begin; whether the machine has a thread to spare."""
        try:
            self._thread.start()
        except RuntimeError:  # under a limit of threads or of addresses
            return False
        return True

    def stop(self) -> None:
        """End it, whatever is still to come."""
        self._stopped = True
        self._thread.join()

    def close(self) -> None:
        """End it, and close the file."""
        self.stop()
        self._file.close()

    def is_of(self, file: BinaryIO) -> bool:
        """Whether it reads this very file, and not what now has its name."""
        return os.path.sameopenfile(self._file.fileno(), file.fileno())

    def found(self) -> tuple[CompiledScanner, int] | None:
        """What it found, and the byte that it reached, once it has come to its end; ``None`` where it failed.

        That byte is before something that is no whole event: the end of the list, the end of the file, or what is
        broken.
        """
        self._thread.join()
        return (self._scanner, self._reached) if self._reached > self.begin else None

    def _scan(self) -> None:
        try:
            self._file.seek(self.begin)
            reached = self._reach(Window(self._counted(iter(lambda: self._file.read(self._block_bytes), b""))))
        except (OSError, OverflowError, MemoryError):  # the other scan comes here then, and says so
            return
        if not self._stopped:
            self._reached = self.begin + reached

    def _reach(self, window: Window) -> int:
        """Scan; how many bytes of text were taken."""
        try:
            while window.more():
                step = self._scanner.feed(window.text, window.place)
                window.place = step.place
                if step.stop is Stop.END:
                    window.place -= 1  # the bracket is for who goes on from here
                if step.stop is not Stop.MORE:
                    break
        except DamagedTraceError:  # a value that is too long
            pass
        return window.done

    def _counted(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        for block in blocks:
            if self._stopped:
                return
            self.read += len(block)
            yield block


class Halves:
    """The text of a file of which another thread scans the second half, and the scan that takes what it found.

    Args:
        stream: The file.
        scanner: Takes the events of the first half, and then those of both.
        half: The second half.
        block_bytes: How much text is looked at once.
    """

    def __init__(self, stream: TextStream, scanner: CompiledScanner, half: SecondHalf, block_bytes: int) -> None:
        self._stream, self._scanner, self._half = stream, scanner, half
        stream.pause = half.begin
        stream.beside = lambda: half.read
        self.window = Window(stream.blocks(block_bytes), name=str(stream.path))

    def feed(self, text: bytes, place: int) -> Step:
        """See :meth:`~traceviz.parsers.kineto.decode.scanner.Scanner.feed`."""
        step = self._scanner.feed(text, place)
        if self._stream.place == self._half.begin and step.stop is Stop.MORE:
            if step.place == len(text) and self._half.is_of(self._stream.file):
                self._take()
            else:
                self._half.stop()
        return step

    def _take(self) -> None:
        """Take what the other found, and go on where it stopped."""
        found = self._half.found()
        if found is not None:
            other, reached = found
            self._scanner.join(other)
            self._stream.go_to(reached)
            self.window.pass_over(reached - self._half.begin)
