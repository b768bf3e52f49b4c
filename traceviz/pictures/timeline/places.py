"""Places of findings on the timeline, found by the function that the record of a finding names.

A finding covers all of the judged time. Its place is the interval that shows it best, such as the longest wait for
input or the slowest rank's step. A finding that only a sum over the run shows, such as too many threads, has no place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import cast

import numpy as np
import polars as pl

from traceviz.analyses.derived.device.names import rank_numbers
from traceviz.analyses.derived.device.work import LAYOUT_KERNELS
from traceviz.analyses.derived.frames import are_named, bounds, end_ns, parts_by, taken
from traceviz.analyses.derived.host.classes import IDLE_CLASSES, HostClasses, host_classes
from traceviz.analyses.derived.host.copy_calls import waiting_copies
from traceviz.analyses.derived.judged_time import judged_time, steady_time
from traceviz.analyses.derived.patterns import matches
from traceviz.analyses.derived.run_parts.parts import run_parts
from traceviz.analyses.derived.stacks.sampled import sampled_stacks
from traceviz.analyses.derived.steps.search import training_steps, training_thread
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.ranks.collective_skew import collective_skew
from traceviz.analyses.ranks.ranks import RanksAnalysis
from traceviz.core.arrays.intervals import IntervalSet, union_all
from traceviz.core.units import format_ns
from traceviz.pictures.timeline.timeline import MOST_EVENTS, timeline
from traceviz.report import Finding
from traceviz.report.findings.record import Finder, TimelinePlace
from traceviz.report.findings.registry import find_record
from traceviz.report.pictures.values import Place, Timeline
from traceviz.trace.names.cuda_names import ApiKind
from traceviz.trace.names.kernel_names import KernelClass
from traceviz.trace.names.op_families import plain_name


@dataclass(frozen=True, slots=True)
class _Interval:
    """An interval in a lane, with its description."""

    start_ns: int
    end_ns: int
    process_id: int
    lane: str
    words: str


Namer = Callable[[dict[str, object]], str]


def places(trace: TraceView, findings: Sequence[Finding]) -> tuple[Place, ...]:
    """Find the places of these findings, in their order: at most one per code."""
    found = {}
    for finding in findings:
        record = find_record(finding.code)
        if record is None or record.place is None or finding.code in found:
            continue
        interval = FINDERS[record.place.finder](trace, finding, record.place)
        if interval is not None:
            lasts = format_ns(interval.end_ns - interval.start_ns)
            steps = training_steps(trace).frame
            inside = (steps["start_ns"] <= interval.start_ns) & (steps["end_ns"] > interval.start_ns)
            inside &= steps["process_id"] == interval.process_id
            numbers = steps["step"].filter(inside)
            label = f"{interval.words}, {lasts}{f' in step {numbers[0]}' if len(numbers) else ''}"
            found[finding.code] = Place(finding.code, interval.start_ns, interval.end_ns, interval.lane, label)
    return tuple(found.values())


def _judged(trace: TraceView, process: int) -> IntervalSet:
    """Return the judged time of a process; the whole capture if nothing limits it."""
    known = judged_time(trace, process)
    return known if len(known) or steady_time(trace) else IntervalSet.span(*trace.program_window)


def _idle_class(trace: TraceView, _: Finding, place: TimelinePlace) -> _Interval | None:
    """Return the longest interval of some classes, in judged time, on any rank."""
    keys = place.keys or tuple(c.key for c in IDLE_CLASSES if c.key != "communication")
    return _longest_of_ranks(trace, place.label, lambda classes: union_all(classes.sets[key] for key in keys))


def _longest_of_ranks(trace: TraceView, words: str, times_of: Callable[[HostClasses], IntervalSet]) -> _Interval | None:
    """Return the longest of these intervals in judged time, on any rank."""
    found = (
        _longest_interval(times_of(classes).intersect(_judged(trace, process)), process, f"classes-{process}", words)
        for process, classes in host_classes(trace).items()
    )
    return max(filter(None, found), key=_length, default=None)


def _longest_interval(times: IntervalSet, process: int, lane: str, words: str) -> _Interval | None:
    if not len(times):
        return None
    at = int(times.durations.argmax())
    return _Interval(int(times.starts[at]), int(times.ends[at]), process, lane, words)


def _length(interval: _Interval) -> int:
    return interval.end_ns - interval.start_ns


def _longest(trace: TraceView, rows: pl.DataFrame, words: str, lane: Namer) -> _Interval | None:
    """Return the longest event that starts in judged time; ``rows`` have times, process and columns for ``lane``."""
    best: _Interval | None = None
    for process, own in parts_by(rows, "process_id").items():
        starts, ends = bounds(own)
        inside = np.flatnonzero(_judged(trace, process).contains(starts))
        if not inside.size:
            continue
        at = int(inside[(ends - starts)[inside].argmax()])
        found = _Interval(int(starts[at]), int(ends[at]), process, lane(own.row(at, named=True)), words)
        best = max(filter(None, (best, found)), key=_length)
    return best


def _of_thread(kind: str) -> Namer:
    return lambda row: f"{kind}-{row['process_id']}-{row['thread_id']}"


def _stream(row: dict[str, object]) -> str:
    stream = row["stream"]
    return f"device-{row['process_id']}-{row['device_id']}-{-1 if stream is None else stream}"


def _longest_kernel(trace: TraceView, place: TimelinePlace, names: list[str]) -> _Interval | None:
    """Return the longest of the kernels with these names."""
    if not names:
        return None
    kernels = trace.frame("kernels", "start_ns", "dur_ns", "process_id", "device_id", "stream", "name")
    rows = np.flatnonzero(are_named(kernels["name"], names).to_numpy())
    chosen = taken(kernels.drop("name"), rows).with_columns(end_ns())
    return _longest(trace, chosen, place.label, _stream)


def _layout_kernel(trace: TraceView, _: Finding, place: TimelinePlace) -> _Interval | None:
    named = pl.DataFrame({"name": list(trace.kernel_classes)}, {"name": pl.String})
    return _longest_kernel(trace, place, named.filter(matches(pl.col("name"), LAYOUT_KERNELS))["name"].to_list())


def _full_precision_kernel(trace: TraceView, _: Finding, place: TimelinePlace) -> _Interval | None:
    def is_full(one: KernelClass) -> bool:
        return one.family in {"gemm", "convolution"} and one.precision == "f32" and one.tensor_core is not True

    return _longest_kernel(trace, place, [name for name, one in trace.kernel_classes.items() if is_full(one)])


def _small_grid(trace: TraceView, _: Finding, place: TimelinePlace) -> _Interval | None:
    """Return the longest kernel with fewer blocks than its device has multiprocessors."""
    devices = trace.frame("devices", "device_id", "sm_count")
    grid = ("grid_x", "grid_y", "grid_z")
    columns = ("start_ns", "dur_ns", "process_id", "device_id", "stream", *grid)
    kernels = trace.frame("kernels", *columns).join(devices, on="device_id", how="left", maintain_order="left")
    blocks = pl.col(grid[0]).cast(pl.Int64) * pl.col(grid[1]).fill_null(1) * pl.col(grid[2]).fill_null(1)
    small = kernels.filter((blocks < pl.col("sm_count")).fill_null(value=False)).with_columns(end_ns())
    return _longest(trace, small, place.label, _stream)


def _pageable_copy(trace: TraceView, _: Finding, place: TimelinePlace) -> _Interval | None:
    columns = ("start_ns", "dur_ns", "process_id", "device_id", "stream", "src_memory", "dst_memory")
    copies = trace.frame("memcpy", *columns)
    is_pageable = (pl.col("src_memory") == "pageable") | (pl.col("dst_memory") == "pageable")
    return _longest(trace, copies.filter(is_pageable).with_columns(end_ns()), place.label, _stream)


def _waiting_copy(trace: TraceView, _: Finding, place: TimelinePlace) -> _Interval | None:
    rows = waiting_copies(trace).select(pl.col("wait_ns").alias("start_ns"), "end_ns", "process_id", "thread_id")
    return _longest(trace, rows, place.label, _of_thread("api"))


def _api_call(trace: TraceView, _: Finding, place: TimelinePlace) -> _Interval | None:
    """Return the longest call of some kinds."""
    calls = trace.api_calls(*cast("tuple[ApiKind, ...]", place.keys))
    return _longest(trace, calls, place.label, _of_thread("api"))


def _phase(trace: TraceView, _: Finding, place: TimelinePlace) -> _Interval | None:
    """Return the longest phase of some kinds, in the whole run."""
    phases = trace.frame("phases", "start_ns", end_ns(), "process_id", pl.col("kind").cast(pl.String))
    own = phases.filter(pl.col("kind").is_in(place.keys))
    if not own.height:
        return None
    longest = (own["end_ns"] - own["start_ns"]).arg_max() or 0
    start, end, process = own.select("start_ns", "end_ns", "process_id").row(longest)
    return _Interval(start, end, process, f"phases-{process}", place.label)


def _run_part(trace: TraceView, _: Finding, place: TimelinePlace) -> _Interval | None:
    """Return the longest interval of some parts of the training process's run; a ``loop_part`` lies in its loop."""
    run = run_parts(trace)
    if run is None:
        return None
    time = union_all(run.times[part] for part in place.keys if part in run.times)
    time = time.intersect(run.loop) if place.finder == "loop_part" else time
    return _longest_interval(time, run.process_id, f"run-{run.process_id}", place.label)


