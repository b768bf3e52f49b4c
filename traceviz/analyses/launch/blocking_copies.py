"""Copies that block the host without an explicit wait while no device works: their cost and place in the program.

::

    device  |####kernel####|.........................|copy|        earlier work on the copy's stream has not started
    host       |launch|----------cudaMemcpyAsync----------|        nothing new is launched during the call

:mod:`traceviz.analyses.launch.waits` covers the time after such a wait.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from traceviz.analyses.base import finding
from traceviz.analyses.derived.causes.call_places import call_places, costliest_place
from traceviz.analyses.derived.frames import having, knowing
from traceviz.analyses.derived.host.classes import host_classes
from traceviz.analyses.derived.host.copy_calls import unasked_waits
from traceviz.analyses.derived.judged_time import judged_time
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.launch.waits import advice_for
from traceviz.core.arrays.intervals import IntervalSet
from traceviz.core.units import counted, format_ns, format_ratio
from traceviz.report import Fact, Finding
from traceviz.report.findings.record import READ_RARELY
from traceviz.report.findings.registry import record_of


@dataclass(frozen=True, slots=True)
class BlockingCopies:
    """Copies that block the host without an explicit wait in judged time, over all ranks.

    Args:
        calls: Number of those with a cost.
        exposed_ns: Time in which the host waits in them and no device works.
        name: The function with the highest cost.
        copies: Text that names its copies: ``copies to pageable host memory``.
        reads: True if most of the time is in copies from a device.
        place: The range, the operator and the line of Python with most of the time, for readers; may be empty.
        operators: ``op, exposed_ns``: outermost operations of the framework around the calls, the costliest first.
    """

    calls: int = 0
    exposed_ns: int = 0
    name: str = ""
    copies: str = ""
    reads: bool = False
    place: str = ""
    operators: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema={"op": pl.String}))


def blocking_copies(trace: TraceView, least_ns: float) -> BlockingCopies:
    """Measure the idle time in which copies block the host; times below ``least_ns`` are not examined."""
    parts = []
    total_ns = 0
    if not unasked_waits(trace).height:
        return BlockingCopies()
    for rank in trace.rank_busy:
        own = having(unasked_waits(trace), "process_id", rank)
        idle = host_classes(trace)[rank].sets["synchronisation"].intersect(judged_time(trace, rank))
        starts, ends = own["wait_ns"].to_numpy(), own["end_ns"].to_numpy()
        total_ns += IntervalSet.of(starts, ends).intersect(idle).total
        parts.append(own.with_columns(pl.Series("exposed_ns", idle.overlap(starts, ends), dtype=pl.Int64)))
    costly = pl.concat(parts).filter(pl.col("exposed_ns") > 0) if parts else pl.DataFrame()
    if not costly.height or total_ns < least_ns:
        return BlockingCopies(costly.height, total_ns)
    by_kind = costly.group_by(pl.col("name").cast(pl.String), "kind", "host_memory").agg(pl.col("exposed_ns").sum())
    keys = ("exposed_ns", "name", "kind", "host_memory")
    name, kind, memory, _ = by_kind.sort(keys, descending=[True, False, False, False]).row(0)
    reads = int(having(costly, "kind", "d2h")["exposed_ns"].sum())
    located = call_places(trace, costly)
    operators = knowing(located.select(pl.col("operator").alias("op"), "exposed_ns"), "op")
    sums = operators.group_by("op").agg(pl.col("exposed_ns").sum()).sort("exposed_ns", "op", descending=[True, False])
    place = costliest_place(located, "exposed_ns")
    known = "" if memory in {None, "unknown"} else f"{memory} "
    words = f"copies {_DIRECTIONS[kind]} {known}host memory" if kind in _DIRECTIONS else "copies"
    return BlockingCopies(costly.height, total_ns, name, words, 2 * reads >= total_ns, place, operators=sums)


_DIRECTIONS = {"d2h": "to", "h2d": "from"}


def blocking_finding(waits: BlockingCopies, judged_ns: int, judged_words: str, steps: int) -> Finding:
    """Return TV206.

    Args:
        waits: The measured copies.
        judged_ns: The judged time.
        judged_words: Text that names that time.
        steps: Number of steady steps; 0 if none were found.
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
    """Return advice by the place of the copies and their direction."""
    lines = record_of("TV206").advice
    to_host, to_device, others = lines[:2], lines[2:3], lines[3:]
    if not waits.reads:
        return (*to_device, *others)
    specific = advice_for(waits.operators)
    return (*specific, *(line for line in to_host if not specific or line != READ_RARELY), *others)
