"""Section ``acme_short_kernels``: kernels that are too short for the scheduler of ACME devices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from traceviz.plugins import Analysis, Fact, Facts, Finding, Section, Skipped, TraceView, finding


@dataclass(frozen=True, slots=True)
class ShortKernels:
    """Number and time of short kernels, and the time of all."""

    calls: int
    short_ns: int
    total_ns: int


@dataclass(frozen=True, slots=True)
class ShortKernelsAnalysis(Analysis[ShortKernels]):
    """Time in short kernels.

    Args:
        limit_ns: Duration below which a kernel is short.
        least_share: Share of kernel time from which there is a finding.
    """

    slug: ClassVar[str] = "acme_short_kernels"
    title: ClassVar[str] = "Short kernels (ACME)"
    rules: ClassVar[tuple[str, ...]] = ("ACME101",)

    limit_ns: int = 10_000
    least_share: float = 0.2

    def run(self, trace: TraceView) -> ShortKernels | Skipped:
        """Sum the kernels of traces of ACME; skip all others."""
        if trace.tables.run_facts().get("format") != "acme":
            return self.skipped("it is about traces of ACME")
        kernels = trace.frame("kernels", "dur_ns")
        short = kernels.filter(pl.col("dur_ns") < self.limit_ns)
        return ShortKernels(short.height, short["dur_ns"].sum(), kernels["dur_ns"].sum())

    def judge(self, result: ShortKernels) -> tuple[Finding, ...]:
        """Raise ACME101 if short kernels take a large share of kernel time."""
        if not result.total_ns or result.short_ns < self.least_share * result.total_ns:
            return ()
        message = f"{result.calls} kernels are shorter than {self.limit_ns / 1000:g} µs."
        facts = self.describe(result).blocks[0].facts
        return (finding("ACME101", message, facts, result.short_ns, result.total_ns, "kernel time"),)

    def describe(self, result: ShortKernels) -> Section:
        """Describe the result by three facts."""
        facts = (
            Fact("calls", "short kernels", result.calls, "count"),
            Fact("short_ns", "time in them", result.short_ns, "ns"),
            Fact("total_ns", "time in all kernels", result.total_ns, "ns"),
        )
        return Section(self.slug, self.title, (Facts(facts),))
