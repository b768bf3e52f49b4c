"""Which rows of a raw table count."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from traceviz.parsers.shared.arrays.arrow import pc


@dataclass(frozen=True, slots=True)
class Keep:
    """Which rows of a raw table count.

    Args:
        column: An integer column; where the table does not have it, all rows count.
        values: Its values in rows that count.
        inverted: Rows with these values do not count, and all others do, also those with a null.
    """

    column: str
    values: tuple[int, ...]
    inverted: bool = False

    def of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of ``batch``, which has the column, that count."""
        inside = pc.is_in(batch[self.column], value_set=pa.array(self.values, pa.int64()))
        return batch.filter(pc.invert(inside) if self.inverted else inside)
