"""The time that findings are judged on: steady steps, else the time from the first to the last device work."""

from __future__ import annotations

from traceviz.analyses.derived.frames import unions_by
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.derived.view import TraceView, once_per_trace
from traceviz.core.arrays.intervals import IntervalSet
from traceviz.report import STEADY_STEP_TIME


@once_per_trace
def steady_time(trace: TraceView) -> dict[int, IntervalSet]:
    """Return the union of the steady steps of each process that has steps, by ``process_id``."""
    return unions_by(training_steps(trace).steady, "process_id")


@once_per_trace
def host_time(trace: TraceView) -> dict[int, IntervalSet]:
    """Return host time in steady steps, by ``process_id``: :func:`steady_time`, unless steps are device work.

    If the host queues work early, its activity during the device work of a step belongs to a later step::

        host    |--0--|--1--|--2--|
        device      |--- 0 ---|--- 1 ---|--- 2 ---|      steps
    """
    steps = training_steps(trace)
    if steps.host is None:
        return steady_time(trace)
    return unions_by(steps.host.join(steps.steady, on=("process_id", "step"), how="semi"), "process_id")


def judged_time(trace: TraceView, process_id: int) -> IntervalSet:
    """Return the time that findings are judged on: steady steps, else from the first to the last device work.

    The latter is limited to the time in which devices can be seen to idle (:attr:`TraceView.device_windows`). If the
    trace has steady steps, a process without any is not judged, so that :func:`judged_words` applies to all processes.
    """
    if steady := steady_time(trace):
        return steady.get(process_id, IntervalSet.empty())
    return IntervalSet.span(*trace.rank_extents.get(process_id, (0, 0))).clip(*trace.window_of(process_id))


def judged_words(trace: TraceView) -> str:
    """Return what :func:`judged_time` covers, as text."""
    if steady_time(trace):
        return "steps of the run" if training_steps(trace).source == "counted" else STEADY_STEP_TIME
    if trace.rank_busy:
        return "time from first to last device work"
    return "captured time" if len(trace.ranks) <= 1 else f"captured time of {len(trace.ranks)} processes"


def within_sentence(words: str) -> str:
    """Return the judged time with its article: ``the captured time``; steady step time has none."""
    return words if words == STEADY_STEP_TIME else f"the {words}"
