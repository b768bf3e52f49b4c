"""Files of Python stacks from the sampler in a program, one per process: a JSON array on each line.

::

    ["process", {"pid": 12, "role": "program", ...}]
    ["clock", 5000, 1700000000000005000]                  a moment on the file's clock and the wall clock
    ["thread", 0, 12, "MainThread", true, 1401...]        number, the system's, name, is it the main one, Python's
    ["frame", 0, "decode", "train.py", 41, "program"]
    ["stack", 0, null, 0]                                 number, that of the caller, frame
    ["samples", [[5000, 10, 0, 0, 1, 9, "running"]]]      start, duration, thread, stack, samples, CPU time, state
    ["phase", "saving", "torch.save", null, 5100, 40, 12]
    ["metric", "val_loss", 0.25, 40, 1, 5150, "keras"]   name, value, step, epoch, moment, source
    ["cost", {"cpu_ns": 1, "ticks": 90}]
    ["stopped", 5200, "OSError: ..."]                     no samples from then on, and the reason
    ["end", 5900]

Lines are appended while the program runs, which may be killed at any moment. Repeated lines on the process, a thread,
the cost or the end replace earlier ones. Times are nanoseconds of the machine's monotonic clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, BinaryIO, TypeAlias

import msgspec

from traceviz.trace.plausible import FARTHEST_NS, MOST_SAMPLES
from traceviz.untrusted.json_documents import JsonError, document_of

ROLES = ("program", "worker")
"""Roles of a process. A worker, such as those of a DataLoader, works for the program and counts no steps."""
MOST_LINE = 16 << 20
"""Maximum length of a line: the sampler writes once per second, and never a longer one."""

Number = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Time = Annotated[int, msgspec.Meta(ge=-FARTHEST_NS, le=FARTHEST_NS)]
Count = Annotated[int, msgspec.Meta(ge=0, le=MOST_SAMPLES)]
Pid = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Ident = Annotated[int, msgspec.Meta(ge=-(2**62), le=2**62)]
Sample: TypeAlias = tuple[Time, Time, Number, Number, Count, Time | None, str | None]


class About(msgspec.Struct, frozen=True):
    """Facts that a process states about itself."""

    pid: Pid | None = None
    ppid: Pid | None = None
    role: str = "program"
    name: str | None = None
    rate_hz: float = 0.0
    started_unix_ns: Time | None = None
    batch: Number | None = None
    """Samples per step."""
    gradients: Number | None = None
    """1 if gradients were computed in it, 0 if they would have been seen and were not."""
    parameter_bits: Number | None = None
    """Bits of the parameters that it trains."""


class ProcessLine(msgspec.Struct, frozen=True, array_like=True, tag="process"):
    """The process."""

    about: About


class ClockLine(msgspec.Struct, frozen=True, array_like=True, tag="clock"):
    """A moment on the file's clock and on the wall clock."""

    at_ns: Time
    unix_ns: Time


class ThreadLine(msgspec.Struct, frozen=True, array_like=True, tag="thread"):
    """A thread: its number here, the system's, its name, and Python's id of it."""

    number: Number
    tid: Pid | None
    name: str | None = None
    is_main: bool = False
    ident: Ident | None = None


class FrameLine(msgspec.Struct, frozen=True, array_like=True, tag="frame"):
    """A place in a function."""

    number: Number
    function: str
    file: str
    line: Number | None
    origin: str


class StackLine(msgspec.Struct, frozen=True, array_like=True, tag="stack"):
    """A frame and all frames around it."""

    number: Number
    parent: Number | None
    frame: Number


class SamplesLine(msgspec.Struct, frozen=True, array_like=True, tag="samples"):
    """Samples of about one second."""

    rows: list[Sample]


class PhaseLine(msgspec.Struct, frozen=True, array_like=True, tag="phase"):
    """A part of the run, from hooks in the program."""

    kind: str
    name: str
    number: Time | None
    start_ns: Time
    dur_ns: Time | None
    tid: Pid | None = None


class MetricLine(msgspec.Struct, frozen=True, array_like=True, tag="metric"):
    """A figure of quality that the program reported; its value is ``None`` if it was not finite."""

    name: str
    value: float | None
    step: Time | None
    epoch: Time | None
    at_ns: Time
    source: str


class CostLine(msgspec.Struct, frozen=True, array_like=True, tag="cost"):
    """Cost of sampling."""

    stated: dict[str, Any]


class StoppedLine(msgspec.Struct, frozen=True, array_like=True, tag="stopped"):
    """End of the samples, if sampling ended before the process did."""

    at_ns: Time
    reason: str = ""


class EndLine(msgspec.Struct, frozen=True, array_like=True, tag="end"):
    """End of the sampler."""

    at_ns: Time


Line: TypeAlias = (
    ProcessLine
    | ClockLine
    | ThreadLine
    | FrameLine
    | StackLine
    | SamplesLine
    | PhaseLine
    | MetricLine
    | CostLine
    | StoppedLine
    | EndLine
)
_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(Line)


def lines_of(file: BinaryIO) -> Iterator[bytes]:
    """Yield lines that are not empty; of a line that is too long, only its start, which is not JSON."""
    while text := file.readline(MOST_LINE):
        begin = text
        while text and not text.endswith(b"\n"):  # skip the rest of it, or nothing at the end of the file
            text = file.readline(MOST_LINE)
        if not begin.isspace():
            yield begin


def line_of(text: bytes) -> Any:
    """Return the parsed line; ``None`` if it cannot be parsed."""
    try:
        return _decoder.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        pass
    try:  # names that are not Unicode, as of files, and lists with one damaged element
        stated = document_of(text)
        if isinstance(stated, list) and len(stated) > 1 and stated[0] == "samples" and isinstance(stated[1], list):
            stated = ["samples", [row for row in stated[1] if _is_sample(row)]]
        return msgspec.convert(stated, Line)
    except (JsonError, msgspec.MsgspecError, RecursionError):
        return None


def _is_sample(row: Any) -> bool:
    try:
        msgspec.convert(row, Sample)
    except msgspec.MsgspecError:
        return False
    return True
