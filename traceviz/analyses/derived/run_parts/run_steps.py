"""Steps and epochs of the whole run, counted by hooks in the program, including those that no profiler recorded.

::

    program   |--imports--|s|s|s|s|s|s|~~~~|s|s|s|s|s|s|--------|
    epochs                |--- epoch 0 ----|-- epoch 1 ---|         ~ validation, excluded from an epoch's time
    profiled                  |===|                                 steps cost more in it
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from traceviz.analyses.derived.calls.host_calls import annotated_calls
from traceviz.analyses.derived.frames import bounds, end_ns, having, intervals
from traceviz.analyses.derived.patterns import matches
from traceviz.analyses.derived.run_parts.main_process import MainProcess, main_process
from traceviz.analyses.derived.steps.framework import best_source
from traceviz.analyses.derived.steps.steps import warmup_steps
from traceviz.analyses.derived.view import TraceView, once_per_trace
from traceviz.core.arrays.intervals import Array, IntervalSet

EPOCH = r"(?i)^(?:train(?:ing)?[ _-]?)?epoch[ _:#=-]*\d*$"
"""Names of ranges and annotations of a whole epoch."""
EACH = 50_000
"""Number of steps recorded one by one; later records stand for ten or a hundred steps."""
ENOUGH = 10
"""Minimum number of unprofiled steps; with fewer, profiled steps are timed as well."""
_APART = ("validation", "saving", "recording")
"""Phases that do not belong to an epoch, or to a steady step."""
_IN_PROGRAM = ("torch", "tensorflow", "jax")
"""Profilers that slow the program down while they record."""


@dataclass(frozen=True, slots=True, eq=False)
class RunSteps:
    """Steps of the training process. Times in nanoseconds.

    Args:
        source: The source that counts them: ``keras``, ``torch_optimizer``.
        count: Number of steps.
        begin_ns: Start of the first step.
        end_ns: End of the last step.
        steady: Durations of the steps after the warm-up, in order; steps that overlap other phases are excluded.
        profiled: True if ``steady`` includes steps that a profiler recorded, since there are few others.
        learns: True if the source shows that a model learns.
    """

    source: str
    count: int
    begin_ns: int
    end_ns: int
    steady: Array
    profiled: bool
    learns: bool


@once_per_trace
def run_steps(trace: TraceView) -> RunSteps | None:
    """Return the steps of the run, by the source that is nearest to learning; ``None`` if hooks counted none."""
    main = main_process(trace)
    noted = None if main is None else having(main.phases, "kind", "step")
    if main is None or noted is None or not noted.height:
        return None
    source, only_repeats = best_source(noted)
    own = having(noted, "name", source)
    numbered = own["number"].max()
    count = own.height if numbered is None else max(int(numbered) + 1, own.height)  # type: ignore[arg-type]
    starts, ends = bounds(own)
    if only_repeats:  # steps between epochs belong to an evaluation
        in_epochs = 2 * intervals(having(main.phases, "kind", "epoch")).overlap(starts, ends) > ends - starts
        if in_epochs.any():
            starts, ends = starts[in_epochs], ends[in_epochs]
        count = min(count, starts.size)
    begin, end = int(starts[0]), int(ends.max())
    starts, ends = starts[:EACH], ends[:EACH]
    lasted = ends - starts
    kept = ~warmup_steps(lasted) & (_time_outside_epochs(main).overlap(starts, ends) == 0)
    windows = trace.frame("windows", "start_ns", end_ns(), pl.col("source").cast(pl.String))
    in_profile = intervals(windows.filter(pl.col("source").is_in(_IN_PROGRAM))).overlap(starts, ends) > 0
    outside = kept & ~in_profile
    if outside.sum() >= ENOUGH:
        return RunSteps(source, count, begin, end, lasted[outside], profiled=False, learns=not only_repeats)
    is_profiled = bool((kept & in_profile).any())
    return RunSteps(source, count, begin, end, lasted[kept], is_profiled, not only_repeats)


def _time_outside_epochs(main: MainProcess) -> IntervalSet:
    return intervals(main.phases.filter(pl.col("kind").is_in(_APART)))


@once_per_trace
def epoch_times(trace: TraceView) -> Array:
    """Return durations of the epochs that ended, in order, without validation, checkpoints and the recording itself.

    Without hooks, use the epochs that the program marks itself, with the duration of their marks.
    """
    main = main_process(trace)
    if main is None:
        starts, ends = bounds(_find_marked_epochs(trace))
        return np.asarray(ends - starts)
    starts, ends = bounds(having(main.phases, "kind", "epoch"))
    times: Array = ends - starts - _time_outside_epochs(main).overlap(starts, ends)
    return times[times > 0]


def _find_marked_epochs(trace: TraceView) -> pl.DataFrame:
    """Return the epochs that the program marks, of the first process with marks: ``start_ns, end_ns``, by start."""
    columns = ("process_id", "thread_id", "start_ns", "end_ns")
    ranges = trace.ranges.filter(matches(pl.col("name"), EPOCH)).select(columns)
    marked = pl.concat([ranges, annotated_calls(trace, EPOCH).select(columns)])
    if not marked.height:
        return marked
    first = marked.sort("process_id", "thread_id").head(1)
    own = marked.join(first, on=("process_id", "thread_id"), how="semi").sort("start_ns", "end_ns")
    apart = pl.col("start_ns") >= pl.col("end_ns").cum_max().shift(1).fill_null(0)
    return own.filter(apart & (pl.col("end_ns") > pl.col("start_ns")))
