"""Text files, plain or gzip, as a stream of blocks; cut or broken files are read up to the damage.

A small gzip file can hold more text than any machine has memory. Traces repeat themselves, so the text may be many
times as long as the file, but not without limit: see :data:`FREE_BYTES`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from traceviz.core.errors import DamagedTraceError
from traceviz.core.units import format_value
from traceviz.parsers.base import Progress, silent

try:
    from isal import isal_zlib
except ImportError:  # no wheel for this machine: zlib takes three times as long
    _inflater: Any = zlib
else:
    _inflater = isal_zlib

_BROKEN: tuple[type[Exception], ...] = (zlib.error, _inflater.error)
GZIP_MAGIC = b"\x1f\x8b"
FREE_BYTES = 10**9
"""Text up to this length is always read, even of a tiny file."""
MOST_TIMES = 400
"""Maximum ratio of text to file beyond :data:`FREE_BYTES`. Traces reach 60, files made to exhaust memory 1,000."""
MOST_BYTES = 64 * 10**9
"""Maximum length of the text of a gzip file, unless the caller raises the limit."""
HEAD_TEXT_BYTES = 2**18
"""Inflated text that is enough to recognise a file."""

_GZIP = 31  # zlib's number for gzip with a window of any size
_PIECE = 1024
_HEAD_PIECE = 64
_FIRST_READ, _READ = 2**12, 2**20
TOLD_BYTES = 8 * 2**20
"""Bytes of the file between two reports of progress."""


@dataclass(slots=True, eq=False)
class TextStream:
    """The text of one file, from start to end, once.

    Args:
        path: The file.
        max_size: The longest text to read, in bytes; ``None`` for the limits of this module.
        progress: Receives the bytes read.
        damage: Reason why the text ends early, as a sentence; empty if it does not, and before the end.
        pause: A byte at which a block of a plain file ends; 0 for none.
        beside: Returns the bytes of the file that another thread has read, for ``progress``.
    """

    path: Path
    max_size: int | None = None
    progress: Progress = silent
    damage: str = ""
    pause: int = 0
    beside: Callable[[], int] = lambda: 0
    _given: int = 0
    _size: int = 0
    _reported: int = 0
    _file: BinaryIO = field(init=False)

    @property
    def place(self) -> int:
        """Position of the next block in the text."""
        return self._given

    @property
    def file(self) -> BinaryIO:
        """The file, open while blocks are yielded."""
        return self._file

    def go_to(self, place: int) -> None:
        """Continue at the byte ``place`` of a plain file; another thread has read the bytes before."""
        self._file.seek(place)
        self._given, self.beside = place, lambda: 0

    def blocks(self, size: int) -> Iterator[bytes]:
        """Yield the text in blocks of at most ``size`` bytes, none of them empty.

        Raises:
            DamagedTraceError: the file cannot be opened or read, or its text is longer than allowed.
        """
        try:
            with self.path.open("rb") as self._file:
                self._size = self.path.stat().st_size
                packed = self._file.read(2) == GZIP_MAGIC
                self._file.seek(0)
                for block in self._members(size) if packed else self._plain(size):
                    self._given += len(block)
                    self._check_limit(packed=packed)
                    # Report only from time to time: the receiver may ask the system for its free memory.
                    read = self._file.tell() + self.beside()
                    if read - self._reported >= TOLD_BYTES or (read >= self._size > self._reported):
                        self._reported = read
                        self.progress("decode", read, self._size)
                    yield block
        except OSError as error:
            raise DamagedTraceError(f"{self.path} cannot be read.", f"{error.strerror or error}.") from error

    def _plain(self, size: int) -> Iterator[bytes]:
        while block := self._file.read(min(size, self.pause - self._given) if self._given < self.pause else size):
            yield block

    def _members(self, size: int) -> Iterator[bytes]:
        """Yield the text of all members of a gzip file, which may consist of several."""
        start = 0
        while True:
            stream = _inflater.decompressobj(wbits=_GZIP)
            given = 0
            try:
                for block in self._member(stream, start, size):
                    given += len(block)
                    yield block
            except _BROKEN as error:
                yield from self._salvage(start, given, size)
                self.damage = f"The gzip file is broken: {error}."
                return
            if not stream.eof:
                self.damage = "The gzip file is cut off."
                return
            start = self._file.tell() - len(stream.unused_data)
            self._file.seek(start)
            following = self._file.read(2)
            if following != GZIP_MAGIC:
                # Zeros fill the last block of a tape or a disk; other bytes are damage.
                if (following + self._file.read(_READ)).strip(b"\0"):
                    self.damage = "The gzip file goes on with something that is not gzip; that is not read."
                return

    def _member(self, stream: Any, start: int, size: int) -> Iterator[bytes]:
        """Yield the text of the member that starts at byte ``start`` of the file."""
        self._file.seek(start)
        reach = _FIRST_READ  # members may be tiny and many, and bytes read beyond one are read again for the next
        while not stream.eof:
            packed = stream.unconsumed_tail or self._file.read(reach)
            reach = min(2 * reach, _READ)
            block = stream.decompress(packed, size)
            if block:
                yield block
            elif not packed:
                return

    def _salvage(self, start: int, given: int, size: int) -> Iterator[bytes]:
        """Yield the text after the first ``given`` bytes of a broken member, up to the broken byte.

        The call that meets the broken byte returns nothing, so the bytes before it are inflated again in small pieces.
        """
        self._file.seek(start)
        stream = zlib.decompressobj(wbits=_GZIP)
        for piece in iter(lambda: self._file.read(_PIECE), b""):
            before = stream.copy()
            try:
                text, broken = stream.decompress(piece), False
            except zlib.error:
                text, broken = b"".join(_byte_by_byte(before, piece)), True
            for begin in range(given, len(text), size):
                yield text[begin : begin + size]
            given = max(given - len(text), 0)
            if broken:
                return

    def _check_limit(self, *, packed: bool) -> None:
        limit = self.max_size
        if limit is None and packed:
            limit = min(max(FREE_BYTES, MOST_TIMES * self._size), MOST_BYTES)
        if limit is None or self._given <= limit:
            return
        allowed, there = (format_value(size, "bytes") for size in (limit, self._size))
        raise DamagedTraceError(
            f"{self.path} holds more than {allowed} of text in a file of {there}.",
            "" if self.max_size is not None else "Files that are made to exhaust the memory do this.",
            "If the trace is really so large, give --max-size with the size to read, such as --max-size 200GB.",
        )


@lru_cache(maxsize=2)
def head_text(head: bytes) -> bytes:
    """Return the start of the JSON, from the start of a file that may be gzip, as far as it can be inflated.

    Several readers ask for it, and scrubbing a trace asks again: the results of the latest files are cached.
    """
    text = _inflate(head) if head.startswith(GZIP_MAGIC) else head
    return text.removeprefix(b"\xef\xbb\xbf").lstrip()


def _inflate(head: bytes) -> bytes:
    """Return up to :data:`HEAD_TEXT_BYTES` of text. Inflates small pieces: a piece with a broken byte gives nothing."""
    stream, text = zlib.decompressobj(wbits=_GZIP), bytearray()
    with suppress(zlib.error):
        for begin in range(0, len(head), _HEAD_PIECE):
            text += stream.decompress(head[begin : begin + _HEAD_PIECE], HEAD_TEXT_BYTES - len(text))
            if len(text) >= HEAD_TEXT_BYTES:
                break
    return bytes(text)


def _byte_by_byte(stream: Any, piece: bytes) -> Iterator[bytes]:
    """Yield the text of ``piece`` up to its broken byte."""
    with suppress(zlib.error):
        for place in range(len(piece)):
            yield stream.decompress(piece[place : place + 1])
