"""XPlane files: every field of every kind of message, and every stat by its name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.extremes.values import ABSENT, Place, Sample, in_utf8

_MESSAGES = frozenset(
    {(1,), (1, 3), (1, 3, 4), (1, 3, 4, 4), (1, 4), (1, 4, 2), (1, 4, 2, 5), (1, 5), (1, 5, 2), (1, 6)}
)
"""Paths of field numbers whose values are messages: planes, lines, events, stats, names of events, names of stats."""
_STATS = frozenset({(1, 3, 4, 4), (1, 4, 2, 5), (1, 6)})
VARINT, FIXED64, BYTES = 0, 1, 2


@dataclass(frozen=True)
class Field:
    """One field: a number, bytes, or a message."""

    number: int
    wire: int
    value: Any


Message = tuple[Field, ...]


class XPlaneSample(Sample):
    """A file.

    Args:
        path: Where it lies.
        planes: Which of its planes are kept, by position.
    """

    def __init__(self, path: Path) -> None:
        self._name = path.name
        self._message = _decoded(path.read_bytes(), ())
        self._found: dict[Place, tuple[int, ...]] = {}
        for place, positions in _places(self._message, (), ()):
            self._found.setdefault(place, positions)

    def places(self) -> list[Place]:
        return list(self._found)

    def write(self, place: Place, value: Any, folder: Path) -> Path:
        path = folder / self._name
        path.write_bytes(_encoded(_changed(self._message, self._found[place], value)))
        return path


def _places(message: Message, path: tuple[int, ...], positions: tuple[int, ...]) -> Iterator[tuple[Place, Any]]:
    stat = next((str(field.value) for field in message if field.number == 1), "") if path in _STATS else ""
    for position, field in enumerate(message):
        inner, here = (*path, field.number), (*positions, position)
        yield (".".join(map(str, inner)), str(field.wire), *([f"stat {stat}"] if stat else [])), here
        if inner in _MESSAGES:
            yield from _places(field.value, inner, here)


def _changed(message: Message, positions: tuple[int, ...], value: Any) -> Message:
    first, *others = positions
    before, field, after = message[:first], message[first], message[first + 1 :]
    if others:
        return *before, replace(field, value=_changed(field.value, tuple(others), value)), *after
    if value is ABSENT:
        return *before, *after
    if value is None:
        return *before, *after, field  # fields may come in any order
    if isinstance(value, str):
        return *before, Field(field.number, BYTES, in_utf8(value)), *after
    wire = field.wire if field.wire == FIXED64 else VARINT
    return *before, Field(field.number, wire, value % 2**64), *after


def _decoded(data: bytes, path: tuple[int, ...]) -> Message:
    fields, place = [], 0
    while place < len(data):
        key, place = _varint(data, place)
        number, wire = key >> 3, key & 7
        value: Any
        if wire == VARINT:
            value, place = _varint(data, place)
        elif wire == FIXED64:
            value, place = int.from_bytes(data[place : place + 8], "little"), place + 8
        else:
            assert wire == BYTES
            size, place = _varint(data, place)
            value, place = data[place : place + size], place + size
        inner = (*path, number)
        fields.append(Field(number, wire, _decoded(value, inner) if inner in _MESSAGES else value))
    return tuple(fields)


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place


def _encoded(message: Message) -> bytes:
    parts = []
    for field in message:
        parts.append(_as_varint(field.number << 3 | field.wire))
        if field.wire == VARINT:
            parts.append(_as_varint(field.value))
        elif field.wire == FIXED64:
            parts.append(field.value.to_bytes(8, "little"))
        else:
            content = _encoded(field.value) if isinstance(field.value, tuple) else field.value
            parts += [_as_varint(len(content)), content]
    return b"".join(parts)


def _as_varint(value: int) -> bytes:
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)
