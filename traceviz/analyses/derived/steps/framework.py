"""Training steps without marks: from repetition on host or device, or as hooks in the program counted them."""

from __future__ import annotations

import polars as pl

from traceviz.analyses.derived.frames import end_ns, having, parts_by
from traceviz.analyses.derived.patterns import matches
from traceviz.analyses.derived.steps.bounds import WHOLE_PASS
from traceviz.analyses.derived.steps.steps import (
    MIN_CONFIDENCE,
    MIN_STEPS,
    NO_STEPS,
    ProcessSteps,
    Steps,
    covers,
    cycle_steps,
    join_processes,
    mark_warmup,
)
from traceviz.analyses.derived.view import TraceView
from traceviz.core.arrays.intervals import IntervalSet

COMPILED_CALL = r"^PjitFunction\(|^train_(function|step)$|^one_step"
"""Names of compiled functions' calls. A single such call that repeats is a training loop."""

MODULE_FINGERPRINT = r"\(\d+\)$"
"""Suffix with which XLA distinguishes versions of a module."""

MIN_CALLS = 2
"""Minimum number of different calls in an inferred step; a single operation that repeats is not a training step."""

COMPILED_SHARE = 0.1
"""Minimum share of its time that a first step must spend compiling to be warm-up."""


def module_cycle_steps(modules: pl.DataFrame, others: pl.DataFrame) -> Steps:
    """Return steps from the cycle of compiled modules that a device executes.

    Devices of one process execute the same modules, so the device that spends the most time in them decides.

    Args:
        modules: ``process_id, device_id, start_ns, end_ns, name``, sorted by start.
        others: ``process_id, start_ns, end_ns`` of ranges outside the loop (names match
            :data:`traceviz.analyses.derived.steps.bounds.OTHER_WORK`).
    """
    parts = []
    for process, part in parts_by(modules, "process_id").items():
        spent = part.group_by("device_id").agg((pl.col("end_ns") - pl.col("start_ns")).sum().alias("spent"))
        device = spent.sort("spent", "device_id", descending=[True, False])["device_id"][0]
        own = having(part, "device_id", device)
        plain = own.with_columns(pl.col("name").cast(pl.String).str.replace(MODULE_FINGERPRINT, ""))
        parts.append(cycle_steps(plain, "name", at_least=1, others=having(others, "process_id", process)))
    return join_processes("module_cycle", [part for part in parts if part])


def host_cycle_steps(calls: pl.DataFrame, extents: dict[int, tuple[int, int]]) -> Steps:
    """Return steps from the cycle of calls on the training thread.

    Other calls than those of a compiled function may be parts of a pass, so their repeats must be most of the time.

    Args:
        calls: ``process_id, thread_id, start_ns, end_ns, name`` of the outermost operations of each training thread,
            sorted by start, ``name`` as text.
        extents: First and last moment by process; see above.
    """
    parts = []
    for process, own in parts_by(calls, "process_id").items():
        compiled = cycle_steps(own.filter(pl.col("name").str.contains(COMPILED_CALL)), "name", at_least=1)
        if compiled and compiled.confidence >= MIN_CONFIDENCE:
            parts.append(compiled)
            continue
        mixed = cycle_steps(own, "name", at_least=MIN_CALLS)
        least = WHOLE_PASS / (1 + 1 / mixed.frame.height) if mixed else 0.0
        if mixed and mixed.is_loop and covers(mixed.frame, *extents[process], least):
            parts.append(mixed)
    return join_processes("host_cycle", parts)


def without_compilation(steps: pl.DataFrame, compiling: dict[int, IntervalSet]) -> pl.DataFrame:
    """Mark the first of ``steps`` as warm-up if they spend their time compiling.

    If all steps of a process compile, none is marked, since compiling is then part of a step.

    Args:
        steps: Columns of :data:`traceviz.analyses.derived.steps.steps.STEP_SCHEMA`, sorted by process and start.
        compiling: Time in which each process compiles.
    """
    nothing = IntervalSet.empty()
    parts = []
    for process, part in parts_by(steps, "process_id").items():
        spent = compiling.get(process, nothing).overlap(part["start_ns"].to_numpy(), part["end_ns"].to_numpy())
        compiled = pl.Series(spent) >= COMPILED_SHARE * (part["end_ns"] - part["start_ns"])
        first = compiled.cast(pl.Int8).cum_min().cast(pl.Boolean)
        parts.append(part.with_columns(pl.col("warmup") | first) if not first.all() else part)
    return pl.concat(parts) if parts else steps


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
    parts = []
    for of_process in parts_by(noted, "process_id").values():
        source, _ = best_source(of_process)
        own = having(of_process, "name", source)
        apart = own.with_columns(
            pl.max_horizontal("start_ns", pl.col("end_ns").cum_max().shift(1)).alias("start_ns"),
            pl.int_range(pl.len()).alias("step"),
            pl.lit(value=False).alias("cut"),
        ).filter(pl.col("end_ns") > pl.col("start_ns"))
        parts.append(ProcessSteps(source, 1.0, mark_warmup(apart), own["thread_id"][0]))
    return join_processes("counted", parts, at_least=MIN_STEPS)
