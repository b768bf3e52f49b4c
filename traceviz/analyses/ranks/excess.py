"""Excess work of a slow rank: the part of its steps that exceeds that of the other ranks by most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

import polars as pl

from traceviz.analyses.derived.calls.short_names import shortened
from traceviz.analyses.derived.causes.attribution import host_causes
from traceviz.analyses.derived.causes.kinds import KIND_LABELS
from traceviz.analyses.derived.causes.sampling import LEAST_SAMPLES
from traceviz.analyses.derived.frames import end_ns, intervals, knowing
from traceviz.analyses.derived.host.classes import LABELS
from traceviz.analyses.derived.stacks.kinds import KIND_LABELS as STACK_LABELS
from traceviz.analyses.derived.stacks.sampled import main_thread, time_by_stack
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.ranks.rank_times import RankTimes
from traceviz.core.units import format_ns

_KEYS = ("class", "kind", "cause", "location")
_COMMON = frozenset({"host_collective", "unexplained"})
"""Kinds of causes that do not describe the work of one rank."""
_SAID_WITH_LINE = frozenset(
    {"sleep", "io", "lock", "gil", "wait", "saving", "logging", "serialization", "import", "compilation", "input"}
)
"""Kinds that add information to the name of a line."""
_RUNS = frozenset({"compute", "python"})
"""Kinds of stacks that add nothing to the name of a line, because they only show that it ran."""
_LINES = pl.DataFrame(schema={"process_id": pl.Int64, "kind": pl.String, "location": pl.String, "step_ns": pl.Float64})
_EXPLAINS = 0.5
"""A cause explains most of a class if its excess is more than this part of the largest difference of a class."""
_PLACES = 0.25
"""The line with most of the sampled difference, and at least this part of it, is the place of a known cause."""
_TOLD_BY_CLASS = frozenset({"input_wait"})
"""Classes whose name describes the time better than its event, unless its line is known."""


@dataclass(frozen=True, slots=True)
class Excess:
    """A part of the steps of a rank that is larger than that of the others.

    Args:
        cause: Name of a class of step time, of a recorded cause, or of a kind of stack; empty if only a line is known.
        place: The line; empty if it is not known.
        time_ns: Time by which it exceeds the median of the others per step (in total, if there are no steps).
    """

    cause: str
    place: str
    time_ns: int

    @property
    def what(self) -> str:
        """The cause and its place as text."""
        return " in ".join(filter(None, (self.cause, self.place)))

    @property
    def has_place(self) -> bool:
        """True if both the cause and its place are known."""
        return bool(self.cause and self.place)

    def sentence(self, unit: str) -> str:
        """Return ``Most of the difference is clock_nanosleep (20.3 ms per step).``."""
        return f"Most of the difference is {self.what} ({format_ns(self.time_ns)} {unit})."

    def advice(self, rank: int, unit: str) -> str:
        """Return ``Look at rank 1: sleep in train.py:19 main takes 20.3 ms more per step there.``."""
        return f"Look at rank {rank}: {self.what} takes {format_ns(self.time_ns)} more {unit} there."


def causes_of_ranks(trace: TraceView) -> pl.DataFrame:
    """Return ``process_id, class, kind, cause, location, time_ns`` of causes for ranks that use no devices.

    It has no rows if ranks use devices. Device computing has no such causes, and the classes suffice.
    """
    columns = ("process_id", *_KEYS)
    if trace.rank_busy:
        return pl.DataFrame(schema={**dict.fromkeys(columns, pl.String), "process_id": pl.Int64, "time_ns": pl.Int64})
    return host_causes(trace).group_by(columns).agg(pl.col("time_ns").sum())


def lines_of_ranks(trace: TraceView) -> pl.DataFrame:
    """Return ``process_id, kind, location, step_ns``: time of ranks' main threads per step, by stack samples.

    All steps of the run that hooks in the program saw count, because profilers record few of them. A rank with fewer
    than :data:`LEAST_SAMPLES` samples in the steps has no rows. There are no rows if ranks use devices.
    """
    parts = [_LINES] if trace.rank_busy else [_LINES, *(_lines_of(trace, rank) for rank in trace.ranks)]
    return pl.concat(parts)


def _lines_of(trace: TraceView, rank: int) -> pl.DataFrame:
    phases = trace.frame("phases", "process_id", pl.col("kind").cast(pl.String), "start_ns", end_ns())
    steps = phases.filter((pl.col("process_id") == rank) & (pl.col("kind") == "step"))
    thread = main_thread(trace, rank)
    if not steps.height or thread is None:
        return _LINES
    did = time_by_stack(trace, intervals(steps), rank, thread).filter(pl.col("kind") != "collective")
    if (did["samples"].sum() or 0) < LEAST_SAMPLES:
        return _LINES
    sums = knowing(did, "location").group_by("kind", "location").agg(pl.col("time_ns").sum() / steps.height)
    rows = sums.rename({"time_ns": "step_ns"}).with_columns(pl.lit(rank, pl.Int64).alias("process_id"))
    return rows.select(pl.col(name).cast(dtype) for name, dtype in _LINES.schema.items())


def largest_excess(ranks: Sequence[RankTimes], slow: RankTimes, causes: pl.DataFrame, lines: pl.DataFrame) -> Excess:
    """Return the excess of ``slow`` over other ``ranks``: its largest cause if that is most of it, else the class."""
    others = [rank for rank in ranks if rank is not slow]
    excess = {
        key: time / slow.rounds - median(other.classes[key] / other.rounds for other in others)
        for key, time in slow.classes.items()
        if key != "communication"
    }
    key = max(excess, key=lambda name: excess[name])
    named = _precise(others, slow, causes, excess[key] * _EXPLAINS)
    if named and named.has_place:
        return named
    line = _line(others, slow, lines, excess[key] * (_PLACES if named else _EXPLAINS))
    if named and line:
        return replace(named, place=line.place)
    return named or line or Excess(LABELS[key], "", round(excess[key]))


def _line(others: Sequence[RankTimes], slow: RankTimes, lines: pl.DataFrame, least: float) -> Excess | None:
    """Return the line with the largest excess in the main thread, if it is more than ``least``."""
    if not {rank.process_id for rank in (*others, slow)} <= set(lines["process_id"]):
        return None
    largest: Excess | None = None
    ordered = lines.sort("step_ns", "location", "kind", descending=[True, False, False])
    for (location, *_), same in ordered.group_by("location", maintain_order=True):
        sums = dict(same.group_by("process_id").agg(pl.col("step_ns").sum()).iter_rows())
        more = sums.get(slow.process_id, 0.0) - median(sums.get(rank.process_id, 0.0) for rank in others)
        if more > max(least, largest.time_ns if largest else 0):
            kind = same["kind"][0]
            largest = Excess("" if kind in _RUNS else STACK_LABELS[kind], str(location), round(more))
    return largest


def _precise(others: Sequence[RankTimes], slow: RankTimes, causes: pl.DataFrame, least: float) -> Excess | None:
    """Return the cause with the largest excess over the others, if it is more than ``least``."""
    rounds = {rank.process_id: rank.rounds for rank in (*others, slow)}
    of_work = causes.filter((pl.col("class") != "communication") & ~pl.col("kind").is_in(_COMMON))
    by_cause = knowing(of_work, "cause").sort("time_ns", *_KEYS, descending=[True, *[False] * len(_KEYS)])
    largest: Excess | None = None
    for (cause, location, *_), same in by_cause.group_by("cause", "location", maintain_order=True):
        sums = dict(same.group_by("process_id").agg(pl.col("time_ns").sum()).iter_rows())
        per_round = {process: sums.get(process, 0) / count for process, count in rounds.items()}
        more = per_round[slow.process_id] - median(per_round[rank.process_id] for rank in others)
        if more > max(least, largest.time_ns if largest else 0):
            largest = Excess(*_cause_and_place(same["class"][0], same["kind"][0], str(cause), location), round(more))
    return largest


def _cause_and_place(key: str, kind: str, cause: str, location: str | None) -> tuple[str, str]:
    """Return ``time.sleep`` and ``train.py:19 main``, or, for a sampled line, ``sleep`` and ``train.py:19 main``."""
    if location == cause:
        return (KIND_LABELS[kind], cause) if kind in _SAID_WITH_LINE else (cause, "")
    return LABELS[key] if key in _TOLD_BY_CLASS else shortened(cause), location or ""
