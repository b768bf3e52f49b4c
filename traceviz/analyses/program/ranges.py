"""NVTX ranges: their time on the host, and the time on the device of the work launched inside them.

::

    host     |------------- range -------------|
                 |launch|      |launch|
    device              |--A--|          |--B--|
    span                |----------------------|
    busy                |-----|          |-----|

A launch belongs to the push/pop ranges of its own thread that contain the whole call. Start/end ranges may cross
threads, so nothing is projected for them. Work of a graph was launched with the graph. A separate column has its time
for ranges in which its nodes were made, such as those around layers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import polars as pl

from traceviz.analyses.base import Analysis
from traceviz.analyses.derived.frames import end_ns, knowing
from traceviz.analyses.derived.launch.join import launched_work, with_origins, work_with_calls
from traceviz.analyses.derived.statistics import CALLS, DURATION_COLUMNS, TOTAL, frame_grid, totals_by
from traceviz.analyses.derived.view import TraceView
from traceviz.report import Block, Column, Fact, Facts, Prose, Section

_RUNNING_NUMBER = r"0x[0-9a-fA-F]+|(?<![\w.])\d+(?:\.\d+)?(?![\w.])|(?<=[_#])\d+$"
"""Numbers that count instances: separate numbers, and those after ``_`` or ``#`` at the end."""


@dataclass(frozen=True, slots=True)
class RangeTimes:
    """Closed ranges by name.

    Args:
        by_name: One row per (domain, name), the largest total first.
        folded: The same with running numbers replaced by ``N``, if that turns many rows into few; else ``None``.
        unfinished: Ranges that never ended; they are not counted.
        projected: True if the capture has the tables needed to project ranges on the device.
        nested: True if any range lies within another.
        graphs: True if it is known where nodes of graphs were made, so that ranges have ``graph_ns``.
    """

    by_name: pl.DataFrame
    folded: pl.DataFrame | None
    unfinished: int
    projected: bool
    nested: bool
    graphs: bool


@dataclass(frozen=True, slots=True)
class RangesAnalysis(Analysis[RangeTimes]):
    """Ranges by domain and name, on the host and projected on the device.

    Args:
        many: Above this number of distinct names, running numbers are folded for readers ...
        fewer: ... if this leaves at least this many times fewer rows.
    """

    slug = "ranges"
    title = "NVTX ranges"

    many: int = 10
    fewer: float = 2.0

    def run(self, trace: TraceView) -> RangeTimes:
        """Aggregate the ranges, with self time and device projection."""
        events = trace.frame("nvtx", *_EVENT).filter(pl.col("kind").cast(pl.String) != "mark")
        events = events.with_columns(pl.col("name", "domain").cast(pl.String))
        closed = events.filter(pl.col("dur_ns").is_not_null())
        projected = trace.has_device_tables and "cuda_api" in trace.tables
        inside = knowing(closed, "parent_id").group_by("parent_id").agg(pl.col("dur_ns").sum().alias("inside_ns"))
        joined = closed.join(inside, left_on="range_id", right_on="parent_id", how="left")
        own = pl.col("dur_ns") - pl.col("inside_ns").fill_null(0)
        with_self_time = joined.with_columns(own.clip(lower_bound=0).alias("self_ns")).drop("inside_ns")
        instances = _with_projection(with_self_time, trace, projected=projected)
        by_name = _aggregate(instances)
        folded = None
        if by_name.height > self.many:
            shorter = {name: re.sub(_RUNNING_NUMBER, "N", name) for name in instances["name"].drop_nulls().unique()}
            fewer = _aggregate(instances.with_columns(pl.col("name").replace(shorter)))
            folded = fewer if fewer.height * self.fewer <= by_name.height else None
        nested = closed["parent_id"].count() > 0
        return RangeTimes(by_name, folded, events.height - closed.height, projected, nested, "graph_ns" in by_name)

    def describe(self, result: RangeTimes) -> Section:
        """Describe ranges by exact name, and for readers by folded name if there are too many."""
        facts = (
            Fact("calls", "ranges", int(result.by_name["calls"].sum()), "count"),
            Fact("names", "distinct names", result.by_name.height, "count"),
            Fact("unfinished", "never ended", result.unfinished, "count"),
        )
        if not result.by_name.height and not result.unfinished:
            silent = (Facts(facts, audience="machine"), frame_grid(_COLUMNS, result.by_name, audience="machine"))
            return Section(self.slug, self.title, (Prose("No range was recorded."), *silent))
        columns = (*_COLUMNS, _IN_GRAPHS) if result.graphs else _COLUMNS
        exact = frame_grid(columns, result.by_name, audience="all" if result.folded is None else "machine")
        blocks: list[Block] = [Facts(facts), exact]
        if result.folded is not None:
            blocks.append(frame_grid(columns, result.folded, "With running numbers as N"))
        if result.nested:
            blocks.append(Prose("Ranges lie within others: all columns but Self count what is inside a range as well."))
        if not result.projected:
            blocks.append(Prose("The capture has no CUDA calls or no device work, so device time is not known."))
        return Section(self.slug, self.title, tuple(blocks))


