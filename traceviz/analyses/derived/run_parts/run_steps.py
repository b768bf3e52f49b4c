"""Steps and epochs of the whole run as hooks in the program counted them: also those that no profiler recorded.

::

    program   |--imports--|s|s|s|s|s|s|~~~~|s|s|s|s|s|s|--------|
    epochs                |--- epoch 0 ----|-- epoch 1 ---|         ~ validation, which is no part of an epoch's time
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
from traceviz.analyses.derived.steps.counted import best_source
from traceviz.analyses.derived.steps.steps import warmup_steps
from traceviz.analyses.derived.view import TraceView, once_per_trace
from traceviz.core.arrays.intervals import Array, IntervalSet

EPOCH = r"(?i)^(?:train(?:ing)?[ _-]?)?epoch[ _:#=-]*\d*$"
"""Names of ranges and annotations of a whole epoch."""
EACH = 50_000
"""So many steps are noted one by one; later ones, ten or a hundred as one."""
ENOUGH = 10
"""With so many steps outside of what profilers recorded, those are the steps that are timed."""
_APART = ("validation", "saving", "recording")
"""Phases that are no part of an epoch, nor of a steady step."""
_IN_PROGRAM = ("torch", "tensorflow", "jax")
"""Profilers that cost time while they record."""


@dataclass(frozen=True, slots=True, eq=False)
class RunSteps:
    """Steps of the process that trains. Times in nanoseconds.

    Args:
        source: What counts them: ``keras``, ``torch_optimizer``.
        count: How many there were.
        begin_ns: When the first began.
        end_ns: When the last one ended.
        steady: Durations of those after the warm-up, in their order; without those in which something else happened.
        profiled: Whether ``steady`` are steps that a profiler recorded, since there are few others.
        learns: Whether what counts them sees that a model learns.
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
    """Steps throughout the run, by the source that is nearest to learning; ``None`` where hooks counted none."""
    main = main_process(trace)
    noted = None if main is None else having(main.phases, "kind", "step")
    if main is None or noted is None or not noted.height:
        return None
    source, only_repeats = best_source(noted)
    own = having(noted, "name", source)
    numbered = own["number"].max()
    count = own.height if numbered is None else max(int(numbered) + 1, own.height)  # type: ignore[arg-type]
    if only_repeats:
        own = _in_epochs(own, main)
        count = min(count, own.height)
    starts, ends = bounds(own)
    steady, is_profiled = _steady(trace, main, starts[:EACH], ends[:EACH])
    return RunSteps(source, count, int(starts[0]), int(ends.max()), steady, is_profiled, not only_repeats)


def _in_epochs(steps: pl.DataFrame, main: MainProcess) -> pl.DataFrame:
    """Those of ``steps`` that lie in epochs, where there are any: what repeats between them is an evaluation."""
    epochs = intervals(having(main.phases, "kind", "epoch"))
    starts, ends = bounds(steps)
    inside = steps.filter(pl.Series(2 * epochs.overlap(starts, ends) > ends - starts, dtype=pl.Boolean))
    return inside if inside.height else steps


def _steady(trace: TraceView, main: MainProcess, starts: Array, ends: Array) -> tuple[Array, bool]:
    """Durations of steady steps, and whether a profiler recorded them."""
    lasted = ends - starts
    beside = _apart(main).overlap(starts, ends) > 0
    kept = ~warmup_steps(lasted) & ~beside
    in_profile = _profiled(trace).overlap(starts, ends) > 0
    outside = kept & ~in_profile
    if outside.sum() >= ENOUGH:
        return lasted[outside], False
    return lasted[kept], bool((kept & in_profile).any())


def _apart(main: MainProcess) -> IntervalSet:
    return intervals(main.phases.filter(pl.col("kind").is_in(_APART)))


def _profiled(trace: TraceView) -> IntervalSet:
    """Time in which a profiler recorded from within the program."""
    windows = trace.frame("windows", "start_ns", end_ns(), pl.col("source").cast(pl.String))
    return intervals(windows.filter(pl.col("source").is_in(_IN_PROGRAM)))


@once_per_trace
def epoch_times(trace: TraceView) -> Array:
    """Durations of the epochs that ended, in their order, without validation, checkpoints and the recording itself.

    Without hooks, those that the program marks itself: as long as their marks.
    """
    main = main_process(trace)
    if main is None:
        starts, ends = bounds(_marked_epochs(trace))
        return np.asarray(ends - starts)
    starts, ends = bounds(having(main.phases, "kind", "epoch"))
    times: Array = ends - starts - _apart(main).overlap(starts, ends)
    return times[times > 0]


def _marked_epochs(trace: TraceView) -> pl.DataFrame:
    """Epochs that the program marks itself, of the first process that does: ``start_ns, end_ns``, by start."""
    columns = ("process_id", "thread_id", "start_ns", "end_ns")
    ranges = trace.ranges.filter(matches(pl.col("name"), EPOCH)).select(columns)
    marked = pl.concat([ranges, annotated_calls(trace, EPOCH).select(columns)])
    if not marked.height:
        return marked
    first = marked.sort("process_id", "thread_id").head(1)
    own = marked.join(first, on=("process_id", "thread_id"), how="semi").sort("start_ns", "end_ns")
    apart = pl.col("start_ns") >= pl.col("end_ns").cum_max().shift(1).fill_null(0)
    return own.filter(apart & (pl.col("end_ns") > pl.col("start_ns")))