def _largest_operation(trace: TraceView, finding: Finding, place: TimelinePlace) -> _Interval | None:
    """Return the longest call of the operation that the finding names as the largest."""
    name = next((fact.value for fact in finding.evidence if fact.key == "largest"), None)
    texts = trace.host_names["name"].to_list()
    meant = np.array([name in {text, plain_name(text)} for text in texts], bool)
    if not meant.any():
        return None
    ops = trace.frame("host_ops", "start_ns", "dur_ns", "process_id", "thread_id")
    rows = np.flatnonzero(meant[trace.host_name_rows])
    return _longest(trace, taken(ops, rows).with_columns(end_ns()), f"{place.label}, {name}", _of_thread("ops"))


def _sampled(trace: TraceView, _: Finding, place: TimelinePlace) -> _Interval | None:
    """Return the longest interval of samples in which a training thread does one of some kinds of work."""
    threads = {training_thread(trace, process) for process in trace.ranks}
    rows = sampled_stacks(trace).filter(pl.col("kind").is_in(place.keys) & pl.col("thread_id").is_in(list(threads)))
    return _longest(trace, rows, place.label, _of_thread("stacks"))


def _straggler(trace: TraceView, finding: Finding, place: TimelinePlace) -> _Interval | None:
    """Return the slowest step of the rank that the finding names."""
    rank = next((fact.value for fact in finding.evidence if fact.key == "rank"), None)
    process = next((process for process, number in rank_numbers(trace).items() if number == rank), None)
    if process is None:
        return None
    steps = training_steps(trace).steady.filter(pl.col("process_id") == process)
    return _longest(trace, steps, place.label.format(rank=rank), _steps)


