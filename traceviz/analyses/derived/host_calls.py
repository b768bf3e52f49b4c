"""Host operations chosen by what their distinct names say: millions of rows are filtered, not looked at."""

from __future__ import annotations

import polars as pl

from traceviz.analyses.derived.view import TraceView

_COLUMNS = ("start_ns", "dur_ns", "process_id", "thread_id", "op_id", "name", "category")


def calls_named(trace: TraceView, chosen: pl.DataFrame) -> pl.DataFrame:
    """Host operations of the chosen names, by start.

    Args:
        trace: The trace.
        chosen: Rows of :attr:`TraceView.host_names`; further columns are passed on.

    Returns:
        ``start_ns, dur_ns, process_id, thread_id, op_id, name, category`` with names as text and a duration of 0 where
        none is known, and the further columns of ``chosen``.
    """
    text = pl.col("name", "category").cast(pl.String)
    if "host_ops" in trace.tables:
        named = pl.col("name").is_in(chosen["name"].unique().to_list())
        rows = trace.tables.scan("host_ops").filter(named).select(_COLUMNS).collect()
    else:
        rows = trace.frame("host_ops", *_COLUMNS)
    known = rows.with_columns(text, pl.col("dur_ns").fill_null(0))
    return known.join(chosen, on=["name", "category"]).sort("start_ns", "op_id")


def argument(trace: TraceView, key: str, value: str) -> pl.DataFrame:
    """What the trace records under ``key``: ``op_id`` and the column ``value`` (``integer``, ``real`` or ``text``)."""
    if "op_args" not in trace.tables:
        return trace.frame("op_args", "op_id", value)
    return trace.tables.scan("op_args").filter(pl.col("key") == key).select("op_id", value).collect()
