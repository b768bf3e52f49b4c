"""Tables of the contract from rows: for tables of few rows, where events come as columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from traceviz import schema


def contract_table(name: str, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Table ``name`` with the declared columns; what a row lacks is null."""
    return pa.Table.from_pylist(list(rows), schema.table(name).arrow)
