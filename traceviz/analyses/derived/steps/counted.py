"""Steps that hooks in the program counted throughout the run, including those of libraries unknown to profilers."""

from __future__ import annotations

import polars as pl

from traceviz.analyses.derived.frames import end_ns, having, parts_by
from traceviz.analyses.derived.patterns import matches
from traceviz.analyses.derived.steps.steps import MIN_STEPS, NO_STEPS, ProcessSteps, Steps, join_processes, mark_warmup
from traceviz.analyses.derived.view import TraceView

REPEATS = r"_(?:call|loader|iterator)$|^program_step$"
"""Sources of steps that only see a repetition of any kind; other sources see that a model learns."""


def best_source(noted: pl.DataFrame) -> tuple[str, bool]:
    """Return the source that is nearest to learning, and whether it only sees a repetition.

    Args:
        noted: Phases of kind ``step``, at least one, with their source as ``name``.
    """
    repeats = matches(pl.col("name"), REPEATS)
    sources = noted.group_by("name").agg(pl.len().alias("steps")).with_columns(repeats.alias("repeats"))
    source, _, only_repeats = sources.sort("repeats", "steps", "name", descending=[False, True, False]).row(0)
    return source, only_repeats


def counted_steps(trace: TraceView) -> Steps:
    """Return steps of the whole run, if stacks were sampled in it and no profiler recorded operators."""
    if trace.rank_busy or not trace.tables.rows("stacks") or "op" in trace.host_names["category"]:
        return NO_STEPS
    texts = (pl.col(name).cast(pl.String) for name in ("kind", "name"))
    phases = trace.frame("phases", "start_ns", "dur_ns", end_ns(), "process_id", "thread_id", *texts)
    noted = having(phases, "kind", "step").filter(pl.col("dur_ns") > 0).sort("start_ns", "end_ns")
    parts = (_of_process(own) for own in parts_by(noted, "process_id").values())
    return join_processes("counted", [part for part in parts if part.frame.height >= MIN_STEPS])


def _of_process(noted: pl.DataFrame) -> ProcessSteps:
    source, _ = best_source(noted)
    own = having(noted, "name", source)
    apart = own.with_columns(
        pl.max_horizontal("start_ns", pl.col("end_ns").cum_max().shift(1)).alias("start_ns"),
        pl.int_range(pl.len()).alias("step"),
        pl.lit(value=False).alias("cut"),
    ).filter(pl.col("end_ns") > pl.col("start_ns"))
    return ProcessSteps(source, 1.0, mark_warmup(apart), own["thread_id"][0])
