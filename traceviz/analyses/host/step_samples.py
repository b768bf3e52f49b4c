"""Activities of the threads of the training process in its steps, row by row, with their purpose, for findings.

A profiler records few of the steps; samples are taken in all of them. If the hooks count the steps, all steps of the
run are judged, except warm-up. Steps that a profiler slowed down are left out if the others suffice::

    steps       |w|w|s|s|s|p|p|p|s|s|s|s|s|s|     w warm-up, p recorded by a profiler
    judged          -------      -------------
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from traceviz.analyses.derived.causes.sampling import find_ticks
from traceviz.analyses.derived.frames import bounds, having, intervals
from traceviz.analyses.derived.judged_time import judged_words, steady_time
from traceviz.analyses.derived.run_parts.main_process import main_process
from traceviz.analyses.derived.stacks.sampled import TEXTS, main_thread, seen, seen_rows, time_by_meaning, time_by_stack
from traceviz.analyses.derived.stacks.trees import stack_tree
from traceviz.analyses.derived.steps.steps import warmup_steps
from traceviz.analyses.derived.view import TraceView
from traceviz.core.arrays.intervals import IntervalSet

LEAST_SAMPLES = 10
"""Least number of samples of the steps."""
PYTHON_FRAME = r"\.py(:\d+)? "
"""A place in Python code; other frames are calls of compiled functions."""
RUNS = 0.01
"""A thread that uses less than this share of a processor in Python code does not run it, but waits in a call."""
_ALIKE = {"saving": "io", "sleep": "lock", "wait": "lock", "serialization": "python"}
"""Kinds that share one finding."""


@dataclass(frozen=True, slots=True, eq=False)
class StepSamples:
    """The threads of a process in its steps.

    Args:
        process_id: The process.
        main: The thread that runs the program's main code.
        within: The steps; if the process has a device, only their time in which it idles.
        step_ns: Duration of the steps; the time of the main thread's samples if they overlap and are longer.
        samples: Samples of the main thread in the steps; ``None`` if a profiler recorded exact times.
        rows: Rows of :func:`~traceviz.analyses.derived.stacks.sampled.seen` of all threads, with texts, ``time_ns``
            (that within), ``part`` (share of the row within), ``group`` (subject of the findings: ``io, lock, logging,
            python, compute, input, ...``), ``is_python`` (its thread ran Python, or wanted to), and ``waits_for``
            (target of a wait, if the files of its stack show it).
        collections: Time in which Python's garbage collector worked, within.
        collecting: Place of the main thread for most of that time; empty if there is no single place.
        is_called: True if the program itself calls for collections.
        judged_ns: Judged time of other findings. Findings here are scaled to it, so that they can be compared.
        words: Text that names the judged time.
        has_device: True if devices work.
    """

    process_id: int
    main: int
    within: IntervalSet
    step_ns: int
    samples: float | None
    rows: pl.DataFrame
    collections: IntervalSet
    collecting: str
    is_called: bool
    judged_ns: int
    words: str
    has_device: bool

    @property
    def of_main(self) -> pl.DataFrame:
        """Rows of the main thread."""
        return having(self.rows, "thread_id", self.main)

    @property
    def is_enough(self) -> bool:
        """True if there are enough samples for a result."""
        return self.samples is None or self.samples >= LEAST_SAMPLES


def step_samples(trace: TraceView) -> StepSamples | None:
    """Return samples of the steps of the process that trains; ``None`` if it has no known steps, or no stacks."""
    process = _process(trace)
    main = None if process is None else main_thread(trace, process)
    if process is None or main is None:
        return None
    steps = _steps(trace, process, main)
    if not steps.total:
        return None
    busy = trace.rank_busy.get(process, IntervalSet.empty())
    unsampled = _phases(trace, process, "unsampled")
    of = "sampled steps" if unsampled.intersect(steps).total else "steps"
    steps = steps.subtract(_phases(trace, process, "recording")).subtract(unsampled)
    within = steps.subtract(busy)
    collections = _phases(trace, process, "collection").intersect(within)
    judged_ns = sum(time.total for time in steady_time(trace).values())
    rows = _rows(trace, process, main, within.subtract(collections))
    return StepSamples(
        process,
        main,
        within,
        max(steps.total, int(having(rows, "thread_id", main)["time_ns"].sum())),
        _samples(trace, process, main, within),
        rows,
        collections,
        *_collecting(trace, process, main, collections),
        judged_ns or steps.total,
        judged_words(trace) if judged_ns else f"{of} of the run",
        has_device=bool(trace.rank_busy),
    )


def _phases(trace: TraceView, process: int, kind: str) -> IntervalSet:
    """Return the time of phases of this kind, as hooks in the program recorded them."""
    phases = trace.frame("phases", "start_ns", "dur_ns", "process_id", pl.col("kind").cast(pl.String)).drop_nulls()
    found = phases.filter((pl.col("kind") == kind) & (pl.col("process_id") == process))
    return intervals(found.with_columns((pl.col("start_ns") + pl.col("dur_ns")).alias("end_ns")))


def _process(trace: TraceView) -> int | None:
    """Return the process that trains, as hooks know it; for a CPU program that a profiler recorded, its first rank."""
    known = main_process(trace)
    if known is not None:
        return known.process_id
    if trace.rank_busy:
        return None
    recorded = seen(trace).threads["process_id"].unique().to_list()
    return next((rank for rank in trace.ranks if rank in recorded), None)


def _steps(trace: TraceView, process: int, main: int) -> IntervalSet:
    """Return the judged steps."""
    recorded = steady_time(trace).get(process, IntervalSet.empty())
    known = main_process(trace)
    if trace.rank_busy or known is None or known.process_id != process or not known.steps.height:
        return recorded
    starts, ends = bounds(known.steps)
    steady = ~warmup_steps(ends - starts)
    run = IntervalSet.of(starts[steady], ends[steady])
    undisturbed = run.subtract(IntervalSet.span(*trace.program_window)) if trace.captured_ns else run
    is_enough = (_samples(trace, process, main, undisturbed) or 0) >= ENOUGH and 4 * undisturbed.total >= run.total
    return undisturbed if is_enough else run


ENOUGH = 30
"""Number of samples of steps without a profiler that suffices without the others."""


def _collecting(trace: TraceView, process: int, main: int, within: IntervalSet) -> tuple[str, bool]:
    """Return the main thread's line for at least half of ``within``, and whether it called ``gc.collect``."""
    if not within.total:
        return "", False
    found = time_by_stack(trace, within, process, main)
    is_called = found.filter(pl.col("leaf").str.contains(_COLLECTS))["time_ns"].sum() * 2 >= within.total
    places = found.group_by("location").agg(pl.col("time_ns").sum())
    largest = places.sort("time_ns", "location", descending=[True, False]).head(1)
    place = str(largest["location"][0]) if largest.height and 2 * largest["time_ns"][0] >= within.total else ""
    return place, is_called


