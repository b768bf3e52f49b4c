r"""Readings of a text: as written, and with percent-encoded and backslash-escaped characters decoded.

``%2Fhome%2Fada`` and ``\/home\/ada`` name the same home folder as ``/home/ada``. A reading maps each of its parts back
to the position of the encoded part in the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import quote

_CODE = re.compile(rb"%[0-9A-Fa-f]{2}|\\(?:u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|[\"'\\/bfnrt])")
_LETTERS = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_MOST_ROUNDS = 3
"""Maximum levels of nested encodings that are decoded, such as JSON in JSON in a URL."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A text, or its decoded form.

    Args:
        text: The decoded text.
        at: Positions in ``text`` where a run of plain bytes or a decoded character starts.
        begins: The corresponding positions in ``of``.
        ends: Positions in ``of`` where decoded characters end; -1 for a run of plain bytes.
        of: The reading that was decoded; ``None`` for the text as written.
    """

    text: bytes
    at: list[int] = field(default_factory=list)
    begins: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    of: Reading | None = None

    def place(self, begin: int, end: int) -> tuple[int, int]:
        """Return start and end, in the text as written, of the part from ``begin`` to ``end``."""
        if self.of is None or begin >= end:
            return begin, end
        first, last = bisect_right(self.at, begin) - 1, bisect_right(self.at, end - 1) - 1
        is_plain = self.ends[first] < 0
        start = self.begins[first] + (begin - self.at[first] if is_plain else 0)
        stop = self.begins[last] + end - self.at[last] if self.ends[last] < 0 else self.ends[last]
        return self.of.place(start, stop)


def readings(text: bytes) -> Iterator[Reading]:
    """Yield the text as written, and decoded once for each level of encoding."""
    reading = Reading(text)
    yield reading
    for _ in range(_MOST_ROUNDS):
        if (b"%" not in reading.text and b"\\" not in reading.text) or _CODE.search(reading.text) is None:
            return
        reading = _decoded(reading)
        yield reading


def spellings(text: bytes) -> Iterator[bytes]:
    """Yield the spellings of a text: as it is, percent-encoded, and with the escapes of JSON."""
    yield text
    for safe in ("/", ""):
        encoded = quote(text, safe=safe).encode()
        yield encoded
        yield re.sub(rb"%[0-9A-F]{2}", lambda code: code.group().lower(), encoded)
    escaped = text.replace(b"\\", rb"\\").replace(b'"', rb"\"")
    yield escaped
    yield escaped.replace(b"/", rb"\/")


def _decoded(reading: Reading) -> Reading:
    parts: list[bytes] = []
    at, begins, ends = [], [], []
    size, place = 0, 0
    for code in _CODE.finditer(reading.text):
        if place < code.start():
            at.append(size)
            begins.append(place)
            ends.append(-1)
            parts.append(reading.text[place : code.start()])
            size += code.start() - place
        character = _character(code.group())
        at.append(size)
        begins.append(code.start())
        ends.append(code.end())
        parts.append(character)
        size += len(character)
        place = code.end()
    if place < len(reading.text):
        at.append(size)
        begins.append(place)
        ends.append(-1)
        parts.append(reading.text[place:])
    return Reading(b"".join(parts), at, begins, ends, reading)


def _character(code: bytes) -> bytes:
    if code.startswith(b"%"):
        return bytes.fromhex(code[1:].decode())
    if code[1:2] in b"ux":
        return chr(int.from_bytes(bytes.fromhex(code[2:].decode()))).encode("utf-8", "replace")
    return _LETTERS.get(code[1:], code[1:])
