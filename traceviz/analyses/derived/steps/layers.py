"""Detection of layers: repeats inside one pass over a model are its layers, not steps.

::

    host     |-- nn.Module: Net_0 -------------------|        one pass, marked by Python frames, ranges or engines
             launch  launch  launch  launch  launch
    device      |a b|  |a b|  |a b|  |a b|  |a b|             a cycle of kernels: five layers

One pass is one of these: a call of the outermost module, a forward pass, a step of a serving engine, a marked step if
there are too few for a loop, a run of layers with rising numbers, or the launch of a CUDA graph.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from traceviz.analyses.derived.calls.host_calls import calls_named
from traceviz.analyses.derived.frames import bounds, end_ns, having, outermost_by, parts_by
from traceviz.analyses.derived.launch.join import LAUNCH_KEY
from traceviz.analyses.derived.steps.serving import SERVING_NAME
from traceviz.analyses.derived.steps.steps import Steps, fold_numbers
from traceviz.analyses.derived.view import TraceView, once_per_trace

WHOLE_MODEL = (
    r"^nn\.Module: |^(?:##\s*)?(?i:forward(?:[ _]pass)?)(?:\s*##)?$"
    r"|^(?i:(?:train(?:ing)?[ _]?)?(?:step|iter(?:ation)?))[ _:#=-]*\d*$|^ProfilerStep"
)
"""Names of ranges, annotations and frames that contain one pass."""

MOSTLY = 0.5
"""Repeats are layers if more than this share of them lie in the same pass as the previous repeat."""

LONGER = 1.5
"""Maximum device work after the last repeat, in median repeats. The last one ends the search, so one follows."""

NUMBERED_LAYER = r"\b(?:blocks?|layers?|resblocks|encoder|decoder|stages?|h)\.(\d+)\b"
"""A layer in a name: ``FSDP::pre_forward (blocks.7)``."""
MIN_LAYERS = 3
"""Minimum number of consecutive layers in a pass over a model."""

_PLACE = ("process_id", "thread_id", "start_ns", "end_ns")


def are_layers(trace: TraceView, steps: Steps) -> bool:
    """Return whether inferred steps are layers of one or several passes."""
    if steps.source == "kernel_cycle":
        launches = _find_launches(trace, steps)
        same = pl.all_horizontal(pl.col(key) == pl.col(key).shift(1) for key in LAUNCH_KEY)  # nodes of a CUDA graph
        of_one_launch = float(launches.select(same.mean()).item() or 0.0) if launches.height else 0.0
        return (
            of_one_launch > MOSTLY or _share_of_one_pass(trace, launches) > MOSTLY or _end_in_other_work(trace, steps)
        )
    return _share_of_one_pass(trace, steps.frame.select("process_id", pl.col("start_ns").alias("at_ns"))) > MOSTLY


def _end_in_other_work(trace: TraceView, steps: Steps) -> bool:
    """Return whether much more follows the repeats than one of them, and none of them exchanges data with the host.

    A model ends with other parts than its layers. A loop may end with other work too, but its steps take input or
    return a result::

        device   |a b|a b|a b|a b|a b c d e|
    """
    copies = trace.frame("memcpy", "process_id", "start_ns", pl.col("kind").cast(pl.String))
    exchanged = copies.filter(pl.col("kind").is_in(["h2d", "d2h"]))
    others = []
    for process, part in parts_by(steps.frame, "process_id").items():
        starts, ends = bounds(part)
        moments = having(exchanged, "process_id", process)["start_ns"].sort().to_numpy()
        exchanges = np.searchsorted(moments, ends) > np.searchsorted(moments, starts)
        work = trace.rank_busy[process]
        after = work.clip(int(ends[-1]), max(int(ends[-1]), int(work.ends[-1]))).total
        others.append(exchanges.mean() <= MOSTLY and after > LONGER * np.median(work.overlap(starts, ends)))
    return all(others)


def _find_launches(trace: TraceView, steps: Steps) -> pl.DataFrame:
    """Return the launches of the kernels that start inferred steps: ``process_id, at_ns, correlation_id``, by step.

    Kernels whose call is unknown are omitted.
    """
    anchors = steps.frame.lazy().select("process_id", "start_ns")
    kernels = trace.tables.scan("kernels").select(*LAUNCH_KEY, "start_ns")
    first = kernels.join(anchors, on=["process_id", "start_ns"], how="semi").drop_nulls("correlation_id")
    calls = trace.frame("cuda_api", *LAUNCH_KEY, pl.col("start_ns").alias("at_ns")).lazy()
    launches = first.join(calls, on=LAUNCH_KEY).collect().unique(["process_id", "start_ns"], keep="first")
    return launches.sort("process_id", "start_ns").select("process_id", "at_ns", "correlation_id")


def _share_of_one_pass(trace: TraceView, launches: pl.DataFrame) -> float:
    """Return the share of host moments ``launches`` (``process_id, at_ns``) in the same pass as the previous moment."""
    passes = _find_passes(trace)
    shares = []
    for process, part in parts_by(launches, "process_id").items():
        moments = part["at_ns"].sort().to_numpy()
        for around in having(passes, "process_id", process).partition_by("thread_id", "kind"):
            if moments.size > 1:
                starts, ends = around["start_ns"].to_numpy(), around["end_ns"].to_numpy()
                number = np.searchsorted(starts, moments, "right") - 1
                inside = (number >= 0) & (moments < ends[number])
                shares.append(float((inside[1:] & inside[:-1] & (number[1:] == number[:-1])).mean()))
    return max(shares, default=0.0)


@once_per_trace
def _find_passes(trace: TraceView) -> pl.DataFrame:
    """Return outermost passes by kind and thread: ``process_id, thread_id, start_ns, end_ns, kind``, by start."""
    whole = pl.col("name").str.contains(WHOLE_MODEL) | pl.col("name").str.contains(SERVING_NAME)
    kind = pl.col("name").str.extract(r"^(\W*[A-Za-z.]+)").alias("kind")
    marked = _find_events(trace, whole).select(*_PLACE, kind)
    numbered = _find_events(trace, pl.col("name").str.contains(NUMBERED_LAYER))
    passes = pl.concat([marked, *(_find_runs(numbered, downwards=backward) for backward in (False, True))])
    ordered = passes.sort("process_id", "thread_id", "kind", "start_ns", "end_ns", descending=[False] * 4 + [True])
    return ordered.filter(outermost_by(ordered, "thread_id", "kind")).sort("start_ns")


def _find_events(trace: TraceView, condition: pl.Expr) -> pl.DataFrame:
    """Return ranges, annotations and frames whose ``name`` meets ``condition``."""
    calls = calls_named(trace, trace.host_names.filter(condition)).with_columns(end_ns())
    return pl.concat([calls.select(*_PLACE, "name"), trace.ranges.filter(condition).select(*_PLACE, "name")])


def _find_runs(numbered: pl.DataFrame, *, downwards: bool) -> pl.DataFrame:
    """Return passes over numbered layers: from the first to the last of a run of rising (or falling) numbers.

    ::

        blocks.17  blocks.18  blocks.19    blocks.0  blocks.1  blocks.2
        |--------- one pass ----------|    |--------- the next -------|
    """
    index = pl.col("name").str.extract(NUMBERED_LAYER).cast(pl.Int64, strict=False).alias("index")
    layers = numbered.with_columns(index, fold_numbers("name").alias("kind")).drop_nulls("index")
    where = ("process_id", "thread_id", "kind")
    step = pl.col("index").diff().over(where)
    breaks = (step >= 0) if downwards else (step <= 0)
    layers = layers.sort(*where, "start_ns").with_columns(breaks.fill_null(value=True).cum_sum().alias("run"))
    runs = layers.group_by(*where, "run").agg(pl.col("start_ns").min(), pl.col("end_ns").max(), pl.len())
    return runs.filter(pl.col("len") >= MIN_LAYERS).select(*_PLACE, "kind")
