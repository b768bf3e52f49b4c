"""Steps of an engine that serves a language model: its annotations with their work, or the device work they launched.

An engine waits for requests between its steps. A step therefore ends with its annotation and the last work that it
launched, not at the start of the next step. If the host queues work early, the annotation ends before the device has
started, and the step is its device work::

    host      |-step 0-| |-step 1-|                    annotations
    device                  |---- step 0 ----|---- step 1 ----|
    stream 0                   |--|   work that waits for nothing

Such a step lasts from the first to the last work that it launched on the stream with the most work. Other streams copy
and prepare.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from traceviz.analyses.derived.frames import end_ns, having, knowing, parts_by
from traceviz.analyses.derived.launch.join import LAUNCH_KEY
from traceviz.analyses.derived.steps.serving import engine_calls
from traceviz.analyses.derived.steps.steps import NO_STEPS, STEP_SCHEMA, Steps
from traceviz.analyses.derived.view import TraceView, once_per_trace
from traceviz.core.arrays.intervals import Array
from traceviz.trace import schema

AHEAD_SHARE = 0.5
"""If at least this share of the median step's device work runs after its annotation, steps are device work."""


@dataclass(frozen=True, slots=True)
class EngineSteps:
    """The steps of an engine.

    Args:
        engine: ``vLLM``, ``SGLang``, ``TensorRT-LLM`` or ``transformers``.
        frame: One row per step, sorted by process and start: the columns of
            :data:`traceviz.analyses.derived.steps.serving.ENGINE_CALLS`, with ``start_ns`` and ``end_ns`` of the step;
            ``step`` (its number); ``call_ns`` and ``call_end_ns`` of the annotation; ``work_ns`` (start of the first
            device work that it launched on the stream with the most work, or null); ``ahead`` (whether the step is that
            work).
    """

    engine: str
    frame: pl.DataFrame


@once_per_trace
def engine_steps(trace: TraceView) -> EngineSteps | None:
    """Return the steps of a serving engine; ``None`` if the trace has none."""
    calls = engine_calls(trace)
    if not calls.height:
        return None
    work = launched_on_streams(trace)
    parts = [
        _find_steps(part, having(work, "process_id", process))
        for process, part in parts_by(calls, "process_id").items()
    ]
    engine = calls.group_by("engine").len().sort("len", "engine", descending=[True, False])["engine"][0]
    return EngineSteps(engine, pl.concat(parts))


def serving_steps(trace: TraceView) -> Steps:
    """Return a serving engine's steps as steps of the trace. None is warm-up: prefill takes longer than decode."""
    found = engine_steps(trace)
    if found is None:
        return NO_STEPS
    frame = found.frame.with_columns(pl.lit(value=False).alias(name) for name in ("warmup", "cut"))
    threads = dict(frame[["process_id", "thread_id"]].unique().iter_rows())
    columns = (pl.col(name).cast(kind) for name, kind in STEP_SCHEMA.items())
    host = frame.select(
        "process_id", "step", pl.col("call_ns").alias("start_ns"), pl.col("call_end_ns").alias("end_ns")
    )
    return Steps("serving", found.engine, 1.0, frame.select(columns), threads, host if frame["ahead"].any() else None)


def launched_on_streams(trace: TraceView) -> pl.DataFrame:
    """Return device work with a known call: ``process_id, call_ns, begin_ns, end_ns, device_id, stream``, by call."""
    calls = knowing(trace.frame("cuda_api", *LAUNCH_KEY, "start_ns"), "correlation_id")
    once = calls.sort("start_ns").unique(LAUNCH_KEY, keep="first", maintain_order=True)
    columns = (*LAUNCH_KEY, "start_ns", "dur_ns", "device_id", "stream")
    work = pl.concat([trace.frame(name, *columns) for name in schema.DEVICE_WORK])
    begin = pl.col("start_ns").alias("begin_ns")
    work = work.select(*LAUNCH_KEY, begin, end_ns("end_ns"), "device_id", "stream")
    return work.join(once.rename({"start_ns": "call_ns"}), on=LAUNCH_KEY).sort("call_ns", "begin_ns", "end_ns")


def _find_steps(calls: pl.DataFrame, work: pl.DataFrame) -> pl.DataFrame:
    """Return the steps of one process, whose annotations do not overlap."""
    calls = calls.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias("step"))
    calls = calls.rename({"start_ns": "call_ns", "end_ns": "call_end_ns"})
    extents = work_of_steps(calls["call_ns"].to_numpy(), calls["call_end_ns"].to_numpy(), work)
    both = calls.join(extents, on="step", how="left", maintain_order="left")
    late = (extents["late_ns"] / extents["busy_ns"]).median()
    ahead = isinstance(late, float) and late >= AHEAD_SHARE
    timed = both.filter(pl.col("work_ns").is_not_null()) if ahead else both
    if ahead:
        bounds = (pl.col("work_ns").alias("start_ns"), pl.col("finish_ns").alias("end_ns"))
    else:
        following = pl.col("call_ns").shift(-1)
        last = pl.max_horizontal("call_end_ns", "finish_ns")
        bounds = (pl.col("call_ns").alias("start_ns"), pl.min_horizontal(last, following).alias("end_ns"))
    timed = timed.with_columns(*bounds, pl.lit(ahead).alias("ahead")).sort("start_ns")
    free = pl.col("end_ns").cum_max().shift(1)
    apart = timed.with_columns(pl.max_horizontal("start_ns", free).alias("start_ns"))
    return apart.filter(pl.col("end_ns") > pl.col("start_ns")).drop("late_ns", "busy_ns", "finish_ns")


def work_of_steps(starts: Array, ends: Array, work: pl.DataFrame) -> pl.DataFrame:
    """Return the work that each annotation launched.

    Returns:
        ``step``; ``busy_ns`` of all its device work, and ``late_ns`` of its work after the annotation's end;
        ``work_ns`` and ``finish_ns``: start and end of its work on the stream with the most work.
    """
    called = work["call_ns"].to_numpy()
    step = np.searchsorted(starts, called, side="right") - 1
    inside = (step >= 0) & (called < ends[step]) if starts.size else np.zeros(called.size, bool)
    own = work.with_columns(pl.Series("step", step), pl.Series("call_end_ns", ends[step])).filter(
        pl.Series(inside, dtype=pl.Boolean)
    )
    lasted = pl.col("end_ns") - pl.col("begin_ns")
    late = pl.col("end_ns") - pl.max_horizontal("begin_ns", pl.min_horizontal("call_end_ns", "end_ns"))
    by_stream = own.group_by("device_id", "stream").agg(lasted.sum().alias("busy_ns"))
    order = ("busy_ns", "device_id", "stream")
    most = by_stream.sort(order, descending=[True, False, False]).head(1)[["device_id", "stream"]]
    of_all = own.group_by("step").agg(lasted.sum().alias("busy_ns"), late.sum().alias("late_ns"))
    main = own.join(most, on=["device_id", "stream"], nulls_equal=True).group_by("step")
    extents = main.agg(pl.col("begin_ns").min().alias("work_ns"), pl.col("end_ns").max().alias("finish_ns"))
    return of_all.join(extents, on="step", how="left")
