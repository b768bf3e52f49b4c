"""The process whose run is divided into parts, its run time, its main thread, and its steps.

A loop may do other work than its steps: an evaluation every hundred steps, or new data for each epoch. If an optimizer
marks the steps, each lasts until the optimizer's next call, so this work lies in the step before it. The lines of the
function with the loop show it::

    line 50  train_step    ## ## ## ## ##               ## ## ## ##
    line 60  rebuild                       ##########
    steps                  |--|--|--|--|-----------------|--|--|--|
                             ordinary            long      ordinary
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from traceviz.analyses.derived.frames import end_ns, having
from traceviz.analyses.derived.stacks.kinds import with_purpose
from traceviz.analyses.derived.stacks.sampled import main_thread
from traceviz.analyses.derived.stacks.trees import Mask, StackTree
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.derived.steps.steps import warmup_steps
from traceviz.analyses.derived.view import TraceView, once_per_trace
from traceviz.core.arrays.intervals import Array

PROFILED = 0.9
"""If a profiler recorded this share of the run, its steps are taken as those of the run."""


@dataclass(frozen=True, slots=True)
class MainProcess:
    """Facts about the main process.

    Args:
        process_id: The process.
        processes: Number of the program's processes that trained.
        begin_ns: Start of its run.
        end_ns: End of its run.
        thread_id: Its main thread; ``None`` if no thread is known.
        steps: ``start_ns, end_ns, thread_id`` of all steps of the run, by start; they do not overlap.
        phases: ``start_ns, end_ns, thread_id, kind, name, number`` of its phases, by start.
        rows: ``start_ns, end_ns, samples, stack_id`` of the main thread's samples, by start.
    """

    process_id: int
    processes: int
    begin_ns: int
    end_ns: int
    thread_id: int | None
    steps: pl.DataFrame
    phases: pl.DataFrame
    rows: pl.DataFrame


@once_per_trace
def main_process(trace: TraceView) -> MainProcess | None:
    """Return the training process, from hooks or stack samples; ``None`` if there are neither.

    If several train, return the first of those with the most steps.
    """
    phases = _find_phases(trace)
    columns = ("start_ns", end_ns(), "process_id", "thread_id", "samples", "stack_id")
    stacks = trace.frame("stacks", *columns).sort("start_ns", "end_ns", maintain_order=True)
    # A profiler of devices that samples stacks saw its capture, not the run
    is_capture = trace.tables.run_facts().get("format") == "nsys"
    if not phases.height and (is_capture or not stacks.height):
        return None
    trained = having(phases, "kind", "step").group_by("process_id").len()
    trained = trained.sort("len", "process_id", descending=[True, False])
    if trained.height:
        process = int(trained["process_id"][0])
    else:  # one with device work, else the process that ran longest
        ran = pl.concat([part[["process_id", "start_ns", "end_ns"]] for part in (phases, stacks)])
        spans = ran.group_by("process_id").agg((pl.col("end_ns").max() - pl.col("start_ns").min()).alias("ran"))
        spans = spans.with_columns(pl.col("process_id").is_in(list(trace.rank_busy)).alias("works"))
        process = int(spans.sort("works", "ran", "process_id", descending=[True, True, False])["process_id"][0])
    own, sampled = having(phases, "process_id", process), having(stacks, "process_id", process)
    program = having(own, "kind", "program")  # shows start and end of the process; else its phases and samples do
    shown = pl.concat([part[["start_ns", "end_ns"]] for part in ([program] if program.height else [own, sampled])])
    begin, end = (int(moment) for moment in shown.select(pl.col("start_ns").min(), pl.col("end_ns").max()).row(0))
    steps = _find_steps(trace, own, process, end - begin)
    thread = main_thread(trace, process)
    of_thread = pl.col("thread_id") == (-1 if thread is None else thread)
    rows = sampled.filter(of_thread).drop("process_id", "thread_id")
    return MainProcess(process, max(trained.height, 1), begin, end, thread, steps, own.drop("process_id"), rows)


def _find_phases(trace: TraceView) -> pl.DataFrame:
    """Return the phases that ended, with text as text, by start."""
    texts = (pl.col(name).cast(pl.String) for name in ("kind", "name"))
    phases = trace.frame("phases", "start_ns", "dur_ns", end_ns(), "process_id", "thread_id", *texts, "number")
    if not phases.height:
        return phases.drop("dur_ns")
    return phases.filter(pl.col("dur_ns").is_not_null()).drop("dur_ns").sort("start_ns", "end_ns", maintain_order=True)


def _find_steps(trace: TraceView, phases: pl.DataFrame, process: int, ran_ns: int) -> pl.DataFrame:
    """Return the steps that hooks counted throughout the run, else those of a profile that covers the run."""
    columns = ("start_ns", "end_ns", "thread_id")
    steps = having(phases, "kind", "step").select(columns)
    if not steps.height and trace.captured_ns >= PROFILED * ran_ns:
        found = training_steps(trace)
        thread = pl.lit(found.thread_id.get(process), pl.Int32).alias("thread_id")
        steps = having(found.frame, "process_id", process).with_columns(thread).select(columns)
    before = np.maximum.accumulate(steps["end_ns"].to_numpy())
    starts = steps["start_ns"].to_numpy().copy()
    np.maximum(starts[1:], before[:-1], out=starts[1:])
    apart = steps.with_columns(pl.Series("start_ns", starts, pl.Int64))
    return apart.filter(pl.col("end_ns") > pl.col("start_ns"))


LONG = 3.0
"""A step of at least this many medians may contain other work, unless"""
MOST_LONG = 0.25
"""more than this share of the steps are so long: then there are two kinds of steps."""
RARE = 0.05
"""A line is not part of steps if its time in ordinary steps is below this share of its time in long steps. The latter
must be at least the time of an ordinary step."""
MIN_SAMPLES = 10
"""With fewer samples of steps, nothing is concluded."""


def find_occasional_work(main: MainProcess, tree: StackTree, places: Array) -> tuple[Mask, Array]:
    """Return samples of lines that the loop runs only occasionally.

    Args:
        main: The process.
        tree: All stacks.
        places: Row in ``tree`` of the stack of each row of ``main.rows``.

    Returns:
        A mask of the rows of ``main.rows`` that are such work within a step. Also the row in ``tree`` of the outermost
        line that ordinary steps do not reach, even between steps, or -1.
    """
    nothing = np.zeros(places.size, dtype=bool), np.full(places.size, -1)
    starts, ends = (main.steps[name].to_numpy() for name in ("start_ns", "end_ns"))
    if not starts.size or not places.size:
        return nothing
    rows = {name: main.rows[name].to_numpy() for name in ("start_ns", "end_ns", "samples")}
    middle, times = (rows["start_ns"] + rows["end_ns"]) // 2, rows["end_ns"] - rows["start_ns"]
    step = np.maximum(np.searchsorted(starts, middle, "right") - 1, 0)
    within = (middle >= starts[step]) & (middle < ends[step]) & (places >= 0)
    between = ~within & (middle >= starts[0]) & (middle < ends[-1]) & (places >= 0)
    lasting = ends - starts
    outlasts = (lasting > LONG * np.median(lasting)) & ~warmup_steps(lasting)
    is_long = np.asarray(outlasts & (outlasts.mean() <= MOST_LONG), dtype=bool)
    in_long, ordinary = within & is_long[step], within & ~is_long[step]
    if rows["samples"][ordinary].sum() < MIN_SAMPLES:
        return nothing
    usual = _inclusive_times(tree, places[ordinary], times[ordinary])
    lines = np.full(places.size, -1)
    for chosen, least in ((in_long, np.median(lasting)), (between, 1)):
        rare = _inclusive_times(tree, places[chosen], times[chosen])
        outermost = tree.outermost((rare >= least) & (usual <= RARE * rare))
        lines[chosen] = outermost[places[chosen]]
    return in_long & (lines >= 0), lines


LOOP_SHARE = 0.98
"""A line with this share of the steps encloses the loop."""
OF_LOOP = 0.05
"""A line below it with this share of the steps belongs to the loop."""


def find_early_loop(main: MainProcess, tree: StackTree, places: Array) -> Mask:
    """Return samples before the first counted step that lie in lines of the loop: its first steps were not counted.

    Hooks count from the first end of a step on, or, if they find an unknown loop in samples, from a later one.
    Start-up does not reach the lines into which the steps divide below the line that encloses them::

        main:50 > prepare:12                  start-up
        main:50 > train:30                    encloses the steps
                  train:30 > update:41        their lines, also before the first step that was counted
                  train:30 > batch:52
    """
    starts, ends = (main.steps[name].to_numpy() for name in ("start_ns", "end_ns"))
    nothing = np.zeros(places.size, dtype=bool)
    if not starts.size or not places.size:
        return nothing
    row_starts, row_ends = (main.rows[name].to_numpy() for name in ("start_ns", "end_ns"))
    middle = (row_starts + row_ends) // 2
    step = np.maximum(np.searchsorted(starts, middle, "right") - 1, 0)
    within = (middle >= starts[step]) & (middle < ends[step]) & (places >= 0)
    before = (middle < starts[0]) & (places >= 0)
    if main.rows["samples"].to_numpy()[within].sum() < MIN_SAMPLES or not before.any():
        return nothing
    total = _inclusive_times(tree, places[within], (row_ends - row_starts)[within])
    whole = int((row_ends - row_starts)[within].sum())
    enclosing = np.flatnonzero(total >= LOOP_SHARE * whole)
    loop = int(enclosing[-1]) if enclosing.size else -1  # callees have higher rows than their callers
    is_line = (tree.parent == loop) & (total >= OF_LOOP * whole)
    return np.asarray(before & (tree.around(is_line)[places] >= 0), dtype=bool)


def _inclusive_times(tree: StackTree, places: Array, times: Array) -> Array:
    """Return the time of each frame including its callees."""
    own = np.zeros(tree.parent.size, np.int64)
    np.add.at(own, places, times)
    return tree.totals(own)


SAVING = r"(?i)(?:^|[_.])(?:save|saving|checkpoint|checkpointing|ckpt|snapshot)(?:_|$)|(?:^|[_.])(?-i:save[A-Z])"
"""Functions of the program that write a checkpoint or a model."""
NOT_SAVING = r"(?i)load|restor|resum|read|forward|init|should|need|path|name|folder|dir(?:_|$)"
"""Exceptions: functions that read it or only decide its path. Activation checkpointing is a forward pass."""
VALIDATION = (
    r"(?i)(?:^|[_.])(?:eval|evaluate|evaluation|val|valid|validate|validation)(?:_(?:loop|epoch|one_epoch|step|run))?$"
    r"|(?:^|[_.])(?:eval|evaluate|validate)_|(?:^|[_.])run_(?:eval|val|test)|^test(?:_(?:loop|epoch|step|model))?$"
)
"""Functions of the program that evaluate the model."""

NAMELESS = r"<(?:listcomp|dictcomp|setcomp|genexpr|lambda)>$"
"""Functions without a name."""


def saves(tree: StackTree) -> Mask:
    """Return which frames write a checkpoint or a model."""
    texts = ["function", "file", "origin"]
    distinct = with_purpose(tree.frames.select(texts).unique())
    purposes = tree.frames.select(texts).join(distinct, on=texts, how="left", maintain_order="left")["purpose"]
    by_name = is_program() & _is("function", SAVING) & ~_is("function", NOT_SAVING)
    return _mask(tree, by_name | (purposes == "saving"))


def validates(tree: StackTree) -> Mask:
    """Return which frames evaluate the model."""
    return _mask(tree, is_program() & _is("function", VALIDATION))


def is_own(tree: StackTree) -> Mask:
    """Return which frames are functions of the program; nameless functions count as part of their enclosing one."""
    return _mask(tree, is_program() & ~_is("function", NAMELESS))


def is_program() -> pl.Expr:
    """Return whether a frame is the program's own."""
    return pl.col("origin") == "program"


def _is(text: str, pattern: str) -> pl.Expr:
    return pl.col(text).str.contains(pattern)


def _mask(tree: StackTree, expression: pl.Expr) -> Mask:
    return tree.frames.select(expression.fill_null(value=False).alias("is"))["is"].to_numpy()
