"""JSON as programs write it: the standard, and deviations that can be read without guessing.

Texts may hold any byte but a quote, and a backslash always goes with the byte after it. Any word of letters, digits and
signs is a value (``NaN``, ``-inf``, ``01``). So the end of a value is always clear. Its meaning is decided later, by
:mod:`traceviz.parsers.kineto.decode.values`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple


class CutError(Exception):
    """The text ends inside a value."""


class BrokenError(Exception):
    """A byte that is not allowed at its place.

    Args:
        place: Position of the byte.
    """

    def __init__(self, place: int) -> None:
        self.place = place
        super().__init__(place)


class Member(NamedTuple):
    """A member of an object: its key as the text between the quotes, and the range of its value."""

    key: bytes
    begin: int
    end: int


BLANKS = re.compile(rb"[ \t\r\n]*")
_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_WORD = re.compile(rb"[A-Za-z0-9+.\-]+")
_OPENERS = {ord("{"): ord("}"), ord("["): ord("]")}


def skip_blanks(text: bytes, place: int) -> int:
    """Return the first place from ``place`` on that is not blank, or the end of the text."""
    match = BLANKS.match(text, place)
    assert match is not None
    return match.end()


def skip_text(text: bytes, place: int) -> int:
    """Return the end of the text value whose quote is at ``place``."""
    match = _TEXT.match(text, place)
    if match is None:
        raise CutError
    return match.end()


def skip_value(text: bytes, place: int) -> int:
    """Return the end of the value that starts at ``place``.

    Raises:
        CutError: the text ends before the value does, or with a word that may continue.
        BrokenError: there is no value.
    """
    if text[place : place + 1] in (b"{", b"["):
        return _skip_nested(text, place)
    return _skip_flat(text, place)


def _skip_flat(text: bytes, place: int) -> int:
    if text[place : place + 1] == b'"':
        return skip_text(text, place)
    match = _WORD.match(text, place)
    if match is None:
        _expect(text, place, b"")
    assert match is not None
    if match.end() == len(text):
        raise CutError
    return match.end()


def _skip_nested(text: bytes, place: int) -> int:
    """Return the end of an object or a list, without recursion: texts may be nested deeper than any stack."""
    closers: list[int] = []
    while True:
        byte = text[place]
        if byte in _OPENERS:
            closers.append(_OPENERS[byte])
            place = _at(text, place + 1)
            if text[place] != closers[-1]:
                place = _begin(text, place, closers[-1])
                continue
            place += 1
            closers.pop()
        else:
            place = _skip_flat(text, place)
        while closers:
            place = _at(text, place)
            if text[place] == ord(","):
                place = _begin(text, _at(text, place + 1), closers[-1])
                break
            if text[place] != closers.pop():
                raise BrokenError(place)
            place += 1
        if not closers:
            return place


def _begin(text: bytes, place: int, closer: int) -> int:
    """Return the start of the next value of an object or a list, after the key and the colon in an object."""
    if closer == ord("]"):
        return place
    return _colon(text, skip_text(text, _expect(text, place, b'"')))


def _colon(text: bytes, place: int) -> int:
    return _at(text, _expect(text, _at(text, place), b":") + 1)


def _at(text: bytes, place: int) -> int:
    """Return the first place from ``place`` on that is not blank; the text must not end before it."""
    place = skip_blanks(text, place)
    if place >= len(text):
        raise CutError
    return place


def _expect(text: bytes, place: int, wanted: bytes) -> int:
    if place >= len(text):
        raise CutError
    if text[place : place + 1] != wanted:
        raise BrokenError(place)
    return place


class Members:
    """The members of one object.

    Args:
        text: The text that holds it.
        place: Its opening brace; once all members were yielded, its end.
    """

    def __init__(self, text: bytes, place: int) -> None:
        self.text, self.place = text, place

    def __iter__(self) -> Iterator[Member]:
        text = self.text
        place = _at(text, self.place + 1)
        if text[place] != ord("}"):
            while True:
                end = skip_text(text, _expect(text, place, b'"'))
                begin = _colon(text, end)
                key = text[place + 1 : end - 1]
                end = skip_value(text, begin)
                yield Member(key, begin, end)
                place = _at(text, end)
                if text[place] != ord(","):
                    break
                place = _at(text, place + 1)
            _expect(text, place, b"}")
        self.place = place + 1
