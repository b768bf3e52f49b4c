"""The messages of an XPlane file for the protobuf library, for machines without TensorFlow."""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_F = descriptor_pb2.FieldDescriptorProto
_INT, _UINT, _REAL, _TEXT, _BYTES = _F.TYPE_INT64, _F.TYPE_UINT64, _F.TYPE_DOUBLE, _F.TYPE_STRING, _F.TYPE_BYTES

MESSAGES: dict[str, dict[str, tuple[int, Any]]] = {
    "XStat": {
        "metadata_id": (1, _INT),
        "double_value": (2, _REAL),
        "uint64_value": (3, _UINT),
        "int64_value": (4, _INT),
        "str_value": (5, _TEXT),
        "bytes_value": (6, _BYTES),
        "ref_value": (7, _UINT),
    },
    "XEvent": {
        "metadata_id": (1, _INT),
        "offset_ps": (2, _INT),
        "duration_ps": (3, _INT),
        "stats": (4, "XStat"),
        "num_occurrences": (5, _INT),
    },
    "XEventMetadata": {"id": (1, _INT), "name": (2, _TEXT), "display_name": (4, _TEXT), "stats": (5, "XStat")},
    "XStatMetadata": {"id": (1, _INT), "name": (2, _TEXT)},
    "XLine": {
        "id": (1, _INT),
        "name": (2, _TEXT),
        "timestamp_ns": (3, _INT),
        "events": (4, "XEvent"),
        "display_name": (11, _TEXT),
    },
    "XPlane": {
        "id": (1, _INT),
        "name": (2, _TEXT),
        "lines": (3, "XLine"),
        "event_metadata": (4, "map XEventMetadata"),
        "stat_metadata": (5, "map XStatMetadata"),
        "stats": (6, "XStat"),
    },
    "XSpace": {"planes": (1, "XPlane"), "errors": (2, _BYTES), "warnings": (3, _BYTES), "hostnames": (4, _BYTES)},
}


def xspace_class() -> Any:
    """Return the class of a whole file."""
    file = descriptor_pb2.FileDescriptorProto(name="benchmark/xplane.proto", package="benchmark", syntax="proto3")
    for message, fields in MESSAGES.items():
        declared = file.message_type.add(name=message)
        for name, (number, kind) in fields.items():
            add_field(declared, name, number, kind)
    stat = file.message_type[0]
    stat.oneof_decl.add(name="value")
    for field in stat.field[1:]:
        field.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("benchmark.XSpace"))


def add_field(message: Any, name: str, number: int, kind: Any) -> None:
    """Declare a field; messages are repeated, ``map X`` is a map from numbers to X."""
    if not isinstance(kind, str):
        label = _F.LABEL_REPEATED if message.name == "XSpace" else _F.LABEL_OPTIONAL
        message.field.add(name=name, number=number, label=label, type=kind)
        return
    target = f".benchmark.{kind}"
    if kind.startswith("map "):
        entry = message.nested_type.add(name="".join(part.title() for part in name.split("_")) + "Entry")
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, label=_F.LABEL_OPTIONAL, type=_INT)
        value = f".benchmark.{kind[4:]}"
        entry.field.add(name="value", number=2, label=_F.LABEL_OPTIONAL, type=_F.TYPE_MESSAGE, type_name=value)
        target = f".benchmark.{message.name}.{entry.name}"
    message.field.add(name=name, number=number, label=_F.LABEL_REPEATED, type=_F.TYPE_MESSAGE, type_name=target)


XSpace = xspace_class()
