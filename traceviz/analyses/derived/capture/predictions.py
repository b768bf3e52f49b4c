"""The step time without a cause, as an interval: what a replay of the recorded dependencies proves, and what may be.

The long end keeps every delay that no dependency explains, and every wait but that for the cause. The short end is the
step without the exclusive time of the cause, or what the replay gives if the work that the cause launches vanishes as
well, if that is shorter. What no dependency bounds widens it: waits in collectives whose ranks cannot be matched, and
cores that parts of a program without a device share.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from traceviz.analyses.derived.calls.short_names import shortened
from traceviz.analyses.derived.capture.replay import KNOWN_LAUNCHES, Change, Graph, Mask, recorded_graph
from traceviz.analyses.derived.capture.speedups import Prediction
from traceviz.analyses.derived.causes.attribution import host_causes
from traceviz.analyses.derived.causes.kinds import HOST, KIND_LABELS, cause_name
from traceviz.analyses.derived.causes.parts import part_times
from traceviz.analyses.derived.device.work import communication_names
from traceviz.analyses.derived.frames import bounds, end_ns, having, intervals, of_process, unions_by
from traceviz.analyses.derived.host.classes import LABELS, host_classes
from traceviz.analyses.derived.host.copy_purposes import copy_purposes
from traceviz.analyses.derived.judged_time import steady_time
from traceviz.analyses.derived.recorded.losses import losses
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.derived.view import TraceView, once_per_trace
from traceviz.core.arrays.intervals import IntervalSet

INPUT = "input"
WORTH_PREDICTING = 0.03
"""Least share of steady step time of a cause that is predicted."""
MOST_CAUSES = 6
LEFT = 0.15
"""Part of the proven gain that the long end leaves: a repaired program still takes batches and reads results."""
LEFT_OF_COMMUNICATION = 0.25
"""The same of communication: ranks still exchange the same bytes, on a faster link or behind computing."""
ERRORS = 2
"""Standard errors of the mean step that the long end adds: another run has other steps."""
SLACK = 0.08
"""Share by which the short end is shorter: a cause other than a wait for input also slows what runs next to it. Of the
input, its copies do.
"""
WORTH_NAMING = 0.05
"""Events with at least this share of a part's time vanish with it."""
NO_GRAPH = "steps are those of the devices, or too little of what the host does was recorded"
NO_LAUNCHES = "the launches of device work were not recorded"
EVENTS_LOST = "events were lost"
NO_EVENTS = "no recorded event shows when it happened"
NO_GAIN = "no recorded dependency shows that the steps wait for it"


@once_per_trace
def predictions(trace: TraceView) -> tuple[Prediction, ...]:
    """Return what the steps would take without each of their largest causes, the largest possible gain first."""
    found = (predict(trace, key) for key in _causes(trace))
    known = [prediction for prediction in found if prediction is not None]
    return tuple(sorted(known, key=lambda found: (found.low_ns, found.high_ns, found.key)))


@once_per_trace
def _times(trace: TraceView) -> dict[str, int]:
    """Return the exclusive times of the causes: the parts, with the copies of input as part of the input."""
    times = dict(part_times(trace))
    copies = 0
    for rank, steady in steady_time(trace).items():
        classes = host_classes(trace)[rank]
        copies += classes.sets["copy_h2d"].intersect(classes.input_copies).intersect(steady).total
    if copies:
        times[INPUT] = times.get(INPUT, 0) + copies
        times["copy_h2d"] = times.get("copy_h2d", 0) - copies
    return times


def _causes(trace: TraceView) -> list[str]:
    """Return the parts of steady step time to predict for, the largest first."""
    times = _times(trace)
    whole = sum(times.values())
    if {"kernel_launch", "launch_queue"} <= times.keys():  # one change takes both away
        times = {**times, "kernel_launch": times["kernel_launch"] + times["launch_queue"]}
    others = {"device_compute", "unexplained", "launch_queue" if "kernel_launch" in times else ""}
    keys = [key for key in sorted(times, key=lambda key: (-times[key], key)) if key not in others]
    return [key for key in keys if times[key] >= WORTH_PREDICTING * whole][:MOST_CAUSES]


