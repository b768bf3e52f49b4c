"""The next block of a file is read, and inflated, while the one before it is scanned: both let go of the interpreter.

::

    this thread     |--scan 1--|--scan 2--|--scan 3--|
    the other    |1|-2-|         |-3-|
"""

from __future__ import annotations

from collections.abc import Iterator
from queue import Queue
from threading import Thread

_WAITING = 1
"""Blocks that wait to be taken: more would take memory, and save no time."""


def ahead(blocks: Iterator[bytes], size: int) -> Iterator[bytes]:
    """``blocks``, each of which is read while the caller works on the one before it.

    What reading raises is raised when its turn comes. A text of one block is read without another thread.

    Args:
        blocks: The text.
        size: Length of a full block.
    """
    first = next(blocks, b"")
    if len(first) < size:
        yield from filter(None, (first,))
        yield from blocks
        return
    reading = _Reading(blocks)
    if not reading.start():
        yield first
        yield from blocks
        return
    try:
        yield first
        yield from reading.taken()
    finally:
        reading.stop()


class _Reading:
    """A thread that takes blocks, and hands them over one by one; at the end an empty one, or what went wrong."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._ready: Queue[bytes | BaseException] = Queue(_WAITING)
        self._stopped = False
        self._thread = Thread(target=self._read, name="traceviz-read", daemon=True)

    def start(self) -> bool:
        """Begin; whether the machine has a thread to spare."""
        try:
            self._thread.start()
        except RuntimeError:  # under a limit of threads or of addresses
            return False
        return True

    def taken(self) -> Iterator[bytes]:
        """The blocks."""
        while block := self._ready.get():
            if isinstance(block, BaseException):
                raise block
            yield block

    def stop(self) -> None:
        """Let the thread end, whatever is still to come."""
        self._stopped = True
        while self._thread.is_alive():
            if not self._ready.empty():
                self._ready.get()
            self._thread.join(timeout=0.001)

    def _read(self) -> None:
        end: bytes | BaseException = b""
        try:
            for block in self._blocks:
                self._ready.put(block)
                if self._stopped:
                    return
        except BaseException as error:  # noqa: BLE001 (it is raised in the thread that takes the blocks)
            end = error
        self._ready.put(end)
