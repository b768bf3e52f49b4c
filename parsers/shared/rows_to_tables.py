"""Tables of the contract from few rows, and a sequence of tables from their builders."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa

from traceviz.parsers.base import ReadRequest

Builder = Callable[[], pa.Table | None]
"""Function that makes a table; ``None`` if the capture could not contain it."""


def unless_empty(table: pa.Table) -> pa.Table | None:
    """Return ``None`` for an empty table: only rows show that a capture could contain any."""
    return table if table.num_rows else None


def build_tables(
    builders: Mapping[str, Builder], options: ReadRequest, more: int = 0
) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables that ``options`` request, one at a time; ``more`` tables follow from elsewhere."""
    for done, (name, build) in enumerate(builders.items()):
        options.progress("read", done, len(builders) + more)
        table = build() if options.wants(name) else None
        if table is not None:
            yield name, table
            del table
