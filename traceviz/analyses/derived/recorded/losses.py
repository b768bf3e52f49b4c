"""Lost events: the profiler reports dropped events, or the file is truncated or broken."""

from __future__ import annotations

import re

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


def losses(tables: TraceTables) -> tuple[str, ...]:
    """Return messages of the profiler and the reader that report missing events, in the order of the notes."""
    found = []
    for note in tables.arrow("notes").to_pylist():
        code, message = note["code"], note["message"]
        if code == DAMAGED or (code == DIAGNOSTIC and LOSS.search(message) and not SYMBOLS.search(message)):
            found.append(message)
    return tuple(found)


def is_damaged(tables: TraceTables) -> bool:
    """Return whether the file is truncated or broken, so that everything after that point is missing."""
    return DAMAGED in tables.arrow("notes")["code"].to_pylist()