def _uneven_step(trace: TraceView, _: Finding, place: TimelinePlace) -> _Interval | None:
    """Return the longest instance of the step whose duration differs most between ranks."""
    steps = training_steps(trace).steady.with_columns((pl.col("end_ns") - pl.col("start_ns")).alias("dur_ns"))
    widest = steps.with_columns((pl.col("dur_ns").max() - pl.col("dur_ns").min()).over("step").alias("spread"))
    if not widest.height:
        return None
    step = widest["step"][int(widest["spread"].arg_max() or 0)]
    return _longest(trace, steps.filter(pl.col("step") == step), place.label, _steps)


def _steps(row: dict[str, object]) -> str:
    return f"steps-{row['process_id']}"


def _late_collective(trace: TraceView, _: Finding, place: TimelinePlace) -> _Interval | None:
    """Return the longest wait of a rank in a collective for the last one."""
    arrivals = collective_skew(trace, RanksAnalysis().tolerance).arrivals if len(rank_numbers(trace)) > 1 else None
    if arrivals is None or not arrivals.height:
        return None
    waits = arrivals.select("process_id", "start_ns", (pl.col("start_ns") + pl.col("wait_ns")).alias("end_ns"))
    return _longest(trace, waits, place.label, lambda row: f"collectives-{row['process_id']}")


