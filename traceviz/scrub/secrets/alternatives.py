"""One pattern of many texts, in which common beginnings stand once: a search takes the same time for any number."""

from __future__ import annotations

import re
from collections.abc import Iterable

_DEEPEST = 24
"""Beginnings within beginnings that the pattern shares."""


def any_of(texts: Iterable[bytes]) -> bytes:
    """A pattern of ``texts``; of those that start at a place it matches the longest."""
    return _alternatives(sorted(set(texts)), 0)


def _alternatives(texts: list[bytes], depth: int) -> bytes:
    """A pattern of sorted texts, the longest first, in which common beginnings stand once."""
    if depth == _DEEPEST or len(texts) == 1:
        return b"|".join(map(re.escape, sorted(texts, key=len, reverse=True)))
    branches: list[bytes] = []
    at = 1 if not texts[0] else 0  # the empty rest of a text that others start with
    is_optional = at == 1
    while at < len(texts):
        end = at + 1
        while end < len(texts) and texts[end][:1] == texts[at][:1]:
            end += 1
        group = texts[at:end]
        shared = _shared(group[0], group[-1])
        rests = [text[shared:] for text in group]
        inner = b"" if rests == [b""] else _alternatives(rests, depth + 1)
        branches.append(re.escape(group[0][:shared]) + (b"(?:%b)" % inner if inner else b""))
        at = end
    pattern = b"|".join(branches)
    return b"(?:%b)?" % pattern if is_optional else pattern


def _shared(first: bytes, last: bytes) -> int:
    """Length of the common beginning of two texts."""
    for place, (one, other) in enumerate(zip(first, last, strict=False)):
        if one != other:
            return place
    return min(len(first), len(last))
