"""Writes a trace as PyTorch's profiler (Kineto) does today: Chrome's JSON with Kineto's categories and arguments.

traceviz is not used: what readers are tested with does not share their mistakes. Times are integers of nanoseconds;
they are written as Kineto writes them, in microseconds with three decimals after ``baseTimeNanoseconds``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

BASE_NS = 1_790_857_026_000_000_000
"""Kineto's time base, some weeks before the capture."""
START_NS = 4_394_670_087_803_253
"""Nanoseconds from the base to the first event: more digits than a double keeps."""
SPAN_TRACK: dict[str, Any] = {"pid": "Spans", "tid": "PyTorch Profiler"}

Args = dict[str, Any]


@dataclass(slots=True)
class KinetoTrace:
    """A capture of one process; events may be added in any order.

    Args:
        header: Members beside the events.
        pid: Of the process, which is also the id of its main thread.
        lines: The events as JSON.
    """

    header: Args
    pid: int
    lines: list[str] = field(default_factory=list)
    end_ns: int = 0

    def complete(self, category: str, name: str, track: Args, span: tuple[int, int], args: Args) -> None:
        """Add an event with a start and a duration, on the track of a thread or a stream."""
        start_ns, dur_ns = span
        head = _members({"ph": "X", "cat": category, "name": name, **track})
        times = f'"ts": {_micros(START_NS + start_ns)}, "dur": {_micros(dur_ns)}'
        self.lines.append(f"{{{head}, {times}, {_members({'args': args})}}}")
        self.end_ns = max(self.end_ns, start_ns + dur_ns)

    def memory(self, track: Args, at_ns: int, args: Args) -> None:
        """Add an allocation or a release."""
        head = _members({"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", **track})
        self.lines.append(f'{{{head}, "ts": {_micros(START_NS + at_ns)}, {_members({"args": args})}}}')

    def arrow(self, phase: str, correlation: int, track: Args, at_ns: int) -> None:
        """Add an end of the arrow from a call (phase ``s``) to what it started on the device (phase ``f``)."""
        head = _members({"ph": phase, "id": correlation, **track})
        rest = _members({"cat": "ac2g", "name": "ac2g", **({"bp": "e"} if phase == "f" else {})})
        self.lines.append(f'{{{head}, "ts": {_micros(START_NS + at_ns)}, {rest}}}')

    def label(self, kind: str, track: Args, args: Args) -> None:
        """Add a name of a process or a thread."""
        head = _members({"ph": "M", "name": kind, **track})
        self.lines.append(f'{{{head}, "ts": {_micros(START_NS)}, {_members({"args": args})}}}')

    def encoded(self) -> bytes:
        """The file: the device list first, as in new files, and the time base last."""
        span = _members({"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", **SPAN_TRACK})
        times = f'"ts": {_micros(START_NS)}, "dur": {_micros(self.end_ns)}'
        events = [*self.lines, f'{{{span}, {times}, "args": {{"Op count": 0}}}}']
        ends = {
            "traceName": "synthetic.pt.trace.json",
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": BASE_NS,
        }
        listed = ",\n".join(events)
        return f'{{{_members(self.header)}, "traceEvents": [\n{listed}\n], {_members(ends)}}}\n'.encode()


def _members(values: Args) -> str:
    """The members of an object, without its braces."""
    return json.dumps(values)[1:-1]


def _micros(time_ns: int) -> str:
    return f"{time_ns // 1000}.{time_ns % 1000:03}"
