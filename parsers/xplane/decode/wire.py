"""The part of the wire format of protobuf messages that XPlane files need, and damage to it as text.

A message is a row of fields; a field is a tag (number and wire type) and a value. The compiled scanner follows the
same rules, so that both report the same damage:

* Unreadable bytes end their message: a number of more than ten bytes, a tag that no field can have.
* A value that reaches beyond its message also ends it. Of planes and lines, the part before is read.
* A field with the wrong wire type is left out; an event, a name or a property with such a field, or one that ends as
  above, is left out as a whole.
* Unknown fields are skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Wire types."""

Data = bytes | memoryview
"""The bytes of a file: a memory view has type ``B``."""

_LONGEST_VARINT = 10
_PATTERN_MASK = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Damage:
    """A violation of the file's format.

    Args:
        where: Plane or line, as text.
        what: The violation, and the parts left out.
    """

    where: str
    what: str


class BrokenMessageError(Exception):
    """A message ends in bytes that are not a field."""


class UnreadableError(BrokenMessageError):
    """Bytes that are not a field.

    Args:
        unread: Bytes from there to the end of the message.
    """

    def __init__(self, unread: int) -> None:
        super().__init__()
        self.unread = unread


class CutShortError(BrokenMessageError):
    """A value reaches beyond its message.

    Args:
        number: The field.
        wire: Its wire type.
        begin: Start of the value.
        missing: Bytes that it lacks.
    """

    def __init__(self, number: int, wire: int, begin: int, missing: int) -> None:
        super().__init__()
        self.number, self.wire, self.begin, self.missing = number, wire, begin, missing


class WrongTypeError(BrokenMessageError):
    """A known field has a wrong wire type."""


def varint(data: Data, at: int, end: int) -> tuple[int, int]:
    """Return the unsigned number at ``at``, and its end.

    Raises:
        UnreadableError: it does not end within ten bytes, or before ``end``.
    """
    value = 0
    for index in range(at, min(end, at + _LONGEST_VARINT)):
        byte = data[index]
        value |= (byte & 0x7F) << 7 * (index - at)
        if byte < 0x80:
            return value & _PATTERN_MASK, index + 1
    raise UnreadableError(end - at)


def read_fields(data: Data, begin: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield fields of the message from ``begin`` to ``end``: number, wire type, value, and end of the value.

    The value is the number itself for ``VARINT``, else the start of the bytes.

    Raises:
        UnreadableError: the message continues with bytes that are not a field.
        CutShortError: the value of a field reaches beyond ``end``.
    """
    at = begin
    while at < end:
        first = at
        try:
            tag, at = varint(data, at, end)
            number, wire = tag >> 3, tag & 7
            if wire in (VARINT, BYTES):
                value, at = varint(data, at, end)
        except UnreadableError:
            raise UnreadableError(end - first) from None
        if number == 0 or tag >= 2**32 or wire not in (VARINT, FIXED64, BYTES, FIXED32):
            raise UnreadableError(end - first)
        if wire == VARINT:
            yield number, wire, value, at
            continue
        size = value if wire == BYTES else 8 if wire == FIXED64 else 4
        if size > end - at:
            raise CutShortError(number, wire, at, size - (end - at))
        yield number, wire, at, at + size
        at += size


def signed(pattern: int) -> int:
    """Return the signed number of a 64-bit pattern."""
    return pattern - 2**64 if pattern >= 2**63 else pattern


def text(raw: Data) -> str:
    """Return the text of bytes that should be UTF-8."""
    return bytes(raw).decode("utf-8", "replace")


@dataclass(slots=True)
class Broken:
    """Damage to one message: the end of its reading, and the number of parts left out.

    Args:
        missing: Bytes that its last value lacks.
        unread: Bytes at its end that are not fields.
        mistyped: Fields of a wrong wire type.
        events, names, properties: Numbers of such parts that break the format.
    """

    missing: int = 0
    unread: int = 0
    mistyped: int = 0
    events: int = 0
    names: int = 0
    properties: int = 0

    def record_end(self, error: BrokenMessageError) -> None:
        """Record the end of the message."""
        match error:
            case CutShortError():
                self.missing = error.missing
            case UnreadableError():
                self.unread = error.unread

    def numbers(self) -> tuple[int, ...]:
        """Return the numbers, in the order of their declaration."""
        return tuple(getattr(self, declared.name) for declared in fields(self))


_WORDS = (
    ("it is cut short: {} missing", "byte is", "bytes are"),
    ("{} not read", "byte at its end breaks the format and was", "bytes at its end break the format and were"),
    ("{} left out", "field of a wrong type was", "fields of a wrong type were"),
    ("{} left out", "event that breaks the format was", "events that break the format were"),
    ("{} left out", "name that breaks the format was", "names that break the format were"),
    ("{} left out", "property that breaks the format was", "properties that break the format were"),
)


def damage_words(numbers: tuple[int, ...]) -> list[str]:
    """Return sentences for the numbers of a :class:`Broken`, none for zeros."""
    return [
        sentence.format(f"{number:,} {singular if number == 1 else plural}")
        for number, (sentence, singular, plural) in zip(numbers, _WORDS, strict=True)
        if number
    ]


def plane_damage(plane: str, lines: Sequence[str], rows: Iterable[tuple[int, ...]]) -> tuple[Damage, ...]:
    """Return damage to a plane as text.

    Args:
        plane: Name of the plane.
        lines: Names of its lines.
        rows: Position of the line, -1 for the plane itself, and the numbers of a :class:`Broken`.
    """
    whole = f"plane {plane or 'without a name'}"
    return tuple(
        Damage(whole if line < 0 else f"line {lines[line] or 'without a name'} of {whole}", sentence)
        for line, *numbers in rows
        for sentence in damage_words(tuple(numbers))
    )


def select_fields(
    types: dict[int, int], message: Iterator[tuple[int, int, int, int]]
) -> Iterator[tuple[int, int, int]]:
    """Yield number, value and end of those fields of a ``message`` that are in ``types``, wire types by number.

    Raises:
        WrongTypeError: such a field has another wire type.
    """
    for number, wire, value, end in message:
        if number in types:
            if types[number] != wire:
                raise WrongTypeError
            yield number, value, end


def view(data: Any) -> Data:
    """Return ``data`` (bytes, memory view, memory map) as bytes that can be indexed, without a copy."""
    return data if isinstance(data, bytes) else memoryview(data).cast("B")
