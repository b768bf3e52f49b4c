"""Direction of copies whose name does not state it, from their call, such as ``hipMemcpyDtoDAsync``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pyarrow as pa

from traceviz.parsers.shared.events.columns import with_column
from traceviz.parsers.shared.events.launch_details import copy_kind, memory_kinds
from traceviz.trace import schema

_KEY = ["process_id", "correlation_id"]
_STATED = ["kind", "src_memory", "dst_memory"]
_UNKNOWN = "unknown"


def directed(copies: pa.Table, calls: Callable[[], pa.Table]) -> pa.Table:
    """Return table ``memcpy`` with the kinds from calls for copies that state none.

    Args:
        copies: The copies.
        calls: Makes table ``cuda_api``; it is only called if a copy states no kind.
    """
    stated = _frame(copies, *_STATED)
    if not (stated["kind"] == _UNKNOWN).any():
        return copies
    called = _frame(calls(), "name").unique(_KEY, keep="first", maintain_order=True)
    kinds = {name: copy_kind(name, {}, None) for name in called["name"].unique()}
    sides = {kind: memory_kinds(kind, {}) for kind in kinds.values()}
    meant = (kinds, *({name: sides[kind][side] for name, kind in kinds.items()} for side in (0, 1)))
    joined = stated.join(called, on=_KEY, how="left", maintain_order="left")
    for column, of_call in zip(_STATED, meant, strict=True):
        other = pl.col("name").replace_strict(of_call, default=None, return_dtype=pl.String)
        value = pl.when(pl.col("kind") == _UNKNOWN).then(pl.coalesce(other, column)).otherwise(column)
        words: Any = joined.select(value).to_series().to_arrow()
        copies = with_column(copies, column, words.cast(pa.string()).dictionary_encode().cast(schema.NAME))
    return copies


def _frame(table: pa.Table, *columns: str) -> pl.DataFrame:
    frame = pl.from_arrow(table.select([*_KEY, *columns]))
    assert isinstance(frame, pl.DataFrame)
    return frame.with_columns(pl.col(columns).cast(pl.String))
