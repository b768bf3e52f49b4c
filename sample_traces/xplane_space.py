"""Writes an XSpace, the file format of the TensorFlow and JAX profilers, field by field.

Neither protobuf nor traceviz is used: what readers are tested with does not share their mistakes. An XSpace is a list
of planes (a device, or the threads of a host), a plane a list of lines (a stream, or a thread), a line a list of
events; an event has stats. Names are kept once per plane and referred to by number. A file of the same calls has the
same bytes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

PS_PER_NS = 1000

Value = int | float | str | bytes
"""Of a stat. Text is kept once per plane and referred to, as the profilers do with all text of events."""

Stats = dict[str, Value]


@dataclass(slots=True)
class Line:
    """A stream or a thread; events may be added in any order."""

    id: int
    name: str
    events: list[tuple[int, int, str, Stats]] = field(default_factory=list)

    def add(self, name: str, start_ns: int, end_ns: int, stats: Stats | None = None) -> None:
        """Add an event from ``start_ns`` to ``end_ns``."""
        self.events.append((start_ns, end_ns - start_ns, name, stats or {}))


@dataclass(slots=True)
class Plane:
    """A device, or the threads of a host.

    Args:
        name: Such as ``/device:GPU:0``.
        id: Ordinal of a device, 0 for others.
        stats: Properties, such as the memory of a device.
        named: What is said of all events of a name: display name, and stats.
    """

    name: str
    id: int = 0
    stats: Stats = field(default_factory=dict)
    named: dict[str, tuple[str, Stats]] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)

    def line(self, number: int, name: str) -> Line:
        """A new line."""
        self.lines.append(Line(number, name))
        return self.lines[-1]

    def encoded(self) -> bytes:
        """The plane as a message, its names after its lines."""
        texts = Numbers()
        names = Numbers()
        lines = [_line(line, names, texts) for line in self.lines]
        stats = [chunk(6, _stat(key, value, texts)) for key, value in self.stats.items()]
        entries = [chunk(4, number(1, key) + chunk(2, self._metadata(key, name, texts))) for name, key in names.items()]
        keys = [
            chunk(5, number(1, key) + chunk(2, number(1, key) + chunk(2, text.encode()))) for text, key in texts.items()
        ]
        head = number(1, self.id) + chunk(2, self.name.encode())
        return b"".join([head, *(chunk(3, line) for line in lines), *entries, *keys, *stats])

    def _metadata(self, key: int, name: str, texts: Numbers) -> bytes:
        display, stats = self.named.get(name, ("", {}))
        shown = chunk(4, display.encode()) if display else b""
        constant = [chunk(5, _stat(stat, value, texts)) for stat, value in stats.items()]
        return b"".join([number(1, key), chunk(2, name.encode()), shown, *constant])


@dataclass(slots=True)
class Space:
    """A capture of one host."""

    host: str
    planes: list[Plane] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def plane(self, name: str, number: int = 0, stats: Stats | None = None) -> Plane:
        """A new plane."""
        self.planes.append(Plane(name, number, stats or {}))
        return self.planes[-1]

    def encoded(self) -> bytes:
        """The file."""
        planes = [chunk(1, plane.encoded()) for plane in self.planes]
        warnings = [chunk(3, text.encode()) for text in self.warnings]
        return b"".join([*planes, *warnings, chunk(4, self.host.encode())])


class Numbers(dict[str, int]):
    """Numbers texts from 1, in the order in which they are asked for."""

    def __missing__(self, text: str) -> int:
        self[text] = len(self) + 1
        return self[text]


def _line(line: Line, names: Numbers, texts: Numbers) -> bytes:
    """A line as a message: by start, and the longer event first."""
    head = number(1, line.id) + chunk(2, line.name.encode())
    ordered = sorted(line.events, key=lambda event: (event[0], -event[1]))
    events = [
        number(1, names[name])
        + number(2, start * PS_PER_NS)
        + number(3, duration * PS_PER_NS)
        + b"".join(chunk(4, _stat(key, value, texts)) for key, value in stats.items())
        for start, duration, name, stats in ordered
    ]
    return b"".join([head, *(chunk(4, event) for event in events), chunk(11, line.name.encode())])


def _stat(key: str, value: Value, texts: Numbers) -> bytes:
    """A key with its value; a number that does not fit into int64 is written as uint64."""
    head = number(1, texts[key])
    if isinstance(value, str):
        return head + number(7, texts[value])
    if isinstance(value, bytes):
        return head + chunk(6, value)
    if isinstance(value, float):
        return head + varint(2 << 3 | 1) + struct.pack("<d", value)
    return head + number(3 if value >= 2**63 else 4, value)


def varint(value: int) -> bytes:
    """``value`` in groups of seven bits, the lowest first; negative numbers as 64 bits."""
    rest = value & (2**64 - 1)
    groups = bytearray()
    while rest > 0x7F:
        groups.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*groups, rest])


def number(tag: int, value: int) -> bytes:
    """Field ``tag`` holding a number."""
    return varint(tag << 3) + varint(value)


def chunk(tag: int, content: bytes) -> bytes:
    """Field ``tag`` holding text or a message."""
    return varint(tag << 3 | 2) + varint(len(content)) + content
