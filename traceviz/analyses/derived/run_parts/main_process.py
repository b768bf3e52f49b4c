"""The process whose run is divided into parts, its run time, its main thread, and its steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from traceviz.analyses.derived.frames import end_ns, having
from traceviz.analyses.derived.stacks.sampled import main_thread
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.derived.view import TraceView, once_per_trace

PROFILED = 0.9
"""If a profiler recorded this share of the run, its steps are taken as those of the run."""


@dataclass(frozen=True, slots=True)
class MainProcess:
    """Facts about the main process.

    Args:
        process_id: The process.
        processes: Number of the program's processes that trained.
        begin_ns: Start of its run.
        end_ns: End of its run.
        thread_id: Its main thread; ``None`` if no thread is known.
        steps: ``start_ns, end_ns, thread_id`` of all steps of the run, by start; they do not overlap.
        phases: ``start_ns, end_ns, thread_id, kind, name, number`` of its phases, by start.
        rows: ``start_ns, end_ns, samples, stack_id`` of the main thread's samples, by start.
    """

    process_id: int
    processes: int
    begin_ns: int
    end_ns: int
    thread_id: int | None
    steps: pl.DataFrame
    phases: pl.DataFrame
    rows: pl.DataFrame


@once_per_trace
def main_process(trace: TraceView) -> MainProcess | None:
    """Return the training process, from hooks or stack samples; ``None`` if there are neither.

    If several train, return the first of those with the most steps.
    """
    phases = _phases(trace)
    columns = ("start_ns", end_ns(), "process_id", "thread_id", "samples", "stack_id")
    stacks = trace.frame("stacks", *columns).sort("start_ns", "end_ns", maintain_order=True)
    if not phases.height and not stacks.height:
        return None
    trained = having(phases, "kind", "step").group_by("process_id").len()
    trained = trained.sort("len", "process_id", descending=[True, False])
    process = int(trained["process_id"][0]) if trained.height else _longest(trace, phases, stacks)
    own = having(phases, "process_id", process)
    sampled = having(stacks, "process_id", process)
    begin, end = _bounds(own, sampled)
    steps = _steps(trace, own, process, end - begin)
    thread = main_thread(trace, process)
    of_thread = pl.col("thread_id") == (-1 if thread is None else thread)
    rows = sampled.filter(of_thread).drop("process_id", "thread_id")
    return MainProcess(process, max(trained.height, 1), begin, end, thread, steps, own.drop("process_id"), rows)


def _phases(trace: TraceView) -> pl.DataFrame:
    """Return the phases that ended, with text as text, by start."""
    texts = (pl.col(name).cast(pl.String) for name in ("kind", "name"))
    phases = trace.frame("phases", "start_ns", "dur_ns", end_ns(), "process_id", "thread_id", *texts, "number")
    if not phases.height:
        return phases.drop("dur_ns")
    return phases.filter(pl.col("dur_ns").is_not_null()).drop("dur_ns").sort("start_ns", "end_ns", maintain_order=True)


def _longest(trace: TraceView, phases: pl.DataFrame, stacks: pl.DataFrame) -> int:
    """Return, if no process has steps, one with device work, else the process that ran longest."""
    ran = pl.concat([part[["process_id", "start_ns", "end_ns"]] for part in (phases, stacks)])
    spans = ran.group_by("process_id").agg((pl.col("end_ns").max() - pl.col("start_ns").min()).alias("ran"))
    spans = spans.with_columns(pl.col("process_id").is_in(list(trace.rank_busy)).alias("works"))
    return int(spans.sort("works", "ran", "process_id", descending=[True, True, False])["process_id"][0])


def _bounds(phases: pl.DataFrame, sampled: pl.DataFrame) -> tuple[int, int]:
    """Return start and end of the process; if these were not recorded, those of its phases and samples."""
    program = having(phases, "kind", "program")
    seen = pl.concat([part[["start_ns", "end_ns"]] for part in ([program] if program.height else [phases, sampled])])
    begin, end = seen.select(pl.col("start_ns").min(), pl.col("end_ns").max()).row(0)
    return int(begin), int(end)


def _steps(trace: TraceView, phases: pl.DataFrame, process: int, ran_ns: int) -> pl.DataFrame:
    """Return the steps that hooks counted throughout the run, else those of a profile that covers the run."""
    columns = ("start_ns", "end_ns", "thread_id")
    steps = having(phases, "kind", "step").select(columns)
    if not steps.height and trace.captured_ns >= PROFILED * ran_ns:
        found = training_steps(trace)
        thread = pl.lit(found.thread_id.get(process), pl.Int32).alias("thread_id")
        steps = having(found.frame, "process_id", process).with_columns(thread).select(columns)
    before = np.maximum.accumulate(steps["end_ns"].to_numpy())
    starts = steps["start_ns"].to_numpy().copy()
    np.maximum(starts[1:], before[:-1], out=starts[1:])
    apart = steps.with_columns(pl.Series("start_ns", starts, pl.Int64))
    return apart.filter(pl.col("end_ns") > pl.col("start_ns"))
