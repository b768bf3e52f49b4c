"""Stages that took the time of the input: ranges, copies, infeed, or suspects if no stage was recorded."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from traceviz.analyses.derived.capture.time_spent import find_costliest_name
from traceviz.analyses.derived.frames import bounds, having, intervals, outermost
from traceviz.analyses.derived.host.classes import host_classes
from traceviz.analyses.derived.host.input_fetches import dispatching
from traceviz.analyses.derived.judged_time import steady_time
from traceviz.analyses.derived.stacks.functions import placed
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.input.dataloader import loader_advice, loader_kind
from traceviz.core.arrays.intervals import IntervalSet
from traceviz.report.findings.registry import record_of

TF_DATA = "tf.data"
"""Kind of stages that are iterators of tf.data."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of the input, or one suspect if no stage was recorded.

    Args:
        name: Name of the range, or of the host's activity.
        kind: Kind of evidence: a range, an operation, a call.
        calls: Number of calls within the steady steps; ``None`` if that has no meaning.
        total_ns: Its duration within steady steps.
        capture_calls: Number of calls in the whole capture.
        capture_ns: Its duration in the whole capture.
        self_ns: The part of ``total_ns`` that the device, or the program, waited.
        inside: The nested range in which most of the wait was spent; empty if there is none.
        advice: The first advice on it.
        further: Further advice.
        path: Place in the pipeline, from the stage to the program; empty if there is no pipeline.
    """

    name: str
    kind: str
    calls: int | None
    total_ns: int
    capture_calls: int | None
    capture_ns: int
    self_ns: int
    inside: str
    advice: str
    further: tuple[str, ...] = ()
    path: str = ""


def range_stages(trace: TraceView) -> list[Stage]:
    """Return outermost data-loading ranges by name, and the time that the device waited in each."""
    by_name: dict[str, list[Stage]] = {}
    inside: dict[str, list[pl.DataFrame]] = {}
    for rank, steady in steady_time(trace).items():
        classes = host_classes(trace)[rank]
        waits = classes.sets["input_wait"].intersect(steady)
        order = ("start_ns", "end_ns", "range_id")
        inputs = outermost(classes.input_ranges.sort(*order, descending=[False, True, False]))
        for part in inputs.partition_by("name", maintain_order=True):
            starts, ends = bounds(part)
            within = steady.overlap(starts, ends)
            stage = Stage(
                name=str(part["name"][0]),
                kind="NVTX range",
                calls=int(np.count_nonzero(within)),
                total_ns=int(within.sum()),
                capture_calls=part.height,
                capture_ns=int((ends - starts).sum()),
                self_ns=int(waits.overlap(starts, ends).sum()),
                inside="",
                advice="",
            )
            by_name.setdefault(stage.name, []).append(stage)
            children = trace.ranges.filter(pl.col("parent_id").is_in(part["range_id"].implode()))
            waited_inside = children[["name"]].with_columns(
                pl.Series("waited", waits.overlap(*bounds(children)), pl.Int64)
            )
            inside.setdefault(stage.name, []).append(waited_inside)
    return [
        _with_advice(replace(summed(parts), inside=_largest(pl.concat(inside[name]))))
        for name, parts in by_name.items()
    ]


def summed(parts: list[Stage]) -> Stage:
    """Sum the stages of several ranks to one."""
    return replace(
        parts[0],
        calls=sum(part.calls or 0 for part in parts),
        total_ns=sum(part.total_ns for part in parts),
        capture_calls=sum(part.capture_calls or 0 for part in parts),
        capture_ns=sum(part.capture_ns for part in parts),
        self_ns=sum(part.self_ns for part in parts),
    )


def largest_first(stages: Iterable[Stage]) -> tuple[Stage, ...]:
    """Return stages that ran in steady steps, those most waited for first."""
    return tuple(sorted((s for s in stages if s.total_ns), key=lambda stage: (-stage.self_ns, stage.name)))


def _largest(inside: pl.DataFrame) -> str:
    """Return the nested range in which most of the wait was spent, over all ranks; empty if there is none."""
    totals = inside.group_by("name").agg(pl.col("waited").sum()).sort("waited", "name", descending=[True, False])
    return str(totals["name"][0]) if totals.height and totals["waited"][0] else ""


def producer_stages(trace: TraceView) -> list[Stage]:
    """Return loaders on other threads that never rest, each with the wait of the training thread for it."""
    by_name: dict[str, list[Stage]] = {}
    for rank, steady in steady_time(trace).items():
        classes = host_classes(trace)[rank]
        if (producer := classes.producer) is None:
            continue
        starts, ends = bounds(producer.ranges)
        within = steady.overlap(starts, ends)
        waited = classes.sets["input_wait"].intersect(steady).intersect(producer.waits).total
        counts = (int(np.count_nonzero(within)), int(within.sum()), len(starts), int((ends - starts).sum()), waited)
        stage = Stage(producer.name, "loader's range", *counts, "", _PRODUCER)
        by_name.setdefault(producer.name, []).append(_with_advice(stage, _PRODUCER))
    return [summed(parts) for parts in by_name.values()]


_PRODUCER = (
    "The loader works all the time, and the steps wait for it: give it more threads, or less work for each batch."
)
_DALI = (
    "DALI: more num_threads and several readers, decoding on the device (device='mixed'), smaller or fewer images read."
)

_TF_DATA_NAME = r"(?i)iterator::|iteratorgetnext"
_TF_DATA_ADVICE = "tf.data: add .prefetch(AUTOTUNE) at the end and num_parallel_calls=AUTOTUNE to map and interleave."
_ANY_ADVICE = "Load the next batch while the device computes (prefetch in a background thread or process)."


def _with_advice(stage: Stage, other: str = _ANY_ADVICE) -> Stage:
    text = f"{stage.name} {stage.inside}"
    loader = loader_kind(text)
    if loader:
        first, *rest = loader_advice(loader)
        return replace(stage, advice=first, further=tuple(rest))
    if "DALI" in text:
        return replace(stage, advice=_DALI)
    return replace(stage, advice=_TF_DATA_ADVICE if re.search(_TF_DATA_NAME, text) else other)


_PINNED = "Copy on a stream of its own, while the step before computes: the memory is pinned already."
_UNKNOWN = "Copy from pinned memory, on a stream of its own, while the step before computes."
_PAGEABLE = (
    "Copy from pinned memory, so that the copy can run beside the step before. PyTorch: DataLoader(pin_memory=True) "
    "and tensor.to(device, non_blocking=True)."
)
_NO_DEVICE = (
    "Put arrays that stay the same there once, before the loop (jax.device_put), and keep results there between steps."
)
"""Advice if the processor is the device: it has no pinned memory and no streams."""


def exposed_input(trace: TraceView, rank: int) -> IntervalSet:
    """Return exposed copies of input to the devices of a process: the part of ``copy_h2d`` that is of input."""
    classes = host_classes(trace)[rank]
    return classes.sets["copy_h2d"].intersect(classes.input_copies)


def copy_stage(trace: TraceView, copy_ns: int) -> list[Stage]:
    """Return the copies of input that the device waited for, as a stage; none if there are none."""
    if not copy_ns:
        return []
    pageable, pinned = (2 * _copied_from(trace, memory) >= copy_ns for memory in ("pageable", "pinned"))
    name = "copy to device from pageable memory" if pageable else "copy to device"
    advice = _PAGEABLE if pageable else _PINNED if pinned else _UNKNOWN if trace.rank_busy else _NO_DEVICE
    capture_ns = sum(exposed_input(trace, rank).total for rank in steady_time(trace))
    return [Stage(name, "exposed copy", None, copy_ns, None, capture_ns, copy_ns, "", advice)]


def _copied_from(trace: TraceView, memory: str) -> int:
    """Return the part of the exposed copies of input in steady steps that comes from this kind of memory."""
    copies = trace.frame("memcpy", "start_ns", "dur_ns", "process_id", "kind", "src_memory")
    own = copies.filter((pl.col("kind") == "h2d") & (pl.col("src_memory") == memory))
    return sum(
        intervals(having(own, "process_id", rank)).intersect(exposed_input(trace, rank)).intersect(steady).total
        for rank, steady in steady_time(trace).items()
    )


INFEED = "infeed op"
"""Kind of the stage for a device's wait for its infeed."""


