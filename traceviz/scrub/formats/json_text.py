"""Texts in the segments of a JSON trace, without an object per event.

Within a segment, regular expressions find each text with the key before it. Everything between them is numbers and
signs, and is copied. :mod:`traceviz.parsers.shared.json.walk` cuts the trace into segments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from traceviz.core.errors import DamagedTraceError
from traceviz.parsers.shared.json.grammar import BrokenError, CutError, skip_value
from traceviz.parsers.shared.json.stream import TextStream
from traceviz.parsers.shared.json.walk import (
    BLOCK_BYTES,
    DamagedTextError,
    Segment,
    SegmentKind,
    Step,
    Stop,
    TraceWalk,
)
from traceviz.parsers.shared.json.window import Window
from traceviz.untrusted.json_documents import value_of

_TEXT = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_BLANK = rb"[ \t\r\n]*+"
_DEEPEST = 6
"""Maximum nesting depth of values. Events with deeper values are handled one by one, which is slow."""


def _balanced(depth: int) -> bytes:
    """Return a pattern of an object or list with others nested up to ``depth`` deep."""
    inner = rb"|" + _balanced(depth - 1) if depth else b""
    return rb"[\[{](?:[^\"\[\]{}]++|" + _TEXT + inner + rb")*+[\]}]"


_ELEMENTS = re.compile(rb"(?:[ \t\r\n,]++|" + _balanced(_DEEPEST) + rb")*+", re.DOTALL)
_TOKEN = re.compile(rb"%b(?:%b:%b(?:%b|[\[{])?+)?+" % (_TEXT, _BLANK, _BLANK, _TEXT), re.DOTALL)
_PARTS = re.compile(rb"(%b)(?:(%b:%b)(%b|[\[{])?)?" % (_TEXT, _BLANK, _BLANK, _TEXT), re.DOTALL)
_JSON = re.compile(
    rb"(?:[ \t\r\n,:\[\]{}]++|%b|[+-]?(?:0x[0-9a-fA-F]++|[0-9.]++(?:[eE][+-]?[0-9]++)?+|[nN]a[nN]|[iI]nf(?:inity)?+)"
    rb"(?![\w.])|(?:true|false|null|None|True|False)(?![\w.]))*+" % _TEXT,
    re.DOTALL,
)
_AGAIN = "Copy the file again, or convert what is left, and scrub that: traceviz convert TRACE -o DIR."


class Token(NamedTuple):
    """A text in a list, or a key with a text, the start of an object or list (``opens``), or a number.

    Args:
        key: The key between its quotes; ``None`` for a text in a list.
        between: The colon.
        value: The text between its quotes; ``None`` if there is no text.
        opens: ``{`` or ``[`` if an object or list starts.
    """

    key: bytes | None
    between: bytes
    value: bytes | None
    opens: bytes


def parsed(token: bytes) -> Token:
    """Parse a match of :func:`tokens`."""
    match = _PARTS.fullmatch(token)
    assert match is not None
    first, between, value = match.groups()
    if between is None:
        return Token(None, b"", first[1:-1], b"")
    if value is None or value in (b"{", b"["):
        return Token(first[1:-1], between, None, value or b"")
    return Token(first[1:-1], between, value[1:-1], b"")


def tokens(text: bytes) -> list[bytes]:
    """Return all texts and keys of a segment, each key with the text that follows."""
    return _TOKEN.findall(text)


def replaced(text: bytes, new: Callable[[bytes], bytes]) -> bytes:
    """Return ``text`` with every token replaced by the result of ``new``."""
    return _TOKEN.sub(lambda match: new(match.group()), text)


def containers(text: bytes, is_meant: Callable[[bytes], bool]) -> Iterator[tuple[int, int, bytes]]:
    """Yield start, end and key of objects and lists under the keys that ``is_meant`` accepts, without nested ones."""
    end = 0
    for match in _TOKEN.finditer(text):
        if match.start() < end or match.group()[-1:] not in (b"{", b"["):
            continue
        token = parsed(match.group())
        if token.opens and token.key is not None and is_meant(token.key):
            begin = match.end() - 1
            end = skip_value(text, begin)
            yield begin, end, token.key


def text_of(quoted: bytes) -> bytes:
    """Decode the part between the quotes of a JSON text.

    Raises:
        ValueError: it is not a JSON text.
    """
    if b"\\" not in quoted:
        return quoted
    text: Any = value_of(f'"{quoted.decode("utf-8", "replace")}"')
    return str(text).encode("utf-8", "replace")


def quoted_of(text: bytes) -> bytes:
    """Encode ``text`` for the place between the quotes of a JSON text."""
    return json.dumps(text.decode("utf-8", "replace"), ensure_ascii=False)[1:-1].encode()


def segments(path: Path, max_size: int | None = None) -> Iterator[Segment]:
    """Yield the segments of the file ``path``, compressed with gzip or not.

    Raises:
        DamagedTraceError: the file cannot be read, or is not complete JSON. Unreadable content could not be checked.
    """
    stream = TextStream(path, max_size)
    walk = TraceWalk(Window(stream.blocks(BLOCK_BYTES), name=str(path)), _scan, strict=True)
    try:
        for segment in walk.segments():
            # The scan checks events; values of headers are checked here.
            is_header = segment.kind is SegmentKind.HEADER
            if is_header and _first_wrong(segment.block, segment.begin, segment.end) is not None:
                why = f"The value of its member {segment.key!r} is no JSON."
                raise DamagedTextError(why)  # noqa: TRY301 (reported as damage that the walk finds)
            yield segment
    except DamagedTextError as error:
        raise _damaged(path, stream.damage or str(error)) from None
    if stream.damage:
        raise _damaged(path, stream.damage)


def _damaged(path: Path, why: str) -> DamagedTraceError:
    return DamagedTraceError(f"{path} is damaged: what cannot be read cannot be checked.", why, _AGAIN)


def _scan(text: bytes, place: int) -> Step:
    """Scan complete elements of a list of events that contain only JSON, without unquoted text.

    See :data:`traceviz.parsers.shared.json.walk.Scan`.
    """
    begin = place
    while True:
        match = _ELEMENTS.match(text, place)
        assert match is not None
        place = match.end()
        step = Step(Stop.MORE, place, place)
        if text[place : place + 1] == b"]":
            step = Step(Stop.END, place + 1, place + 1)
        elif place < len(text):
            try:
                place = skip_value(text, place)
                continue
            except CutError:
                pass
            except BrokenError as error:
                step = Step(Stop.BROKEN, place, error.place)
        wrong = _first_wrong(text, begin, step.place)
        return step if wrong is None else Step(Stop.BROKEN, begin, wrong)


def _first_wrong(text: bytes, begin: int, end: int) -> int | None:
    """Return the position of the first byte in a range that cannot be JSON; ``None`` if there is none."""
    match = _JSON.match(text, begin, end)
    assert match is not None
    return match.end() if match.end() < end else None
