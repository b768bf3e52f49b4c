"""Copies in which the host waits unasked while no device works: what they cost, and where the program makes them.

::

    device  |####kernel####|.........................|copy|        what runs before the copy on its stream is not begun
    host       |launch|----------cudaMemcpyAsync----------|        nothing new is launched meanwhile

What follows such a wait is the business of :mod:`traceviz.analyses.launch.waits`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from traceviz.analyses.base import finding
from traceviz.analyses.derived.capture_kind import LONGEST_NAME, shortened
from traceviz.analyses.derived.causes.attribution import host_causes
from traceviz.analyses.derived.copy_calls import unasked_waits
from traceviz.analyses.derived.host_classes import host_classes
from traceviz.analyses.derived.judged_time import judged_time
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.launch.waits import advice_for
from traceviz.intervals import IntervalSet
from traceviz.report import Fact, Finding
from traceviz.rules import READ_RARELY, rule
from traceviz.units import counted, format_ns, format_ratio

_PLACES = ("range", "operator", "location")


@dataclass(frozen=True, slots=True)
class BlockingCopies:
    """Copies that hold up the host unasked in judged time, over all ranks.

    Args:
        calls: Number of those that cost anything.
        exposed_ns: Time in which the host waits in them and no device works.
        name: The function that costs most.
        copies: What it copies, in words: ``copies to pageable host memory``.
        reads: Whether most of the time is in copies from a device.
        places: ``range, operator, location, exposed_ns`` of the calls, the costliest first; null where nothing of the
            kind was recorded.
    """

    calls: int = 0
    exposed_ns: int = 0
    name: str = ""
    copies: str = ""
    reads: bool = False
    places: pl.DataFrame = field(default_factory=pl.DataFrame)

    @property
    def place(self) -> str:
        """Range, operator and line of Python with most of the time, for people; may be empty."""
        if not self.places.height:
            return ""
        row = self.places.row(0, named=True)
        names = [shortened((row[key] or "").strip("# ")) for key in ("range", "operator")]
        around = " > ".join(name for name in names if name)
        line = (row["location"] or "").rpartition("/")[2][:LONGEST_NAME]
        return ", ".join(text for text in (around, line) if text)


def blocking_copies(trace: TraceView) -> BlockingCopies:
    """Measure the idle time in which the host waits unasked for copies."""
    parts = []
    total_ns = 0
    for rank in trace.rank_busy:
        own = unasked_waits(trace).filter(pl.col("process_id") == rank)
        idle = host_classes(trace)[rank].sets["synchronisation"].intersect(judged_time(trace, rank))
        starts, ends = own["wait_ns"].to_numpy(), own["end_ns"].to_numpy()
        total_ns += IntervalSet.of(starts, ends).intersect(idle).total
        parts.append(own.with_columns(pl.Series("exposed_ns", idle.overlap(starts, ends), dtype=pl.Int64)))
    costly = pl.concat(parts).filter(pl.col("exposed_ns") > 0) if parts else pl.DataFrame()
    if not costly.height:
        return BlockingCopies()
    alike = costly.group_by(pl.col("name").cast(pl.String), "kind", "host_memory").agg(pl.col("exposed_ns").sum())
    keys = ("exposed_ns", "name", "kind", "host_memory")
    name, kind, memory, _ = alike.sort(keys, descending=[True, False, False, False]).row(0)
    reads = int(costly.filter(pl.col("kind") == "d2h")["exposed_ns"].sum())
    return BlockingCopies(costly.height, total_ns, name, _words(kind, memory), 2 * reads >= total_ns, _places(trace))


_DIRECTIONS = {"d2h": "to", "h2d": "from"}


def _words(kind: str | None, memory: str | None) -> str:
    """Copies of a kind and a kind of host memory, in words."""
    if kind not in _DIRECTIONS:
        return "copies"
    known = "" if memory in {None, "unknown"} else f"{memory} "
    return f"copies {_DIRECTIONS[kind]} {known}host memory"


def _places(trace: TraceView) -> pl.DataFrame:
    """Where the program makes the copies of :func:`blocking_copies`."""
    names = unasked_waits(trace)["name"].unique().cast(pl.String)
    causes = host_causes(trace).filter(
        (pl.col("class") == "synchronisation")
        & (pl.col("kind") == "blocking_copy")
        & pl.col("cause").is_in(names.implode())
    )
    sums = causes.group_by(_PLACES).agg(pl.col("time_ns").sum().alias("exposed_ns"))
    return sums.sort("exposed_ns", *_PLACES, descending=[True, False, False, False])


def blocking_finding(waits: BlockingCopies, judged_ns: int, judged_words: str, steps: int) -> Finding:
    """TV206.

    Args:
        waits: What was measured.
        judged_ns: The judged time.
        judged_words: That time in words.
        steps: Number of steady steps; 0 where none were found.
    """
    time = f"{format_ratio(waits.exposed_ns / judged_ns)} of the {judged_words} ({format_ns(waits.exposed_ns)})"
    where = f", mostly in {waits.place}" if waits.place else ""
    message = (
        f"In {time} no device works while the host waits in {waits.copies} "
        f"({counted(waits.calls, 'call')}, {waits.name}{where})."
    )
    evidence = [
        Fact("calls", "calls that wait", waits.calls, "count"),
        Fact("exposed_ns", "host waits, no device works", waits.exposed_ns, "ns"),
        Fact("worst", "largest", waits.name),
    ]
    if steps:
        evidence.insert(1, Fact("calls_per_step", "calls per step", round(waits.calls / steps, 2), "number"))
    evidence += [Fact("place", "called in", waits.place)] if waits.place else []
    return finding("TV206", message, tuple(evidence), waits.exposed_ns, judged_ns, judged_words, advice=_advice(waits))


def _advice(waits: BlockingCopies) -> tuple[str, ...]:
    """What to do by where the copies are made and which way they go."""
    to_host, to_device, others = rule("TV206").advice[:2], rule("TV206").advice[2:3], rule("TV206").advice[3:]
    if not waits.reads:
        return (*to_device, *others)
    operators = (
        waits.places.select(pl.col("operator").alias("op")).drop_nulls() if waits.places.height else waits.places
    )
    specific = advice_for(operators) if operators.height else ()
    return (*specific, *(line for line in to_host if not specific or line != READ_RARELY), *others)
