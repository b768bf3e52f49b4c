"""XPlane files (``*.xplane.pb``): one for each rank, with a GPU plane and the host, encoded by hand.

Field numbers are those of ``tsl/profiler/protobuf/xplane.proto``.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.diagnosis.record import Kind, Record, Span, Work
from benchmarks.diagnosis.writers.shared import DEVICE_MEMORY, EPOCH_NS, MULTIPROCESSORS, nested, tid_of
from benchmarks.diagnosis.writers.tensorflow_names import tensorflow_name

COPIES = {Work.HOST_TO_DEVICE: "MemcpyH2D", Work.DEVICE_TO_HOST: "MemcpyD2H", Work.DEVICE_TO_DEVICE: "MemcpyD2D"}
PICOSECONDS = 1_000
ENTRY_KEY, ENTRY_VALUE = 1, 2
PROGRAM = "$train.py:88 main"


def write_xplane(record: Record, folder: Path) -> list[Path]:
    """Write one file for each rank and return them."""
    paths = []
    for rank in range(record.ranks):
        path = folder / f"host{rank}.xplane.pb"
        planes = (_device_plane(record, rank), _host_plane(record, rank), _environment(record))
        content = b"".join(_message(1, plane) for plane in planes)
        if record.lost:
            content += _text(
                3, f"Detected GPU events dropped on host{rank}: Profiler has dropped {record.lost} events."
            )
        path.write_bytes(content + _text(4, f"host{rank}"))
        paths.append(path)
    return paths


class _Plane:
    """A plane: its lines, and the names that events and stats refer to."""

    def __init__(self, number: int, name: str) -> None:
        self._head = _number(1, number) + _text(2, name)
        self._lines: list[bytes] = []
        self._events: dict[str, int] = {}
        self._stats: dict[str, int] = {}
        self._own_stats: list[bytes] = []

    def line(self, number: int, name: str, events: list[bytes]) -> None:
        """Add a line of encoded events."""
        head = _number(1, number) + _text(2, name) + _number(3, 0)
        self._lines.append(head + b"".join(_message(4, event) for event in events))

    def event(self, name: str, start: int, end: int, stats: dict[str, int | str] | None = None) -> bytes:
        """Encode an event of a line that starts at 0."""
        number = self._events.setdefault(name, len(self._events) + 1)
        content = _number(1, number) + _number(2, start * PICOSECONDS) + _number(3, (end - start) * PICOSECONDS)
        return content + b"".join(_message(4, self._stat(key, value)) for key, value in (stats or {}).items())

    def stat(self, name: str, value: int | str) -> None:
        """Add a stat of the plane itself."""
        self._own_stats.append(self._stat(name, value))

    def encode(self) -> bytes:
        """Return the whole plane."""
        parts = [self._head, *(_message(3, line) for line in self._lines)]
        for field, names in ((4, self._events), (5, self._stats)):
            for name, number in names.items():
                metadata = _number(1, number) + _text(2, name)
                parts.append(_message(field, _number(ENTRY_KEY, number) + _message(ENTRY_VALUE, metadata)))
        parts += [_message(6, stat) for stat in self._own_stats]
        return b"".join(parts)

    def _stat(self, name: str, value: int | str) -> bytes:
        number = _number(1, self._stats.setdefault(name, len(self._stats) + 1))
        return number + (_number(4, value) if isinstance(value, int) else _text(5, value))


def _device_plane(record: Record, rank: int) -> bytes:
    plane = _Plane(0, "/device:GPU:0")
    streams: dict[int, list[bytes]] = {}
    for span in sorted((span for span in record.device if span.rank == rank), key=lambda span: span.start):
        stats: dict[str, int | str] = {"correlation_id": span.correlation, "context_id": "$$1"}
        if span.work.is_copy:
            host = "pinned" if span.pinned else "pageable"
            source = host if span.work is Work.HOST_TO_DEVICE else "device"
            target = host if span.work is Work.DEVICE_TO_HOST else "device"
            stats["memcpy_details"] = (
                f"kind_src:{source} kind_dst:{target} size:{span.bytes} dest:0 async:{int(span.pinned)}"
            )
        else:
            shape = f"grid:{span.grid},1,1 block:{span.block},1,1"
            stats["kernel_details"] = f"regs:40 static_shared:0 dynamic_shared:0 {shape} occ_pct:75"
        event = plane.event(COPIES.get(span.work, span.name), span.start, span.end, stats)
        streams.setdefault(span.stream, []).append(event)
    for stream, events in sorted(streams.items()):
        plane.line(stream, f"Stream #{stream}(Compute,MemcpyH2D,MemcpyD2H)", events)
    plane.stat("device_vendor", "Nvidia")
    plane.stat("core_count", MULTIPROCESSORS)
    plane.stat("memory_size", DEVICE_MEMORY)
    plane.stat("clock_rate", 1_410_000)
    plane.stat("compute_cap_major", 8)
    plane.stat("compute_cap_minor", 0)
    return plane.encode()


def _host_plane(record: Record, rank: int) -> bytes:
    plane = _Plane(0, "/host:CPU")
    for facts in record.threads:
        if facts.rank != rank or facts.process:
            continue
        spans = [span for span in record.spans if span.rank == rank and span.thread == facts.thread]
        events = [plane.event(PROGRAM, record.start, record.end)] if facts.thread == 1 else []
        for span in nested(spans):
            name = tensorflow_name(span)
            if name:
                events.append(plane.event(name, span.start, span.end, _stats_of(span)))
        plane.line(tid_of(facts), facts.name, events)
    return plane.encode()


def _stats_of(span: Span) -> dict[str, int | str]:
    if span.kind is Kind.STEP:
        return {"step_num": int(span.name.rpartition("#")[2]), "_r": 1}
    if span.kind is Kind.API:
        return {"correlation_id": span.correlation, "device_id": 0, "context_id": "$$1"}
    return {}


def _environment(record: Record) -> bytes:
    plane = _Plane(0, "Task Environment")
    plane.stat("profile_start_time", EPOCH_NS + record.start)
    plane.stat("profile_stop_time", EPOCH_NS + record.end)
    return plane.encode()


def _varint(value: int) -> bytes:
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