def infeed_stage(trace: TraceView) -> list[Stage]:
    """Return the wait of devices for infeed, as a stage, without time that the program's own loading explains."""
    parts = []
    for rank, steady in steady_time(trace).items():
        classes = host_classes(trace)[rank]
        loading = intervals(classes.input_ranges).union(intervals(classes.input_ops))
        waited = classes.sets["input_wait"].intersect(steady).intersect(classes.infeed).subtract(loading)
        within, whole = classes.infeed.intersect(steady), classes.infeed
        if waited.total:
            counts = (len(within), within.total, len(whole), whole.total, waited.total)
            first, *rest = record_of("TV404").advice
            parts.append(Stage("infeed", INFEED, *counts, "", first, tuple(rest)))
    return [summed(parts)] if parts else []


SAMPLED = "sampled stack"
"""Kind of stages that only samples of the main thread's stack show."""


def sampled_stages(trace: TraceView) -> list[Stage]:
    """Return functions that take the next batch, as samples of the main thread's stack show them."""
    by_name: dict[str, list[Stage]] = {}
    for rank, steady in steady_time(trace).items():
        classes = host_classes(trace)[rank]
        waits = classes.sets["input_wait"].intersect(steady)
        for part in classes.sampled_input.partition_by("function", maintain_order=True):
            covered = intervals(part)
            lines = part.group_by("location").agg((pl.col("end_ns") - pl.col("start_ns")).sum().alias("time_ns"))
            line = lines.sort("time_ns", "location", descending=[True, False])["location"][0]
            within, waited = covered.intersect(steady).total, covered.intersect(waits).total
            stage = Stage(placed(line), SAMPLED, None, within, None, covered.total, waited, "", _ANY_ADVICE)
            by_name.setdefault(str(part["function"][0]), []).append(stage)
    return [summed(parts) for parts in by_name.values()]


