"""The place of a few calls in the program: the range, operator and line of Python in which each starts."""

from __future__ import annotations

import numpy as np
import polars as pl

from traceviz.analyses.derived.calls.call_tree import CallTree
from traceviz.analyses.derived.calls.short_names import LONGEST_NAME, shortened
from traceviz.analyses.derived.causes.places import MODULE, PLACES, located, part_of_program, places
from traceviz.analyses.derived.frames import bounds, end_ns, having, parts_by
from traceviz.analyses.derived.patterns import replaced
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.derived.view import TraceView

_PLACE = ("range", "module", "operator", "location")
"""Columns of :func:`costliest_place`, from outermost to innermost."""


def call_places(trace: TraceView, calls: pl.DataFrame) -> pl.DataFrame:
    """Add text columns :data:`~traceviz.analyses.derived.causes.places.PLACES` for what is around each call's start.

    Args:
        trace: The trace.
        calls: ``thread_id, start_ns`` of calls of the device's API, and further columns, which are passed on.
    """
    if not calls.height:
        return calls.with_columns(pl.lit(None, pl.String).alias(place) for place in PLACES)
    events = pl.concat([_events_around(trace, table, calls) for table in ("nvtx", "host_ops")])
    parts = part_of_program(*(pl.col(name) for name in ("source", "category", "name")))
    tree = CallTree.of(events.with_columns(parts.alias("part"), pl.int_range(pl.len(), dtype=pl.Int64).alias("op_id")))
    rows = pl.Series(tree.around(calls["thread_id"].to_numpy(), calls["start_ns"].to_numpy()), dtype=pl.Int64)
    around = places(tree).select(pl.all().gather(rows.set(rows < 0, None)))
    around = around.with_columns(replaced(pl.col("module"), MODULE, ""), located(pl.col("location")))
    return pl.concat([calls, around], how="horizontal")


def costliest_place(calls: pl.DataFrame, cost: str) -> str:
    """Return range, module, operator and line with the largest sum of ``cost`` over :func:`call_places`, as text."""
    sums = calls.group_by(_PLACE).agg(pl.col(cost).sum())
    if not sums.height:
        return ""
    row = sums.sort(cost, *_PLACE, descending=[True, *[False] * len(_PLACE)]).row(0, named=True)
    names = [shortened((row[key] or "").strip("# ")) for key in _PLACE[:3]]
    around = " > ".join(name for name in names if name)
    line = (row["location"] or "").rpartition("/")[2][:LONGEST_NAME]
    return ", ".join(text for text in (around, line) if text)


def _events_around(trace: TraceView, table: str, calls: pl.DataFrame) -> pl.DataFrame:
    """Return ranges or operations in which a call starts, with the columns for :func:`part_of_program` and a tree."""
    texts = ("name", "category") if table == "host_ops" else ("name",)
    threads = calls["thread_id"].unique().to_list()
    if table in trace.tables:
        scan = trace.tables.scan(table).filter(pl.col("thread_id").is_in(threads))
        if table == "nvtx":  # step marks enclose everything
            marks = training_steps(trace).frame["start_ns"].implode()
            scan = scan.filter((pl.col("kind") == "push_pop") & ~pl.col("start_ns").is_in(marks))
        rows = scan.select("start_ns", end_ns(), "thread_id", *texts).collect(engine=trace.tables.engine)
    else:
        rows = trace.frame(table, "start_ns", end_ns(), "thread_id", *texts)
    inner = []
    for thread, events in parts_by(rows, "thread_id").items():  # those within which a call starts
        starts, ends = bounds(events)
        begins = np.sort(having(calls, "thread_id", thread)["start_ns"].to_numpy())
        holds = np.searchsorted(begins, ends) > np.searchsorted(begins, starts)
        inner.append(events.filter(pl.Series(holds, dtype=pl.Boolean)))
    kept = pl.concat(inner) if inner else rows
    category = pl.col("category") if table == "host_ops" else pl.lit(None)
    return kept.select(
        *("start_ns", "end_ns", "thread_id"),
        pl.col("name").cast(pl.String),
        category.cast(pl.String).alias("category"),
        pl.lit(table).alias("source"),
    )
