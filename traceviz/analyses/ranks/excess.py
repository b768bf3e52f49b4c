"""Excess work of a slow rank: the part of its steps that exceeds that of the other ranks by most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
_NAMED_WITH_LINE = frozenset(
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
_NAMED_BY_CLASS = frozenset({"input_wait"})
"""Classes whose name describes the time better than its event, unless its line is known."""


@dataclass(frozen=True, slots=True)
class Excess:
    """A part of the steps of a rank that is larger than that of the others.

    Args:
        what: Text that names a class of step time, or the recorded cause and its line.
        time_ns: Time by which it exceeds the median of the others per step (in total, if there are no steps).
        location: The line in ``what``; empty if it names none.
    """

    what: str
    time_ns: int
    location: str = ""

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
    cause = _largest_of_causes(others, slow, causes, excess[key] * _EXPLAINS)
    if cause and cause.location:
        return cause
    line = _largest_of_lines(others, slow, lines, excess[key] * (_PLACES if cause else _EXPLAINS))
    if cause and line:
        return Excess(f"{cause.what} in {line.location}", cause.time_ns, line.location)
    return cause or line or Excess(LABELS[key], round(excess[key]))


def _largest_of_lines(others: Sequence[RankTimes], slow: RankTimes, lines: pl.DataFrame, least: float) -> Excess | None:
    """Return the line with the largest excess in the main thread, if it is more than ``least``."""
    rounds = dict.fromkeys((rank.process_id for rank in (*others, slow)), 1)
    if not rounds.keys() <= set(lines["process_id"]):
        return None
    ordered = lines.sort("step_ns", "location", "kind", descending=[True, False, False])
    found = _largest_group(ordered.rename({"step_ns": "time_ns"}), ("location",), rounds, slow.process_id, least)
    if found is None:
        return None
    kind, location = found[0]["kind"][0], str(found[0]["location"][0])
    return Excess(f"{STACK_LABELS[kind]} in {location}" if kind not in _RUNS else location, found[1], location)


def _largest_of_causes(
    others: Sequence[RankTimes], slow: RankTimes, causes: pl.DataFrame, least: float
) -> Excess | None:
    """Return the cause with the largest excess over the others, if it is more than ``least``.

    It is named ``time.sleep in train.py:19 main``, or, for a sampled line, ``sleep in train.py:19 main``.
    """
    rounds = {rank.process_id: rank.rounds for rank in (*others, slow)}
    of_work = causes.filter((pl.col("class") != "communication") & ~pl.col("kind").is_in(_COMMON))
    by_cause = knowing(of_work, "cause").sort("time_ns", *_KEYS, descending=[True, *[False] * len(_KEYS)])
    found = _largest_group(by_cause, ("cause", "location"), rounds, slow.process_id, least)
    if found is None:
        return None
    key, kind, cause, location = (found[0][name][0] for name in _KEYS)
    if location == cause:
        is_named = kind in _NAMED_WITH_LINE
        return Excess(f"{KIND_LABELS[kind]} in {cause}" if is_named else cause, found[1], cause if is_named else "")
    what = LABELS[key] if key in _NAMED_BY_CLASS else shortened(cause)
    return Excess(f"{what} in {location}" if location else what, found[1], location or "")


def _largest_group(
    rows: pl.DataFrame, by: tuple[str, ...], rounds: Mapping[int, int], slow: int, least: float
) -> tuple[pl.DataFrame, int] | None:
    """Return the rows of the group whose time per round in ``slow`` exceeds the others' median by most, and the excess.

    Of equal ones the first counts; ``None`` if none exceeds by more than ``least``.
    """
    largest: tuple[pl.DataFrame, int] | None = None
    for _, same in rows.group_by(by, maintain_order=True):
        sums = dict(same.group_by("process_id").agg(pl.col("time_ns").sum()).iter_rows())
        per_round = {process: sums.get(process, 0) / count for process, count in rounds.items()}
        more = per_round.pop(slow) - median(per_round.values())
        if more > max(least, largest[1] if largest else 0):
            largest = same, round(more)
    return largest
