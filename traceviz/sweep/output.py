"""Output of a run to stdout and stderr, limited to its start and its end."""

from __future__ import annotations

import re
from collections.abc import Iterable

from traceviz.core.sanitize import bounded, visible

HEAD_BYTES, TAIL_BYTES = 1 << 18, 1 << 18
MOST_LINES = 20
"""Last lines of a run that are kept in its manifest."""
_LONGEST_LINE = 300
_OURS = "traceviz: "
"""Prefix of lines of ``traceviz collect``, which are not the program's."""
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Output:
    """The output of one run, bounded.

    Args:
        head: Bytes of its start that are kept.
        tail: Bytes of its end that are kept.
    """

    def __init__(self, head: int = HEAD_BYTES, tail: int = TAIL_BYTES) -> None:
        self._most_head = head
        self._most_tail = tail
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0

    def add(self, data: bytes) -> None:
        """Add output."""
        room = self._most_head - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        excess = len(self._tail) - self._most_tail
        if excess > self._most_tail:  # rarely, so that kept data is rarely moved
            self._cut(excess)

    def _cut(self, excess: int) -> None:
        del self._tail[:excess]
        self._left_out += excess

    def text(self) -> str:
        """Return all kept output; a line states how much was left out."""
        self._cut(max(len(self._tail) - self._most_tail, 0))
        parts = [bytes(self._head), bytes(self._tail)]
        if self._left_out:
            parts.insert(1, f"\n… {self._left_out:,} bytes left out …\n".encode())
        return b"".join(parts).decode("utf-8", "replace")


def program_lines(text: str) -> list[str]:
    """Return the lines of the program itself; of a line that it rewrote, such as a progress bar, the last version."""
    plain = _COLOUR.sub("", text).replace("\r\n", "\n")
    lines = (line.rstrip("\r").rpartition("\r")[2].rstrip() for line in plain.split("\n"))
    return [line for line in lines if line and not line.startswith(_OURS)]


def last_lines(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the last of these lines, each limited in length and without control characters."""
    return tuple(visible(bounded(line))[:_LONGEST_LINE] for line in [*lines][-MOST_LINES:])
