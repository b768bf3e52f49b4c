"""XPlane planes through the protobuf library, for machines on which the compiled scanner was not built.

The message descriptors are made at run time from the table of fields below: no generated module, no TensorFlow.
protobuf reads whole lines, which are nearly all of a file. It rejects a damaged message as a whole, and treats a field
of a wrong type as unknown. Such lines, and the rest of the plane, are read field by field.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from traceviz.parsers.xplane.decode.raw import Events, Kind, Line, Plane, Stats, Value
from traceviz.parsers.xplane.decode.wire import (
    BYTES,
    FIXED64,
    VARINT,
    Broken,
    BrokenMessageError,
    CutShortError,
    Damage,
    Data,
    plane_damage,
    read_fields,
    select_fields,
    signed,
    text,
)

_F = descriptor_pb2.FieldDescriptorProto
_INT, _BYTES, _BITS = _F.TYPE_INT64, _F.TYPE_BYTES, _F.TYPE_FIXED64

_MESSAGES: dict[str, tuple[tuple[str, int, Any], ...]] = {
    "XStat": (
        ("metadata_id", 1, _INT),
        ("double_value", 2, _BITS),  # the bits are kept
        ("uint64_value", 3, _INT),
        ("int64_value", 4, _INT),
        ("str_value", 5, _BYTES),  # texts are not always UTF-8
        ("bytes_value", 6, _BYTES),
        ("ref_value", 7, _INT),
    ),
    "XEvent": (
        ("metadata_id", 1, _INT),
        ("offset_ps", 2, _INT),
        ("duration_ps", 3, _INT),
        ("stats", 4, "XStat"),
        ("num_occurrences", 5, _INT),
    ),
    "XLine": (
        ("id", 1, _INT),
        ("name", 2, _BYTES),
        ("timestamp_ns", 3, _INT),
        ("events", 4, "XEvent"),
        ("duration_ps", 9, _INT),
        ("display_id", 10, _INT),
        ("display_name", 11, _BYTES),
    ),
}
_REFERENCE = 7
_STAT_FIELDS = {1: VARINT, 2: FIXED64, 3: VARINT, 4: VARINT, 5: BYTES, 6: BYTES, _REFERENCE: VARINT}
_STAT_NUMBER = {name: number for name, number, _ in _MESSAGES["XStat"]}
_EVENT_FIELDS = {1: VARINT, 2: VARINT, 3: VARINT, 4: BYTES, 5: VARINT}
_LINE_FIELDS = {1: VARINT, 2: BYTES, 3: VARINT, 4: BYTES, 11: BYTES}
_PLANE_FIELDS = {1: VARINT, 2: BYTES, 3: BYTES, 4: BYTES, 5: BYTES, 6: BYTES}
_NAME_FIELDS = {1: VARINT, 2: BYTES, 4: BYTES, 5: BYTES}
_TEXT_FIELDS = {1: VARINT, 2: BYTES}

RawStat = tuple[int, int, int | bytes]
"""Id of the key, number of the field that holds the value, and that value."""

RawEvent = tuple[int, int, int, Iterable[RawStat]]
"""Id of the name, offset, duration, stats."""


def _line_class() -> Any:
    package = "traceviz.xplane"
    file = descriptor_pb2.FileDescriptorProto(name="traceviz/xplane.proto", package=package, syntax="proto2")
    for message, declared_fields in _MESSAGES.items():
        declared = file.message_type.add(name=message)
        for name, number, kind in declared_fields:
            if isinstance(kind, str):
                declared.field.add(
                    name=name,
                    number=number,
                    label=_F.LABEL_REPEATED,
                    type=_F.TYPE_MESSAGE,
                    type_name=f".{package}.{kind}",
                )
            else:
                declared.field.add(name=name, number=number, label=_F.LABEL_OPTIONAL, type=kind)
    stat = file.message_type[0]
    stat.oneof_decl.add(name="value")
    for value in stat.field[1:]:
        value.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.XLine"))


XLine = _line_class()


def scan_plane(data: Data, begin: int, end: int) -> tuple[Plane, tuple[Damage, ...]]:
    """Return the plane encoded in ``data[begin:end]``, and its damage."""
    parts = _survey(data, begin, end)
    rows = _Rows(parts)
    whole = memoryview(data)
    lines = [_add_line(rows, number, whole[first:stop]) for number, (first, stop) in enumerate(parts.lines)]
    broken = [(-1, *parts.broken.numbers())] + [(number, *bad.numbers()) for number, (_, bad) in enumerate(lines)]
    events, stats = rows.columns()
    plane = Plane(
        parts.id,
        parts.name,
        tuple(line for line, _ in lines),
        events,
        stats,
        parts.names.items,
        parts.names.display_items + [""] * (len(parts.names.items) - len(parts.names.display_items)),
        {place: parts.plain(of_name) for place, of_name in parts.name_stats.items()},
        parts.texts.items,
        rows.blobs,
        parts.plain(parts.properties),
        rows.aggregated,
    )
    return plane, plane_damage(plane.name, [line.name for line in plane.lines], broken)


class _Names:
    """Names of a plane, and the position of each by its id."""

    def __init__(self, made_up: str) -> None:
        self.items: list[str] = []
        self.display_items: list[str] = []
        self._made_up = made_up
        self._places: dict[int, int] = {}

    def add(self, key: int, name: str) -> int:
        """Add a name of the file; the last of equal keys counts."""
        self._places[key] = len(self.items)
        self.items.append(name)
        return len(self.items) - 1

    def place(self, key: int) -> int:
        """Return the position of the name with this id; a missing name is made up."""
        place = self._places.get(key)
        return self.add(key, self._made_up.format(key)) if place is None else place

    def get(self, key: int) -> str:
        """Return the name with this id."""
        place = self._places.get(key)
        return self._made_up.format(key) if place is None else self.items[place]


@dataclass(slots=True)
class _Parts:
    """Content of the fields of a plane, except lines."""

    id: int = 0
    name: str = ""
    lines: list[tuple[int, int]] = field(default_factory=list)
    names: _Names = field(default_factory=lambda: _Names("event {}"))
    texts: _Names = field(default_factory=lambda: _Names("stat {}"))
    name_stats: dict[int, list[RawStat]] = field(default_factory=dict)
    properties: list[RawStat] = field(default_factory=list)
    broken: Broken = field(default_factory=Broken)

    def plain(self, stats: list[RawStat]) -> dict[str, Value]:
        """Return stats as Python values by the text of their key."""
        values: dict[str, Value] = {}
        for key, number, value in stats:
            if isinstance(value, bytes):
                plain: Value = text(value) if number == Kind.TEXT else value
            elif number == Kind.REAL:
                plain = float(np.uint64(value).view(np.float64))
            elif number == Kind.UNSIGNED:
                plain = value
            else:
                plain = self.texts.get(signed(value)) if number == _REFERENCE else signed(value)
            values[self.texts.get(key)] = plain
        return values


def _survey(data: Data, begin: int, end: int) -> _Parts:
    parts = _Parts()
    try:
        for number, wire, value, stop in read_fields(data, begin, end):
            if number not in _PLANE_FIELDS:
                continue
            if wire != _PLANE_FIELDS[number]:
                parts.broken.mistyped += 1
                continue
            _survey_field(parts, number, data, value, stop)
    except BrokenMessageError as error:
        parts.broken.record_end(error)
        if isinstance(error, CutShortError) and (error.number, error.wire) == (3, BYTES):
            parts.lines.append((error.begin, end))
    return parts


def _survey_field(parts: _Parts, number: int, data: Data, value: int, stop: int) -> None:
    match number:
        case 1:
            parts.id = signed(value)
        case 2:
            parts.name = text(data[value:stop])
        case 3:
            parts.lines.append((value, stop))
        case 4 | 5:
            try:
                key, texts, stats = _entry(data, value, stop, _NAME_FIELDS if number == 4 else _TEXT_FIELDS)
            except BrokenMessageError:
                parts.broken.names += 1
                return
            if number == 5:
                parts.texts.add(key, texts.get(2, ""))
                return
            place = parts.names.add(key, texts.get(2, ""))
            parts.names.display_items.append(texts.get(4, ""))
            if stats:
                parts.name_stats[place] = stats
        case _:
            try:
                stat = _stat(data, value, stop)
            except BrokenMessageError:
                parts.broken.properties += 1
            else:
                parts.properties += [stat] if stat else []


def _entry(data: Data, begin: int, end: int, inner_fields: dict[int, int]) -> tuple[int, dict[int, str], list[RawStat]]:
    """Return an entry of a map of names: key, texts by field, and stats."""
    key = 0
    texts: dict[int, str] = {}
    stats: list[RawStat] = []
    for number, value, stop in select_fields(_TEXT_FIELDS, read_fields(data, begin, end)):
        if number == 1:
            key = signed(value)
            continue
        for inner, inner_value, inner_stop in select_fields(inner_fields, read_fields(data, value, stop)):
            if inner == 5:
                stat = _stat(data, inner_value, inner_stop)
                stats += [stat] if stat else []
            elif inner != 1:
                texts[inner] = text(data[inner_value:inner_stop])
    return key, texts, stats


def _stat(data: Data, begin: int, end: int) -> RawStat | None:
    """Return a stat, ``None`` without a value; the last of several values counts."""
    key, kind = 0, 0
    content: int | bytes = b""
    for number, value, stop in select_fields(_STAT_FIELDS, read_fields(data, begin, end)):
        if number == 1:
            key = signed(value)
        else:
            kind, content = number, value
            if _STAT_FIELDS[number] == FIXED64:
                content = int.from_bytes(data[value:stop], "little")
            elif _STAT_FIELDS[number] == BYTES:
                content = bytes(data[value:stop])
    return (key, kind, content) if kind else None


class _Rows:
    """Columns of events and stats that grow line by line."""

    def __init__(self, parts: _Parts) -> None:
        self.blobs: list[bytes] = []
        self.aggregated = 0
        self._names, self._texts = parts.names, parts.texts
        self._text_places: dict[bytes, int] = {}
        self._line, self._name = array("i"), array("i")
        self._offset, self._duration = array("q"), array("q")
        self._event, self._key = array("i"), array("i")
        self._kind, self._value = array("B"), array("q")

    def __len__(self) -> int:
        return len(self._line)

    def add(self, line: int, event: RawEvent) -> None:
        """Append an event and its stats."""
        name, offset_ps, duration_ps, stats = event
        for key, number, value in stats:
            self._event.append(len(self._line))
            self._key.append(self._texts.place(key))
            self._kind.append(Kind.TEXT if number == _REFERENCE else number)
            self._value.append(self._place(number, value))
        self._line.append(line)
        self._name.append(self._names.place(name))
        self._offset.append(offset_ps)
        self._duration.append(duration_ps)

    def _place(self, number: int, value: int | bytes) -> int:
        if isinstance(value, int):
            return self._texts.place(signed(value)) if number == _REFERENCE else signed(value)
        if number == Kind.TEXT:
            place = self._text_places.get(value)
            if place is None:
                place = self._text_places[value] = len(self._texts.items)
                self._texts.items.append(text(value))
            return place
        self.blobs.append(value)
        return len(self.blobs) - 1

    def columns(self) -> tuple[Events, Stats]:
        """Return columns of the events and of their stats."""
        kinds = {"i": np.int32, "q": np.int64, "B": np.uint8}
        events, stats = (
            [np.array(values, dtype=kinds[values.typecode]) for values in columns]
            for columns in (
                (self._line, self._name, self._offset, self._duration),
                (self._event, self._key, self._kind, self._value),
            )
        )
        return Events(*events), Stats(*stats)


def _add_line(rows: _Rows, number: int, data: Data) -> tuple[Line, Broken]:
    broken = Broken()
    first = len(rows)
    try:
        message = XLine.FromString(bytes(data))
        size = message.ByteSize()
        message.DiscardUnknownFields()
        is_whole = message.ByteSize() == size  # protobuf treats damaged parts as unknown
    except DecodeError:
        is_whole = False
    if not is_whole:
        line_id, name, display_name, timestamp_ns = _add_damaged_line(rows, broken, number, data)
    else:
        line_id, name, display_name = message.id, message.name, message.display_name
        timestamp_ns = message.timestamp_ns
        for event in message.events:
            if event.HasField("num_occurrences"):
                rows.aggregated += 1
            else:
                named = ((stat, stat.WhichOneof("value")) for stat in event.stats)
                stats = ((stat.metadata_id, _STAT_NUMBER[name], getattr(stat, name)) for stat, name in named if name)
                rows.add(number, (event.metadata_id, event.offset_ps, event.duration_ps, stats))
    return Line(line_id, text(display_name or name), timestamp_ns, slice(first, len(rows))), broken


def _add_damaged_line(rows: _Rows, broken: Broken, line: int, data: Data) -> tuple[int, bytes, bytes, int]:
    """Append the readable part of a line; return its id, name, display name and base."""
    numbers = {1: 0, 3: 0}
    names = {2: b"", 11: b""}
    try:
        for number, wire, value, stop in read_fields(data, 0, len(data)):
            if wire != _LINE_FIELDS.get(number, wire):
                broken.mistyped += 1
            elif number in numbers:
                numbers[number] = signed(value)
            elif number in names:
                names[number] = bytes(data[value:stop])
            elif number == 4:
                _add_event(rows, broken, line, data[value:stop])
    except BrokenMessageError as error:
        broken.record_end(error)
    return numbers[1], names[2], names[11], numbers[3]


def _add_event(rows: _Rows, broken: Broken, line: int, data: Data) -> None:
    numbers: dict[int, int] = {}
    stats: list[RawStat] = []
    try:
        for number, value, stop in select_fields(_EVENT_FIELDS, read_fields(data, 0, len(data))):
            if number == 4:
                stat = _stat(data, value, stop)
                stats += [stat] if stat else []
            else:
                numbers[number] = signed(value)
    except BrokenMessageError:
        broken.events += 1
        return
    if 5 in numbers:
        rows.aggregated += 1
    else:
        rows.add(line, (numbers.get(1, 0), numbers.get(2, 0), numbers.get(3, 0), stats))
