"""Trace JSON as planes, lines, events and stats of an XPlane file, so that both share the code for tables.

The profiler makes the JSON from an XSpace: a process is a plane, a thread a line, arguments are stats whose values were
turned into texts, and an event shows its display name, with its own name as the argument ``long_name``. Files of older
versions are translated by :mod:`traceviz.parsers.xplane.trace_json.tf1`.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from traceviz.core.errors import DamagedTraceError
from traceviz.parsers.shared.arrays.arrow import StringArray, pc
from traceviz.parsers.shared.events.names import decode as as_texts
from traceviz.parsers.xplane.decode.raw import Array, Events, Kind, Line, Plane, Space, Stats
from traceviz.parsers.xplane.decode.wire import Damage
from traceviz.parsers.xplane.trace_json.decode import Decoded, TraceEvent, text_of
from traceviz.parsers.xplane.trace_json.tf1 import Stream, is_aggregated, own_event, stream_event, stream_of
from traceviz.trace.plausible import FARTHEST_NS, window_of

CAPS = (1_000_000, 5_000_000)
"""Maximum number of events that the profiler writes: always until 2024, by default since then."""
_TIED = 1_000  # events that start together with the last one are not dropped

_PHASES = frozenset({"X", "i", "I", "n"})
"""Phases of events that are complete by themselves: complete events, and instants."""

_PROCESS = re.compile(r"(?:(?P<host>[^/\s]+) )?(?P<plane>/(?:host|device):.*)", re.DOTALL)
_ORDINAL = re.compile(r"/device:\w+:(\d{1,9})(?!\d)")
_WHOLE = re.compile(r"[+-]?\d{1,20}")
_REAL = re.compile(r"[+-]?\d+(?:\.\d+(?:[eE][+-]?\d+)?|[eE][+-]?\d+)")
_NAME_KEYS = frozenset(
    {"annotation", "equation", "hlo_module", "hlo_op", "kernel_name", "name", "shape", "source", "step_name", "tf_op"}
)
"""Arguments that are names, even if made of digits."""


_OF_NAMES = ("hlo_category", "program_id", "flops", "model_flops", "bytes_accessed", "raw_bytes_accessed", "symbol_id")
"""Arguments that apply to all executions of an XLA op, which an XPlane file states once."""
_DERIVED = 0xDEADBEEF
"""First number of the lines that the viewer derives from others."""


def spaces_of(decoded: Decoded) -> dict[str, Space]:
    """Return the planes of a trace by host; the name is empty if the trace has one host and does not name it.

    :attr:`Space.damage` of the first reports the lost part.
    """
    processes: dict[int, str] = {}
    threads: dict[tuple[int, int], str] = {}
    by_thread: dict[tuple[int, int], list[TraceEvent]] = defaultdict(list)
    for event in decoded.events:
        if event.ph in _PHASES:
            by_thread[event.pid, event.tid].append(event)
        elif event.ph == "M":
            label = text_of(event.args.get("name", ""))
            if event.name == "process_name":
                processes[event.pid] = label
            elif event.name == "thread_name":
                threads[event.pid, event.tid] = label
    labels = {pid: f"process {pid}" for pid, _ in by_thread} | processes
    by_pid = {pid: _interpret_process(label) for pid, label in labels.items()}
    lines: dict[_LineKey, list[TraceEvent]] = defaultdict(list)
    for (pid, tid), events in by_thread.items():
        place = by_pid[pid]
        lines[_LineKey(place, pid, 0 if place.stream else tid)] += events
    broken_off = f"the file breaks off; its last {decoded.lost:,} bytes could not be read"
    damage = (Damage("traceEvents", broken_off),) if decoded.cut else ()
    spaces: dict[str, Space] = {}
    for host in sorted({place.host for place in by_pid.values()}):
        planes = tuple(
            _plane(
                name, {key: lines[key] for key in lines if (key.place.host, key.place.plane) == (host, name)}, threads
            )
            for name in dict.fromkeys(place.plane for place in by_pid.values() if place.host == host)
        )
        spaces[host] = Space(planes, damage=() if spaces else damage, scanner="json")
    return spaces or {"": Space((), damage=damage, scanner="json")}


def cap_reached(decoded: Decoded) -> int | None:
    """Return the cap that the number of events has reached, so that later ones were dropped; ``None`` if below."""
    count = sum(event.ph in _PHASES for event in decoded.events)
    return next((cap for cap in CAPS if cap <= count <= cap + _TIED), None)


def count_unread(decoded: Decoded) -> dict[str, int]:
    """Return the number of events of each unread phase: counters, flows, and ranges with separate ends."""
    others = Counter(event.ph for event in decoded.events if event.ph not in _PHASES and event.ph not in {"", "M"})
    return dict(sorted(others.items()))


@dataclass(frozen=True, slots=True)
class _Place:
    """Meaning of a process of the JSON: a plane, or one stream of a device."""

    host: str
    plane: str
    stream: Stream | None = None
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class _LineKey:
    place: _Place
    pid: int
    tid: int


def _interpret_process(label: str) -> _Place:
    match = _PROCESS.fullmatch(label)
    host, plane = (match["host"] or "", match["plane"]) if match else ("", label)
    stream = stream_of(plane)
    return _Place(host, stream.device if stream else plane, stream, is_aggregated(plane))


# --- one plane -------------------------------------------------------------------------------------------------------


def _plane(name: str, lines: Mapping[_LineKey, Sequence[TraceEvent]], threads: Mapping[tuple[int, int], str]) -> Plane:
    """Return the plane ``name`` with ``lines``, whose events keep their order."""
    # The viewer derives lines that only repeat others, on TPUs next to real ones
    kept = {
        key: events
        for key, events in lines.items()
        if not (key.place.repeats or (key.place.plane.startswith("/device:TPU") and key.tid >= _DERIVED))
    }
    events = [event for key in kept for event in kept[key]]
    columns = _Columns()
    for key, its in kept.items():
        interpret = stream_event if key.place.stream else own_event
        for event in its:
            columns.add(*interpret(event))
    counts = np.array([len(of_line) for of_line in kept.values()], dtype=np.int64)
    ends = np.cumsum(counts).tolist()
    starts = _Decimals.of([event.ts for event in events])
    base = starts.first()  # picoseconds since 1970 would not fit 64 bits
    durations = picoseconds([event.dur for event in events])
    durations[durations == 1] = 0  # the viewer shows instants as one picosecond long
    names = list(columns.names)
    ordinal = _ORDINAL.search(name)
    return Plane(
        id=int(ordinal[1]) if ordinal else 0,
        name=name,
        lines=tuple(
            Line(
                _line_id(key),
                key.place.stream.title if key.place.stream else threads.get((key.pid, key.tid), ""),
                base * 1000,
                slice(end - len(kept[key]), end),
            )
            for key, end in zip(kept, ends, strict=True)
        ),
        events=Events(
            np.repeat(np.arange(len(kept), dtype=np.int32), counts),
            np.frombuffer(columns.name, dtype=np.int32),
            starts.after(base),
            durations,
        ),
        stats=columns.stats(),
        names=[own for own, _, _ in names],
        display_names=[shown for _, shown, _ in names],
        name_stats={
            place: {key: int(text) if key not in _NAME_KEYS and _WHOLE.fullmatch(text) else text for key, text in args}
            for place, (_, _, args) in enumerate(names)
            if args
        },
        texts=list(columns.texts),
        blobs=[],
        properties={},
    )


_Name = tuple[str, str, tuple[tuple[str, str], ...]]
"""Name, display name, and stats for all events of the name."""


@dataclass(slots=True)
class _Columns:
    """Names and stats of events, collected event by event as JSON states them. Other columns are made at once."""

    names: dict[_Name, int] = field(default_factory=dict)
    texts: dict[str, int] = field(default_factory=dict)
    name: array[int] = field(default_factory=lambda: array("i"))
    event: array[int] = field(default_factory=lambda: array("i"))
    key: array[int] = field(default_factory=lambda: array("i"))
    kind: array[int] = field(default_factory=lambda: array("B"))
    value: array[int] = field(default_factory=lambda: array("q"))

    def add(self, own: str, shown: str, args: Mapping[str, Any]) -> None:
        """Add the next event."""
        place = len(self.name)
        is_op = "hlo_category" in args
        of_name = tuple((key, text_of(args[key])) for key in _OF_NAMES if key in args) if is_op else ()
        self.name.append(self.names.setdefault((own, shown, of_name), len(self.names)))
        for key, value in args.items():
            if not (is_op and key in _OF_NAMES):
                text, texts = value if isinstance(value, str) else text_of(value), self.texts
                kind, bits = _TEXT if key in _NAME_KEYS else _typed(text)
                self.event.append(place)
                self.key.append(texts.setdefault(key, len(texts)))
                self.kind.append(kind)
                self.value.append(texts.setdefault(text, len(texts)) if kind == _TEXT[0] else bits)

    def stats(self) -> Stats:
        """Return the stats of all events."""
        return Stats(
            np.frombuffer(self.event, dtype=np.int32),
            np.frombuffer(self.key, dtype=np.int32),
            np.frombuffer(self.kind, dtype=np.uint8),
            np.frombuffer(self.value, dtype=np.int64),
        )


def _line_id(key: _LineKey) -> int:
    """Return the id of a stream or thread. Those of devices are signed, but the profiler writes them unsigned."""
    if key.place.stream:
        return key.place.stream.number
    return key.tid - 2**32 if key.place.plane.startswith("/device:") and 2**31 <= key.tid < 2**32 else key.tid


_TEXT = (int(Kind.TEXT), 0)


@lru_cache(maxsize=1 << 14)
def _typed(text: str) -> tuple[int, int]:
    """Return kind and bits of a value, as the profiler types annotations: an integer, else a real, else a text."""
    if text[:1] not in _NUMERIC:
        return _TEXT
    if _WHOLE.fullmatch(text):
        value = int(text)
        if -(2**63) <= value < 2**63:
            return int(Kind.SIGNED), value
        if value < 2**64:
            return int(Kind.UNSIGNED), value - 2**64
    if _REAL.fullmatch(text):
        return int(Kind.REAL), int(np.float64(text).view(np.int64))
    return _TEXT


_NUMERIC = frozenset("+-0123456789")


# --- decimal microseconds --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Decimals:
    """Numbers of microseconds, exact to the picosecond: whole ones (int64), and the picoseconds beyond (int64)."""

    whole: Array
    part: Array

    @classmethod
    def of(cls, numbers: Sequence[msgspec.Raw]) -> _Decimals:
        """Parse the texts of the file; digits beyond the sixth after the point are cut off.

        Raises:
            DamagedTraceError: one of them is not a number.
        """
        texts = as_texts(pa.array([bytes(number) for number in numbers], pa.binary()))
        parts = pc.extract_regex(_without_exponents(texts), r"^(?P<sign>-?)(?P<whole>\d{1,18})(?:\.(?P<part>\d+))?$")
        if parts.null_count:
            wrong = texts.filter(pc.is_null(parts))[0].as_py()
            raise DamagedTraceError(
                f"The trace holds a time that is no number of microseconds: {wrong[:40]}.",
                fix="Copy the file again, or record again.",
            )
        digits = pc.utf8_rpad(pc.utf8_slice_codeunits(pc.struct_field(parts, "part"), 0, 6), 6, "0")
        sign = np.where(pc.equal(pc.struct_field(parts, "sign"), "-").to_numpy(zero_copy_only=False), -1, 1)
        whole = pc.struct_field(parts, "whole").cast(pa.int64()).to_numpy()
        return cls(sign * whole, sign * digits.cast(pa.int64()).to_numpy())

    def after(self, base: int) -> Array:
        """Return picoseconds after ``base`` microseconds (int64), limited to values that captures hold."""
        whole: Array = np.clip(self.whole - base, -_MOST_US, _MOST_US)
        return whole * 1_000_000 + self.part

    def first(self) -> int:
        """Return the first plausible number; 0 if there is none."""
        if not self.whole.size:
            return 0
        nanoseconds = np.clip(self.whole, -_FARTHEST_US, _FARTHEST_US) * 1000
        window = window_of(nanoseconds)
        plausible = self.whole if window is None else self.whole[window.has(nanoseconds)]
        return int(plausible.min()) if plausible.size else 0


_MOST_US = 9_000_000_000_000
"""104 days: the most microseconds whose picoseconds fit 64 bits."""
_FARTHEST_US = FARTHEST_NS // 1000 + 1
_WITH_EXPONENT = r"^-?\d{1,400}(?:\.\d{1,400})?[eE][+-]?\d{1,3}$"
"""Pattern of exponents that are expanded; others are rejected: a time of 10**1000 would take as many digits."""


def _without_exponents(texts: StringArray) -> StringArray:
    """Return numbers without exponents: the viewer writes one in its shortest durations; most of them are equal."""
    unusual = pc.match_substring_regex(texts, _WITH_EXPONENT)
    if not pc.any(unusual).as_py():
        return texts
    different = pc.unique(texts.filter(unusual))
    plain = pa.array([format(Decimal(text), "f") for text in different.to_pylist()])
    return pc.replace_with_mask(texts, unusual, plain.take(pc.index_in(texts.filter(unusual), different)))


def picoseconds(numbers: Sequence[msgspec.Raw]) -> Array:
    """Return numbers of microseconds as picoseconds (int64)."""
    return _Decimals.of(numbers).after(0)
