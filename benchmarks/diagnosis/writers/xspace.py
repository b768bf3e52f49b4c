"""Encoding of XPlane files by hand. Field numbers are those of ``tsl/profiler/protobuf/xplane.proto``."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

PICOSECONDS = 1_000
ENTRY_KEY, ENTRY_VALUE = 1, 2


class Unsigned(int):
    """A stat of type ``uint64``; other integers are ``int64``."""


class Reference(str):
    """A text that is stored once per plane; other texts are stored in each stat."""

    __slots__ = ()


Stat = int | float | str | bytes
Stats = dict[str, Stat]


@dataclass(frozen=True, slots=True)
class EventType:
    """Metadata of all events of one name: the name, the text to show, and stats."""

    name: str
    shown: str = ""
    stats: tuple[tuple[str, Stat], ...] = ()


@dataclass(slots=True)
class Plane:
    """A plane: its lines, and the names that events and stats refer to."""

    number: int
    name: str
    _lines: list[bytes] = field(default_factory=list)
    _events: dict[EventType, int] = field(default_factory=dict)
    _stats: dict[str, int] = field(default_factory=dict)
    _own_stats: list[bytes] = field(default_factory=list)

    def line(self, number: int, name: str, start: int, events: list[bytes]) -> None:
        """Add a line of encoded events, whose times count from ``start``."""
        head = _number(1, number) + _text(2, name) + _number(3, start)
        self._lines.append(head + b"".join(_message(4, event) for event in events))

    def event(self, type_: EventType, offset: int, duration: int, stats: Stats | None = None) -> bytes:
        """Encode an event."""
        number = self._events.setdefault(type_, len(self._events) + 1)
        content = _number(1, number) + _number(2, offset * PICOSECONDS) + _number(3, duration * PICOSECONDS)
        return content + b"".join(_message(4, self._stat(key, value)) for key, value in (stats or {}).items())

    def stat(self, name: str, value: Stat) -> None:
        """Add a stat of the plane itself."""
        self._own_stats.append(self._stat(name, value))

    def encode(self) -> bytes:
        """Return the whole plane."""
        parts = [_number(1, self.number) + _text(2, self.name), *(_message(3, line) for line in self._lines)]
        for type_, number in self._events.items():
            content = _number(1, number) + _text(2, type_.name)
            if type_.shown:
                content += _text(4, type_.shown)
            content += b"".join(_message(5, self._stat(key, value)) for key, value in type_.stats)
            parts.append(_entry(4, number, content))
        for name, number in self._stats.items():
            parts.append(_entry(5, number, _number(1, number) + _text(2, name)))
        parts += [_message(6, stat) for stat in self._own_stats]
        return b"".join(parts)

    def _stat(self, name: str, value: Stat) -> bytes:
        number = _number(1, self._stats.setdefault(name, len(self._stats) + 1))
        match value:
            case Unsigned():
                return number + _number(3, value)
            case int():
                return number + _number(4, value)
            case float():
                return number + _varint(2 << 3 | 1) + struct.pack("<d", value)
            case Reference():
                return number + _number(7, self._stats.setdefault(value, len(self._stats) + 1))
            case str():
                return number + _text(5, value)
        return number + _message(6, value)


def encode_space(planes: list[Plane], host: str, warnings: list[str]) -> bytes:
    """Return a whole file."""
    content = b"".join(_message(1, plane.encode()) for plane in planes)
    return content + b"".join(_text(3, warning) for warning in warnings) + _text(4, host)


def _entry(field: int, number: int, content: bytes) -> bytes:
    return _message(field, _number(ENTRY_KEY, number) + _message(ENTRY_VALUE, content))


_SHORT = [bytes([value]) for value in range(0x80)]


def _varint(value: int) -> bytes:
    if 0 <= value < 0x80:
        return _SHORT[value]
    value &= 0xFFFF_FFFF_FFFF_FFFF
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _message(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _text(field: int, text: str) -> bytes:
    return _message(field, text.encode())
