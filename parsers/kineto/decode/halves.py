"""Scan the list of events of a large file in two halves at the same time, if the machine has two cores.

::

    file           {... "traceEvents": [ {..}, {..}, {..},   {..}, {..}, {..} ], ...}
    this thread     |-------- scan ---------------------->|                     |-->
    the other                                             |-------- scan ------>|
                                                     a likely event        where it stopped

The start of the second half is a guess. It counts only if the scan of the first half reaches exactly this byte between
two events of a list: then a single scan would have continued there in the same way. Otherwise the results of the second
half are discarded, and all is scanned in turn. The walk resumes where the other scan stopped: at the end of the list or
at an incomplete event.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from traceviz.core.errors import DamagedTraceError
from traceviz.core.process.cores import usable_cores
from traceviz.parsers.kineto.decode.compiled import CompiledScanner
from traceviz.parsers.shared.json.stream import GZIP_MAGIC, TextStream
from traceviz.parsers.shared.json.walk import NEXT_EVENT, Step, Stop
from traceviz.parsers.shared.json.window import Window
from traceviz.parsers.shared.prefetch import Prefetch

LARGE_BYTES = 16 * 2**20
"""Smaller files are scanned before another thread has any benefit."""
_SEARCHED_BYTES = 2**18
"""Bytes searched for an event: events start every few hundred bytes. Between two longer ones nothing is guessed."""


def second_half(path: Path, scanner: CompiledScanner, block_bytes: int, least: int | None = None) -> SecondHalf | None:
    """Start to scan the second half of the file ``path``; return ``None`` if it is not worth it.

    Args:
        path: The file.
        scanner: Takes the events of that half.
        block_bytes: Bytes of text per step.
        least: Minimum length of a file that is scanned in halves; ``None`` if this depends on the machine.
    """
    if least is None and usable_cores() < 2:
        return None
    try:
        file = path.open("rb")
    except OSError:  # the reader of the whole file reports it
        return None
    begin = _likely_event(file, LARGE_BYTES if least is None else least)
    if not begin:
        file.close()
        return None
    return SecondHalf(file, begin, scanner, block_bytes)


def _likely_event(file: BinaryIO, least: int) -> int:
    """Return the likely start of an event in the middle of a plain file; 0 if there is none."""
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
    """A scan of the events of a file from ``begin`` on, in a background thread.

    Args:
        file: The file, which is closed at the end.
        begin: The byte at which an event seems to start.
        scanner: Takes the events.
        block_bytes: Bytes of text per step.
    """

    def __init__(self, file: BinaryIO, begin: int, scanner: CompiledScanner, block_bytes: int) -> None:
        self.begin = begin
        self.read = 0
        """Bytes read so far."""
        self._file, self._scanner, self._block_bytes = file, scanner, block_bytes
        self._stopped = False
        self._reached = 0
        self._prefetch = Prefetch(1)
        self._scanned = self._prefetch.submit(self._scan)

    def stop(self) -> None:
        """Stop the scan, finished or not."""
        self._stopped = True
        self._prefetch.cancel([self._scanned])

    def close(self) -> None:
        """Stop the scan, and close the file."""
        self.stop()
        self._file.close()

    def is_of(self, file: BinaryIO) -> bool:
        """Return whether it reads this file, and not a new file of the same name."""
        return os.path.sameopenfile(self._file.fileno(), file.fileno())

    def found(self) -> tuple[CompiledScanner, int] | None:
        """Return the scanner and the byte that it reached, after its end; ``None`` if it failed.

        That byte is before the end of the list, the end of the file, or a broken event.
        """
        self._prefetch.result(self._scanned)
        return (self._scanner, self._reached) if self._reached > self.begin else None

    def _scan(self) -> None:
        try:
            self._file.seek(self.begin)
            window = Window(self._counted(iter(lambda: self._file.read(self._block_bytes), b"")))
            try:
                while window.more():
                    step = self._scanner.feed(window.text, window.place)
                    window.place = step.place
                    if step.stop is Stop.END:
                        window.place -= 1  # leave the bracket to the walk, which resumes here
                    if step.stop is not Stop.MORE:
                        break
            except DamagedTraceError:  # a value that is too long
                pass
        except (OSError, OverflowError, MemoryError):  # the other scan gets here and reports it
            return
        if not self._stopped:
            self._reached = self.begin + window.done

    def _counted(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        for block in blocks:
            if self._stopped:
                return
            self.read += len(block)
            yield block


class Halves:
    """The text of a file whose second half another thread scans, and a scan that takes its findings.

    Args:
        stream: The file.
        scanner: Takes the events of the first half, and then those of both.
        half: The second half.
        block_bytes: Bytes of text per step.
    """

    def __init__(self, stream: TextStream, scanner: CompiledScanner, half: SecondHalf, block_bytes: int) -> None:
        self._stream, self._scanner, self._half = stream, scanner, half
        stream.pause = half.begin
        stream.beside = lambda: half.read
        self.window = Window(stream.blocks(block_bytes), name=str(stream.path))

    def feed(self, text: bytes, place: int) -> Step:
        """See :meth:`~traceviz.parsers.kineto.decode.columns.Scanner.feed`."""
        step = self._scanner.feed(text, place)
        if self._stream.place == self._half.begin and step.stop is Stop.MORE:
            if step.place == len(text) and self._half.is_of(self._stream.file):
                found = self._half.found()
                if found is not None:  # resume where the scan of the second half stopped
                    other, reached = found
                    self._scanner.join(other)
                    self._stream.go_to(reached)
                    self.window.pass_over(reached - self._half.begin)
            else:
                self._half.stop()
        return step
