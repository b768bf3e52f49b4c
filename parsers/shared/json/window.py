"""The part of a long text that is being looked at, while the rest is still to come."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from traceviz.parsers.shared.json.grammar import skip_blanks


@dataclass(slots=True, eq=False)
class Window:
    """The part of the text that is being looked at.

    Args:
        blocks: The text.
        text: What is looked at.
        place: What is done with: nothing before it is needed again.
        ended: Whether the text goes no further.
    """

    blocks: Iterator[bytes]
    text: bytes = b""
    place: int = 0
    ended: bool = False
    _before: int = 0

    @property
    def done(self) -> int:
        """Bytes of the whole text that are done with."""
        return self._before + self.place

    def more(self) -> bool:
        """Look further; whether there was anything. What does not fit in a block doubles the window each time."""
        rest = self.text[self.place :]
        parts, size = [rest], 0
        while size < max(len(rest), 1):
            block = next(self.blocks, b"")
            if not block:
                self.ended = True
                break
            parts.append(block)
            size += len(block)
        self._before += self.place
        self.text, self.place = b"".join(parts), 0
        return size > 0

    def next(self) -> bytes:
        """The next byte that is no blank; empty at the end of the text."""
        while True:
            self.place = skip_blanks(self.text, self.place)
            if self.place < len(self.text):
                return self.text[self.place : self.place + 1]
            if not self.more():
                return b""

    def seek(self, pattern: re.Pattern[bytes], longest: int) -> bool:
        """Go to the end of the next match of ``pattern``, which is never longer than ``longest``."""
        while True:
            match = pattern.search(self.text, self.place)
            if match is not None:
                self.place = match.end()
                return True
            self.place = max(self.place, len(self.text) - longest)
            if not self.more():
                self.place = len(self.text)
                return False
