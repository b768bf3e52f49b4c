"""Training steps of a framework's program without marks, from repetition on its host or device."""

from __future__ import annotations

import polars as pl

from traceviz.analyses.derived.frames import having, parts_by
from traceviz.analyses.derived.steps.steps import (
    MIN_CONFIDENCE,
    ProcessSteps,
    Steps,
    covers,
    cycle_steps,
    join_processes,
)
from traceviz.core.arrays.intervals import IntervalSet

COMPILED_CALL = r"^PjitFunction\(|^train_(function|step)$|^one_step"
"""Names of compiled functions' calls. A single such call that repeats is a training loop."""

MODULE_FINGERPRINT = r"\(\d+\)$"
"""Suffix with which XLA distinguishes versions of a module."""

MIN_CALLS = 2
"""Minimum number of different calls in an inferred step; a single operation that repeats is not a training step."""

COMPILED_SHARE = 0.1
"""Minimum share of its time that a first step must spend compiling to be warm-up."""


def module_cycle_steps(modules: pl.DataFrame) -> Steps:
    """Return steps from the cycle of compiled modules that a device executes.

    Devices of one process execute the same modules, so the device that spends the most time in them decides.

    Args:
        modules: ``process_id, device_id, start_ns, end_ns, name``, sorted by start.
    """
    parts = []
    for part in parts_by(modules, "process_id").values():
        spent = part.group_by("device_id").agg((pl.col("end_ns") - pl.col("start_ns")).sum().alias("spent"))
        device = spent.sort("spent", "device_id", descending=[True, False])["device_id"][0]
        own = having(part, "device_id", device)
        plain = own.with_columns(pl.col("name").cast(pl.String).str.replace(MODULE_FINGERPRINT, ""))
        parts.append(cycle_steps(plain, "name", at_least=1))
    return join_processes("module_cycle", [part for part in parts if part])


def host_cycle_steps(calls: pl.DataFrame, extents: dict[int, tuple[int, int]]) -> Steps:
    """Return steps from the cycle of calls on the training thread.

    Args:
        calls: ``process_id, thread_id, start_ns, end_ns, name`` of the outermost operations of each training thread,
            sorted by start, ``name`` as text.
        extents: First and last moment by process; steps must cover half of the time between them.
    """
    parts = [_host_cycle(part, *extents[process]) for process, part in parts_by(calls, "process_id").items()]
    return join_processes("host_cycle", [part for part in parts if part])


def _host_cycle(calls: pl.DataFrame, first: int, last: int) -> ProcessSteps | None:
    compiled = cycle_steps(calls.filter(pl.col("name").str.contains(COMPILED_CALL)), "name", at_least=1)
    if compiled and compiled.confidence >= MIN_CONFIDENCE:
        return compiled
    mixed = cycle_steps(calls, "name", at_least=MIN_CALLS)
    if mixed and mixed.confidence >= MIN_CONFIDENCE and covers(mixed.frame, first, last):
        return mixed
    return None


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
