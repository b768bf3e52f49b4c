"""What the profiler itself says that it lost."""

from __future__ import annotations

import re

from traceviz.tables import TraceTables

DIAGNOSTIC = "profiler-diagnostic"
"""Code of the notes by which readers pass on what the profiler reports."""

LOSS = re.compile(r"(?i)\b(drop(s|ped|ping)?|los(t|es|ing|s)|incomplete|overflow(s|ed)?|truncated|failed|failure)\b")
"""Words of a report that speaks of lost events; others are about what was not asked for, or about other tools."""


def losses(tables: TraceTables) -> tuple[str, ...]:
    """Messages of the profiler that say that events are missing, in the order of the notes."""
    notes = tables.arrow("notes").to_pylist()
    return tuple(note["message"] for note in notes if note["code"] == DIAGNOSTIC and LOSS.search(note["message"]))