def is_before_batches(trace: TraceView) -> bool:
    """Return whether most of the time of :func:`suspects` is where a program takes a batch: once per step.

    Only the longest pause of the device in a step counts, and only up to a copy to the device if steps have one::

        host     |--?--|copy|launch|-?-|launch|-?-|launch|
        device         |h2d||--k--|    |--k--|    |--k--|
        counts   ^-----^
    """
    found = suspected = 0
    copies = trace.frame("memcpy", "process_id", "start_ns", pl.col("kind").cast(pl.String))
    for rank, steady in steady_time(trace).items():
        sets, busy = host_classes(trace)[rank].sets, trace.rank_busy.get(rank, IntervalSet.empty())
        idle = sets["host_compute"].union(sets["host_blocked"]).subtract(dispatching(trace, rank))
        pauses = steady.subtract(busy)
        own = copies.filter((pl.col("process_id") == rank) & (pl.col("kind") == "h2d"))["start_ns"].sort().to_numpy()
        follows = np.searchsorted(own, pauses.ends) < np.searchsorted(own, pauses.ends, side="right")
        starts, ends = bounds(having(training_steps(trace).steady, "process_id", rank))
        has_copy = np.searchsorted(own, ends) > np.searchsorted(own, starts)
        lengths = idle.overlap(pauses.starts, pauses.ends)
        if has_copy.mean() >= 0.5:
            lengths = np.where(follows, lengths, 0)
        step = np.searchsorted(starts, pauses.starts, side="right") - 1
        longest = np.zeros(starts.size, np.int64)
        np.maximum.at(longest, step, lengths)
        found, suspected = found + int(longest.sum()), suspected + idle.intersect(steady).total
    return 2 * found >= suspected


def suspects(trace: TraceView) -> list[Stage]:
    """Return activities of the host while the device was idle, if no data-loading range was recorded."""
    blocked: dict[str, list[Stage]] = {}
    compute, in_capture = 0, 0
    for rank, steady in steady_time(trace).items():
        classes = host_classes(trace)[rank]
        computing = classes.sets["host_compute"].subtract(dispatching(trace, rank))
        compute, in_capture = compute + computing.intersect(steady).total, in_capture + computing.total
        waiting = classes.sets["host_blocked"].intersect(steady)
        for part in classes.blocking_calls.partition_by("name", maintain_order=True):
            covered = intervals(part)
            stage = Stage(
                name=f"host blocked in {part['name'][0]}",
                kind="OS call",
                calls=int(np.count_nonzero(steady.overlap(*bounds(part)))),
                total_ns=covered.intersect(steady).total,
                capture_calls=part.height,
                capture_ns=covered.total,
                self_ns=covered.intersect(waiting).total,
                inside="",
                advice=_RECORD_RANGES,
            )
            blocked.setdefault(stage.name, []).append(stage)
    stages = [summed(parts) for parts in blocked.values()]
    name, counts = _name_operator(trace), (None, compute, None, in_capture, compute)
    kind = "operator that launches nothing" if name else "no call recorded"
    stages.append(Stage(name or UNRECORDED, kind, *counts, "", _RECORD_RANGES))
    return [stage for stage in stages if stage.self_ns]


def _name_operator(trace: TraceView) -> str:
    """Return the operator that runs in most of the suspected time of the host, on every rank; empty if none does."""
    names = set()
    for rank, steady in steady_time(trace).items():
        suspected = host_classes(trace)[rank].sets["host_compute"].subtract(dispatching(trace, rank))
        names.add(find_costliest_name(trace, rank, suspected.intersect(steady))[0])
    operators = trace.host_names.filter(pl.col("category") == "op")["name"]
    return next((name for name in names if len(names) == 1 and name in set(operators.to_list())), "")


UNRECORDED = "unrecorded host time"
"""Name of time that may be input or anything else."""
_RECORD_RANGES = "Record ranges around data loading to tell whether this is the input."
