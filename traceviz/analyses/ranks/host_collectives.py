"""Collectives that run on the host: time in which the program only waits in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from traceviz.analyses.base import Analysis, by_knowledge, finding
from traceviz.analyses.derived.frames import intervals
from traceviz.analyses.derived.host.classes import host_classes
from traceviz.analyses.derived.host.collectives import BETWEEN_TWO, BY_MPI, host_collectives
from traceviz.analyses.derived.judged_time import judged_time, judged_words
from traceviz.analyses.derived.statistics import CALLS, DURATION_COLUMNS, TOTAL, frame_grid, totals_by
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.ranks.collective_skew import share_a_clock
from traceviz.analyses.ranks.waits import find_waits, known_waits
from traceviz.core.arrays.intervals import IntervalSet
from traceviz.core.lazy_module import Later
from traceviz.core.units import format_ns, format_ratio
from traceviz.report import Column, Fact, Finding, Prose, Section, Skipped
from traceviz.report.findings.registry import record_of

if TYPE_CHECKING:
    from traceviz.report.findings import tv506_host_collectives as tv506
else:
    tv506 = Later("traceviz.report.findings.tv506_host_collectives")

ONE_RANK = "The wait for ranks that arrive later is part of it: only a capture of several ranks tells it apart."
"""Caveat on the time in collectives of a single rank."""

NOT_COMPARED = "How much of it is a wait for ranks that arrive later is not known: their calls cannot be aligned."
"""Caveat on the time in collectives of several ranks whose arrivals are not known."""
PARTLY_COMPARED = "Further waits for ranks that arrive later may be part of it: their calls cannot be aligned."
"""Caveat if only the wait for the rank with most work is known."""
PAIRED = 0.9
"""Calls between two ranks with this share of the exposed time give it its name."""


@dataclass(frozen=True, slots=True)
class HostCollectives:
    """Collectives on the host by name, and the time in which the program waits in any of them, summed over ranks.

    Args:
        by_name: One row per name, the largest exposed time first. ``exposed_ns`` is the time in which the program
            waits. Concurrent collectives of several threads each have it.
        exposed_ns: Time in which the program waits in at least one of them, in the whole capture.
        judged_exposed_ns: The part of it within judged time, without waiting for late ranks.
        waiting_ns: The part within judged time that waits for ranks that arrive later; ``None`` if no ranks can be
            compared.
        aligned: True if calls of ranks could be aligned.
        judged_ns: Judged time of all ranks.
        judged_words: Text that names the judged time.
        ranks: Number of ranks.
        one_machine: True if the ranks are known to run on one machine, so that there is no network between them.
    """

    by_name: pl.DataFrame
    exposed_ns: int
    judged_exposed_ns: int
    waiting_ns: int | None
    aligned: bool
    judged_ns: int
    judged_words: str
    ranks: int
    one_machine: bool

    @property
    def caveat(self) -> str:
        """Caveat if the wait for late ranks is not known, or only a part of it; else empty."""
        if self.waiting_ns is not None:
            return "" if self.aligned else PARTLY_COMPARED
        return ONE_RANK if self.ranks == 1 else NOT_COMPARED


@dataclass(frozen=True, slots=True)
class HostCollectivesAnalysis(Analysis[HostCollectives]):
    """Collectives of PyTorch's gloo, MPI and UCC, and calls of MPI.

    Args:
        exposed_share: Waiting in them from this share of the judged time on is a finding.
        tolerance: Ends of a collective on two ranks that differ by at least this share of the time between collectives
            are not aligned. Waiting for late ranks is then not known.
    """

    slug = "host_collectives"
    title = "Collectives on the host"
    rules = ("TV506",)

    exposed_share: float = 0.10
    tolerance: float = 0.1

    def run(self, trace: TraceView) -> HostCollectives | Skipped:
        """Measure the time in which the program waits in collectives on the host."""
        calls = host_collectives(trace)
        calls = calls.filter(pl.col("process_id").is_in(trace.ranks))
        if not calls.height:
            return self.skipped("no collective on the host was recorded")
        exposed = {rank: host_classes(trace)[rank].host_communication for rank in trace.ranks}
        judged = {rank: judged_time(trace, rank) for rank in trace.ranks}
        compared = known_waits(trace, self.tolerance)
        waits = {rank: compared.get(rank, IntervalSet.empty()) for rank in trace.ranks}
        inside = {rank: exposed[rank].intersect(judged[rank]) for rank in trace.ranks}
        return HostCollectives(
            by_name=_by_name(calls, exposed),
            exposed_ns=sum(time.total for time in exposed.values()),
            judged_exposed_ns=sum(inside[rank].subtract(waits[rank]).total for rank in trace.ranks),
            waiting_ns=sum(inside[rank].intersect(waits[rank]).total for rank in trace.ranks) if compared else None,
            aligned=bool(compared) and find_waits(trace, self.tolerance).skew.collectives > 0,
            judged_ns=sum(time.total for time in judged.values()),
            judged_words=judged_words(trace),
            ranks=len(trace.ranks),
            one_machine=share_a_clock(trace),
        )

    def judge(self, result: HostCollectives) -> tuple[Finding, ...]:
        """Return TV506 if the program waits long in collectives on the host."""
        cost = result.judged_exposed_ns
        if not cost or cost < self.exposed_share * result.judged_ns:
            return ()
        largest = str(result.by_name["name"][0])
        caveat = f" {result.caveat}" if result.caveat else ""
        between_two = result.by_name.filter(pl.col("name").str.contains(BETWEEN_TWO))
        paired, exposed = (int(rows["exposed_ns"].sum()) for rows in (between_two, result.by_name))
        is_paired = paired >= PAIRED * exposed
        part = "mostly" if 2 * int(result.by_name["exposed_ns"][0]) >= exposed else "the largest part in"
        summed = f" summed over {result.ranks} ranks" if result.ranks > 1 else ""
        message = (
            f"For {format_ratio(cost / result.judged_ns)} of the {result.judged_words}, the program waits in "
            f"{'transfers between ranks' if is_paired else 'collectives'} on the host and does nothing else "
            f"({format_ns(cost)}{summed}, {part} {largest}).{caveat}"
        )
        evidence = (
            Fact("exposed_ns", "waiting in collectives", cost, "ns"),
            *(Fact("waiting_ns", "besides, waiting for late ranks", w, "ns") for w in (result.waiting_ns,) if w),
            Fact("calls", "calls", int(result.by_name["calls"].sum()), "count"),
            Fact("largest", "largest", largest),
        )
        by_mpi = result.by_name["name"].str.contains(BY_MPI)
        others: tuple[str, ...] = tv506.OF_PYTORCH if by_mpi.all() else () if by_mpi.any() else tv506.OF_MPI
        others += (tv506.RECORD_ALL,) * (result.ranks > 1)
        others += tv506.OF_PYTORCH[:1] * result.one_machine  # the program uses no device, and its ranks no network
        advice = tuple(line for line in record_of("TV506").advice if line not in others)
        return (finding("TV506", message, evidence, cost, result.judged_ns, result.judged_words, advice=advice),)

    def describe(self, result: HostCollectives) -> Section:
        """Describe the wait of the program in them, and the collectives by name."""
        facts = (
            Fact("total_ns", "time, summed over threads", int(result.by_name["total_ns"].sum()), "ns"),
            Fact("exposed_ns", "nothing else is done", result.exposed_ns, "ns"),
            Fact("waiting_ns", "of it waiting for other ranks", result.waiting_ns, "ns"),
            Fact("calls", "calls", int(result.by_name["calls"].sum()), "count"),
        )
        columns = (
            Column("name", "Collective", "text", 0),
            CALLS,
            TOTAL,
            Column("exposed_ns", "Exposed", "ns", 1, additive=True),
            *DURATION_COLUMNS,
        )
        remarks = (Prose(result.caveat),) if result.caveat and result.exposed_ns else ()
        return Section(self.slug, self.title, (*by_knowledge(facts), frame_grid(columns, result.by_name), *remarks))


def _by_name(calls: pl.DataFrame, exposed: dict[int, IntervalSet]) -> pl.DataFrame:
    """Return one row per name: its statistics, and ``exposed_ns``."""
    duration = (pl.col("end_ns") - pl.col("start_ns")).alias("dur_ns")
    times = pl.DataFrame(
        [
            (name, exposed[rank].intersect(intervals(part)).total)
            for (rank, name), part in calls.partition_by("process_id", "name", as_dict=True).items()
        ],
        schema={"name": pl.String, "exposed_ns": pl.Int64},
        orient="row",
    )
    sums = times.group_by("name").agg(pl.col("exposed_ns").sum())
    rows = totals_by(calls.with_columns(duration), "name").join(sums, on="name")
    return rows.sort("exposed_ns", "total_ns", "name", descending=[True, True, False])
