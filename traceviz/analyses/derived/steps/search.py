"""Search for the training steps of a trace, and for the thread that runs them.

The searches run in order of trust (:mod:`traceviz.analyses.derived.steps.steps`); the first that finds steps decides.

If the host queues work long before its devices run it, steps are device work::

    host      |0|1|2|   3   |   4   |   5   |        steps as marked: the first only launch, the others wait for room
    device      |   0   |   1   |   2   |   3   |   4   |   5   |

Such a step lasts from the first work that it launched to the first work of the next step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from traceviz.analyses.derived.calls.host_calls import annotated_calls, likely_threads
from traceviz.analyses.derived.frames import bounds, end_ns, having, knowing, outermost, parts_by, unions_by
from traceviz.analyses.derived.launch.join import graph_name, unrecorded_time
from traceviz.analyses.derived.patterns import matches
from traceviz.analyses.derived.recorded.losses import is_damaged, losses
from traceviz.analyses.derived.steps.bounds import GAPS_MATTER, OTHER_WORK, Coverage, coverage, cut_beside_whole
from traceviz.analyses.derived.steps.engine import AHEAD_SHARE, launched_on_streams, serving_steps, work_of_steps
from traceviz.analyses.derived.steps.framework import (
    counted_steps,
    host_cycle_steps,
    module_cycle_steps,
    without_compilation,
)
from traceviz.analyses.derived.steps.layers import are_layers
from traceviz.analyses.derived.steps.passes import TAKE_NAME, UPDATE_NAME, pass_steps
from traceviz.analyses.derived.steps.steps import (
    INFERRED,
    NO_STEPS,
    STEP_NAME,
    Steps,
    StepSource,
    counted_range_steps,
    declared_steps,
    kernel_cycle_steps,
    named_steps,
    nvtx_cycle_steps,
    warmup_steps,
)
from traceviz.analyses.derived.view import TraceView, once_per_trace
from traceviz.core.arrays.intervals import Array, IntervalSet

DIFFERENT = 0.05
"""If the mean steps of host and devices differ by less than this share, the marks give the length of a step."""


_ON_HOST: frozenset[StepSource] = frozenset({"trace", "nvtx", "annotation", "nvtx_cycle", "passes", "host_cycle"})
"""Sources whose steps the host marks. Steps from devices among them have no thread."""


@dataclass(frozen=True, slots=True)
class _OnDevice:
    """Steps of a process on its devices. ``late`` is the share of each step's work that runs after its mark."""

    late: Array
    frame: pl.DataFrame


def as_devices_run(trace: TraceView, steps: Steps) -> Steps:
    """Return the steps as devices run them, with those of the host; unchanged if the host does not queue work early.

    They also stay unchanged in three cases: both kinds of steps last equally long on average, device work does not
    follow the steps one by one, or step numbers are not unique. The option ``step_time`` may require either kind.
    """
    wanted = trace.options.step_time
    if wanted == "host" or steps.source not in _ON_HOST or set(steps.frame["process_id"]) - set(steps.thread_id):
        return steps
    if steps.frame[["process_id", "step"]].is_duplicated().any():
        return steps
    work = launched_on_streams(trace)
    parts = [
        _on_device(part, having(work, "process_id", process))
        for process, part in parts_by(steps.frame, "process_id").items()
    ]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return steps
    if wanted == "auto" and np.median(np.concatenate([part.late for part in known])) < AHEAD_SHARE:
        return steps
    frame = pl.concat([part.frame for part in known]).with_columns(cut_beside_whole())
    timed = replace(steps, frame=frame, host=steps.frame[["process_id", "step", "start_ns", "end_ns"]])
    lasted = ((each.steady["end_ns"] - each.steady["start_ns"]).to_numpy() for each in (steps, timed))
    on_host, on_device = (float(each.mean()) if each.size else 0.0 for each in lasted)
    return timed if wanted == "device" or abs(on_device - on_host) >= DIFFERENT * max(on_device, on_host) else steps