@once_per_trace
def predict(trace: TraceView, key: str) -> Prediction | None:
    """Return the prediction for a part of the judged time; ``None`` without steady steps, or if no event names it."""
    steps = training_steps(trace).steady.height
    if not steps:
        return None
    times = _times(trace)
    whole = sum(times.values())
    time_ns, label = times.get(key, 0), LABELS.get(key) or KIND_LABELS.get(key, key)
    cause = ""
    if key == HOST or key not in _OF_CLASS | _OF_CALLS.keys() | _OF_WORK.keys():
        causes = having(host_causes(trace), "part", key)
        named = causes.drop_nulls("cause").group_by("cause").agg(pl.col("time_ns").sum())
        if not named.height:
            return None
        cause, of_cause = named.sort("time_ns", "cause", descending=[True, False]).row(0)
        time_ns = of_cause
        label = shortened(cause.strip("# ")) if key == HOST else f"{label}: {shortened(cause.strip('# '))}"
    share = time_ns / whole
    graph = recorded_graph(trace)
    step_ns = whole / steps if graph is None else graph.step_ns
    reason = NO_GRAPH if graph is None else NO_LAUNCHES if graph.known < KNOWN_LAUNCHES else ""
    reason = EVENTS_LOST if not reason and losses(trace.tables) else reason
    change = _changes(trace, graph, key, cause) if graph is not None and not reason else None
    waits = 0 if key == "communication" or (graph is not None and graph.has_meetings) else times.get("communication", 0)
    left_ns = step_ns * (1 - share - waits / whole)
    low_ns, high_ns = left_ns, step_ns
    if change is not None and graph is not None:
        proven, possible = change
        scale = step_ns / max(1.0, float(graph.replay(Change()).mean()))
        steps_ns = scale * graph.replay(proven)
        least_ns = float(steps_ns.mean())
        left = LEFT_OF_COMMUNICATION if key == "communication" else LEFT
        high_ns = least_ns + left * max(0.0, step_ns - least_ns) + _error(steps_ns)
        high_ns = max(high_ns, step_ns * (1 - share))  # other gains follow from the replay, and are not proven
        steps_ns = scale * graph.replay(replace(possible, delays=True))
        low_ns = min(float(steps_ns.mean()), left_ns)
        if key in _LAUNCHING:  # fewer and larger kernels also spare the host what it does for each batch
            low_ns = min(low_ns, step_ns * times.get("device_compute", 0) / whole)
    elif not reason:
        reason = NO_EVENTS
    slack = SLACK * (1 - part_times(trace).get(INPUT, 0) / max(1, times.get(INPUT, 0))) if key == INPUT else SLACK
    low_ns, high_ns = max(0.0, (1 - slack) * min(low_ns, step_ns)), min(high_ns, step_ns)
    if not trace.rank_busy:
        low_ns = 0.0  # no event shows how much the rest of the program gains on the cores that it shares with the cause
    if not reason and high_ns >= step_ns:
        reason = NO_GAIN
    return Prediction(key, label, time_ns, share, step_ns, low_ns, max(low_ns, high_ns), reason)


def _error(steps_ns: npt.NDArray[np.floating[Any]]) -> float:
    """Return two standard errors of the mean: another run of the program has other steps."""
    return ERRORS * float(steps_ns.std(ddof=1)) / len(steps_ns) ** 0.5 if len(steps_ns) > 1 else 0.0


def _changes(trace: TraceView, graph: Graph, key: str, cause: str) -> tuple[Change, Change] | None:
    """Return what certainly vanishes with a cause and what may vanish; ``None`` if no event shows when it was."""
    if cause:
        host = _events_named(trace, graph, [cause])
        if not host:
            return None
        return Change(host), Change(host, gone=_launched_in(graph, host))
    if key in _OF_WORK:
        idle = _OF_WORK[key](trace, graph)
        return Change(idle=idle), Change(gone=idle)
    if key in {"synchronisation", "blocking_copy", "device_wait"}:
        return Change(waits=True, last_waits=True), Change(waits=True)
    if key in _LAUNCHING:
        host = _launching(trace, graph)
        return Change(host), Change(host)
    if key in _OF_CALLS:
        calls = trace.api_calls(*_OF_CALLS[key])  # type: ignore[arg-type]  # kinds of calls
        host = unions_by(calls, "process_id")
        return Change(host), Change(host)
    named = having(host_causes(trace), "part", key).drop_nulls("cause").group_by("cause").agg(pl.col("time_ns").sum())
    causes = named.filter(pl.col("time_ns") >= WORTH_NAMING * pl.col("time_ns").sum())["cause"].sort().to_list()
    events = {} if key == INPUT else _events_named(trace, graph, causes)
    host = {rank: _class_time(trace, rank, key).union(events.get(rank, IntervalSet.empty())) for rank in trace.ranks}
    if key == INPUT:
        copies = _input_copies(trace, graph)
        return Change(host, idle=copies), Change(host, gone=copies)
    return Change(host), Change(host)


def _class_time(trace: TraceView, rank: int, key: str) -> IntervalSet:
    """Return the host's time in a class, also while devices work."""
    classes = host_classes(trace)[rank]
    if key == INPUT:
        return classes.input_wait
    if key == "host_collective":
        return classes.host_communication
    if key in {"compilation", "first_launch"}:
        return classes.compilation
    return classes.profiler if key == "profiler" else classes.host_blocked


