"""Steps as device work, if the host queues work long before its devices run it.

::

    host      |0|1|2|   3   |   4   |   5   |        steps as marked: the first only launch, the others wait for room
    device      |   0   |   1   |   2   |   3   |   4   |   5   |

Such a step lasts from the first work that it launched to the first work of the next step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from traceviz.analyses.derived.frames import bounds, having, knowing, parts_by
from traceviz.analyses.derived.steps.bounds import GAPS_MATTER, cut_beside_whole
from traceviz.analyses.derived.steps.engine import AHEAD_SHARE, launched_on_streams, work_of_steps
from traceviz.analyses.derived.steps.steps import Steps, StepSource, warmup_steps
from traceviz.analyses.derived.view import TraceView
from traceviz.core.arrays.intervals import Array

DIFFERENT = 0.05
"""If the mean steps of host and devices differ by less than this share, the marks give the length of a step."""


_ON_HOST: frozenset[StepSource] = frozenset({"trace", "nvtx", "annotation", "nvtx_cycle", "host_cycle"})
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
    on_host, on_device = (
        (float((each.steady["end_ns"] - each.steady["start_ns"]).to_numpy().mean()) if each.steady.height else 0.0)
        for each in (steps, timed)
    )
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
