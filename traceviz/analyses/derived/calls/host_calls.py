"""Host operations selected by their distinct names: millions of rows are filtered by a few names."""

from __future__ import annotations

import polars as pl

from traceviz.analyses.derived.view import HOST_OPS_VIEW, TraceView, once_per_trace

_COLUMNS = ("start_ns", "dur_ns", "process_id", "thread_id", "op_id", "name", "category")


def calls_named(trace: TraceView, names: pl.DataFrame) -> pl.DataFrame:
    """Host operations with these names, by start.

    Args:
        trace: The trace.
        names: Rows of :attr:`TraceView.host_names`; further columns are passed on.

    Returns:
        ``start_ns, dur_ns, process_id, thread_id, op_id, name, category`` with names as text and a duration of 0 where
        none is known, and the further columns of ``names``.
    """
    text = pl.col("name", "category").cast(pl.String)
    if "host_ops" in trace.tables:
        named = pl.col("name").is_in(names["name"].unique().to_list())
        rows = trace.tables.scan("host_ops").filter(named).select(_COLUMNS).collect(engine=trace.tables.engine)
    else:
        rows = trace.frame("host_ops", *_COLUMNS)
    known = rows.with_columns(text, pl.col("dur_ns").fill_null(0))
    return known.join(names, on=["name", "category"]).sort("start_ns", "op_id")


def annotated_calls(trace: TraceView, pattern: str) -> pl.DataFrame:
    """Host operations that last and whose name matches ``pattern``: rows of :meth:`TraceView.host_ops`.

    Names are text, and ``parent_id`` comes with them. Python frames and tf.data stages are no annotations.
    """
    if not trace.host_names.height:
        return _no_annotations(trace)
    known = trace.host_names.filter(~pl.col("category").is_in(["python", "pipeline"]))
    names = known.filter(pl.col("name").str.contains(pattern))["name"].unique().to_list()
    if not names:
        return _no_annotations(trace)
    scan = trace.tables.scan("host_ops").filter(pl.col("name").is_in(names) & (pl.col("dur_ns") > 0))
    rows = scan.select(*HOST_OPS_VIEW, "parent_id").collect(engine=trace.tables.engine)
    return rows.with_columns(pl.col("name", "category").cast(pl.String)).sort("start_ns", "op_id")


@once_per_trace
def _no_annotations(trace: TraceView) -> pl.DataFrame:
    texts, parent = pl.col("name", "category").cast(pl.String), pl.lit(None, pl.Int64).alias("parent_id")
    return trace.host_ops().with_columns(texts, parent)


def argument(trace: TraceView, key: str, value: str) -> pl.DataFrame:
    """What the trace records under ``key``: ``op_id`` and the column ``value`` (``integer``, ``real`` or ``text``)."""
    if "op_args" not in trace.tables:
        return trace.frame("op_args", "op_id", value)
    return (
        trace.tables.scan("op_args")
        .filter(pl.col("key") == key)
        .select("op_id", value)
        .collect(engine=trace.tables.engine)
    )
