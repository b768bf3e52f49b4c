r"""Spellings of texts: readings of an encoded text, and one pattern of many texts.

``%2Fhome%2Fada`` and ``\/home\/ada`` name the same home folder as ``/home/ada``. A reading maps each of its parts back
to the position of the encoded part in the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from urllib.parse import quote

_CODE = re.compile(rb"%[0-9A-Fa-f]{2}|\\(?:u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|[\"'\\/bfnrt])")
_LETTERS = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_MOST_ROUNDS = 3
"""Maximum levels of nested encodings that are decoded, such as JSON in JSON in a URL."""
_DEEPEST = 24
"""Maximum nesting of shared prefixes in a pattern of many texts."""


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
    size = place = 0

    def add(part: bytes, begin: int, end: int) -> None:
        nonlocal size
        at.append(size)
        begins.append(begin)
        ends.append(end)
        parts.append(part)
        size += len(part)

    for code in _CODE.finditer(reading.text):
        if place < code.start():
            add(reading.text[place : code.start()], place, -1)
        add(_character(code.group()), *code.span())
        place = code.end()
    if place < len(reading.text):
        add(reading.text[place:], place, -1)
    return Reading(b"".join(parts), at, begins, ends, reading)


def _character(code: bytes) -> bytes:
    if code.startswith(b"%"):
        return bytes.fromhex(code[1:].decode())
    if code[1:2] in b"ux":
        return chr(int.from_bytes(bytes.fromhex(code[2:].decode()))).encode("utf-8", "replace")
    return _LETTERS.get(code[1:], code[1:])


# One pattern of many texts ------------------------------------------------------------------------------------------


def any_of(texts: Iterable[bytes]) -> bytes:
    """Return a pattern of ``texts``, which matches the longest one that starts at a position.

    Common prefixes are shared, so that the search time does not depend on the number of texts.
    """
    return _alternatives(sorted(set(texts)), 0)


def _alternatives(texts: list[bytes], depth: int) -> bytes:
    """Return a pattern of sorted texts, the longest first, with shared prefixes."""
    if depth == _DEEPEST or len(texts) == 1:
        return b"|".join(map(re.escape, sorted(texts, key=len, reverse=True)))
    branches: list[bytes] = []
    at = 1 if not texts[0] else 0  # the empty rest of a text that is a prefix of others
    is_optional = at == 1
    while at < len(texts):
        end = at + 1
        while end < len(texts) and texts[end][:1] == texts[at][:1]:
            end += 1
        group = texts[at:end]
        pairs = zip(group[0], group[-1], strict=False)
        shared = next((place for place, pair in enumerate(pairs) if pair[0] != pair[1]), len(group[0]))
        rests = [text[shared:] for text in group]
        inner = b"" if rests == [b""] else _alternatives(rests, depth + 1)
        branches.append(re.escape(group[0][:shared]) + (b"(?:%b)" % inner if inner else b""))
        at = end
    pattern = b"|".join(branches)
    return b"(?:%b)?" % pattern if is_optional else pattern
