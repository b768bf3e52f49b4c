"""Threads that a program starts repeatedly, one for each item, as their running numbers show.

Python numbers the threads and pools of a process that have no name (``Thread-1280 (load_image)``,
``ThreadPoolExecutor-40_7``). So the highest number seen shows how many were started, even if they were short.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from traceviz.analyses.base import finding, known
from traceviz.analyses.derived.frames import having, intervals, knowing
from traceviz.analyses.derived.judged_time import within_sentence
from traceviz.analyses.derived.stacks.sampled import seen, seen_rows
from traceviz.analyses.derived.stacks.trees import stack_tree
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.host.step_samples import StepSamples, step_samples
from traceviz.core.units import counted, format_number, format_ratio
from traceviz.report import Fact, Finding

_NAMED_BY_PYTHON = r"^Thread-(?P<number>\d{1,9})(?: \((?P<function>[^()]*)\))?$"
_POOL = r"^ThreadPoolExecutor-(?P<number>\d{1,9})_\d+$"
_MANAGES = ("start", "join", "submit", "shutdown")
"""Functions of Python's threading and pools with which a program starts threads and waits for their end."""


@dataclass(frozen=True, slots=True)
class StartedThreads:
    """Threads that a process started.

    Args:
        number: Least number of threads that were started.
        pools: True if they are pools of threads.
        seen: Number of them that were sampled.
        function: Function that most of them ran; empty if their names do not show it.
        per_step: Number for each step of the run; ``None`` if its steps are not known.
        highest: Most threads that the program had at once; ``None`` if it was not sampled.
        cores: Cores that the program may use.
        managing: Share of the judged steps in which the main thread starts threads or waits for their end.
        step_ns: Judged steps; 0 if too few samples lie in them.
        words: Text that names the judged steps.
    """

    number: int
    pools: bool
    seen: int
    function: str
    per_step: float | None
    highest: int | None
    cores: float | None
    managing: float
    step_ns: int
    words: str


def started_threads(trace: TraceView, highest: int | None, cores: float | None) -> StartedThreads | None:
    """Return threads, or pools, that the busiest starter among the processes started; ``None`` if there are none."""
    names = trace.frame("threads", "process_id", pl.col("name").cast(pl.String)).drop_nulls()
    most: tuple[int, bool, pl.DataFrame] | None = None
    for pattern, pools in ((_NAMED_BY_PYTHON, False), (_POOL, True)):
        found = names.with_columns(pl.col("name").str.extract_groups(pattern).alias("parts"))
        found = knowing(found.unnest("parts").with_columns(pl.col("number").cast(pl.Int64)), "number")
        if found.height and (most is None or int(found["number"].max()) > most[0]):  # type: ignore[arg-type]
            number = int(found["number"].max())  # type: ignore[arg-type]
            process = found.sort("number", "process_id", descending=[True, False])["process_id"][0]
            most = number, pools, having(found, "process_id", process)
    if most is None:
        return None
    number, pools, rows = most
    function = ""
    if not pools:  # the function that most of the threads ran
        functions = rows["function"].drop_nulls().value_counts().sort("count", "function", descending=[True, False])
        is_most = functions.height and 2 * int(functions["count"][0]) >= rows.height
        function = str(functions["function"][0]) if is_most else ""
    steps = step_samples(trace)
    is_known = steps is not None and steps.is_enough
    phases = trace.frame("phases", "process_id", pl.col("kind").cast(pl.String), "number")
    is_own = (pl.col("process_id") == rows["process_id"][0]) & (pl.col("kind") == "step")
    numbers = phases.filter(is_own)["number"].drop_nulls()
    counted_steps = int(numbers.max()) - int(numbers.min()) + 1 if numbers.len() > 1 else 0  # type: ignore[arg-type]
    return StartedThreads(
        number=number,
        pools=pools,
        seen=rows["number"].n_unique() if pools else rows.height,
        function=function,
        per_step=number / counted_steps if counted_steps else None,
        highest=highest,
        cores=cores,
        managing=_managing(trace, steps) if steps is not None and is_known else 0.0,
        step_ns=steps.judged_ns if steps is not None and is_known else 0,
        words=steps.words if steps is not None and is_known else "",
    )


def _managing(trace: TraceView, steps: StepSamples) -> float:
    """Return the share of the judged steps in which the main thread is in a function that starts or ends threads."""
    tree = stack_tree(trace)
    is_of_threads = pl.col("file").str.contains(r"^(threading|concurrent/futures/(thread|_base))\.py$")
    manages = (is_of_threads & pl.col("function").str.extract(r"(\w+)$").is_in(list(_MANAGES))).fill_null(value=False)
    inside = tree.around(tree.frames.select(manages).to_series().to_numpy()) >= 0
    ids = tree.frames["stack_id"].filter(pl.Series(inside))
    if not seen(trace).is_sampled:
        return 0.0
    own = (pl.col("process_id") == steps.process_id) & (pl.col("thread_id") == steps.main)
    rows = seen_rows(trace).filter(own)
    managing = intervals(rows.filter(pl.col("stack_id").is_in(ids.implode()))).intersect(steps.within).total
    return managing / steps.step_ns


_WORTH_SAYING = 0.01
"""Least share of the steps in starting and joining threads for a message about them."""


def threads_finding(found: StartedThreads | None, least: int, least_pools: int, least_seen: int) -> Finding | None:
    """Return TV618 if a program repeatedly starts threads, or pools of them."""
    if found is None or found.number < (least_pools if found.pools else least) or found.seen < least_seen:
        return None
    what = f"{counted(found.number, 'pool')} of threads" if found.pools else counted(found.number, "thread")
    run = f", mostly for {found.function}" if found.function else ""
    each = f", {format_number(round(found.per_step, 1))} a step" if found.per_step and found.per_step >= 1 else ""
    on = f" on {format_number(round(found.cores, 1))} {'core' if found.cores == 1 else 'cores'}" if found.cores else ""
    once = f"; up to {counted(found.highest, 'thread')} were there at once{on}" if found.highest else ""
    message, heading = f"The program started at least {what}{run}{each}{once}.", ""
    if found.managing >= _WORTH_SAYING:
        heading, share = "threads", f"{format_ratio(found.managing)} of {within_sentence(found.words)}"
        message = (
            f"Threads: {share} goes into starting and joining threads: at least {what} were started{run}{each}{once}."
        )
    facts = (
        Fact("started", "pools started" if found.pools else "threads started", found.number, "count"),
        Fact("per_step", "in a step", found.per_step, "number"),
        Fact("function", "mostly for", found.function or None),
        Fact("highest", "threads at once, at most", found.highest, "count"),
        Fact("cores", "cores that the program may use", found.cores, "number"),
        Fact("managing", "of the steps, starting and joining", found.managing if found.step_ns else None, "ratio"),
    )
    cost = round(found.managing * found.step_ns)
    return finding("TV618", message, known(facts), cost, found.step_ns, found.words, heading=heading)