_COLLECTS = r"(^|\.)collect$"
"""The call for a garbage collection, as the innermost frame."""


def _samples(trace: TraceView, process: int, main: int, within: IntervalSet) -> float | None:
    """Return samples of the main thread within; ``None`` if its stacks were not sampled."""
    of_main = (pl.col("process_id") == process) & (pl.col("thread_id") == main)
    if not seen(trace).is_sampled:
        return None if seen(trace).threads.filter(of_main).height else 0.0
    own = seen_rows(trace).filter(of_main)
    time = within.overlap(*bounds(own))
    counted = own.select(
        (pl.col("samples") * pl.Series(time, dtype=pl.Int64) / (pl.col("end_ns") - pl.col("start_ns")))
        .sum()
        .alias("n"),
        pl.col("samples").count().alias("known"),
    )
    return float(counted["n"][0]) if own.height == 0 or counted["known"][0] else None


def _rows(trace: TraceView, process: int, main: int, within: IntervalSet) -> pl.DataFrame:
    found = seen(trace)
    in_python = pl.col("leaf").str.contains(PYTHON_FRAME) & (pl.col("activity") == "compute")
    is_python = in_python | pl.col("activity").is_in(["python", "serialization", "wait", "gil"])
    meanings = found.meanings.select(*TEXTS, is_python.alias("is_python"))
    if not found.is_sampled and (alone := _alone(trace, process, main, within)) is not None:
        rows = alone
    else:
        rows = having(seen_rows(trace), "process_id", process)
        time = within.overlap(*bounds(rows))
        rows = rows.with_columns(pl.Series("time_ns", time, pl.Int64)).filter(pl.col("time_ns") > 0)
    rows = rows.with_columns((pl.col("time_ns") / (pl.col("end_ns") - pl.col("start_ns"))).alias("part"))
    if not found.is_sampled:  # processor time and files of stacks are not known; texts are categories
        said = meanings.with_columns(_group(), pl.lit(None, pl.String).alias("waits_for"))
        said = said.with_columns(pl.col(pl.String).cast(pl.Categorical))
        return pl.concat([rows, said.select(pl.all().gather(rows["meaning"]))], how="horizontal")
    rows = pl.concat([rows, meanings.select(pl.all().gather(rows["meaning"]))], how="horizontal")
    # Threads that use no processor in a line of Python do not count as running it.
    used = rows.filter(pl.col("is_python") & pl.col("cpu_ns").is_not_null()).group_by("thread_id", "location")
    use = used.agg((pl.col("cpu_ns").sum() / (pl.col("end_ns") - pl.col("start_ns")).sum()).alias("use"))
    known = rows.join(use, on=["thread_id", "location"], how="left", maintain_order="left")
    runs = (pl.col("use") >= RUNS).fill_null(value=True) | (pl.col("activity") == "gil")
    without_blocked = known.with_columns((pl.col("is_python") & runs).alias("is_python")).drop("use")
    rows = _without_operators(trace, process, without_blocked.with_columns(_group()))
    return rows.join(_waits(trace), on="stack_id", how="left", maintain_order="left")


