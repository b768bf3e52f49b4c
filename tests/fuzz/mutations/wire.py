"""Changes of protobuf messages that leave the lengths around them right.

A message is a list of ``[tag, wire type, value]``; the value of a nested message is such a list again.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress
from random import Random
from typing import Any

from tests.fuzz.mutations import nasty
from tests.fuzz.mutations.octets import LARGE, spoil

Message = list[list[Any]]
Shape = Mapping[int, "Shape"]
"""Fields that are messages, by tag."""
_STAT: Shape = {}
_ENTRY: Shape = {2: {5: _STAT}}
SPACE: Shape = {1: {3: {4: {4: _STAT}}, 4: _ENTRY, 5: {2: {}}, 6: _STAT}}
"""XSpace: planes of lines of events, which have stats; entries of names."""

_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5


def decoded(data: bytes, shape: Shape) -> Message:
    """Return the fields of ``data``.

    Raises:
        ValueError: it is no such message.
    """
    fields: Message = []
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        tag, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, at = _varint(data, at)
        elif wire == _BYTES:
            length, at = _varint(data, at)
            value, at = _part(data, at, length)
            if tag in shape:
                with suppress(ValueError):  # what another step put there stays as it is
                    value = decoded(value, shape[tag])
        elif wire in (_EIGHT, _FOUR):
            value, at = _part(data, at, 8 if wire == _EIGHT else 4)
        else:
            raise ValueError(wire)
        fields.append([tag, wire, value])
    return fields


def encoded(fields: Message) -> bytes:
    """Return the bytes of a message."""
    out = []
    for tag, wire, value in fields:
        out.append(varint(tag << 3 | wire))
        if wire == _VARINT:
            out.append(varint(value))
        elif wire == _BYTES:
            body = encoded(value) if isinstance(value, list) else value
            out += [varint(len(body)), body]
        else:
            out.append(value)
    return b"".join(out)


def varint(value: int) -> bytes:
    """Return ``value`` as a varint of at most ten bytes."""
    value &= 2**64 - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 70:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at
    raise ValueError(at)


def _part(data: bytes, at: int, length: int) -> tuple[bytes, int]:
    if length > len(data) - at:
        raise ValueError(length)
    return data[at : at + length], at + length


def _messages(fields: Message, depth: int = 0) -> Iterator[tuple[int, Message]]:
    """Yield all messages within a message and itself, each with its depth."""
    yield depth, fields
    for field in fields:
        if isinstance(field[2], list):
            yield from _messages(field[2], depth + 1)


def change(random: Random, data: bytes, shape: Shape) -> bytes:
    """Return ``data`` with one field somewhere lost, repeated, moved, of another type or with another value.

    Every depth has the same chance, as most messages are at the innermost.
    """
    if len(data) > LARGE:
        return spoil(random, data)
    try:
        whole = decoded(data, shape)
    except ValueError:
        return spoil(random, data)
    by_depth: dict[int, list[Message]] = {}
    for depth, message in _messages(whole):
        if message:
            by_depth.setdefault(depth, []).append(message)
    if not by_depth:
        return random.choice((b"", b"\x08\x01", spoil(random, data)))
    fields = random.choice(by_depth[random.choice(sorted(by_depth))])
    place = random.randrange(len(fields))
    tag, wire, value = fields[place]
    match random.randrange(12):
        case 0:
            del fields[place]
        case 1:
            fields[place:place] = [[tag, wire, value]] * random.choice((1, 2, 40))
        case 2:
            fields[place] = [random.choice((1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 100, 2**29 - 1)), wire, value]
        case 3:
            other = random.randrange(len(fields))
            fields[place], fields[other] = fields[other], fields[place]
        case 4:
            fields[place] = [tag, *_value(random)]
        case 5:
            fields[place:place] = [[random.randrange(1, 13), *_value(random)]]
        case 6:  # the same field of all messages of this kind
            new = _changed(random, wire, value)
            for _, message in _messages(whole):
                for field in message:
                    if field[:2] == [tag, wire] and not isinstance(field[2], list):
                        field[2] = new
        case 7:
            donor = random.choice(random.choice(list(by_depth.values())))
            fields[place:place] = [donor[random.randrange(len(donor))]]
            if isinstance(fields[place][2], list):  # a message may not hold itself
                fields[place] = [fields[place][0], _BYTES, encoded(fields[place + 1 : place + 2])]
        case _:
            fields[place] = [tag, wire, _changed(random, wire, value)]
    return encoded(whole)


def _value(random: Random) -> tuple[int, Any]:
    """Return any value, with its wire type."""
    wire = random.choice((_VARINT, _VARINT, _BYTES, _BYTES, _EIGHT, _FOUR))
    return wire, _changed(random, wire, b"")


def _changed(random: Random, wire: int, value: Any) -> Any:
    if wire == _VARINT:
        return nasty.integer(random)
    if wire == _EIGHT:
        numbers = (0.0, -1.5, 1e308, float("nan"), float("inf"), float("-inf"), 5e-324)
        return random.choice((struct.pack("<d", random.choice(numbers)), random.randbytes(8)))
    if wire == _FOUR:
        return random.randbytes(4)
    given = encoded(value) if isinstance(value, list) else value
    if random.random() < 0.2:
        return random.choice((b"\xff\xfe", b"\xed\xa0\x80", b"\xc0\x80", spoil(random, given)))
    return nasty.spoilt_text(random, given.decode("latin-1")).encode("utf-8", "surrogatepass")
