"""The profiler's own messages about missing events: they were lost, or a tracer was refused or did not fit.

Four things look similar, and each has its own remedy:

- Events were lost: totals are lower bounds.
- The driver refused the profiler: device work cannot be recorded until an administrator permits it.
- The profiler does not support the driver: another version of the profiler does.
- An optional tracer (of cuDNN, OpenGL, the kernel's events) did not start: nothing that the report is about is missing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from traceviz.trace import schema
from traceviz.trace.tables import TraceTables

DIAGNOSTIC = "profiler-diagnostic"
"""Code of the notes in which readers pass on the profiler's reports."""

DAMAGED = "damaged"
"""Code of the notes in which readers report that a file is truncated or broken."""

LOSS = re.compile(
    r"(?i)\b(drop(s|ped|ping)?|los(t|es|ing|s)|incomplete|overflow(s|ed)?|truncated|failed|failure"
    r"|invalid timestamps)\b"
)
"""Words of diagnostics about lost events. Other diagnostics are about what was not requested, or other tools."""

SYMBOLS = re.compile(r"(?i)\b(symbols?|backtraces?|call ?stacks?|unwind(ing)?|debug info(rmation)?|dwarf)\b")
"""Words of diagnostics about names of code: if those are lost, no events are missing."""

OPTIONAL = re.compile(
    r"(?i)\b(cu(dnn|blas|sparse|solver|fft|rand|file|tensor)|open(gl|acc|mp|cl|xr|shmem)|vulkan|directx|d3d\d*"
    r"|dx\d*|wddm|nvvideo|nvenc|nvdec|ucx|perf[ _]events?|perf_event_open|context switch(es)?|ftrace|etw|unified memory"
    r"|GPU (context|metrics)|NIC metrics|IB switch|CPU (IP|core) (samples?|events?|metrics)|IP samples?"
    r"|python sampling)"
)
"""Words of diagnostics about tracers that record besides device work, its API, ranges and system calls."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the profiler could not record device work.

    Args:
        words: The reason, within a sentence.
        remedy: What to do, in whole sentences.
        message: The profiler's own message.
    """

    words: str
    remedy: str
    message: str


_PERMISSION = (
    r"(?i)INSUFFICIENT_PRIVILEGES|ERR_NVGPUCTRPERM|(insufficient|lacks?|without|no) (privileges?|permissions?)"
    r"|permission (was )?denied|(does|do) not have (the )?(permission|privilege)"
)
_IN_USE = (
    r"(?i)MULTIPLE_SUBSCRIBERS|already (in use|subscribed|being (traced|profiled))"
    r"|another (profiler|tool|subscriber)"
)
_DRIVER = (
    r"(?i)driver( version)?( \([\d.]+\))? is (not supported|insufficient|too (old|new))|unsupported (CUDA )?driver"
    r"|CUPTI_ERROR_(NOT_COMPATIBLE|INVALID_DEVICE|LEGACY_PROFILER_NOT_SUPPORTED|HARDWARE\w*|VIRTUALIZED\w*)"
    r"|(device|GPU|architecture) is not supported"
)
_PERMIT = (
    "Permit it: load the driver's module with NVreg_RestrictProfilingToAdminUsers=0, or run as root or with "
    "CAP_SYS_ADMIN (docker run --cap-add=SYS_ADMIN). Then record again."
)
_END_OTHER = "End the other profiler, or the one that the program starts itself. Then record again."
_UPDATE = (
    "Use a version of the profiler that supports the driver; a new driver needs a newer Nsight Systems. Then record "
    "again."
)
_REFUSALS = (
    (
        _PERMISSION,
        "the driver did not permit the profiler to trace the device (NVreg_RestrictProfilingToAdminUsers=0 permits it)",
        _PERMIT,
    ),
    (_IN_USE, "another tool traced the device at the same time", _END_OTHER),
    (_DRIVER, "the profiler does not support this driver or device (a newer version may)", _UPDATE),
)
"""Patterns of messages, reasons and remedies, the plainest reason first."""


def find_refusal(tables: TraceTables) -> Refusal | None:
    """Return why device work could not be recorded; ``None`` if some was, or if no message shows a reason."""
    if any(tables.rows(name) for name in schema.DEVICE_WORK if name in tables):
        return None
    messages = [message for message in _diagnostics(tables) if not OPTIONAL.search(message)]
    for pattern, words, remedy in _REFUSALS:
        found = next((message for message in messages if re.search(pattern, message)), None)
        if found is not None:
            return Refusal(words, remedy, found)
    return None


def losses(tables: TraceTables) -> tuple[str, ...]:
    """Return messages of the profiler and the reader that report missing events, in the order of the notes."""
    refused = find_refusal(tables)
    found = [note["message"] for note in tables.arrow("notes").to_pylist() if note["code"] == DAMAGED]
    lost = (m for m in _diagnostics(tables) if LOSS.search(m) and not SYMBOLS.search(m) and not OPTIONAL.search(m))
    return (*found, *(message for message in lost if not (refused and _shows_refusal(message))))


def _shows_refusal(message: str) -> bool:
    return any(re.search(pattern, message) for pattern, _, _ in _REFUSALS)


def _diagnostics(tables: TraceTables) -> list[str]:
    return [note["message"] for note in tables.arrow("notes").to_pylist() if note["code"] == DIAGNOSTIC]


REPLAYED = "kernels-replayed"
"""Code of the note on kernels that the profiler repeated to measure counters."""
_REPLAYS = re.compile(r"(?i)\bkernels?(\(s\))? (will be|were|are) replayed\b|\breplay(ing|ed) kernels?\b")


def are_kernels_replayed(tables: TraceTables) -> bool:
    """Return whether the profiler repeated kernels to measure them: it then makes the time between kernels."""
    is_noted = REPLAYED in tables.arrow("notes")["code"].to_pylist()
    return is_noted or any(_REPLAYS.search(message) for message in _diagnostics(tables))


def is_damaged(tables: TraceTables) -> bool:
    """Return whether the file is truncated or broken, so that everything after that point is missing."""
    return DAMAGED in tables.arrow("notes")["code"].to_pylist()
