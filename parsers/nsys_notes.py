"""What the reader dropped, repaired or could not see, and what the profiler itself complains about."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

import pyarrow as pa

from traceviz import schema
from traceviz.parsers.nsys_constants import SEVERITY
from traceviz.parsers.nsys_raw import RawTables

_ABSOLUTE_PATH = re.compile(r"(?<![\w/.\]])(?:/|~/|[A-Za-z]:\\)[^\s'\",;()<>]+")


@dataclass(slots=True)
class Notes:
    """Collects the rows of table ``notes`` while a trace is read."""

    rows: list[tuple[str, str, int | None, str]] = field(default_factory=list)

    def add(self, code: str, severity: str, message: str, count: int | None = None) -> None:
        """Note something; where ``count`` is zero, there is nothing to note."""
        if count != 0:
            self.rows.append((code, severity, count, message))

    def table(self) -> pa.Table:
        """The notes as the contract's table."""
        declared = schema.table("notes").arrow
        return pa.Table.from_pylist([dict(zip(declared.names, row, strict=True)) for row in self.rows], declared)


def without_paths(text: str) -> str:
    """``text`` on one line, with every absolute path replaced: paths name users and machines."""
    return _ABSOLUTE_PATH.sub("[path]", " ".join(text.split()))


def note_diagnostics(raw: RawTables, notes: Notes) -> None:
    """Warnings and errors that the profiler recorded (DIAGNOSTIC_EVENT, since schema 3.13), equal ones counted."""
    rows = raw.small("DIAGNOSTIC_EVENT", ("severity",), ("text",))
    serious = Counter(
        (SEVERITY[row["severity"]], without_paths(row["text"] or "")) for row in rows if row["severity"] in SEVERITY
    )
    for (severity, text), count in serious.items():
        notes.add("profiler-diagnostic", severity, f"Nsight Systems: {text}", count)