def _on_device(steps: pl.DataFrame, work: pl.DataFrame) -> _OnDevice | None:
    """Return the steps of one process; ``None`` if a step launched nothing, or its work is not in order."""
    starts, ends = bounds(steps)
    extents = knowing(work_of_steps(starts, ends, work), "work_ns").sort("step")
    if extents.height < starts.size:
        return None
    first, last = extents["work_ns"].to_numpy(), extents["finish_ns"].to_numpy()
    if (np.diff(first) <= 0).any():
        return None
    late = (extents["late_ns"] / extents["busy_ns"]).to_numpy()
    follows = np.append(ends[:-1] == starts[1:], False)
    until = np.where(follows, np.append(first[1:], 0), last)
    idle = np.maximum(until - last, 0)[follows].sum()
    matters = idle > GAPS_MATTER * (until - first)[follows].sum()
    frame = steps.with_columns(
        pl.Series("start_ns", first),
        pl.Series("end_ns", np.maximum(until, first + 1)),
        pl.Series("warmup", warmup_steps(until - first)),
        pl.Series("cut", ~follows & matters),
    )
    return _OnDevice(late, frame)


STEP_ANNOTATION = STEP_NAME.replace("#+", r"[\d#]+")
"""Names of annotations that may be steps: those of ``STEP_NAME`` with their running numbers."""

NO_THREAD = -1
"""Value for a thread id if a process has no host events."""


@once_per_trace
def training_steps(trace: TraceView) -> Steps:
    """Return training steps of the ranks by which the trace is judged.

    Inferred steps that cover little are excluded; only the section on steps lists them (:func:`slight_steps`).
    """
    return NO_STEPS if slight_steps(trace) else found_steps(trace)


def slight_steps(trace: TraceView) -> Steps | None:
    """Return inferred steps that cover too little to judge the trace by them, or ``None``."""
    steps, covered = found_steps(trace), covered_by_steps(trace)
    return steps if covered is not None and not covered.is_enough else None


@once_per_trace
def covered_by_steps(trace: TraceView) -> Coverage | None:
    """Return the coverage of inferred steps; ``None`` if steps are marked, or none were found."""
    steps = found_steps(trace)
    return coverage(trace, steps.frame, _find_other_work(trace)) if steps.source in INFERRED else None


@once_per_trace
def found_steps(trace: TraceView) -> Steps:
    """Return training steps of the ranks: declared, else inferred, else none.

    Excluded are steps of processes without device work (a loader, a launcher), whose time is not judged, and steps at
    the edges of a time window, which may be fragments. So are steps with missing (:func:`count_lost_steps`) or mostly
    unknown (:func:`count_unseen_steps`) device work, and steps not within :attr:`TraceView.recorded_window`. First
    steps that compile are warm-up. If the host queues work early, steps are those of the devices.
    """
    steps = _find_all_steps(trace)
    whole = _is_of_rank(trace) & ~_is_lost(trace) & ~_is_unseen(trace)
    if trace.is_window:
        whole &= _is_uncut(trace)
    if trace.rank_busy:
        begin, end = trace.recorded_window
        whole &= (pl.col("start_ns") >= begin) & (pl.col("end_ns") <= end)
    frame = steps.frame.filter(whole).with_columns(cut_beside_whole())
    if not frame.height:
        return NO_STEPS
    times = ("start_ns", "end_ns", "process_id")
    compiling = pl.concat([trace.host_ops("compile").select(times), trace.graph_captures.select(times)])
    threads = {process: thread for process, thread in steps.thread_id.items() if process in trace.ranks}
    timed = as_devices_run(trace, replace(steps, frame=frame, thread_id=threads))
    return replace(timed, frame=without_compilation(timed.frame, unions_by(compiling, "process_id")))


def count_cut_steps(trace: TraceView) -> int:
    """Return the number of steps at the edges of a time window, which :func:`found_steps` excludes as fragments."""
    if not trace.is_window:
        return 0
    return _find_all_steps(trace).frame.filter(_is_of_rank(trace) & ~_is_uncut(trace)).height


def count_lost_steps(trace: TraceView) -> int:
    """Return the number of steps after the last recorded device work, if events were lost.

    Their devices seem idle but may not have been. The step with the last work counts as lost as well.
    """
    return _find_all_steps(trace).frame.filter(_is_of_rank(trace) & _is_lost(trace)).height