_EVENT = ("start_ns", "dur_ns", "process_id", "thread_id", "range_id", "kind", "name", "domain", "depth", "parent_id")

_COLUMNS = (
    Column("domain", "Domain", "text", 6),
    Column("name", "Range", "text", 0),
    CALLS,
    TOTAL,
    Column("self_ns", "Self", "ns", 1, additive=True),
    Column("device_span_ns", "Device span", "ns", 4),
    Column("device_busy_ns", "Device busy", "ns", 1),
    *DURATION_COLUMNS,
)
_IN_GRAPHS = Column("graph_ns", "Device in graphs", "ns", 2)


def _with_projection(ranges: pl.DataFrame, trace: TraceView, *, projected: bool) -> pl.DataFrame:
    """Return ``ranges`` with ``device_span_ns`` and ``device_busy_ns``: 0 without device work, null if not known."""
    unknown = pl.lit(None, pl.Int64)
    if not projected:
        return ranges.with_columns(unknown.alias("device_span_ns"), unknown.alias("device_busy_ns"))
    work = launched_work(trace)
    nesting = ranges.filter(pl.col("depth").is_not_null()).with_columns(end_ns("range_end_ns"))
    levels = [_project(level, work) for level in nesting.partition_by("depth")]  # one pass per depth, not per range
    known = pl.col("kind").cast(pl.String) == "push_pop"
    projections = pl.concat([_NOTHING, *levels])
    spans = pl.col("device_span_ns", "device_busy_ns").fill_null(0)
    projected_ranges = ranges.join(projections, on="range_id", how="left").with_columns(pl.when(known).then(spans))
    return _with_graphs(projected_ranges, trace, nesting)


def _with_graphs(ranges: pl.DataFrame, trace: TraceView, nesting: pl.DataFrame) -> pl.DataFrame:
    """Return ``ranges`` with ``graph_ns``: device work of nodes made inside, if that is known of any node."""
    if not trace.tables.rows("graph_nodes"):
        return ranges
    made = knowing(with_origins(trace, work_with_calls(trace)), "made_ns")
    if not made.height:
        return ranges
    work = made.group_by("made_thread_id", "made_ns").agg((pl.col("end_ns") - pl.col("begin_ns")).sum().alias("dur_ns"))
    levels = [_made_inside(level, work.sort("made_ns")) for level in nesting.partition_by("depth")]
    sums = pl.concat([pl.DataFrame(schema={"range_id": pl.Int64, "graph_ns": pl.Int64}), *levels])
    known = pl.when(pl.col("kind").cast(pl.String) == "push_pop").then(pl.col("graph_ns").fill_null(0))
    return ranges.join(sums, on="range_id", how="left").with_columns(known)


def _made_inside(ranges: pl.DataFrame, work: pl.DataFrame) -> pl.DataFrame:
    """Return work of the nodes that were made inside each of ``ranges``, which do not overlap on any thread."""
    candidates = ranges[["range_id", "thread_id", "range_end_ns", "start_ns"]].sort("start_ns")
    inside = work.join_asof(
        candidates,
        left_on="made_ns",
        right_on="start_ns",
        by_left="made_thread_id",
        by_right="thread_id",
        strategy="backward",
        check_sortedness=False,
    ).filter(pl.col("made_ns") < pl.col("range_end_ns"))
    return inside.group_by("range_id").agg(pl.col("dur_ns").sum().alias("graph_ns"))


_NOTHING = pl.DataFrame(schema={"range_id": pl.Int64, "device_span_ns": pl.Int64, "device_busy_ns": pl.Int64})


def _project(ranges: pl.DataFrame, work: pl.DataFrame) -> pl.DataFrame:
    """Return span and busy time of work launched inside each of ``ranges``, which do not overlap on any thread."""
    candidates = ranges[["thread_id", "range_id", "range_end_ns", "start_ns"]].sort("start_ns")
    inside = work.join_asof(
        candidates, left_on="call_ns", right_on="start_ns", by="thread_id", strategy="backward", check_sortedness=False
    ).filter(pl.col("call_end_ns") <= pl.col("range_end_ns"))
    span = (pl.col("end_ns").max() - pl.col("begin_ns").min()).alias("device_span_ns")
    # Sorted by start, each piece of work adds to the union its time after the latest end of earlier pieces.
    added = pl.col("end_ns") - pl.max_horizontal(pl.col("begin_ns"), pl.col("end_ns").cum_max().shift(1))
    busy = added.clip(lower_bound=0).sum().alias("device_busy_ns")
    return inside.sort("range_id", "begin_ns").group_by("range_id").agg(span, busy)


def _aggregate(instances: pl.DataFrame) -> pl.DataFrame:
    def total(name: str) -> pl.Expr:
        return pl.when(pl.col(name).count() > 0).then(pl.col(name).sum()).alias(name)

    also = [name for name in ("device_span_ns", "device_busy_ns", "graph_ns") if name in instances]
    sums = (pl.col("self_ns").sum(), *map(total, also))
    return totals_by(instances, "domain", "name", also=sums)
