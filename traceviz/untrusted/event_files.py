"""Scalars in event files of TensorBoard, read without TensorFlow.

A file is a sequence of records, each a protobuf message ``tensorflow.Event`` between checksums::

    length  uint64     masked CRC-32C of it  uint32     message  length bytes     masked CRC-32C of it  uint32

Sources: record_writer.h in tensorflow/core/lib/io, event.proto in tensorflow/core/util, summary.proto and tensor.proto
in tensorflow/core/framework. A scalar is a ``simple_value`` (PyTorch, tensorboardX) or a tensor with one element
(TensorFlow 2). Images, graphs, histograms and texts are skipped. A file that is still being written, or was cut
off, ends with its last whole record.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

MOST_MESSAGE = 64 << 10
"""Bytes of the longest message that is read: a longer one does not hold scalars alone, and is skipped."""
MOST_TAG = 1_000
"""Characters of the longest tag; longer ones are not names."""
MOST_TIME_S = 2**31 * 2.0
"""Bound on times of day, which lie below it until 2106."""

_HEADER, _CHECKSUM = struct.Struct("<QI"), struct.Struct("<I")
_MASK_DELTA = 0xA282EAD8
_POLYNOMIAL = 0x82F63B78
_SCALARS = b"scalars"
"""The plugin of TensorBoard that shows scalars; other plugins store other data in tensors of one element."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """One value.

    Args:
        tag: Its name: ``epoch_loss``.
        value: The value, which may not be a finite number.
        step: The step that the program stated.
        unix_ns: Time of day when it was written.
    """

    tag: str
    value: float
    step: int
    unix_ns: int


class DamagedEventsError(ValueError):
    """The rest of the file cannot be read."""


def scalars(file: BinaryIO) -> Iterator[Scalar]:
    """Yield the scalars of a file, in its order; messages that are damaged or of another kind are skipped.

    Raises:
        DamagedEventsError: a length is damaged, so that no further record can be found.
        OSError: the file cannot be read.
    """
    of_others: set[bytes] = set()
    for message in _messages(file):
        try:
            yield from _of_event(message, of_others)
        except (ValueError, struct.error):
            continue


def _messages(file: BinaryIO) -> Iterator[bytes]:
    size = file.seek(0, 2)
    file.seek(0)
    while len(header := file.read(_HEADER.size)) == _HEADER.size:
        length, checksum = _HEADER.unpack(header)
        if masked_crc(header[:8]) != checksum:
            raise DamagedEventsError(f"the record at byte {file.tell() - _HEADER.size} has no valid length")
        if length > size - file.tell():  # it is still being written, or was cut off
            return
        if length > MOST_MESSAGE:
            file.seek(length + _CHECKSUM.size, 1)
            continue
        message, stated = file.read(length), file.read(_CHECKSUM.size)
        if len(stated) == _CHECKSUM.size and masked_crc(message) == _CHECKSUM.unpack(stated)[0]:
            yield message


def masked_crc(data: bytes) -> int:
    """Return the checksum of records: CRC-32C, rotated and offset, as for data that contains checksums."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF


def _table_entry(crc: int) -> int:
    for _ in range(8):
        crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
    return crc


_TABLE = tuple(map(_table_entry, range(256)))


