"""Copies of parameters between the host and the devices, and how long devices wait for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from traceviz.analyses.base import finding, known
from traceviz.analyses.derived.frames import having, knowing
from traceviz.analyses.derived.host.classes import host_classes
from traceviz.analyses.derived.host.copy_purposes import copy_purposes
from traceviz.analyses.derived.judged_time import judged_time, judged_words
from traceviz.analyses.derived.view import TraceView
from traceviz.core.lazy_module import Later
from traceviz.core.units import format_ns, format_ratio, format_value
from traceviz.report import Fact, Finding
from traceviz.report.findings.registry import record_of

if TYPE_CHECKING:
    from traceviz.report.findings import tv505_parameter_transfer as tv505
else:
    tv505 = Later("traceviz.report.findings.tv505_parameter_transfer")


@dataclass(frozen=True, slots=True)
class ParameterTransfers:
    """Copies of parameters in judged time, and in the whole capture.

    Args:
        calls: Copies that start in judged time.
        bytes: Bytes that they move.
        exposed_ns: Judged time in which they run and no kernel does, summed over ranks.
        judged_ns: Judged time of all ranks.
        judged_words: Text that names the judged time.
        place: The range whose calls take most of their time; empty if there is none.
        pageable: The share of their time from or to pageable memory.
    """

    calls: int
    bytes: int
    exposed_ns: int
    judged_ns: int
    judged_words: str
    place: str
    pageable: float

    @property
    def share(self) -> float:
        """Share of the judged time."""
        return self.exposed_ns / self.judged_ns if self.judged_ns else 0.0

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Facts about them for a section; empty if there are none."""
        if not self.calls:
            return ()
        return known(
            (
                Fact("parameter_calls", "copies of parameters", self.calls, "count"),
                Fact("parameter_bytes", "bytes of parameters", self.bytes, "bytes"),
                Fact("parameter_exposed_ns", "no kernel during these", self.exposed_ns, "ns"),
                Fact("parameter_place", "called in", self.place or None),
            )
        )

    def judge(self, least: float) -> tuple[Finding, ...]:
        """Return TV505 if their share of the judged time is at least ``least``."""
        if not self.calls or self.share < least:
            return ()
        where = f", called in {self.place}" if self.place else ""
        message = (
            f"{self.calls:,} copies of parameters between host and device ({format_value(self.bytes, 'bytes')}{where}) "
            f"take {format_ns(self.exposed_ns)}, {format_ratio(self.share)} of the {self.judged_words}, in which "
            "nothing is computed."
        )
        advice = tuple(line for line in record_of("TV505").advice if self.pageable or line != tv505.PIN)
        return (
            finding("TV505", message, self.facts, self.exposed_ns, self.judged_ns, self.judged_words, advice=advice),
        )


def parameter_transfers(trace: TraceView) -> ParameterTransfers:
    """Return copies of parameters between host and devices of all ranks."""
    copies = having(copy_purposes(trace), "purpose", "parameters")
    ranks = {rank: judged_time(trace, rank) for rank in trace.ranks}
    inside = [
        own.filter(pl.Series(window.contains(own["start_ns"].to_numpy()), dtype=pl.Boolean))
        for rank, window in ranks.items()
        if (own := having(copies, "process_id", rank)).height
    ]
    judged = pl.concat(inside) if inside else copies.head(0)
    places = knowing(judged, "place").group_by("place").agg(pl.col("dur_ns").sum())
    places = places.sort("dur_ns", "place", descending=[True, False])
    pageable = judged.filter((pl.col("src_memory") == "pageable") | (pl.col("dst_memory") == "pageable"))
    exposed_ns = 0
    if judged.height:
        sets = {rank: host_classes(trace)[rank].sets["parameter_transfer"] for rank in ranks}
        exposed_ns = sum(sets[rank].intersect(window).total for rank, window in ranks.items())
    return ParameterTransfers(
        calls=judged.height,
        bytes=int(judged["bytes"].sum()),
        exposed_ns=exposed_ns,
        judged_ns=sum(window.total for window in ranks.values()),
        judged_words=judged_words(trace),
        place=str(places["place"][0]) if places.height else "",
        pageable=int(pageable["dur_ns"].sum()) / max(int(judged["dur_ns"].sum()), 1),
    )
