"""Steps from the marks of a loop's passes: batches taken from a loader, and updates by an optimizer.

A pass takes a batch, computes, and usually updates the model. Passes without an update evaluate or apply it::

    thread   |take|----compute----|update|take|----compute----|update|
             |---------- step 0 ---------|---------- step 1 ---------|

If several batches are taken for an update (gradients accumulate), the step lasts from update to update, and its batches
are micro-batches. Batches that are taken in between belong to another loop (an evaluation). A single batch is a single
pass, which lasts until the end of the recorded work.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from traceviz.analyses.derived.calls.host_calls import annotated_calls, likely_threads
from traceviz.analyses.derived.frames import bounds, having
from traceviz.analyses.derived.patterns import matches
from traceviz.analyses.derived.steps.steps import MIN_STEPS, ProcessSteps, Steps, join_processes, mark_warmup
from traceviz.analyses.derived.view import TraceView, once_per_trace
from traceviz.core.arrays.intervals import Array

UPDATE_NAME = (
    r"(?i)^(?:optimizer\.step#|\W*(?:\[\w+\]\W*)*optimi[sz]er(?:[ ._]?(?:step|update))?(?:_with_closure)?[\W_\d]*$)"
)
"""Names of annotations and ranges in which an optimizer updates the model."""
TAKE_NAME = r"^enumerate\(\w*DataLoader\w*\)#|^_DataLoaderIter\w+$"
"""Names of operations in which the program takes a batch from a loader of PyTorch or PaddlePaddle."""
_COLUMNS = ("process_id", "thread_id", "start_ns", "end_ns", "name")


def pass_steps(trace: TraceView) -> Steps:
    """Return steps of the ranks from the marks of their passes; none if there are no marks, or too few."""
    parts = (_find_steps(trace, process) for process in trace.rank_extents)
    return join_processes("passes", [part for part in parts if part is not None], at_least=1)


@once_per_trace
def batches_per_update(trace: TraceView) -> int:
    """Return the usual number of batches that a step takes before its update; 1 if either is not recorded."""
    usual = [_count_batches(*_find_marks(trace, process)) for process in trace.rank_extents]
    return max(usual, default=1)


def _find_marks(trace: TraceView, process: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the batches that the training thread takes, and the updates of the optimizer with most of them."""
    takes, updates = (_find_named(trace, process, pattern) for pattern in (TAKE_NAME, UPDATE_NAME))
    threads = [*updates["thread_id"], *takes["thread_id"]]
    thread = likely_threads(trace).get(process)
    if threads and thread not in threads:
        thread = threads[0]
    takes, updates = (having(marks, "thread_id", thread) for marks in (takes, updates))
    if updates.height:
        usual = updates.group_by("name").agg(pl.len(), pl.col("start_ns").min())
        name = usual.sort("len", "start_ns", descending=[True, False])["name"][0]
        updates = having(updates, "name", name)
    return takes, updates


def _find_named(trace: TraceView, process: int, pattern: str) -> pl.DataFrame:
    """Return the annotations and ranges of a process whose names match, in order."""
    ranges = trace.ranges.filter(matches(pl.col("name"), pattern)).select(_COLUMNS)
    found = pl.concat([annotated_calls(trace, pattern).select(_COLUMNS), ranges])
    return having(found, "process_id", process).sort("start_ns")


def _count_batches(takes: pl.DataFrame, updates: pl.DataFrame) -> int:
    """Return the median number of batches between two updates, at least 1."""
    if updates.height < 2 or not takes.height:
        return 1
    between = np.diff(np.searchsorted(takes["start_ns"].to_numpy(), updates["start_ns"].to_numpy()))
    return max(1, int(np.median(between)))


def _find_steps(trace: TraceView, process: int) -> ProcessSteps | None:
    takes, updates = _find_marks(trace, process)
    taken = takes["start_ns"].to_numpy()
    if updates.height > 1 or not taken.size:
        if updates.height < (2 if taken.size else MIN_STEPS):
            return None
        marks = updates
        starts, ends = _bounds_by_updates(taken, updates, _count_batches(takes, updates))
    else:
        marks = takes
        last = max(int(trace.rank_extents[process][1]), int(bounds(takes)[1][-1]))
        starts, ends = (taken[:-1], taken[1:]) if taken.size > 1 else (taken, np.array([last]))
    holds = ends > starts
    frame = pl.DataFrame(
        {"start_ns": starts[holds], "end_ns": ends[holds], "process_id": process, "name": str(marks["name"][0])}
    ).with_columns(pl.int_range(pl.len()).alias("step"), pl.lit(value=False).alias("cut"))
    if not frame.height:
        return None
    return ProcessSteps(str(marks["name"][0]), 1.0, mark_warmup(frame), int(marks["thread_id"][0]))


def _bounds_by_updates(taken: Array, updates: pl.DataFrame, batches: int) -> tuple[Array, Array]:
    """Return starts and ends of the steps that end with an update, from the first of its batches on.

    Without batches, a step lasts from update to update. If the next step's batches follow at once, a step lasts until
    then, since the end of a loop's body belongs to it.
    """
    begins, ends = bounds(updates)
    before = np.searchsorted(taken, begins)
    since = np.concatenate([[0], before[:-1]])
    own = before - batches >= since  # all batches of the step were taken after the update before
    first = np.where(own, taken[np.clip(before - batches, 0, max(taken.size - 1, 0))] if taken.size else 0, 0)
    previous = np.concatenate([[-1], ends[:-1]])
    starts = np.where(own & (taken.size > 0), first, previous)
    whole = starts >= 0
    follows = np.append((before[1:] - since[1:] <= batches) & whole[1:], [False])
    until = np.where(follows, np.append(starts[1:], [0]), ends)
    return starts[whole], until[whole]
