"""XSpace files from literals, written field by field: no protobuf library, so that both scanners meet foreign bytes.

    space(
        plane(
            "/host:CPU",
            line(7, event("train", 0, 9_000, {"step_num": 3, "_r": 1}), name="python3", timestamp_ns=1_000),
            stats={"cpu_count": 8},
        ),
        warnings=["events dropped"],
    )

Offsets and durations are picoseconds. Names become metadata entries of their plane, numbered from 1 in the order in
which they are met; ``names`` of :func:`plane` declares entries with a display name or stats of their own. Values of
stats: ``int`` is int64, ``Unsigned`` uint64, ``float`` double, ``str`` a string in place, ``Ref`` a string kept once
per plane and referred to, ``bytes`` bytes. Where an odd file is wanted, ``varint``, ``number``, ``chunk`` and
``fixed64`` write single fields, and ``extra`` of every builder appends them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Ref:
    """A text value kept in the stat names of the plane (``ref_value``)."""

    text: str


@dataclass(frozen=True)
class Unsigned:
    """A ``uint64`` value."""

    value: int


Value = int | float | str | bytes | Ref | Unsigned
Stats = Mapping[str | int, Value] | Sequence[tuple[str | int, Value]]


def varint(value: int) -> bytes:
    """Return ``value`` as a varint; negative numbers take ten bytes, as int64 does."""
    rest = value & (2**64 - 1)
    out = bytearray()
    while rest >= 0x80:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def number(tag: int, value: int) -> bytes:
    """Return the field ``tag`` as a varint."""
    return varint(tag << 3) + varint(value)


def chunk(tag: int, content: bytes | str) -> bytes:
    """Return the field ``tag`` with a length: text, bytes, or a message."""
    raw = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
    return varint(tag << 3 | 2) + varint(len(raw)) + raw


def fixed64(tag: int, raw: bytes) -> bytes:
    """Return the field ``tag`` as eight bytes."""
    return varint(tag << 3 | 1) + raw


@dataclass(frozen=True)
class Event:
    """One event, see :func:`event`."""

    name: str | int
    offset_ps: int | None
    dur_ps: int | None
    stats: tuple[tuple[str | int, Value], ...]
    occurrences: int | None
    extra: bytes


@dataclass(frozen=True)
class Line:
    """One line, see :func:`line`."""

    id: int
    events: tuple[Event, ...]
    name: str | bytes
    display_name: str | bytes
    timestamp_ns: int
    extra: bytes


@dataclass(frozen=True)
class Name:
    """A name of events: its display name, and stats that hold for every event of the name."""

    display_name: str = ""
    stats: Stats = field(default_factory=dict)


def event(
    name: str | int,
    offset_ps: int | None = None,
    dur_ps: int | None = None,
    stats: Stats | None = None,
    *,
    occurrences: int | None = None,
    extra: bytes = b"",
) -> Event:
    """Return an event; a ``name`` that is a number is written as the metadata id itself, without an entry."""
    return Event(name, offset_ps, dur_ps, _pairs(stats or {}), occurrences, extra)


def line(
    line_id: int,
    *events: Event,
    name: str | bytes = "",
    display_name: str | bytes = "",
    timestamp_ns: int = 0,
    extra: bytes = b"",
) -> Line:
    """Return a line with its events."""
    return Line(line_id, events, name, display_name, timestamp_ns, extra)


def plane(
    name: str | bytes,
    *lines: Line,
    plane_id: int = 0,
    stats: Stats | None = None,
    names: Mapping[str, Name] | None = None,
    metadata_first: bool = False,
    extra: bytes = b"",
) -> bytes:
    """Return a plane, encoded; metadata come after the lines, as TensorFlow writes them, unless ``metadata_first``."""
    book = _Book()
    for text in names or {}:
        book.event(text)
    body = b"".join(chunk(3, book.line(line_)) for line_ in lines)
    properties = b"".join(chunk(6, book.stat(key, value)) for key, value in _pairs(stats or {}))
    metadata = book.metadata(names or {})
    head = number(1, plane_id) + chunk(2, name)
    return head + (metadata + body if metadata_first else body + metadata) + properties + extra


def space(
    *planes: bytes,
    errors: Iterable[str | bytes] = (),
    warnings: Iterable[str | bytes] = (),
    hostnames: Iterable[str | bytes] = (),
) -> bytes:
    """Return a whole file from encoded planes."""
    body = b"".join(chunk(1, plane_) for plane_ in planes)
    for tag, texts in ((2, errors), (3, warnings), (4, hostnames)):
        body += b"".join(chunk(tag, text) for text in texts)
    return body


def _pairs(stats: Stats) -> tuple[tuple[str | int, Value], ...]:
    return tuple(stats.items() if isinstance(stats, Mapping) else stats)


class _Book:
    """Names of a plane and the numbers given to them."""

    def __init__(self) -> None:
        self.events: dict[str, int] = {}
        self.stats: dict[str, int] = {}

    def event(self, name: str | int) -> int:
        return name if isinstance(name, int) else self.events.setdefault(name, len(self.events) + 1)

    def key(self, name: str | int) -> int:
        return name if isinstance(name, int) else self.stats.setdefault(name, len(self.stats) + 1)

    def stat(self, key: str | int, value: Value) -> bytes:
        head = number(1, self.key(key))
        match value:
            case Ref(text):
                return head + number(7, self.key(text))
            case Unsigned(value=unsigned):
                return head + number(3, unsigned)
            case bool() | int():
                return head + number(4, value)
            case float():
                return head + fixed64(2, struct.pack("<d", value))
            case str():
                return head + chunk(5, value)
            case _:
                return head + chunk(6, value)

    def line(self, line_: Line) -> bytes:
        parts = [number(1, line_.id)]
        parts += [chunk(2, line_.name)] if line_.name else []
        parts += [number(3, line_.timestamp_ns)] if line_.timestamp_ns else []
        parts += [chunk(4, self.encoded(event_)) for event_ in line_.events]
        parts += [chunk(11, line_.display_name)] if line_.display_name else []
        return b"".join(parts) + line_.extra

    def encoded(self, event_: Event) -> bytes:
        parts = [number(1, self.event(event_.name))]
        fields = ((2, event_.offset_ps), (5, event_.occurrences), (3, event_.dur_ps))
        parts += [number(tag, value) for tag, value in fields if value is not None]
        parts += [chunk(4, self.stat(key, value)) for key, value in event_.stats]
        return b"".join(parts) + event_.extra

    def metadata(self, names: Mapping[str, Name]) -> bytes:
        entries = []
        for text, number_ in self.events.items():
            described = names.get(text, Name())
            body = number(1, number_) + chunk(2, text)
            body += chunk(4, described.display_name) if described.display_name else b""
            body += b"".join(chunk(5, self.stat(key, value)) for key, value in _pairs(described.stats))
            entries.append(chunk(4, number(1, number_) + chunk(2, body)))
        for text, number_ in self.stats.items():
            entries.append(chunk(5, number(1, number_) + chunk(2, number(1, number_) + chunk(2, text))))
        return b"".join(entries)
