"""Values of JSON texts, including texts that break the rules of JSON, as real programs write them."""

from __future__ import annotations

import re
from collections import Counter

from traceviz.untrusted.json_documents import value_of

WRONG_ESCAPE = "texts with a backslash that JSON does not know"
CONTROL_CHARACTER = "texts with control characters as they are"
NOT_UTF8 = "texts with bytes that are not UTF-8"

_CONTROL = re.compile(rb"[\x00-\x1f]")
_BAD_ESCAPE = re.compile(rb"\\(?:\\|(?!u[0-9a-fA-F]{4})[^\"/bfnrt\\])", re.DOTALL)
_BLANKS_OUTSIDE = re.compile(rb'("[^"\\]*+(?:\\.[^"\\]*+)*+")|[ \t\r\n]+', re.DOTALL)


def text_value(raw: bytes, repaired: Counter[str] | None = None) -> str | None:
    """Return a text unescaped; ``None`` for ``null``; any other value as its JSON text without blanks.

    Bytes that are not UTF-8 are replaced.

    Args:
        raw: The JSON text of the value.
        repaired: Counts texts that break JSON's rules.
    """
    if raw.startswith(b'"'):
        return _unescaped(raw[1:-1], Counter() if repaired is None else repaired)
    if raw == b"null":
        return None
    return _BLANKS_OUTSIDE.sub(rb"\1", raw).decode("utf-8", "replace")


def _unescaped(raw: bytes, repaired: Counter[str]) -> str:
    if _CONTROL.search(raw):
        repaired[CONTROL_CHARACTER] += 1
    text = raw.decode("utf-8", "replace")
    if "\ufffd" in text and b"\xef\xbf\xbd" not in raw:
        repaired[NOT_UTF8] += 1
    if "\\" not in text:
        return text
    # A program that writes a backslash before a character that it must not precede does not escape at all, as early
    # ones did not in folders of Windows (``C:\new\Users``): all backslashes of the text stand for themselves.
    if any(match.group() != b"\\\\" for match in _BAD_ESCAPE.finditer(raw)):
        repaired[WRONG_ESCAPE] += 1
        return text.replace('\\"', '"')
    value: str = value_of(f'"{text}"')
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
