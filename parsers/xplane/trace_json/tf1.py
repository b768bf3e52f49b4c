"""Translation of trace JSON of TensorFlow 1.14 to 2.1 to the terms of later versions.

That profiler made the JSON from step statistics: each stream of a device is a process, whose threads are made-up lanes
without overlaps. An event is named after the type of its op. The argument ``long name`` is the full name, and ``label``
is the device's work, or the program's annotation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from traceviz.parsers.xplane.trace_json.decode import TraceEvent, text_of

_STREAM = re.compile(r"(?P<device>/device:\w+:\d+)/stream:(?P<number>\d{1,9})(?:<(?P<kind>[^>]*)>)?")
_AGGREGATED = re.compile(r"/device:\w+:\d+/(?:stream:all|stream:|memcpy|sync)")
_LAUNCH = re.compile(r"(?P<kernel>.*?) ?(?P<details>(?:regs|grid):\d.*)", re.DOTALL)
_COPY = re.compile(r"(?P<kernel>.*) bytes:(?P<bytes>\d+)(?P<asynchronous> aync)?(?: to device:(?P<device>\d+))?")
_PAIRS = re.compile(r"\w+=[^,]*(?:,\w+=[^,]*)*")

Interpreted = tuple[str, str, Mapping[str, Any]]
"""Name, display name and arguments of an event."""


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream that is a process: the device, the number of the stream, and the kind of its work."""

    device: str
    number: int
    kind: str

    @property
    def title(self) -> str:
        """Its name as later versions write it."""
        return f"Stream #{self.number}({self.kind})"


def stream_of(process: str) -> Stream | None:
    """Return the stream behind the process of this name; ``None`` if it is not a stream."""
    match = _STREAM.fullmatch(process)
    return Stream(match["device"], int(match["number"]), match["kind"] or "Compute") if match else None


def is_aggregated(process: str) -> bool:
    """Return whether the process of this name only repeats others."""
    return _AGGREGATED.fullmatch(process) is not None


def own_event(event: TraceEvent) -> Interpreted:
    """Return an event of a thread or line, of any version."""
    args = event.args
    if "long_name" in args:
        return text_of(args["long_name"]), event.name, {key: args[key] for key in args if key != "long_name"}
    if "long name" not in args and "label" not in args:
        # The viewer shows a step marker as its step: ``train 3`` for ``train``
        marker, _, number = event.name.rpartition(" ")
        is_marker = event.name == args.get("step_name") and number.isdecimal()
        return marker if is_marker else event.name, "", args
    others = {key: args[key] for key in args if key not in {"long name", "label"}}
    label = text_of(args.get("label", ""))
    if _PAIRS.fullmatch(label):
        others |= dict(pair.split("=", 1) for pair in label.split(","))
    elif label:
        others["label"] = label
    return text_of(args.get("long name", event.name)), "", others


def stream_event(event: TraceEvent) -> Interpreted:
    """Return an event of a process that is a stream: the kernel or copy, with its details and the op that caused it."""
    label = text_of(event.args.get("label", ""))
    op, _, kernel = text_of(event.args.get("long name", "")).partition("@@")
    args = {"annotation": text_of(event.args.get("annotation", "")) or op}
    copy, launch = _COPY.fullmatch(label), _LAUNCH.fullmatch(label)
    if copy:
        asynchronous = int(copy["asynchronous"] is not None)
        args["memcpy_details"] = f"size:{copy['bytes']} dest:{copy['device'] or 0} async:{asynchronous}"
    elif launch:
        args["kernel_details"] = launch["details"]
        kernel = kernel or launch["kernel"]
    return kernel or event.name, "", {key: value for key, value in args.items() if value}
