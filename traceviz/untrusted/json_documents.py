"""JSON from untrusted files: the one place where text becomes a document, within bounds.

Manifests, markers, status files, descriptions and saved reports are small and flat. Anything larger or deeper is
refused: Python's parser would take a hundred times its size, and code that walks through it would exhaust the stack.
"""

from __future__ import annotations

import json
import math
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

MOST_BYTES = 16 << 20
"""Bytes of the longest manifest: a run of thousands of processes has a manifest of a tenth of this."""
MOST_REPORT_BYTES = 64 << 20
"""Bytes of the longest saved report."""
MOST_DEPTH = 500
"""Most objects and lists inside each other: half of what Python's stack holds. Documents of traceviz have ten."""
MOST_VALUES = 2_000_000

_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]")
_LONE = re.compile("[\ud800-\udfff]")


class JsonError(ValueError):
    """The text is not a document; the message gives the reason."""


def read_document(path: Path, *, most_bytes: int = MOST_BYTES) -> Any:
    """Read the document in a file; see :func:`document_of`.

    Raises:
        JsonError: it is not a document, or too large.
        OSError: it cannot be read.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise JsonError("it is no regular file")
    with path.open("rb") as file:
        return document_of(file.read(most_bytes + 1), most_bytes=most_bytes)


def read_object(path: Path) -> dict[str, Any]:
    """Read the object in a file; return an empty one if there is none that can be read. Never raises."""
    try:
        document = read_document(path)
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def object_of(text: str | bytes) -> dict[str, Any]:
    """Parse the object in ``text``; return an empty one if it is not an object. Never raises."""
    try:
        document = document_of(text)
    except JsonError:
        return {}
    return document if isinstance(document, dict) else {}


_INFINITE_DIGITS = 309
"""Integers with so many characters may exceed all floats."""


def document_of(
    text: str | bytes,
    *,
    most_bytes: int = MOST_BYTES,
    constant: Callable[[str], Any] = lambda _: None,
    keep_halves: bool = False,
) -> Any:
    """Parse ``text`` as a document.

    Args:
        text: JSON; as bytes, in UTF-8.
        most_bytes: Most bytes or characters; a longer text is refused.
        constant: Returns a replacement for ``NaN`` and infinities, by their name, and for numbers that are infinite as
            a float, by their digits; may raise a ``ValueError``. By default they become ``None``.
        keep_halves: Keep halves of surrogate pairs, which cannot be encoded; else they become U+FFFD.

    Raises:
        JsonError: it is not JSON, is too long, too deep, has too many values, or a key twice.
    """
    if len(text) > most_bytes:
        raise JsonError(f"it is longer than {most_bytes >> 20} MiB")
    try:
        words = text.decode("utf-8-sig") if isinstance(text, bytes) else text
    except UnicodeDecodeError as error:
        raise JsonError(f"it is not UTF-8: {error.reason} at byte {error.start}") from error
    if sum(map(words.count, ",[{")) > MOST_VALUES:
        raise JsonError(f"it has more than {MOST_VALUES:,} values")
    document = _parsed(
        words,
        parse_int=lambda number: int(number) if len(number) < _INFINITE_DIGITS else constant(f"{number[:20]}…"),
        parse_float=lambda number: _finite(number, constant),
        parse_constant=constant,
        object_pairs_hook=_object,
    )
    if keep_halves or not (_HALF_PAIR.search(words) or _LONE.search(words)):
        return document
    again = json.dumps(document, ensure_ascii=False)
    return json.loads(again.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


def value_of(text: str) -> Any:
    """Parse a value from a trace, which may be careless JSON: control characters, duplicate keys.

    Raises:
        JsonError: it is not JSON, too deep, or has a number of thousands of digits.
    """
    return _parsed(text, strict=False)


def _parsed(text: str, **options: Any) -> Any:
    try:
        document = json.loads(text, **options)
    except JsonError:
        raise
    except RecursionError:
        raise JsonError("it is nested too deeply") from None
    except ValueError as error:
        raise JsonError(str(error)) from error
    # The depth is checked without recursion: this makes recursion safe for later code.
    level = [document]
    for _ in range(MOST_DEPTH):
        level = [one for one in level if isinstance(one, (dict, list))]
        if not level:
            return document
        level = [inside for one in level for inside in (one.values() if isinstance(one, dict) else one)]
    raise JsonError("it is nested too deeply")


def _finite(number: str, constant: Callable[[str], Any]) -> Any:
    value = float(number)
    return value if math.isfinite(value) else constant(number)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for at, name in enumerate(names) if name in names[:at])
        raise JsonError(f"an object has the key {twice[:100]!r} twice")
    return members
