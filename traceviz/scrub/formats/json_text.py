"""A JSON trace as a stream of segments, and the texts in it, without an object per event.

The text is cut where an element of the list of events ends. Within a segment regular expressions find the texts, each
with the key before it; all between them are numbers and signs, and are copied.

::

    {"schemaVersion": 1, "traceEvents": [ {"name": "f", "args": {"n": 1}}, {...}, ... ], "host_name": "node7"}
    '-header-----------' '-glue--------' '-events------------------------------' '-glue' '-header-------------'
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from enum import Enum, auto
from pathlib import Path
from typing import Any, NamedTuple

from traceviz.errors import DamagedTraceError
from traceviz.parsers.shared.json_grammar import BrokenError, CutError, skip_text, skip_value
from traceviz.parsers.shared.json_stream import TextStream
from traceviz.parsers.shared.json_window import Window

EVENTS = b"traceEvents"
BLOCK_BYTES = 8 * 2**20

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_TEXT = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_BLANK = rb"[ \t\r\n]*+"
_DEEPEST = 6
"""Values of an event that are nested deeper are taken one by one, which is slow."""


def _balanced(depth: int) -> bytes:
    """A pattern of an object or list in which others lie ``depth`` deep."""
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


class What(Enum):
    """What a segment is."""

    GLUE = auto()
    """Signs between the others."""
    HEADER = auto()
    """The value of a member of the file."""
    EVENTS = auto()
    """Whole elements of the list of events, and the commas between them."""


class Segment(NamedTuple):
    """A stretch of the file; all of them one after the other are the file.

    Args:
        what: What it is.
        text: Its bytes.
        key: Of a header, its name.
    """

    what: What
    text: bytes
    key: str = ""


class Token(NamedTuple):
    """A text in a list; or a key with a text, the begin of an object or list (``opens``), or a number.

    Args:
        key: The key between its quotes; ``None`` for a text in a list.
        between: The colon.
        value: The text between its quotes; ``None`` where there is none.
        opens: ``{`` or ``[`` where a value of several begins.
    """

    key: bytes | None
    between: bytes
    value: bytes | None
    opens: bytes


def parsed(token: bytes) -> Token:
    """A match of :func:`tokens`, taken apart."""
    match = _PARTS.fullmatch(token)
    assert match is not None
    first, between, value = match.groups()
    if between is None:
        return Token(None, b"", first[1:-1], b"")
    if value is None or value in (b"{", b"["):
        return Token(first[1:-1], between, None, value or b"")
    return Token(first[1:-1], between, value[1:-1], b"")


def tokens(text: bytes) -> list[bytes]:
    """All texts and keys of a segment, keys together with the text that follows."""
    return _TOKEN.findall(text)


def replaced(text: bytes, new: Callable[[bytes], bytes]) -> bytes:
    """``text`` with ``new`` of every token in its place."""
    return _TOKEN.sub(lambda match: new(match.group()), text)


def containers(text: bytes, is_meant: Callable[[bytes], bool]) -> Iterator[tuple[int, int, bytes]]:
    """Values of several under keys that are meant: where each begins and ends, and its key; none within another."""
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
    """What stands between the quotes of a JSON text, decoded.

    Raises:
        ValueError: it is none.
    """
    if b"\\" not in quoted:
        return quoted
    found: Any = json.loads(b'"' + quoted.decode("utf-8", "replace").encode() + b'"', strict=False)
    return str(found).encode("utf-8", "replace")


def quoted_of(text: bytes) -> bytes:
    """``text`` as it stands between the quotes of a JSON text."""
    return json.dumps(text.decode("utf-8", "replace"), ensure_ascii=False)[1:-1].encode()


def segments(path: Path, max_size: int | None = None) -> Iterator[Segment]:
    """The file ``path``, gzip or not, segment by segment.

    Raises:
        DamagedTraceError: it cannot be read, or is no whole JSON: what cannot be read cannot be checked.
    """
    stream = TextStream(path, max_size)
    try:
        yield from _Walk(stream.blocks(BLOCK_BYTES)).segments()
    except CutError:
        raise _damaged(path, stream.damage or "The text ends too early.") from None
    except BrokenError as error:
        raise _damaged(path, f"The text is no JSON: {error}") from None
    if stream.damage:
        raise _damaged(path, stream.damage)


def _damaged(path: Path, why: str) -> DamagedTraceError:
    return DamagedTraceError(f"{path} is damaged: what cannot be read cannot be checked.", why, _AGAIN)


class _Walk(Window):
    """The way through a file."""

    def segments(self) -> Iterator[Segment]:
        """All segments."""
        self.more()
        if self.text.startswith(_BYTE_ORDER_MARK):
            self.place = len(_BYTE_ORDER_MARK)
        first = self.next()
        if first == b"[":
            yield from self._events()
        elif first == b"{":
            yield self._glue(1)
            yield from self._members()
        else:
            raise BrokenError(self.place)
        if self.next():
            raise BrokenError(self.place)

    def _members(self) -> Iterator[Segment]:
        while True:
            sign = self.next()
            if sign == b"}":
                yield self._glue(1)
                return
            if sign == b",":
                yield self._glue(1)
                continue
            if sign != b'"':
                raise CutError if not sign else BrokenError(self.place)
            quoted = self._take(skip_text)
            if self.next() != b":":
                raise CutError if self.ended and self.place >= len(self.text) else BrokenError(self.place)
            self.place += 1
            yield Segment(What.GLUE, quoted + b":")
            if not (begins := self.next()):
                raise CutError
            key = text_of(quoted[1:-1])
            if key == EVENTS and begins == b"[":
                yield from self._events()
            else:
                yield Segment(What.HEADER, self._take(skip_value), key.decode("utf-8", "replace"))

    def _events(self) -> Iterator[Segment]:
        yield self._glue(1)
        while True:
            match = _ELEMENTS.match(self.text, self.place)
            assert match is not None
            if match.end() > self.place:
                yield Segment(What.EVENTS, self._checked(match.end()))
            sign = self.text[self.place : self.place + 1]
            if sign == b"]":
                yield self._glue(1)
                return
            if not sign:
                if not self.more():
                    raise CutError
                continue
            try:
                end = skip_value(self.text, self.place)
            except CutError:
                if not self.more():
                    raise
            else:
                yield Segment(What.EVENTS, self._checked(end))

    def _checked(self, end: int) -> bytes:
        """What stands before ``end``, if there is nothing in it but JSON: no text without quotes."""
        begin, self.place = self.place, end
        match = _JSON.match(self.text, begin, end)
        assert match is not None
        if match.end() != end:
            raise BrokenError(match.end())
        return self.text[begin:end]

    def _glue(self, length: int) -> Segment:
        self.place += length
        return Segment(What.GLUE, self.text[self.place - length : self.place])

    def _take(self, skip: Callable[[bytes, int], int]) -> bytes:
        """The value at this place."""
        while True:
            try:
                end = skip(self.text, self.place)
            except CutError:
                if not self.more():
                    raise
            else:
                return self._checked(end)
