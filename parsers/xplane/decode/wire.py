"""The wire format of protobuf messages, as far as an XPlane file needs it, and damage to it in words.

A message is a row of fields; a field is a tag (number and wire type) and a value. The compiled scanner follows the
same rules, so that both say the same of a damaged file:

* What cannot be read ends its message: a number of more than ten bytes, a tag that no field can have.
* A value that reaches beyond its message ends it as well. Of planes and lines, what is there is read all the same.
* A field with the wrong wire type is left out; an event, a name or a property with such a field, or one that ends as
  above, is left out as a whole.
* Fields that are not known are skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Wire types."""

Data = bytes | memoryview
"""The bytes of a file: of type ``B`` where it is a memory view."""

_LONGEST_VARINT = 10
_PATTERN_MASK = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Damage:
    """Something in the file that breaks its format.

    Args:
        where: Plane or line in words.
        what: What was seen and what was left out.
    """

    where: str
    what: str


class BrokenMessageError(Exception):
    """A message ends in something that is no field."""


class UnreadableError(BrokenMessageError):
    """Bytes that are no field.

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
        begin: Where the value begins.
        missing: Bytes that it lacks.
    """

    def __init__(self, number: int, wire: int, begin: int, missing: int) -> None:
        super().__init__()
        self.number, self.wire, self.begin, self.missing = number, wire, begin, missing


class WrongTypeError(BrokenMessageError):
    """A known field has a wire type that is not its own."""


def varint(data: Data, at: int, end: int) -> tuple[int, int]:
    """The unsigned number at ``at``, and where it ends.

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
    """Fields of the message at ``begin`` to ``end``: number, wire type, value, and where the value ends.

    The value is the number itself for ``VARINT``, else where the bytes begin.

    Raises:
        UnreadableError: the message goes on with something that is no field.
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
    """The signed number of a 64-bit pattern."""
    return pattern - 2**64 if pattern >= 2**63 else pattern


def text(raw: Data) -> str:
    """Text of bytes that should be UTF-8."""
    return bytes(raw).decode("utf-8", "replace")


@dataclass(slots=True)
class Broken:
    """Damage to one message: how its reading ended, and how much was left out.

    Args:
        missing: Bytes that its last value lacks.
        unread: Bytes at its end that are no fields.
        mistyped: Fields of a wrong wire type.
        events, names, properties: Such parts that break the format.
    """

    missing: int = 0
    unread: int = 0
    mistyped: int = 0
    events: int = 0
    names: int = 0
    properties: int = 0

    def ended(self, error: BrokenMessageError) -> None:
        """Take down how the message ended."""
        match error:
            case CutShortError():
                self.missing = error.missing
            case UnreadableError():
                self.unread = error.unread

    def numbers(self) -> tuple[int, ...]:
        """The numbers, in the order in which they are declared."""
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
    """Sentences for the numbers of a :class:`Broken`, none where nothing is broken."""
    return [
        sentence.format(f"{number:,} {singular if number == 1 else plural}")
        for number, (sentence, singular, plural) in zip(numbers, _WORDS, strict=True)
        if number
    ]


def plane_damage(plane: str, lines: Sequence[str], rows: Iterable[tuple[int, ...]]) -> tuple[Damage, ...]:
    """Damage to a plane in words.

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


def known(types: dict[int, int], message: Iterator[tuple[int, int, int, int]]) -> Iterator[tuple[int, int, int]]:
    """Number, value and end of those fields of a ``message`` that are in ``types``, wire types by number.

    Raises:
        WrongTypeError: such a field has another wire type.
    """
    for number, wire, value, end in message:
        if number in types:
            if types[number] != wire:
                raise WrongTypeError
            yield number, value, end


def view(data: Any) -> Data:
    """``data`` (bytes, memory view, memory map) as bytes that can be indexed, without a copy."""
    return data if isinstance(data, bytes) else memoryview(data).cast("B")
