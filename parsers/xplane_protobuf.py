"""XPlane files through the protobuf library, for machines on which the compiled scanner was not built.

The message descriptors are made at run time from the table of fields below: no generated module, no TensorFlow.
Texts are declared as bytes, because files with names that are not UTF-8 exist, and are decoded with replacement.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from traceviz.parsers.xplane_raw import Events, Kind, Line, Plane, Space, Stats, Value

_F = descriptor_pb2.FieldDescriptorProto
_INT, _UINT, _BYTES, _DOUBLE = _F.TYPE_INT64, _F.TYPE_UINT64, _F.TYPE_BYTES, _F.TYPE_DOUBLE

_MESSAGES: dict[str, tuple[tuple[str, int, Any, bool], ...]] = {
    "XStat": (
        ("metadata_id", 1, _INT, False),
        ("double_value", 2, _DOUBLE, False),
        ("uint64_value", 3, _UINT, False),
        ("int64_value", 4, _INT, False),
        ("str_value", 5, _BYTES, False),
        ("bytes_value", 6, _BYTES, False),
        ("ref_value", 7, _UINT, False),
    ),
    "XEvent": (
        ("metadata_id", 1, _INT, False),
        ("offset_ps", 2, _INT, False),
        ("num_occurrences", 5, _INT, False),
        ("duration_ps", 3, _INT, False),
        ("stats", 4, "XStat", True),
    ),
    "XEventMetadata": (
        ("id", 1, _INT, False),
        ("name", 2, _BYTES, False),
        ("display_name", 4, _BYTES, False),
        ("stats", 5, "XStat", True),
    ),
    "XStatMetadata": (("id", 1, _INT, False), ("name", 2, _BYTES, False)),
    "EventEntry": (("key", 1, _INT, False), ("value", 2, "XEventMetadata", False)),
    "StatEntry": (("key", 1, _INT, False), ("value", 2, "XStatMetadata", False)),
    "XLine": (
        ("id", 1, _INT, False),
        ("name", 2, _BYTES, False),
        ("timestamp_ns", 3, _INT, False),
        ("events", 4, "XEvent", True),
        ("display_name", 11, _BYTES, False),
    ),
    "XPlane": (
        ("id", 1, _INT, False),
        ("name", 2, _BYTES, False),
        ("lines", 3, "XLine", True),
        ("event_metadata", 4, "EventEntry", True),
        ("stat_metadata", 5, "StatEntry", True),
        ("stats", 6, "XStat", True),
    ),
    "XSpace": (
        ("planes", 1, "XPlane", True),
        ("errors", 2, _BYTES, True),
        ("warnings", 3, _BYTES, True),
        ("hostnames", 4, _BYTES, True),
    ),
}


def _message_classes() -> dict[str, Any]:
    package = "traceviz.xplane"
    file = descriptor_pb2.FileDescriptorProto(name="traceviz/xplane.proto", package=package, syntax="proto2")
    for message, fields in _MESSAGES.items():
        declared = file.message_type.add(name=message)
        for name, number, kind, repeated in fields:
            label = _F.LABEL_REPEATED if repeated else _F.LABEL_OPTIONAL
            if isinstance(kind, str):
                declared.field.add(
                    name=name, number=number, label=label, type=_F.TYPE_MESSAGE, type_name=f".{package}.{kind}"
                )
            else:
                declared.field.add(name=name, number=number, label=label, type=kind)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}")) for name in _MESSAGES
    }


CLASSES = _message_classes()


def read_space(data: bytes) -> Space:
    """The columns of the file ``data``."""
    space = CLASSES["XSpace"].FromString(data)
    return Space(
        tuple(_plane(plane) for plane in space.planes),
        *(tuple(text.decode("utf-8", "replace") for text in texts) for texts in (space.errors, space.warnings, space.hostnames)),
    )


def _plane(plane: Any) -> Plane:
    texts = _Texts([entry.value.name.decode("utf-8", "replace") for entry in plane.stat_metadata])
    stat_place = {entry.key: place for place, entry in enumerate(plane.stat_metadata)}
    names = [entry.value.name.decode("utf-8", "replace") for entry in plane.event_metadata]
    displays = [entry.value.display_name.decode("utf-8", "replace") for entry in plane.event_metadata]
    name_place = {entry.key: place for place, entry in enumerate(plane.event_metadata)}
    blobs: list[bytes] = []

    def key_of(stat: Any) -> int:
        if stat.metadata_id not in stat_place:
            stat_place[stat.metadata_id] = texts.add(f"stat {stat.metadata_id}")
        return stat_place[stat.metadata_id]

    def value_of(stat: Any) -> tuple[int, int]:
        if stat.HasField("ref_value"):
            ref = stat.ref_value
            if ref not in stat_place:
                stat_place[ref] = texts.add(f"stat {ref}")
            return Kind.TEXT, stat_place[ref]
        if stat.HasField("int64_value"):
            return Kind.SIGNED, stat.int64_value
        if stat.HasField("uint64_value"):
            return Kind.UNSIGNED, int(np.uint64(stat.uint64_value).astype(np.int64))
        if stat.HasField("double_value"):
            return Kind.REAL, int(np.float64(stat.double_value).view(np.int64))
        if stat.HasField("str_value"):
            return Kind.TEXT, texts.add(stat.str_value.decode("utf-8", "replace"))
        blobs.append(stat.bytes_value)
        return Kind.BYTES, len(blobs) - 1

    def plain(stats: Any) -> dict[str, Value]:
        found: dict[str, Value] = {}
        for stat in stats:
            kind, value = value_of(stat)
            plain_value: Value = value
            if kind == Kind.TEXT:
                plain_value = texts.items[value]
            elif kind == Kind.BYTES:
                plain_value = blobs[value]
            elif kind == Kind.REAL:
                plain_value = stat.double_value
            elif kind == Kind.UNSIGNED:
                plain_value = stat.uint64_value
            found[texts.items[key_of(stat)]] = plain_value
        return found

    events: list[tuple[int, int, int, int]] = []
    stats: list[tuple[int, int, int, int]] = []
    lines: list[Line] = []
    aggregated = 0
    for number, line in enumerate(plane.lines):
        first = len(events)
        for event in line.events:
            if event.HasField("num_occurrences"):
                aggregated += 1
                continue
            if event.metadata_id not in name_place:
                name_place[event.metadata_id] = len(names)
                names.append(f"event {event.metadata_id}")
                displays.append("")
            stats.extend((len(events), key_of(stat), *value_of(stat)) for stat in event.stats)
            events.append((number, name_place[event.metadata_id], event.offset_ps, event.duration_ps))
        label = (line.display_name or line.name).decode("utf-8", "replace")
        lines.append(Line(line.id, label, line.timestamp_ns, slice(first, len(events))))
    name_stats = {
        place: plain(entry.value.stats) for place, entry in enumerate(plane.event_metadata) if entry.value.stats
    }
    properties = plain(plane.stats)
    event_rows = np.array(events, dtype=np.int64).reshape(-1, 4)
    stat_rows = np.array(stats, dtype=np.int64).reshape(-1, 4)
    return Plane(
        plane.id,
        plane.name.decode("utf-8", "replace"),
        tuple(lines),
        Events(event_rows[:, 0].astype(np.int32), event_rows[:, 1].astype(np.int32), event_rows[:, 2], event_rows[:, 3]),
        Stats(
            stat_rows[:, 0].astype(np.int32),
            stat_rows[:, 1].astype(np.int32),
            stat_rows[:, 2].astype(np.uint8),
            stat_rows[:, 3],
        ),
        names,
        displays,
        name_stats,
        texts.items,
        blobs,
        properties,
        aggregated,
    )


class _Texts:
    """Texts of a plane, each text value once."""

    def __init__(self, items: list[str]) -> None:
        self.items = items
        self._added: dict[str, int] = {}

    def add(self, text: str) -> int:
        """Position of ``text``."""
        if text not in self._added:
            self._added[text] = len(self.items)
            self.items.append(text)
        return self._added[text]
