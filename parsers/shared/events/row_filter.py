"""Filters of the rows of a raw table."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from traceviz.parsers.shared.arrays.arrow import pc


@dataclass(frozen=True, slots=True)
class Keep:
    """A filter of the rows of a raw table that count.

    Args:
        column: An integer column; if the table does not have it, all rows count.
        values: Its values in rows that count.
        inverted: If true, rows with these values do not count, and all others do, including nulls.
    """

    column: str
    values: tuple[int, ...]
    inverted: bool = False

    def of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of ``batch`` that count; ``batch`` has the column."""
        inside = pc.is_in(batch[self.column], value_set=pa.array(self.values, pa.int64()))
        return batch.filter(pc.invert(inside) if self.inverted else inside)