_LAUNCHING = frozenset({"kernel_launch", "launch_queue"})
_OF_CLASS = frozenset(
    {INPUT, "host_collective", "compilation", "first_launch", "profiler", "synchronisation", "blocking_copy"}
    | {"device_wait", *_LAUNCHING}
)
"""Parts whose time is a class of the host, or whose waits are dropped."""
_OF_CALLS = {"allocation": ("allocation", "pool_allocation"), "stream": ("stream",)}
"""Parts whose time are calls of the device's API, by the kinds of the calls."""


def _copies(*kinds: str) -> Callable[[TraceView, Graph], Mask]:
    """Return a function that marks copies of these kinds."""

    def find(_: TraceView, graph: Graph) -> Mask:
        return graph.work["kind"].is_in(kinds).fill_null(value=False).to_numpy()

    return find


def _communication(trace: TraceView, graph: Graph) -> Mask:
    return graph.work["name"].is_in(communication_names(trace)).fill_null(value=False).to_numpy()


def _other_device(_: TraceView, graph: Graph) -> Mask:
    is_copy = (graph.work["table"] == "memcpy") & ~graph.work["kind"].is_in(["h2d", "d2h"]).fill_null(value=False)
    return (is_copy | (graph.work["table"] == "memset")).to_numpy()


def _parameters(trace: TraceView, graph: Graph) -> Mask:
    return _of_purpose(trace, graph, "parameters")


_OF_WORK: dict[str, Callable[[TraceView, Graph], Mask]] = {
    "communication": _communication,
    "copy_h2d": _copies("h2d"),
    "copy_d2h": _copies("d2h"),
    "other_device": _other_device,
    "parameter_transfer": _parameters,
}
"""Parts that are device work, and which."""


def _input_copies(trace: TraceView, graph: Graph) -> Mask:
    return _of_purpose(trace, graph, "input")


def _of_purpose(trace: TraceView, graph: Graph, purpose: str) -> Mask:
    """Mark copies of a purpose, found by process and start."""
    copies = copy_purposes(trace).filter(pl.col("purpose") == purpose)
    known = set(copies.select("process_id", "start_ns").rows())
    is_copy = (graph.work["table"] == "memcpy").to_list()
    rows = graph.work.select("process_id", "start_ns").rows()
    return np.array([copies_ and row in known for copies_, row in zip(is_copy, rows, strict=True)], np.bool_)


def _launched_in(graph: Graph, host: dict[int, IntervalSet]) -> Mask:
    """Mark device work that is launched in some time of the host."""
    calls = graph.work["call_ns"].fill_null(-1).to_numpy()
    process = graph.work["process_id"].to_numpy()
    marked = np.zeros(calls.size, np.bool_)
    for rank, time in host.items():
        marked |= (process == rank) & time.contains(calls)
    return marked


def _launching(trace: TraceView, graph: Graph) -> dict[int, IntervalSet]:
    """Return the host's time in launches, with the operators around those of work shorter than the time between them.

    An operator counts if it launches nothing else.
    """
    calls, operators = trace.api_calls("launch", "async_copy"), trace.host_ops("op")
    work = graph.work.drop_nulls("call_ns").sort("call_ns")
    found = {}
    for rank in trace.ranks:
        own = of_process(work, rank)
        launched = own["call_ns"].to_numpy()
        short = launched[(own["end_ns"] - own["start_ns"]).to_numpy() < np.append(np.diff(launched), 0)]
        starts, ends = bounds(of_process(operators, rank))
        inside = [np.searchsorted(some, ends) - np.searchsorted(some, starts) for some in (launched, short)]
        alone = (inside[0] == 1) & (inside[1] == 1)
        found[rank] = intervals(of_process(calls, rank)).union(IntervalSet.of(starts[alone], ends[alone]))
    return found


def _events_named(trace: TraceView, graph: Graph, causes: list[str]) -> dict[int, IntervalSet]:
    """Return the time of the events that have the names of causes, on the threads of the graph, by process."""
    parts = []
    for table in ("nvtx", "host_ops", "os_calls", "cuda_api"):
        names = trace.frame(table, pl.col("name").unique().cast(pl.String)) if trace.tables.rows(table) else None
        if names is None:
            continue
        is_named = names.select(cause_name(pl.col("name")).is_in(causes).fill_null(value=False).alias("named"))["named"]
        if is_named.any():
            events = trace.frame(table, "start_ns", end_ns(), "process_id", "thread_id", pl.col("name").cast(pl.String))
            holds = pl.col("name").is_in(names["name"].filter(is_named).implode())
            events = events.filter(holds & pl.col("thread_id").is_in(graph.threads))
            parts.append(events.select("start_ns", "end_ns", "process_id"))
    return unions_by(pl.concat(parts), "process_id") if parts else {}