def _memory_peak(trace: TraceView, _: Finding, place: TimelinePlace) -> _Interval | None:
    """Return an interval around the moment of most memory in use of a pool."""
    events = trace.frame("memory_events", "start_ns", "process_id", "in_use_bytes").drop_nulls("in_use_bytes")
    if not events.height:
        return None
    at = int(events["in_use_bytes"].arg_max() or 0)
    moment, around = int(events["start_ns"][at]), max(trace.span_ns // 100, 1)
    return _Interval(max(moment - around, 0), moment + around, int(events["process_id"][at]), "", place.label)


def _input(trace: TraceView, finding: Finding, place: TimelinePlace) -> _Interval | None:
    """Return the longest wait for input; if there is none, the longest copy of input."""
    found = _idle_class(trace, finding, place)
    return found or _longest_of_ranks(trace, "the longest copy of input", attrgetter("input_copies"))


FINDERS: dict[Finder, Callable[[TraceView, Finding, TimelinePlace], _Interval | None]] = {
    "api_call": _api_call,
    "full_precision_kernel": _full_precision_kernel,
    "idle_class": _idle_class,
    "input": _input,
    "largest_operation": _largest_operation,
    "late_collective": _late_collective,
    "layout_kernel": _layout_kernel,
    "loop_part": _run_part,
    "memory_peak": _memory_peak,
    "pageable_copy": _pageable_copy,
    "phase": _phase,
    "run_part": _run_part,
    "sampled": _sampled,
    "small_grid": _small_grid,
    "straggler": _straggler,
    "uneven_step": _uneven_step,
    "waiting_copy": _waiting_copy,
}
"""Functions that find a place, by the name that records give."""


def timeline_and_places(
    trace: TraceView, findings: Sequence[Finding], events: int | None = None, start: int = 0
) -> tuple[Timeline | None, tuple[Place, ...]]:
    """Draw the timeline of a trace, and find the places of its findings.

    Args:
        trace: The trace.
        findings: Findings of the trace.
        events: Events that the timeline may have; ``None`` for :data:`MOST_EVENTS`, 0 for no timeline and no places.
        start: Start of the trace on the clock of the file that contains it. Both results use that clock.
    """
    if events == 0:
        return None, ()
    found = places(trace, findings)
    shown = timeline(trace, MOST_EVENTS if events is None else events, found)
    if not shown.lanes and not shown.curves:  # a summary has no events
        return None, ()
    known = {lane.key for lane in shown.lanes}
    found = tuple(place if place.lane in known else replace(place, lane="") for place in found)
    return moved(shown, start), tuple(
        replace(place, start_ns=place.start_ns + start, end_ns=place.end_ns + start) for place in found
    )


def moved(shown: Timeline, by: int) -> Timeline:
    """Shift a timeline by this many nanoseconds."""
    if not by:
        return shown
    return replace(
        shown,
        start_ns=shown.start_ns + by,
        end_ns=shown.end_ns + by,
        lanes=tuple(
            replace(lane, rows=tuple(replace(row, starts=row.starts + by) for row in lane.rows)) for lane in shown.lanes
        ),
        curves=tuple(replace(curve, times=curve.times + by) for curve in shown.curves),
        details=tuple(replace(one, start_ns=one.start_ns + by, end_ns=one.end_ns + by) for one in shown.details),
    )
