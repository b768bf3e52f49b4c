"""The part of a long text that is being scanned, before the rest is read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from traceviz.core.errors import DamagedTraceError
from traceviz.core.units import format_value
from traceviz.parsers.shared.json.grammar import skip_blanks

LONGEST_VALUE_BYTES = 50 * 10**6
"""Upper limit of one value. The longest that profilers write, a list of all frames, takes a few megabytes.

A gzip file of a few kilobytes can hold a text of gigabytes.
"""


@dataclass(slots=True, eq=False)
class Window:
    """The part of the text that is being scanned.

    Args:
        blocks: The text.
        text: The current part.
        place: Position in it: nothing before it is needed again.
        ended: True if the text has no further blocks.
        name: Name of the text's source, for messages.
    """

    blocks: Iterator[bytes]
    text: bytes = b""
    place: int = 0
    ended: bool = False
    name: str = "The text"
    _before: int = 0

    @property
    def done(self) -> int:
        """Bytes of the whole text before the current place."""
        return self._before + self.place

    def more(self) -> bool:
        """Read further blocks; return whether there were any. A value that does not fit doubles the window each time.

        Raises:
            DamagedTraceError: one value is longer than :data:`LONGEST_VALUE_BYTES`.
        """
        rest = self.text[self.place :]
        check_length(len(rest), self.name)
        self._before += self.place
        self.text, self.place = rest, 0  # free the finished part before reading more
        parts, size = [rest], 0
        while size < min(max(len(rest), 1), LONGEST_VALUE_BYTES - len(rest) + 1):
            block = next(self.blocks, b"")
            if not block:
                self.ended = True
                break
            parts.append(block)
            size += len(block)
        self.text = b"".join(parts)
        return size > 0

    def pass_over(self, size: int) -> None:
        """Skip ``size`` bytes that follow ``text`` and are not among the blocks."""
        self._before += size

    def next(self) -> bytes:
        """Return the next byte that is not blank; empty at the end of the text."""
        while True:
            self.place = skip_blanks(self.text, self.place)
            if self.place < len(self.text):
                return self.text[self.place : self.place + 1]
            if not self.more():
                return b""

    def seek(self, pattern: re.Pattern[bytes], longest: int) -> bool:
        """Go to the end of the next match of ``pattern``, at most ``longest`` bytes long; return whether one exists."""
        while True:
            match = pattern.search(self.text, self.place)
            if match is not None:
                self.place = match.end()
                return True
            self.place = max(self.place, len(self.text) - longest)
            if not self.more():
                self.place = len(self.text)
                return False


def check_length(length: int, name: object) -> None:
    """Raise for a value of at least ``length`` bytes if no profiler writes one of that length.

    Raises:
        DamagedTraceError: it is longer than :data:`LONGEST_VALUE_BYTES`.
    """
    if length > LONGEST_VALUE_BYTES:
        raise DamagedTraceError(
            f"{name} holds one value of more than {format_value(LONGEST_VALUE_BYTES, 'bytes')}.",
            "No profiler writes such a text; files that are made to exhaust the memory hold it.",
            "Record again, or cut the value out of the file.",
        )
