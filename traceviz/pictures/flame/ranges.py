"""NVTX ranges: ranges of a thread nest; ranges that may cross threads do not."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from traceviz.analyses.derived.calls.call_tree import CallTree
from traceviz.analyses.derived.view import TraceView
from traceviz.core.sanitize import bounded
from traceviz.pictures.flame.calls import Called, Label, Title, device_flame, host_flame
from traceviz.pictures.flame.division import Division
from traceviz.pictures.flame.folding import Bounds
from traceviz.pictures.flame.texts import without_numbers
from traceviz.report.pictures.flame import Flame


def range_flames(trace: TraceView, time: Division, bounds: Bounds) -> Iterator[Flame | None]:
    """Draw ranges on the host, and the device work that was launched in them."""
    called = called_ranges(trace)
    if called is None:
        return
    yield host_flame(trace, called, Title("ranges-host", "NVTX ranges, host time", "host"), time, bounds)
    yield device_flame(trace, called, Title("ranges-device", "NVTX ranges, device time", "device"), time, bounds)


def called_ranges(trace: TraceView) -> Called | None:
    """Return the closed ranges of all threads; ``None`` if there are none.

    A range that may end on another thread does not nest. It gets a thread of its own that has no work.
    """
    columns = ("start_ns", "dur_ns", "process_id", "thread_id", "range_id", "depth")
    events = trace.frame("nvtx", *columns, pl.col("name", "domain", "kind").cast(pl.String))
    closed = events.filter((pl.col("kind") != "mark") & pl.col("dur_ns").is_not_null())
    if not closed.height:
        return None
    text = pl.when(pl.col("domain") == "").then(pl.col("name")).otherwise(pl.format("{}: {}", "domain", "name"))
    crossing = pl.col("depth").is_null()
    named = closed.with_columns(text.fill_null("").alias("text")).select(
        pl.when(crossing).then(-1 - pl.col("range_id")).otherwise(pl.col("thread_id")).alias("thread_id"),
        pl.col("range_id").alias("op_id"),
        "start_ns",
        (pl.col("start_ns") + pl.col("dur_ns")).alias("end_ns"),
        "process_id",
        "text",
    )
    texts = named["text"].unique(maintain_order=True).to_list()
    labels = [Label(bounded(without_numbers(text)), "range") for text in texts]
    distinct = list(dict.fromkeys(labels))
    code_of = {label: code for code, label in enumerate(distinct)}
    codes = {text: code_of[label] for text, label in zip(texts, labels, strict=True)}
    code = named["text"].replace_strict(codes, return_dtype=pl.Int32).alias("code")
    tree = CallTree.of(named.drop("text").with_columns(code), ("thread_id", "process_id", "code"))
    return Called(tree, np.ascontiguousarray(tree.calls["code"].to_numpy(), np.int32), tuple(distinct))
