"""Functions that take the time while steps wait for input, in any thread.

::

    main thread     |-- next: decode_jpeg, collate ------| step |            num_workers=0: the main thread itself
    main thread     |-- next: waits for the queue -------| step |            workers, other threads: their functions
    worker process  |-- decode_jpeg --|-- distort -------|-- decode_jpeg
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import polars as pl

from traceviz.analyses.derived.host.classes import host_classes
from traceviz.analyses.derived.judged_time import steady_time
from traceviz.analyses.derived.stacks.functions import Function, functions
from traceviz.analyses.derived.stacks.kinds import WAITS
from traceviz.analyses.derived.stacks.sampled import main_thread, seen, time_by_stack
from traceviz.analyses.derived.view import TraceView
from traceviz.core.units import counted
from traceviz.report import Column, Grid

Who = Literal["main", "threads", "workers"]

LEAST_SAMPLES = 10
"""Least number of samples in the wait for a result."""
WORKS = 0.2
"""Functions of the main thread are named if they have this part of the wait, else those of other threads."""
LEAST_SHARE = 0.3
"""A function is named within a sentence from this share of the time on."""
_SERVERS = r"^(socket|socketserver|threading|selectors|queue|multiprocessing/(queues|connection|resource_sharer))"
"""Locations of threads that only pass data on."""


@dataclass(frozen=True, slots=True)
class InputLines:
    """Functions that take the time of the input.

    Args:
        who: The main thread, other threads of the program, or its worker processes.
        functions: The functions with most of the time, the largest first.
        processes: Number of worker processes.
    """

    who: Who
    functions: tuple[Function, ...]
    processes: int = 0

    @property
    def words(self) -> str:
        """Text within a sentence, after the call in which the program waits; empty if no function has much of it."""
        first = self.functions[0]
        if first.share < LEAST_SHARE:
            return ""
        if self.who == "main":
            return f"{first.share_words} of that in {first.words}"
        of = counted(self.processes, "worker") if self.who == "workers" else "another thread"
        return f"meanwhile {of} {'are' if self.processes > 1 else 'is'} in {first.words} ({first.share_words})"


def lines_grid(lines: InputLines) -> Grid:
    """Return the functions that take the time of the input."""
    columns = (
        Column("place", "Where", "text", 0),
        Column("time_ns", "Time", "ns", 0),
        Column("share_of_input", "Of the wait" if lines.who == "main" else "Of their time", "ratio", 0, bar=True),
        Column("samples", "Samples", "count", 2),
        Column("location", "Line", "text", 9),
    )
    rows = tuple(
        (f.words, f.time_ns, min(f.share, 1.0), None if f.samples is None else round(f.samples), f.location)
        for f in lines.functions
    )
    return Grid(columns, rows, _TITLES[lines.who])


_TITLES: dict[Who, str] = {
    "main": "What takes the time of the wait",
    "threads": "What other threads do meanwhile",
    "workers": "What the workers do meanwhile",
}


def input_lines(trace: TraceView) -> InputLines | None:
    """Return the functions that take the time while steps wait for input; ``None`` if stacks do not show them.

    They are the main thread's own functions that serve the input, if it works. Else they are those of the workers or of
    other threads.
    """
    if not seen(trace).threads.height:
        return None
    for rank, steady in steady_time(trace).items():
        waits = host_classes(trace)[rank].sets["input_wait"].intersect(steady)
        if not waits.total:
            continue
        main = time_by_stack(trace, waits, rank, main_thread(trace, rank))
        if not _is_enough(main):
            continue
        own = main.filter(pl.col("inside"))
        if int(own["time_ns"].sum()) >= WORKS * int(main["time_ns"].sum()):
            return InputLines("main", tuple(functions(own, int(main["time_ns"].sum()))))
        # Main threads of worker processes, without waits.
        known = {*trace.ranks, rank}
        processes = [p for p in seen(trace).threads["process_id"].unique().sort().to_list() if p not in known]
        parts = [time_by_stack(trace, steady, process, main_thread(trace, process)) for process in processes]
        worked = [_without_waits(part) for part in parts]
        used = [part for part in worked if part.height]
        workers = pl.concat(used) if used else main.clear()
        others = time_by_stack(trace, steady, rank).filter(pl.col("thread_id") != main_thread(trace, rank))
        if _is_enough(workers):
            return InputLines("workers", tuple(functions(workers)), len(used))
        if _is_enough(threads := _without_waits(others)):
            return InputLines("threads", tuple(functions(threads)), 1)
    return None


def _without_waits(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows in which a thread prepares data: it works or waits for a read, not for a consumer of batches."""
    waits = pl.col("activity").is_in(list(WAITS)) & ~pl.col("inside")
    return rows.filter(~waits & ~pl.col("location").str.contains(_SERVERS))


def _is_enough(rows: pl.DataFrame) -> bool:
    """Return whether rows suffice: they were recorded, or there are enough samples."""
    if not rows.height:
        return False
    return rows["samples"].null_count() == rows.height or float(rows["samples"].sum()) >= LEAST_SAMPLES
