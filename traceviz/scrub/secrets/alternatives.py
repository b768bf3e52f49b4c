"""Pattern for many texts that shares common prefixes, so that the search time does not depend on their number."""

from __future__ import annotations

import re
from collections.abc import Iterable

_DEEPEST = 24
"""Maximum nesting of shared prefixes in the pattern."""


def any_of(texts: Iterable[bytes]) -> bytes:
    """Return a pattern of ``texts``. It matches the longest text that starts at a position."""
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
        shared = _shared(group[0], group[-1])
        rests = [text[shared:] for text in group]
        inner = b"" if rests == [b""] else _alternatives(rests, depth + 1)
        branches.append(re.escape(group[0][:shared]) + (b"(?:%b)" % inner if inner else b""))
        at = end
    pattern = b"|".join(branches)
    return b"(?:%b)?" % pattern if is_optional else pattern


def _shared(first: bytes, last: bytes) -> int:
    """Return the length of the common prefix of two texts."""
    for place, (one, other) in enumerate(zip(first, last, strict=False)):
        if one != other:
            return place
    return min(len(first), len(last))
