"""What the reader dropped, repaired or could not see, and what the profiler itself complains about."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pyarrow as pa

from traceviz import schema
from traceviz.nsys_program import without_paths
from traceviz.parsers.nsys.constants import SEVERITY
from traceviz.parsers.nsys.raw import RawTables

__all__ = ["Notes", "note_diagnostics", "without_paths"]


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


def note_diagnostics(raw: RawTables, notes: Notes) -> None:
    """Warnings and errors that the profiler recorded (DIAGNOSTIC_EVENT, since schema 3.13), equal ones counted."""
    rows = raw.small("DIAGNOSTIC_EVENT", ("severity",), ("text",))
    serious = Counter(
        (SEVERITY[row["severity"]], without_paths(row["text"] or "")) for row in rows if row["severity"] in SEVERITY
    )
    for (severity, text), count in serious.items():
        notes.add("profiler-diagnostic", severity, f"Nsight Systems: {text}", count)