def count_unseen_steps(trace: TraceView) -> int:
    """Return the number of steps outside :attr:`TraceView.device_windows`, with missing or mostly unknown work."""
    return _find_unseen_steps(trace).height


def time_of_unseen_steps(trace: TraceView) -> dict[int, IntervalSet]:
    """Return the time of the steps of :func:`count_unseen_steps`, by ``process_id``."""
    frame = _find_unseen_steps(trace)
    return unions_by(frame, "process_id") if frame.height else {}


@once_per_trace
def _find_unseen_steps(trace: TraceView) -> pl.DataFrame:
    return _find_all_steps(trace).frame.filter(_is_of_rank(trace) & ~_is_lost(trace) & _is_unseen(trace))


def training_thread(trace: TraceView, process_id: int) -> int:
    """Return the thread of the training loop: the one with step markers, or the likeliest; else :data:`NO_THREAD`."""
    marked = training_steps(trace).thread_id.get(process_id)
    return likely_threads(trace).get(process_id, NO_THREAD) if marked is None else marked


def _is_of_rank(trace: TraceView) -> pl.Expr:
    return pl.col("process_id").is_in(trace.ranks)


def _is_uncut(trace: TraceView) -> pl.Expr:
    return (pl.col("start_ns") > 0) & (pl.col("end_ns") < trace.span_ns)


def _is_lost(trace: TraceView) -> pl.Expr:
    """Return whether a step belongs to :func:`count_lost_steps`.

    If no step would be left, none does, unless the file is truncated: a profiler drops single events, but a truncated
    file lacks all later device work.
    """
    nothing = pl.lit(value=False)
    if not trace.rank_busy or not losses(trace.tables):
        return nothing
    last = {rank: int(busy.ends[-1]) for rank, busy in trace.rank_busy.items() if len(busy)}
    until = pl.col("process_id").replace_strict(last, default=None, return_dtype=pl.Int64)
    lost = (pl.col("end_ns") > until).fill_null(value=False)
    steps = _find_all_steps(trace).frame.filter(_is_of_rank(trace))
    return lost if steps.filter(~lost).height or is_damaged(trace.tables) else nothing


LOST_SHARE = 0.02
"""Steps with this share of lost device work are not judged: the device seems to idle for as long."""


def _is_unseen(trace: TraceView) -> pl.Expr:
    """Return whether a step belongs to :func:`count_unseen_steps`: launches without work, or mostly unknown work."""
    unseen = pl.lit(value=False)
    steps = _find_all_steps(trace).frame
    for process, lost in unrecorded_time(trace).items():
        starts, ends = bounds(steps)
        is_known = lost.overlap(starts, ends) < LOST_SHARE * (ends - starts)
        unseen |= (pl.col("process_id") == process) & ~pl.lit(pl.Series(is_known, dtype=pl.Boolean))
    for process, window in trace.device_windows.items():
        own = pl.col("process_id") == process
        half = (pl.col("start_ns") + pl.col("end_ns")) // 2
        out = half < window.begin_ns
        if window.lacks_first:
            out |= pl.col("start_ns") < window.begin_ns
        if window.lacks_last:
            out |= pl.col("end_ns") > window.end_ns
        unseen |= own & out
    return unseen


@once_per_trace
def _find_all_steps(trace: TraceView) -> Steps:
    """Return steps of all processes. If the user names a marker, only ranges and annotations of that name count."""
    searches = _SEARCHES_BY_NAME if trace.options.step_marker else _SEARCHES
    for search in searches:
        steps = search(trace)
        # Repeats on the host, or of launches, within one pass over a model are its layers
        may_be_layers = steps.source in {"nvtx_cycle", "host_cycle", "kernel_cycle"}
        if steps.source != "none" and not (may_be_layers and are_layers(trace, steps)):
            return steps
    return NO_STEPS


def _find_declared(trace: TraceView) -> Steps:
    if not trace.tables.rows("steps"):
        return NO_STEPS
    return declared_steps(trace.tables.scan("steps").collect(engine=trace.tables.engine), _find_other_work(trace))


def _find_named_ranges(trace: TraceView) -> Steps:
    if not trace.ranges.height:
        return NO_STEPS
    return named_steps(trace.ranges, trace.options.step_marker, _find_other_work(trace))


