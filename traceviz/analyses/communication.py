"""Communication between devices: how long it takes, and how much of it no compute hides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from traceviz.analyses.base import Analysis
from traceviz.analyses.device_work import exposed
from traceviz.analyses.frames import unions_by
from traceviz.analyses.statistics import (
    CALLS,
    DURATION_COLUMNS,
    DURATION_NAMES,
    TOTAL,
    duration_statistics,
    ratio,
    rows_of,
)
from traceviz.analyses.view import TraceView
from traceviz.kernel_names import COMMUNICATION
from traceviz.report import Block, Column, Fact, Facts, Grid, Prose, Section


@dataclass(frozen=True, slots=True)
class CommunicationTimes:
    """Communication kernels by name, and their union over streams, summed over devices.

    Args:
        by_name: One row per kernel name, the largest total first.
        busy_ns: Time in which at least one communication kernel runs.
        exposed_ns: The part of it in which no other kernel runs on that device.
    """

    by_name: pl.DataFrame
    busy_ns: int
    exposed_ns: int

    @property
    def overlap_share(self) -> float | None:
        """The part of communication during which compute runs; ``None`` where there is no communication."""
        return ratio(self.busy_ns - self.exposed_ns, self.busy_ns)


@dataclass(frozen=True, slots=True)
class CommunicationAnalysis(Analysis[CommunicationTimes]):
    """NCCL, RCCL and other kernels that move data between devices."""

    slug: ClassVar[str] = "communication"
    title: ClassVar[str] = "Communication"
    needs: ClassVar[tuple[str, ...]] = ("kernels",)

    def run(self, trace: TraceView) -> CommunicationTimes:
        """Tell communication kernels from compute kernels and overlay them per device."""
        names = [name for name, found in trace.kernel_classes.items() if found.family == COMMUNICATION]
        kernels = trace.frame("kernels", "start_ns", "dur_ns", "device_id", "name")
        is_communication = pl.col("name").cast(pl.String).is_in(names)
        communication = kernels.filter(is_communication)
        alone = exposed(communication, unions_by(kernels.filter(~is_communication), "device_id"))
        by_name = (
            communication.group_by("name").agg(*duration_statistics()).with_columns(pl.col("name").cast(pl.String))
        )
        return CommunicationTimes(
            by_name.sort("total_ns", "name", descending=[True, False]),
            sum(busy.total for busy in unions_by(communication, "device_id").values()),
            sum(part.total for part in alone.values()),
        )

    def describe(self, result: CommunicationTimes) -> Section:
        """Exposed and hidden communication, and the kernels."""
        facts = (
            Fact("total_ns", "kernel time, summed", int(result.by_name["total_ns"].sum()), "ns"),
            Fact("exposed_ns", "not hidden by compute", result.exposed_ns, "ns"),
            Fact("overlap_share", "hidden by compute", result.overlap_share, "ratio"),
            Fact("busy_ns", "device time", result.busy_ns, "ns"),
            Fact("calls", "calls", int(result.by_name["calls"].sum()), "count"),
        )
        columns = (Column("name", "Kernel", "text", 0), CALLS, TOTAL, *DURATION_COLUMNS)
        rows = rows_of(result.by_name, ("name", "calls", "total_ns", *DURATION_NAMES))
        blocks: tuple[Block, ...] = (Facts(facts), Grid(columns, rows))
        if not rows:
            silent = (Facts(facts, audience="machine"), Grid(columns, rows, audience="machine"))
            blocks = (Prose("No communication kernel ran."), *silent)
        return Section(self.slug, self.title, blocks)
