"""Compilation: tracing functions, compiling programs, loading code and capturing graphs, in the first steps and later.

::

    step        |---- 0 (warm-up) ----|- 1 -|- 2 -|--- 3 ---|- 4 -|
    compile       |==============|                  |====|
                  first steps: paid once            in a steady step: a new shape?
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from traceviz.analyses.base import Analysis, finding
from traceviz.analyses.derived.calls.host_calls import argument
from traceviz.analyses.derived.frames import bounds, having, intervals
from traceviz.analyses.derived.judged_time import steady_time
from traceviz.analyses.derived.recorded.graph_capture import NAME
from traceviz.analyses.derived.statistics import CALLS, frame_grid, ratio
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.derived.view import TraceView
from traceviz.core.arrays.intervals import IntervalSet, nesting
from traceviz.core.units import format_ns, format_ratio
from traceviz.report import STEADY_STEP_TIME, Audience, Column, Fact, Facts, Finding, Prose, Section, hide_columns


@dataclass(frozen=True, slots=True)
class CompileTimes:
    """Compilation in the whole capture, and in its steady steps. Times are unions over threads, per process.

    Args:
        by_name: Outermost compile events by name: ``calls, total_ns, steady_calls, steady_ns``.
        total_ns: Time in which anything is traced, compiled or loaded.
        warmup_ns: The part of it in warm-up steps.
        steady_ns: The part of it in steady steps.
        exposed_ns: The part of ``steady_ns`` in which no device works.
        steps: Steady steps.
        steps_with: Steady steps with at least the shortest compilation that counts.
        step_ns: Steady step time.
        recurring: The most such steps of one process. Several processes that compile once each do not count as
            recurring.
    """

    by_name: pl.DataFrame
    total_ns: int
    warmup_ns: int
    steady_ns: int
    exposed_ns: int
    steps: int
    steps_with: int
    step_ns: int
    recurring: int


@dataclass(frozen=True, slots=True)
class CompilationAnalysis(Analysis[CompileTimes]):
    """Tracing and compilation in the first steps and, separately, in steady ones.

    Args:
        shortest_ns: Shorter compilation in a step is bookkeeping and does not count.
        recurring_steps: Compilation recurs if at least this many steady steps of a process compile,
        min_share: and if it takes at least this share of steady step time while no device works.
    """

    slug = "compilation"
    title = "Compilation"
    rules = ("TV401",)

    shortest_ns: int = 100_000
    recurring_steps: int = 2
    min_share: float = 0.01

    def run(self, trace: TraceView) -> CompileTimes:
        """Overlay compile events with the steps."""
        nested = _compile_events(trace)
        _, parent = nesting(*bounds(nested), nested["thread_id"].to_numpy())
        events = nested.filter(pl.Series(parent < 0, dtype=pl.Boolean))  # nested phases of a thread count once
        total = warmup = steady = exposed = steps = steps_with = step_ns = most = 0
        inside = np.zeros(events.height, dtype=bool)
        for process in trace.ranks:
            own = events["process_id"].to_numpy() == process
            busy = intervals(events.filter(pl.Series(own)))
            window = steady_time(trace).get(process, IntervalSet.empty())
            marks = having(training_steps(trace).frame, "process_id", process)
            inside |= own & window.contains(events["start_ns"].to_numpy())
            total, warmup = total + busy.total, warmup + busy.intersect(intervals(marks.filter(pl.col("warmup")))).total
            recurring = busy.intersect(window)
            steady, exposed = steady + recurring.total, exposed + recurring.intersect(trace.idle_of(process)).total
            per_step = busy.overlap(*bounds(marks.filter(~pl.col("warmup") & ~pl.col("cut"))))
            compiling = int((per_step >= self.shortest_ns).sum())
            steps, steps_with, most = steps + per_step.size, steps_with + compiling, max(most, compiling)
            step_ns += window.total
        is_steady = pl.col("steady")
        sums = events.with_columns(pl.Series("steady", inside)).group_by("name")
        by_name = sums.agg(
            pl.len().cast(pl.Int64).alias("calls"),
            pl.col("dur_ns").sum().alias("total_ns"),
            is_steady.sum().cast(pl.Int64).alias("steady_calls"),
            pl.col("dur_ns").filter(is_steady).sum().alias("steady_ns"),
        ).sort("total_ns", "name", descending=[True, False])
        return CompileTimes(by_name, total, warmup, steady, exposed, steps, steps_with, step_ns, most)

    def judge(self, result: CompileTimes) -> tuple[Finding, ...]:
        """Return a finding on compilation that recurs in steady steps."""
        if not result.step_ns or result.recurring < self.recurring_steps:
            return ()
        if result.exposed_ns < self.min_share * result.step_ns:
            return ()
        largest = result.by_name.sort("steady_ns", "name", descending=[True, False]).row(0, named=True)
        message = (
            f"{result.steps_with} of {result.steps} steady steps trace or compile again: "
            f"{format_ratio(result.exposed_ns / result.step_ns)} of the steady step time passes in it while no device "
            f'works, most of it in "{largest["name"]}" ({format_ns(largest["steady_ns"])}).'
        )
        evidence = (
            Fact("steps_with", "steady steps that compile", result.steps_with, "count"),
            Fact("steps", "steady steps", result.steps, "count"),
            Fact("steady_ns", "compilation in them", result.steady_ns, "ns"),
            Fact("exposed_ns", "no device working", result.exposed_ns, "ns"),
            Fact("warmup_ns", "compilation in warm-up steps", result.warmup_ns, "ns"),
        )
        return (finding("TV401", message, evidence, result.exposed_ns, result.step_ns, STEADY_STEP_TIME),)

    def describe(self, result: CompileTimes) -> Section:
        """Describe totals, those of the first steps separately, and the compile events by name."""
        facts = (
            Fact("total_ns", "tracing, compiling, loading", result.total_ns, "ns"),
            Fact("warmup_ns", "in warm-up steps", result.warmup_ns, "ns"),
            Fact("steady_ns", "in steady steps", result.steady_ns, "ns"),
            Fact("steady_share", "of steady step time", ratio(result.steady_ns, result.step_ns), "ratio"),
            Fact("steps_with", "steady steps that compile", result.steps_with, "count"),
        )
        is_empty = not result.by_name.height
        audience: Audience = "machine" if is_empty else "all"
        nothing = (Prose("No tracing, compiling or loading of code was recorded."),) if is_empty else ()
        columns = _COLUMNS if result.steps else hide_columns(_COLUMNS, {"steady_calls", "steady_ns"})
        grid = frame_grid(columns, result.by_name, audience=audience)
        of_steps: Audience = audience if result.steps else "machine"
        blocks = (Facts(facts[:1], audience), Facts(facts[1:], of_steps))
        return Section(self.slug, self.title, (*nothing, *blocks, grid))


_COLUMNS = (
    Column("name", "What", "text", 0),
    CALLS,
    Column("total_ns", "Total", "ns", 0, additive=True),
    Column("steady_calls", "In steady steps", "count", 2),
    Column("steady_ns", "Their total", "ns", 1, additive=True),
)

_TRACED = "traced"
"""TensorFlow's mark on the call of a function that it had to trace first (``traced-nonXla``, ``traced-xla``)."""

_EVENT = ("start_ns", "dur_ns", "process_id", "thread_id", "name")


def _compile_events(trace: TraceView) -> pl.DataFrame:
    """Return host operations that compile, calls that trace first, API calls that load code, and captures of graphs."""
    states = argument(trace, "tf_function_call", "text")
    traced = states.filter(pl.col("text").cast(pl.String).str.starts_with(_TRACED))["op_id"]
    ops = trace.tables.scan("host_ops")
    is_compile = (pl.col("category") == "compile") | pl.col("op_id").is_in(traced.implode())
    compiles = ops.filter(is_compile).select(_EVENT).collect()
    loads = trace.api_calls("compilation").with_columns((pl.col("end_ns") - pl.col("start_ns")).alias("dur_ns"))
    length = (pl.col("end_ns") - pl.col("start_ns")).alias("dur_ns")
    captures = trace.graph_captures.with_columns(length, pl.lit(NAME).alias("name"))
    text = pl.col("name").cast(pl.String)
    events = [part.with_columns(text).select(_EVENT) for part in (compiles, loads, captures)]
    return pl.concat(events).sort("start_ns")