def _alone(trace: TraceView, process: int, main: int, within: IntervalSet) -> pl.DataFrame | None:
    """Return rows of recorded functions, merged by meaning; ``None`` if another thread runs Python, too.

    The time of each row matters only for concurrent work of other threads.
    """
    sums = having(time_by_meaning(trace, within), "process_id", process)
    if (sums["thread_id"] != main).any():
        return None
    unknown = (pl.lit(None, pl.Int64).alias(name) for name in ("samples", "cpu_ns", "stack_id"))
    bounds_of = (pl.lit(0, pl.Int64).alias("start_ns"), pl.col("time_ns").alias("end_ns"))
    return sums.drop(*TEXTS).with_columns(*bounds_of, *unknown)


def _without_operators(trace: TraceView, process: int, rows: pl.DataFrame) -> pl.DataFrame:
    """Return ``rows``. With recorded operators, a line of Python counts as computing for the share seen in operators.

    A stack does not always show what its innermost line calls. ``step(batch)`` may be Python, or compiled code.
    """
    working = intervals(having(trace.host_ops("op", "runtime"), "process_id", process))
    seen = having(find_ticks(trace, process), "did", "python")
    recorded = steady_time(trace).get(process, IntervalSet.empty())
    moments = seen["moment_ns"].to_numpy()
    seen = seen.with_columns(pl.Series("computes", working.contains(moments), dtype=pl.Boolean))
    seen = seen.filter(pl.Series(recorded.contains(moments), dtype=pl.Boolean))
    lines = seen.group_by(pl.col("line").alias("location")).agg(pl.col("computes").mean())
    known = rows.join(lines, on="location", how="left", maintain_order="left")
    computes = pl.col("computes").fill_null(0.0)
    is_python = pl.col("group") == "python"
    own = known.with_columns(pl.when(is_python).then(1 - computes).otherwise(1.0).alias("kept"))
    other = known.filter(is_python & (computes > 0)).with_columns(
        computes.alias("kept"), pl.lit("compute").alias("group")
    )
    parts = pl.concat([own, other]).with_columns(
        (pl.col("time_ns") * pl.col("kept")).round(0).cast(pl.Int64).alias("time_ns"), pl.col("part") * pl.col("kept")
    )
    return parts.filter(pl.col("time_ns") > 0).drop("computes", "kept")


_WAITS = {
    "a queue": r"^(queue|multiprocessing/(queues|connection))\.py$",
    "another process": r"^(subprocess|multiprocessing/(popen_\w+|process|pool))\.py$",
    "another thread": r"^(concurrent/futures/.*)\.py$",
    "a connection": r"^(selectors|socket|socketserver|asyncio/selector_events)\.py$",
}
"""Target of a thread's wait in a function of these files. The first match decides."""


def _waits(trace: TraceView) -> pl.DataFrame:
    """Return the target of a thread's wait by the files in its stack: ``stack_id, waits_for``; null if not known."""
    tree = stack_tree(trace)
    found = np.full(tree.frames.height, None, dtype=object)
    for words, files in reversed(_WAITS.items()):  # the first of several decides
        is_there = tree.frames["file"].str.contains(files).fill_null(value=False).to_numpy()
        found[tree.around(is_there) >= 0] = words
    return tree.frames.select("stack_id", pl.Series("waits_for", found.tolist(), pl.String))


def _group() -> pl.Expr:
    """Return the subject of the findings. A wait in Python code counts as Python if its thread runs at all."""
    waits_to_run = (pl.col("kind") == "wait") & pl.col("is_python")
    return pl.when(waits_to_run).then(pl.lit("python")).otherwise(pl.col("kind").replace(_ALIKE)).alias("group")
