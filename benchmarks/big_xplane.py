"""A large XPlane file in the shape of a TensorFlow capture with its Python tracer, written without any library for it.

One step is encoded once, as a row of events per line, and then repeated. The values that differ from step to step
(offsets, step numbers, ids that join events, names of Python frames) are written over all repetitions at once. They
take the same number of bytes in every step, so the file equals the output of a protobuf library.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

STEPS = 2_420
"""Steps at scale 1: 3.7 million events."""

STEP_PS = 4_000_000_000
FIRST_PS = 2**43
"""Offsets from here to 2**49 take seven bytes; ids from 2**56 to 2**63 nine, step numbers from 128 to 16,383 two."""

TREES, DEPTH, WORKERS, TASKS = 40, 21, 14, 10
FRAMES = 20_000
FIRST_FRAME = 2**14
"""Ids of the names of Python frames: three bytes each."""

NAMES = {
    1: "train",
    2: "ThreadpoolListener::Record",
    3: "ThreadpoolListener::StartRegion",
    4: "ThreadpoolListener::StopRegion",
    5: "model/dense/MatMul:MatMul",
    6: "Iterator::Root::Prefetch",
    7: "IteratorGetNextOp::DoCompute",
}
KEYS = {1: "_r", 2: "step_num", 3: "_pt", 4: "_p", 5: "_ct", 6: "_c", 7: "id", 8: "name", 9: "fused(Map:1,Batch:2)"}
KEYS |= {10: "parent_id", 11: "element_id", 12: "buffered_elements"}


@dataclass(frozen=True, slots=True)
class Blank:
    """A number that differs from step to step.

    Args:
        width: Its bytes.
        first: Its value in the first step.
        stride: Growth per step.
        modulus: Number of values after which they restart from ``base``.
        base: Smallest value.
    """

    width: int
    first: int
    stride: int
    modulus: int = 2**62
    base: int = 0

    def values(self, steps: int) -> np.ndarray:
        """Return the value in each step."""
        return self.base + (self.first - self.base + np.arange(steps, dtype=np.int64) * self.stride) % self.modulus


Part = bytes | Blank


def make(path: Path, scale: float = 1.0) -> int:
    """Write the file; return its number of events."""
    steps = max(1, round(STEPS * scale))
    rows = [python_line()] + [worker_line(worker) for worker in range(WORKERS)]
    with path.open("wb") as out:
        head = chunk(2, b"/host:CPU")
        lines = [line(number, parts, steps) for number, (parts, _) in enumerate(rows)]
        tail = b"".join(name_entry(4, key, name) for key, name in (NAMES | frames()).items())
        tail += b"".join(name_entry(5, key, name) for key, name in KEYS.items())
        size = len(head) + sum(len(opening) + body.size for opening, body in lines) + len(tail)
        out.write(varint(1 << 3 | 2) + varint(size) + head)
        for opening, body in lines:
            out.write(opening)
            out.write(body.data)
        out.write(tail)
    return steps * sum(events for _, events in rows)


def python_line() -> tuple[list[Part], int]:
    """Return the main thread: step marker, fetch of a batch, trees of Python frames. Parts, and number of events."""
    parts = event(1, 0, STEP_PS - 1_000_000, stat_number(1, 1), stat_blank(2, Blank(2, 128, 1, 16_000, 128)))
    parts += event(7, 1_000_000, 200_000_000, stat_number(7, 77))
    width = (STEP_PS - 300_000_000) // TREES
    for tree in range(TREES):
        for depth in range(DEPTH):
            name = Blank(3, FIRST_FRAME + tree * 331 + depth, 37, FRAMES, FIRST_FRAME)
            begin = 250_000_000 + tree * width + depth * 1_000_000
            parts += event(name, begin, width - depth * 2_000_000 - 1_000_000)
    return parts, 2 + TREES * DEPTH


def worker_line(worker: int) -> tuple[list[Part], int]:
    """Return a thread of the pool: regions that the previous task scheduled, each with an op and an iterator."""
    parts: list[Part] = []
    for task in range(TASKS):
        begin = task * (STEP_PS // TASKS)
        ident = 2**56 + (worker * TASKS + task) * 2**40
        parts += event(2, begin, 0, stat_number(3, 15), stat_blank(4, Blank(9, ident, 1)))
        parts += event(3, begin + 1_000_000, 0, stat_number(5, 15), stat_blank(6, Blank(9, ident, 1)))
        parts += event(5, begin + 2_000_000, 90_000_000)
        iterator = [stat_blank(7, Blank(9, ident + 2**39, 0)), stat_number(8, 9, 7), stat_number(10, worker)]
        element, buffered = stat_blank(11, Blank(2, 128, 1, 16_000, 128)), stat_number(12, task)
        parts += event(6, begin + 3_000_000, 40_000_000, *iterator, element, buffered)
        parts += event(4, begin + 99_000_000, 0, stat_number(5, 15))
    return parts, TASKS * 5


def frames() -> dict[int, str]:
    """Return the names of Python frames."""
    return {FIRST_FRAME + n: f"$module_{n % 700}.py:{n % 997} function_{n}" for n in range(FRAMES)}


def event(name: int | Blank, begin_ps: int, dur_ps: int, *stats: list[Part]) -> list[Part]:
    """Return the parts of an event of a line."""
    offset = Blank(7, FIRST_PS + begin_ps, STEP_PS)
    body: list[Part] = [varint(1 << 3), name if isinstance(name, Blank) else varint(name), varint(2 << 3), offset]
    body += [varint(3 << 3) + varint(dur_ps)] if dur_ps else []
    for stat in stats:
        body += [varint(4 << 3 | 2) + varint(size_of(stat)), *stat]
    return [varint(4 << 3 | 2) + varint(size_of(body)), *body]


def stat_number(key: int, value: int, field: int = 4) -> list[Part]:
    """Return the parts of a stat with the same number in every step."""
    return [varint(1 << 3) + varint(key) + varint(field << 3) + varint(value)]


def stat_blank(key: int, value: Blank) -> list[Part]:
    """Return the parts of a stat with its own number in every step."""
    return [varint(1 << 3) + varint(key) + varint(4 << 3), value]


def size_of(parts: list[Part]) -> int:
    """Return the bytes of some parts."""
    return sum(part.width if isinstance(part, Blank) else len(part) for part in parts)


def line(number: int, parts: list[Part], steps: int) -> tuple[bytes, np.ndarray]:
    """Return the opening bytes of a line, and its events of all steps."""
    template = b"".join(bytes(part.width) if isinstance(part, Blank) else part for part in parts)
    body = np.tile(np.frombuffer(template, np.uint8), (steps, 1))
    at = 0
    for part in parts:
        if isinstance(part, Blank):
            values = part.values(steps)
            for byte in range(part.width):
                more = 0x80 if byte < part.width - 1 else 0
                body[:, at + byte] = values >> 7 * byte & 0x7F | more
        at += part.width if isinstance(part, Blank) else len(part)
    name = "python3" if number == 0 else f"tf_Compute/{number}"
    head = varint(1 << 3) + varint(1_000 + number) + chunk(2, name.encode()) + varint(3 << 3) + varint(9_000)
    return varint(3 << 3 | 2) + varint(len(head) + body.size) + head, body


def name_entry(field: int, key: int, name: str) -> bytes:
    """Return an entry of a map of names."""
    value = varint(1 << 3) + varint(key) + chunk(2, name.encode())
    return chunk(field, varint(1 << 3) + varint(key) + chunk(2, value))


def chunk(field: int, content: bytes) -> bytes:
    """Return a field with a length."""
    return varint(field << 3 | 2) + varint(len(content)) + content


def varint(value: int) -> bytes:
    """Return an encoded number."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])
