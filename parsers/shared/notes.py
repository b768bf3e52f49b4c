"""Reports of dropped, repaired or invisible data, as the rows of table ``notes``."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from traceviz.trace import schema
from traceviz.trace.rows_to_table import rows_to_table


@dataclass(slots=True)
class Notes:
    """Collects the rows of table ``notes`` while a trace is read."""

    rows: list[tuple[str, str, int | None, str]] = field(default_factory=list)

    def add(self, code: str, severity: str, message: str, count: int | None = None) -> None:
        """Add a note, unless ``count`` is zero."""
        if count != 0:
            self.rows.append((code, severity, count, message))

    def table(self) -> pa.Table:
        """Return the notes as the contract's table."""
        names = schema.table("notes").arrow.names
        return rows_to_table("notes", [dict(zip(names, row, strict=True)) for row in self.rows])
