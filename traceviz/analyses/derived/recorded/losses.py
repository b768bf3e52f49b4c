"""Lost events: the profiler says that it dropped them, or the file is cut off or broken."""

from __future__ import annotations

import re

from traceviz.trace.tables import TraceTables

DIAGNOSTIC = "profiler-diagnostic"
"""Code of the notes by which readers pass on what the profiler reports."""

DAMAGED = "damaged"
"""Code of the notes by which readers say that a file is cut off or broken."""

LOSS = re.compile(
    r"(?i)\b(drop(s|ped|ping)?|los(t|es|ing|s)|incomplete|overflow(s|ed)?|truncated|failed|failure"
    r"|invalid timestamps)\b"
)
"""Words of diagnostics about lost events; others are about what was not requested, or about other tools."""

SYMBOLS = re.compile(r"(?i)\b(symbols?|backtraces?|call ?stacks?|unwind(ing)?|debug info(rmation)?|dwarf)\b")
"""Words of diagnostics about names of code: without them, no event is missing."""


def losses(tables: TraceTables) -> tuple[str, ...]:
    """Messages of the profiler, and of the reader, that say that events are missing, in the order of the notes."""
    return tuple(
        note["message"]
        for note in tables.arrow("notes").to_pylist()
        if note["code"] == DAMAGED or (note["code"] == DIAGNOSTIC and _is_loss(note["message"]))
    )


def _is_loss(message: str) -> bool:
    return LOSS.search(message) is not None and SYMBOLS.search(message) is None


def is_damaged(tables: TraceTables) -> bool:
    """Whether the file is cut off or broken: everything after that point is missing."""
    return DAMAGED in tables.arrow("notes")["code"].to_pylist()