def _find_named_annotations(trace: TraceView) -> Steps:
    marker = trace.options.step_marker
    candidates = annotated_calls(trace, marker or STEP_ANNOTATION)
    return named_steps(candidates, marker, _find_other_work(trace), "annotation") if candidates.height else NO_STEPS


@once_per_trace
def _find_other_work(trace: TraceView) -> pl.DataFrame:
    """Return ranges and annotations that claim time between steps: ``process_id, thread_id, start_ns, end_ns``."""
    columns = ("process_id", "thread_id", "start_ns", "end_ns")
    ranges = trace.ranges.filter(matches(pl.col("name"), OTHER_WORK)).select(columns)
    return pl.concat([ranges, annotated_calls(trace, OTHER_WORK).select(columns)])


def _find_counted_ranges(trace: TraceView) -> Steps:
    steps = counted_range_steps(trace.ranges, trace.rank_extents) if trace.ranges.height else NO_STEPS
    return NO_STEPS if steps.frame.height and are_layers(trace, steps) else steps


def _find_range_cycle(trace: TraceView) -> Steps:
    """Return the cycle of ranges. If threads mark batches or updates, others repeat the layers of their passes."""
    ranges, keys = trace.ranges, ["process_id", "thread_id"]
    marked = ranges.filter(matches(pl.col("name"), f"{UPDATE_NAME}|{TAKE_NAME}")).select(keys).unique()
    if marked.height:
        others = ranges.join(marked.select("process_id"), on="process_id", how="anti")
        own = ranges.join(marked, on=keys, how="semi")
        ranges = pl.concat([others, own]).sort("start_ns", maintain_order=True)
    return nvtx_cycle_steps(ranges, trace.rank_extents) if ranges.height else NO_STEPS


def _find_module_cycle(trace: TraceView) -> Steps:
    if "device_ops" not in trace.tables:
        return NO_STEPS
    scan = trace.tables.scan("device_ops").filter(pl.col("kind") == "module")
    modules = scan.select("process_id", "device_id", "start_ns", end_ns(), "name").collect(engine=trace.tables.engine)
    return module_cycle_steps(modules.sort("start_ns"), _find_other_work(trace)) if modules.height else NO_STEPS


def _find_host_cycle(trace: TraceView) -> Steps:
    if "host_ops" not in trace.tables:
        return NO_STEPS
    threads = [thread for process, thread in likely_threads(trace).items() if process in trace.rank_extents]
    scan = trace.tables.scan("host_ops").filter(pl.col("thread_id").is_in(threads) & (pl.col("dur_ns") > 0))
    scan = scan.filter(pl.col("category") != "python")
    operations = scan.select("process_id", "thread_id", "start_ns", end_ns(), "name").collect(
        engine=trace.tables.engine
    )
    outer = outermost(operations.sort("thread_id", "start_ns", "end_ns", descending=[False, False, True]))
    if not outer.height:
        return NO_STEPS
    calls = outer.with_columns(pl.col("name").cast(pl.String)).sort("process_id", "start_ns")
    return host_cycle_steps(calls, trace.rank_extents)


def _find_kernel_cycle(trace: TraceView) -> Steps:
    names = trace.frame("kernels", "name")["name"]
    kernels = trace.kernel_times.select("process_id", "start_ns", "end_ns").with_columns(names)
    if trace.tables.rows("graphs"):
        graphs = trace.frame("graphs", "process_id", "start_ns", end_ns(), graph_name())
        kernels = kernels.with_columns(pl.col("name").cast(pl.String))
        kernels = pl.concat([kernels, graphs]).sort("start_ns", maintain_order=True)
    if not kernels.height:
        return NO_STEPS
    return kernel_cycle_steps(kernels)


_SEARCHES_BY_NAME: tuple[Callable[[TraceView], Steps], ...] = (_find_named_ranges, _find_named_annotations)
_SEARCHES: tuple[Callable[[TraceView], Steps], ...] = (
    serving_steps,
    _find_declared,
    *_SEARCHES_BY_NAME,
    _find_counted_ranges,
    _find_range_cycle,
    _find_module_cycle,
    counted_steps,
    pass_steps,
    _find_host_cycle,
    _find_kernel_cycle,
)