# Messages -------------------------------------------------------------------------------------------------------------

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def _fields(message: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """Yield number, type and value of each field of a protobuf message.

    Raises:
        ValueError: it is not a protobuf message.
    """
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, at = _varint(message, at)
            yield number, kind, value
            continue
        if kind == _BYTES:
            length, at = _varint(message, at)
        elif kind in {_FIXED64, _FIXED32}:
            length = 8 if kind == _FIXED64 else 4
        else:
            raise ValueError("no such type of field")
        if length > len(message) - at:
            raise ValueError("a field reaches beyond its message")
        yield number, kind, message[at : at + length]
        at += length


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(10):
        if at + place >= len(message):
            break
        byte = message[at + place]
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at + place + 1
    raise ValueError("a number without end")


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _of_event(message: bytes, of_others: set[bytes]) -> Iterator[Scalar]:
    """Yield the scalars of one event. ``of_others`` are tags of other plugins, which only their first event names."""
    time_s, step, summaries = math.nan, 0, []
    for number, kind, value in _fields(message):
        if number == 1 and kind == _FIXED64 and isinstance(value, bytes):
            (time_s,) = struct.unpack("<d", value)
        elif number == 2 and isinstance(value, int):
            step = _signed(value)
        elif number == 5 and isinstance(value, bytes):
            summaries.append(value)
    if not 0 <= time_s <= MOST_TIME_S:
        return
    for summary in summaries:
        for number, _, value in _fields(summary):
            if number == 1 and isinstance(value, bytes) and (found := _of_value(value, of_others)):
                yield Scalar(*found, step, round(time_s * 1e9))


def _of_value(message: bytes, of_others: set[bytes]) -> tuple[str, float] | None:
    """Return tag and value; ``None`` if it is not a scalar."""
    tag, found = b"", None
    for number, kind, value in _fields(message):
        if number == 1 and isinstance(value, bytes):
            tag = value
        elif number == 2 and kind == _FIXED32 and isinstance(value, bytes):
            (found,) = struct.unpack("<f", value)
        elif number == 8 and isinstance(value, bytes):
            found = _of_tensor(value)
        elif number == 9 and isinstance(value, bytes) and _plugin(value) not in {b"", _SCALARS}:
            of_others.add(tag)
    if found is None or tag in of_others or not 0 < len(tag) <= MOST_TAG:
        return None
    return tag.decode("utf-8", "replace"), found


def _plugin(metadata: bytes) -> bytes:
    """Return the plugin that a value is for."""
    for number, _, value in _fields(metadata):
        if number == 1 and isinstance(value, bytes):
            return next((name for place, _, name in _fields(value) if place == 1 and isinstance(name, bytes)), b"")
    return b""


_FLOAT, _DOUBLE = struct.Struct("<f"), struct.Struct("<d")
_PACKED = {1: _FLOAT, 2: _DOUBLE, 3: struct.Struct("<i"), 9: struct.Struct("<q"), 19: struct.Struct("<e")}
"""Format of an element, by type of the tensor: float, double, int32, int64, half."""
_LISTS = {5: _FLOAT, 6: _DOUBLE}
"""Fields with elements of fixed length."""
_INTEGERS = frozenset({7, 10})
"""Fields with elements of variable length."""


def _of_tensor(message: bytes) -> float | None:
    """Return the only element of a tensor of numbers; ``None`` for any other tensor."""
    packing: struct.Struct | None = None
    elements: list[float] = []
    for number, _, value in _fields(message):
        if number == 1 and isinstance(value, int):
            packing = _PACKED.get(value)
        elif number == 2 and isinstance(value, bytes) and not _is_single(value):
            return None
        elif number == 4 and isinstance(value, bytes) and packing is not None:
            elements += _unpacked(packing, value)
        elif number in _LISTS and isinstance(value, bytes):
            elements += _unpacked(_LISTS[number], value)
        elif number in _INTEGERS:
            elements.append(_signed(value if isinstance(value, int) else _varint(value, 0)[0]))
    return float(elements[0]) if len(elements) == 1 else None


def _unpacked(packing: struct.Struct, packed: bytes) -> tuple[float, ...]:
    """Return the elements, but at most two."""
    return tuple(value for (value,) in packing.iter_unpack(packed[: 2 * packing.size]))


def _is_single(shape: bytes) -> bool:
    """Return whether a shape has one element: no dimensions, or only dimensions of 1."""
    for number, _, dimension in _fields(shape):
        if number == 2 and isinstance(dimension, bytes):
            size = next((value for place, _, value in _fields(dimension) if place == 1), 0)
            if size != 1:
                return False
    return True
