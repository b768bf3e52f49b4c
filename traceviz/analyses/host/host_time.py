"""Time of the host by line: the leading thread in steps and outside, and other threads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from traceviz.analyses.base import Analysis
from traceviz.analyses.derived.frames import bounds, having, intervals
from traceviz.analyses.derived.judged_time import steady_time
from traceviz.analyses.derived.stacks.functions import placed, wilson, without_module
from traceviz.analyses.derived.stacks.kinds import KIND_LABELS
from traceviz.analyses.derived.stacks.sampled import (
    main_thread,
    recorded_calls,
    recorded_names,
    seen,
    seen_rows,
    time_by_stack,
)
from traceviz.analyses.derived.stacks.trees import function_names, stack_tree
from traceviz.analyses.derived.statistics import frame_grid, share
from traceviz.analyses.derived.view import TraceView
from traceviz.core.arrays.intervals import Array, IntervalSet
from traceviz.core.arrays.nested import outer_alike
from traceviz.core.units import format_ratio
from traceviz.report import Bar, Bars, Block, Column, Fact, Facts, Grid, Prose, Section, Skipped

OF_LIBRARIES = 0.005
"""Functions of libraries are listed if they take at least this part of the time themselves."""
MOST_ROWS = 200
"""Most rows kept of a table, the largest first."""
_SUMS = (pl.col("time_ns").sum(), pl.when(pl.col("samples").count() > 0).then(pl.col("samples").sum()).alias("samples"))


@dataclass(frozen=True, slots=True)
class Part:
    """Activities of the main threads of all ranks in one part of the run.

    Args:
        lines: ``kind, location, leaf, time_ns, samples`` by kind and line, the largest first. ``location`` is the line,
            and ``leaf`` the innermost frame with most of its time.
        time_ns: All of the time.
        samples: Its samples; ``None`` if functions were recorded.
    """

    lines: pl.DataFrame
    time_ns: int
    samples: float | None


@dataclass(frozen=True, slots=True)
class HostTime:
    """The time of the host by function.

    Args:
        steps: Time in steps: all counted steps of the run, else those that are judged.
        outside: Time outside of steps.
        functions: ``function, inclusive_ns, self_ns`` of the main threads, in steps if there are any. ``own`` are those
            of the program.
        threads: ``process, thread, kind, function, location, time_ns, samples, of_thread`` of all other threads.
        sampled: True if stacks were sampled; else Python functions were recorded.
        has_steps: True if there are steps.
    """

    steps: Part
    outside: Part
    functions: pl.DataFrame
    threads: pl.DataFrame
    sampled: bool
    has_steps: bool


@dataclass(frozen=True, slots=True)
class HostTimeAnalysis(Analysis[HostTime]):
    """Time of threads by the function and line that they are in.

    Args:
        fold_below: Rows below this share fold into "other" in pictures, never in data.
    """

    slug = "host_time"
    title = "Where the host's time goes, to the line"

    fold_below: float = 0.01

    def run(self, trace: TraceView) -> HostTime | Skipped:
        """Sum the time of each thread in steps and outside of them."""
        threads = seen(trace).threads
        if not threads.height:
            return self.skipped("neither stacks were sampled nor Python functions recorded")
        known = threads["process_id"].unique().sort().to_list()
        ranks = [rank for rank in trace.ranks if rank in known] or known[:1]
        steps = {rank: _steps(trace, rank) for rank in ranks}
        rest = {rank: _extent(threads, rank).subtract(steps[rank]) for rank in ranks}
        has_steps = any(len(own) for own in steps.values())
        in_steps, outside = _main_threads(trace, steps), _main_threads(trace, rest)
        return HostTime(
            _part(in_steps),
            _part(outside),
            _functions(trace, steps, in_steps) if has_steps else _functions(trace, rest, outside),
            _threads(trace, steps, threads),
            sampled=bool(trace.tables.rows("stacks")),
            has_steps=has_steps,
        )

    def describe(self, result: HostTime) -> Section:
        """Describe kinds in steps as a stacked bar, then lines in steps and outside, functions, and threads."""
        facts = (
            Fact("steps_ns", "main thread in steps", result.steps.time_ns, "ns"),
            Fact("outside_ns", "outside of steps", result.outside.time_ns, "ns"),
            Fact("samples", "samples in steps", _rounded(result.steps.samples), "count"),
            Fact("outside_samples", "samples outside", _rounded(result.outside.samples), "count"),
        )
        known = tuple(fact for fact in facts if fact.value is not None)
        blocks: list[Block] = [Facts(known)]
        main = result.steps if result.has_steps else result.outside
        kinds = (
            main.lines.group_by("kind").agg(pl.col("time_ns").sum()).sort("time_ns", "kind", descending=[True, False])
        )
        bars = tuple(
            Bar(kind, KIND_LABELS[kind], time, time / main.time_ns) for kind, time in kinds.iter_rows() if main.time_ns
        )
        where = "of the main thread in steps" if result.has_steps else "of the main thread"
        blocks.append(Bars("What for", f"time {where}", "ns", bars))
        if result.has_steps:
            blocks.append(self._lines(result.steps, "In steps"))
        blocks.append(self._lines(result.outside, "Outside of steps" if result.has_steps else "The main thread"))
        blocks.append(self._functions(result, main.time_ns))
        if result.threads.height:
            blocks.append(self._threads(result.threads))
        if result.sampled:
            low, high = wilson(0.5, main.samples or 0.0)
            blocks.append(Prose(_SAMPLING.format(half=format_ratio((high - low) / 2))))
        return Section(self.slug, self.title, tuple(blocks))

    def _lines(self, part: Part, title: str) -> Grid:
        low, high = _interval(part.lines, part.samples, part.time_ns)
        rows = part.lines.with_columns(
            _placed("location").alias("place"),
            pl.col("kind").replace_strict(KIND_LABELS, default=None).alias("label"),
            pl.when(pl.col("leaf") != pl.col("location")).then(_placed("leaf")).alias("called"),
            share("time_ns", part.time_ns, "share_of_part"),
            low.alias("share_low"),
            high.alias("share_high"),
        )
        columns = (
            Column("place", "Where", "text", 0),
            Column("label", "What for", "text", 1),
            Column("called", "It calls", "text", 2),
            Column("time_ns", "Time", "ns", 0),
            Column("share_of_part", "Share", "ratio", 0, bar=True),
            Column("samples", "Samples", "count", 3),
            Column("share_low", "At least", "ratio", 4),
            Column("share_high", "At most", "ratio", 4),
            Column("kind", "Key", "text", 9),
            Column("location", "Line", "text", 9),
            Column("leaf", "Innermost", "text", 9),
        )
        rows = rows.with_columns(pl.col("samples").round(0).cast(pl.Int64))
        return frame_grid(columns, rows, title, fold_below=self.fold_below)

    def _functions(self, result: HostTime, whole_ns: int) -> Grid:
        columns = (
            Column("function", "Function", "text", 0),
            Column("inclusive_ns", "Inclusive", "ns", 0),
            Column("share_of_part", "Share", "ratio", 0),
            Column("self_ns", "Self", "ns", 1, additive=True),
            Column("own", "Of the program", "bool", 9),
        )
        rows = result.functions.with_columns(
            without_module(pl.col("function")), share("inclusive_ns", whole_ns, "share_of_part")
        )
        return frame_grid(columns, rows, "Functions, with what they call and alone")

    def _threads(self, threads: pl.DataFrame) -> Grid:
        columns = (
            Column("process", "Process", "text", 2),
            Column("thread", "Thread", "text", 0),
            Column("place", "Where", "text", 0),
            Column("label", "What for", "text", 1),
            Column("time_ns", "Time", "ns", 0),
            Column("of_thread", "Of the thread", "ratio", 0, bar=True, additive=False),
            Column("samples", "Samples", "count", 3),
            Column("kind", "Key", "text", 9),
            Column("location", "Line", "text", 9),
        )
        label = pl.col("kind").replace_strict(KIND_LABELS, default=None).alias("label")
        rows = threads.with_columns(_placed("location").alias("place"), label)
        rows = rows.with_columns(pl.col("samples").round(0).cast(pl.Int64))
        return frame_grid(columns, rows, "Other threads and processes", fold_below=self.fold_below)


_SAMPLING = "Shares are of time seen by samples of the stack; a share of one half is sure to ±{half} here."


def _steps(trace: TraceView, rank: int) -> IntervalSet:
    """Return the steps of a process: all that hooks counted in the run, else those that are judged; may be none."""
    phases = trace.frame("phases", "start_ns", "dur_ns", "process_id", pl.col("kind").cast(pl.String))
    own = phases.filter((pl.col("process_id") == rank) & (pl.col("kind") == "step"))
    return intervals(own) if own.height else steady_time(trace).get(rank, IntervalSet.empty())


def _extent(rows: pl.DataFrame, rank: int) -> IntervalSet:
    own = having(rows, "process_id", rank)
    return IntervalSet.span(int(own["start_ns"].min() or 0), int(own["end_ns"].max() or 0))  # type: ignore[arg-type]


def _main_threads(trace: TraceView, within: dict[int, IntervalSet]) -> dict[int, pl.DataFrame]:
    """Return the time of the main thread of each rank in a part of the run (:func:`time_by_stack`)."""
    return {rank: time_by_stack(trace, time, rank, main_thread(trace, rank)) for rank, time in within.items()}


def _part(did: dict[int, pl.DataFrame]) -> Part:
    rows = pl.concat(did.values())
    samples = None if rows["samples"].null_count() == rows.height else float(rows["samples"].sum())
    return Part(_summed(rows, "kind", "location").head(MOST_ROWS), int(rows["time_ns"].sum()), samples)


def _summed(rows: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """Sum by ``keys``, with the line and the innermost frame that have most of each, the largest first."""
    places = [place for place in ("location", "leaf") if place not in keys]
    lines = rows.group_by(*keys, *places).agg(*_SUMS)
    lines = lines.sort("time_ns", *places, descending=[True, *[False] * len(places)])
    sums = lines.group_by(keys, maintain_order=True).agg(pl.col(places).first(), *_SUMS)
    return sums.sort("time_ns", *keys, descending=[True, *[False] * len(keys)])


def _functions(trace: TraceView, within: dict[int, IntervalSet], did: dict[int, pl.DataFrame]) -> pl.DataFrame:
    """Return ``function, inclusive_ns, self_ns, own`` of the main threads, those with most inclusive time first.

    Functions of libraries count only if they take time themselves. Pure callers are left out.
    """
    if trace.tables.rows("stacks"):
        parts = pl.concat([_sampled_functions(trace, rank, time) for rank, time in within.items()])
    else:
        parts = pl.concat([_recorded_functions(trace, rank, time, did[rank]) for rank, time in within.items()])
    sums = parts.group_by("function").agg(pl.col("own").any(), pl.col("inclusive_ns", "self_ns").sum())
    counts = pl.col("own") | (pl.col("self_ns") >= OF_LIBRARIES * int(sums["self_ns"].sum()))
    descending = [True, True, False]
    ordered = sums.filter(counts & (pl.col("inclusive_ns") > 0))
    return ordered.sort("inclusive_ns", "self_ns", "function", descending=descending).head(MOST_ROWS)


def _sampled_functions(trace: TraceView, rank: int, within: IntervalSet) -> pl.DataFrame:
    """Count each function once per stack, even if it calls itself."""
    tree = stack_tree(trace)
    rows = seen_rows(trace)
    rows = rows.filter((pl.col("process_id") == rank) & (pl.col("thread_id") == main_thread(trace, rank)))
    times = pl.DataFrame({"stack_id": rows["stack_id"], "time": within.overlap(*bounds(rows))})
    sums = times.group_by("stack_id").agg(pl.col("time").sum())
    own = tree.frames[["stack_id"]].join(sums, on="stack_id", how="left", maintain_order="left")
    self_ns = own["time"].fill_null(0).to_numpy()
    frames = tree.frames.with_columns(function_names(tree))
    names = frames.select(pl.format("{} {}", "file", "function").str.strip_chars(" ").alias("function")).to_series()
    again = tree.repeats(names.rank("dense").to_numpy())
    inclusive = np.where(again, 0, tree.totals(self_ns))
    is_own = tree.frames["origin"] == "program"
    return pl.DataFrame({"function": names, "own": is_own, "inclusive_ns": inclusive, "self_ns": self_ns})


def _recorded_functions(trace: TraceView, rank: int, within: IntervalSet, did: pl.DataFrame) -> pl.DataFrame:
    """Count the outermost calls of each function. The line of its definition distinguishes functions of one name."""
    names, time = _outermost_calls(trace, rank, within)
    frames = recorded_names(trace)[1].select(pl.all().gather(names))
    frames = frames.with_columns((pl.col("origin") == "program").alias("own"))
    where = pl.when(pl.col("line").is_null()).then("file").otherwise(pl.format("{}:{}", "file", "line"))
    text = pl.concat_str([where, "function"], separator=" ").str.strip_chars(" ").alias("function")
    inclusive = frames.select(text, "own", time.alias("inclusive_ns"))
    alone = did.select(pl.col("leaf").alias("function"), pl.col("time_ns").alias("self_ns"))
    return pl.concat([inclusive, alone], how="diagonal").fill_null(0).with_columns(pl.col("own").fill_null(value=False))


def _outermost_calls(trace: TraceView, rank: int, within: IntervalSet) -> tuple[Array, pl.Series]:
    """Return rows of the names of recorded functions of the main thread, and the time in their outermost calls."""
    tree, (names, frames) = recorded_calls(trace), recorded_names(trace)
    threads = tree.calls["thread_id"].to_numpy().astype(np.int64)
    is_own = (tree.calls["process_id"].to_numpy() == rank) & (threads == main_thread(trace, rank))
    owners = np.where(is_own & outer_alike(threads, tree.ends, names), names, np.int32(-1))
    total = np.zeros(frames.height, np.int64)
    within.add_overlap(tree.starts, tree.ends, owners, total)
    called = np.flatnonzero(np.bincount(owners + 1, minlength=frames.height + 1)[1:])
    return called, pl.Series("time", total[called])


def _threads(trace: TraceView, steps: dict[int, IntervalSet], rows: pl.DataFrame) -> pl.DataFrame:
    """Return the time of all threads but the main ones of ranks, in the steps of any rank, else in the whole run."""
    within = IntervalSet.empty().union(*steps.values())
    span = IntervalSet.span(int(rows["start_ns"].min() or 0), int(rows["end_ns"].max() or 0))  # type: ignore[arg-type]
    within = within if len(within) else span
    processes = rows["process_id"].unique().sort().to_list()
    mains = [main_thread(trace, rank) for rank in steps]
    found = pl.concat([time_by_stack(trace, within, process) for process in processes])
    found = found.filter(~pl.col("thread_id").is_in([main for main in mains if main is not None]))
    sums = _summed(found, "process_id", "thread_id", "kind", "function")
    whole = pl.col("time_ns").sum().over("thread_id")
    named = sums.with_columns((pl.col("time_ns") / whole).alias("of_thread")).head(MOST_ROWS)
    threads = trace.frame("threads", "thread_id", pl.col("name").cast(pl.String).alias("thread"))
    names = trace.frame("processes", "process_id", pl.col("name").cast(pl.String).alias("process"))
    return named.join(threads, on="thread_id", how="left", maintain_order="left").join(
        names, on="process_id", how="left", maintain_order="left"
    )


def _placed(column: str) -> pl.Expr:
    """Return lines in readable form. Distinct lines are few, so a Python function for each is quick."""
    return pl.col(column).map_elements(placed, return_dtype=pl.String)


def _interval(lines: pl.DataFrame, samples: float | None, time_ns: int) -> tuple[pl.Series, pl.Series]:
    """Return the lower and upper limits of shares; null if nothing was sampled."""
    if samples is None or not time_ns:
        nothing = pl.Series([None] * lines.height, dtype=pl.Float64)
        return nothing, nothing
    found = [wilson(time / time_ns, samples) for time in lines["time_ns"].to_list()]
    return pl.Series([low for low, _ in found], dtype=pl.Float64), pl.Series(
        [high for _, high in found], dtype=pl.Float64
    )


def _rounded(samples: float | None) -> int | None:
    return None if samples is None else round(samples)
