"""Copies and fills of device memory: amount, speed, kind of memory, and overlap with compute."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from traceviz.analyses.base import Analysis, finding
from traceviz.analyses.derived.capture.kind import why_no_device_work
from traceviz.analyses.derived.causes.call_places import call_places, costliest_place
from traceviz.analyses.derived.causes.parts import limit_to_parts
from traceviz.analyses.derived.device.work import computing, exposed, judged_device_ns, kernel_busy
from traceviz.analyses.derived.frames import having, intervals, parts_by
from traceviz.analyses.derived.host.copy_calls import asked_waits, copy_calls
from traceviz.analyses.derived.host.copy_purposes import copy_purposes
from traceviz.analyses.derived.judged_time import judged_time, judged_words, steady_grid, steady_time, sums_in_steps
from traceviz.analyses.derived.launch.join import LAUNCH_KEY
from traceviz.analyses.derived.patterns import matches
from traceviz.analyses.derived.statistics import CALLS, DURATION_COLUMNS, TOTAL, frame_grid, totals_by
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.device.parameter_transfers import ParameterTransfers, parameter_transfers
from traceviz.core.arrays.intervals import IntervalSet
from traceviz.core.units import format_ns, format_ratio, format_value
from traceviz.report import Audience, Column, Fact, Facts, Finding, Prose, Section, Skipped
from traceviz.report.findings.record import WARNING_SHARE


@dataclass(frozen=True, slots=True)
class Waiting:
    """Copies, or calls, of one kind in judged time that no kernel hides.

    Args:
        calls: Their number.
        bytes: Bytes that they copy.
        exposed_ns: Time in which they run and no kernel does.
        place: Place where the program makes most of them, for readers; empty if they are too few to matter.
        is_pageable: True if most of the blocking calls copy from or to pageable host memory.
    """

    calls: int
    bytes: int
    exposed_ns: int
    place: str = ""
    is_pageable: bool = False


@dataclass(frozen=True, slots=True)
class CopyTimes:
    """Copies and fills by kind and memory, and those worth changing.

    Args:
        by_memory: One row per (kind, source, destination), the largest total first.
        by_kind: One row per kind, with the distribution of times and sizes.
        in_steps: Those that start in steady steps, by kind.
        exposed_ns: Time in which a device copies or fills and runs no kernel, summed over devices; ``None`` if the
            kernels were lost.
        pageable: Copies between a device and pageable host memory.
        blocking: Calls that return only when their copy is done.
        judged_ns: Judged time of all devices.
        judged_words: Text that names the judged time.
        has_steps: True if judged time is that of steady steps.
        parameters: Copies of parameters; ``pageable`` does not include their time.
    """

    by_memory: pl.DataFrame
    by_kind: pl.DataFrame
    in_steps: pl.DataFrame
    exposed_ns: int | None
    pageable: Waiting
    blocking: Waiting
    judged_ns: int
    judged_words: str
    has_steps: bool
    parameters: ParameterTransfers


@dataclass(frozen=True, slots=True)
class CopiesAnalysis(Analysis[CopyTimes]):
    """Memory copies and fills, judged by the kind of memory and not by the name of the call.

    Args:
        small_bytes: Copies up to this size are small. They are staged at once, and pinning gains nothing.
        min_share: Exposed time from this share of the judged time on is a finding if steps are known. Otherwise loading
            the program's data at the start looks the same, and only a warning is raised.
        min_parameters: From this share of the judged time on, copies of parameters are a finding.
    """

    slug = "copies"
    title = "Copies"
    rules = ("TV302", "TV303", "TV505")

    small_bytes: int = 64 * 1024
    min_share: float = 0.01
    min_parameters: float = 0.1

    def run(self, trace: TraceView) -> CopyTimes | Skipped:
        """Aggregate copies and fills, and overlay them with kernels."""
        if not trace.rank_busy:
            return self.skipped(why_no_device_work(trace))
        # Fills are of kind ``memset``, without a source.
        times = ("start_ns", "dur_ns", "process_id", "device_id", "correlation_id", "bytes")
        copies = trace.frame("memcpy", *times, *_MEMORY).with_columns(pl.col(_MEMORY).cast(pl.String))
        fills = trace.frame("memset", *times, "memory").select(
            *times,
            pl.lit("memset").alias("kind"),
            pl.lit(None, pl.String).alias("src_memory"),
            pl.col("memory").cast(pl.String).alias("dst_memory"),
        )
        work = pl.concat([copies, fills])
        kernels = kernel_busy(trace)
        by_kind = totals_by(work, "kind", also=_sizes())
        return CopyTimes(
            by_memory=self._by_memory(work, None if why_no_device_work(trace) else kernels),
            by_kind=by_kind.sort("total_ns", "kind", descending=True),
            in_steps=sums_in_steps(trace, work, "kind", also=("bytes",)),
            exposed_ns=None if why_no_device_work(trace) else _total(exposed(work, kernels)),
            pageable=self._pageable(trace, work, kernels),
            blocking=self._blocking(trace),
            judged_ns=judged_device_ns(trace),
            judged_words=judged_words(trace),
            has_steps=bool(steady_time(trace)),
            parameters=parameter_transfers(trace),
        )

    def _by_memory(self, work: pl.DataFrame, kernels: dict[int, IntervalSet] | None) -> pl.DataFrame:
        is_small = pl.col("bytes") < self.small_bytes
        small = pl.when(is_small.count() > 0).then(is_small.sum().cast(pl.Int64)).alias("small_calls")
        grouped = totals_by(work, *_MEMORY, also=(*_sizes(), small))
        parts = {
            key: None if kernels is None else _total(exposed(part, kernels))
            for key, part in work.partition_by(_MEMORY, as_dict=True).items()
        }
        per_second = pl.when(pl.col("total_ns") > 0).then(pl.col("bytes") * 1e9 / pl.col("total_ns"))
        return grouped.with_columns(
            per_second.alias("bandwidth"),
            pl.Series("exposed_ns", [parts[key] for key in grouped.select(_MEMORY).iter_rows()], pl.Int64),
        )

    def _pageable(self, trace: TraceView, work: pl.DataFrame, kernels: dict[int, IntervalSet]) -> Waiting:
        """Return large copies from and to pageable memory, except those of calls that :meth:`_blocking` counts."""
        from_pageable = (pl.col("kind") == "h2d") & (pl.col("src_memory") == "pageable")
        to_pageable = (pl.col("kind") == "d2h") & (pl.col("dst_memory") == "pageable")
        large = work.filter((from_pageable | to_pageable) & (pl.col("bytes") > self.small_bytes))
        parameters = having(copy_purposes(trace), "purpose", "parameters")
        large = large.join(parameters, on=("process_id", "start_ns", "kind", "bytes"), how="anti")
        if steady_time(trace):
            large = large.join(asked_waits(trace), on=LAUNCH_KEY, how="anti", maintain_order="left")
        calls = size = exposed_ns = 0
        parts = []
        for process, part in parts_by(large, "process_id").items():
            window = judged_time(trace, process)
            inside = part.filter(pl.Series(window.contains(part["start_ns"].to_numpy()), dtype=pl.Boolean))
            calls, size = calls + inside.height, size + int(inside["bytes"].sum())
            exposed_ns += sum(alone.intersect(window).total for alone in exposed(inside, kernels).values())
            parts.append(inside)
        if not calls or exposed_ns < self.min_share * judged_device_ns(trace):
            return Waiting(calls, size, exposed_ns)
        made = copy_calls(trace).join(pl.concat(parts).select(*LAUNCH_KEY, "dur_ns"), on=LAUNCH_KEY)
        return Waiting(calls, size, exposed_ns, costliest_place(call_places(trace, made), "dur_ns"))

    def _blocking(self, trace: TraceView) -> Waiting:
        """Return blocking copy calls in steady steps, and the time within them in which no kernel of the process runs.

        Fills are left out, because ``cudaMemset`` returns before the device has filled.
        """
        calls = asked_waits(trace).filter(matches(pl.col("name").cast(pl.String), "Memcpy"))
        kernels = computing(trace, "start_ns", "dur_ns", "process_id")
        count = size = exposed_ns = 0
        parts = []
        for process, window in steady_time(trace).items():
            own = having(calls, "process_id", process)
            inside = own.filter(pl.Series(window.contains(own["start_ns"].to_numpy()), dtype=pl.Boolean))
            count, size = count + inside.height, size + int(inside["bytes"].sum())
            running = intervals(having(kernels, "process_id", process))
            exposed_ns += intervals(own).intersect(window).subtract(running).total
            parts.append(inside.with_columns((pl.col("end_ns") - pl.col("start_ns")).alias("dur_ns")))
        if not count or exposed_ns < self.min_share * judged_device_ns(trace):
            return Waiting(count, size, exposed_ns)
        exposed_ns = limit_to_parts(trace, "TV303", exposed_ns, judged_device_ns(trace))
        made = pl.concat(parts)
        is_pageable = 2 * int((made["host_memory"] == "pageable").sum()) > made.height
        return Waiting(count, size, exposed_ns, costliest_place(call_places(trace, made), "dur_ns"), is_pageable)

    def judge(self, result: CopyTimes) -> tuple[Finding, ...]:
        """Return findings on pageable copies, blocking calls in steady steps, and exposed copies of parameters."""
        if result.exposed_ns is None:
            return ()
        least = self.min_share if result.has_steps else WARNING_SHARE
        findings = []
        if result.pageable.calls and result.pageable.exposed_ns >= least * result.judged_ns:
            findings.append(_finding("TV302", "copies from or to pageable host memory", result.pageable, result))
        if result.has_steps and result.blocking.calls and result.blocking.exposed_ns >= least * result.judged_ns:
            memory = " from or to pageable host memory" if result.blocking.is_pageable else ""
            findings.append(_finding("TV303", f"blocking copy calls{memory}", result.blocking, result))
        return (*findings, *result.parameters.judge(self.min_parameters))

    def describe(self, result: CopyTimes) -> Section:
        """Describe totals, and one row per kind and memory."""
        # ``None`` if the trace states no sizes.
        sizes = result.by_kind["bytes"]
        size_of = int(sizes.sum()) if sizes.count() or not sizes.len() else None
        facts = (
            Fact("bytes", "bytes", size_of, "bytes"),
            Fact("total_ns", "time, summed", int(result.by_kind["total_ns"].sum()), "ns"),
            Fact("exposed_ns", "no kernel meanwhile", result.exposed_ns, "ns"),
            Fact("calls", "copies and fills", int(result.by_kind["calls"].sum()), "count"),
            *result.parameters.facts,
        )
        audience: Audience = "all" if result.by_memory.height else "machine"
        by_memory = frame_grid(_COLUMNS, result.by_memory, audience=audience)
        by_kind = frame_grid(_KIND_COLUMNS, result.by_kind, "By kind", audience="machine")
        steady = steady_grid(result.in_steps, Column("kind", "Kind", "text", 0))
        nothing = () if result.by_memory.height else (Prose("Nothing was copied or filled."),)
        return Section(self.slug, self.title, (*nothing, Facts(facts, audience=audience), by_memory, by_kind, steady))


_MEMORY = ("kind", "src_memory", "dst_memory")

_COLUMNS = (
    Column("kind", "Kind", "text", 0),
    Column("src_memory", "From", "text", 1),
    Column("dst_memory", "To", "text", 1),
    CALLS,
    Column("bytes", "Bytes", "bytes", 0, additive=True),
    TOTAL,
    Column("bandwidth", "Bandwidth", "bytes/s", 1),
    Column("mean_bytes", "Mean size", "bytes", 3),
    Column("small_calls", "Small", "count", 4),
    Column("exposed_ns", "Exposed", "ns", 2, additive=True),
    *DURATION_COLUMNS,
)

_KIND_COLUMNS = (
    Column("kind", "Kind", "text", 0),
    CALLS,
    Column("bytes", "Bytes", "bytes", 0, additive=True),
    TOTAL,
    *DURATION_COLUMNS,
    Column("mean_bytes", "Mean size", "bytes", 3),
    Column("median_bytes", "Median size", "bytes", 3),
    Column("min_bytes", "Min size", "bytes", 4),
    Column("max_bytes", "Max size", "bytes", 4),
    Column("stddev_bytes", "Std dev of size", "bytes", 5),
)


def _sizes() -> tuple[pl.Expr, ...]:
    """Return expressions for statistics of the bytes of each group."""
    size = pl.col("bytes")
    is_known = size.count() > 0
    return (
        pl.when(is_known).then(size.sum()).alias("bytes"),
        size.mean().alias("mean_bytes"),
        size.median().alias("median_bytes"),
        size.min().alias("min_bytes"),
        size.max().alias("max_bytes"),
        pl.when(is_known).then(size.std(ddof=1).fill_null(0.0)).alias("stddev_bytes"),
    )


def _finding(code: str, subject: str, waiting: Waiting, result: CopyTimes) -> Finding:
    share = format_ratio(waiting.exposed_ns / max(result.judged_ns, 1))
    size = f" of {format_value(waiting.bytes, 'bytes')} in all" if waiting.bytes else ""
    where = f" (mostly in {waiting.place})" if waiting.place else ""
    message = (
        f"{waiting.calls:,} {subject}{size} leave the device without a kernel for {format_ns(waiting.exposed_ns)}, "
        f"{share} of the {result.judged_words}{where}."
    )
    evidence = [
        Fact("calls", "calls", waiting.calls, "count"),
        Fact("exposed_ns", "time without a kernel", waiting.exposed_ns, "ns"),
    ]
    if waiting.bytes:
        evidence.append(Fact("bytes", "bytes", waiting.bytes, "bytes"))
    if waiting.place:
        evidence.append(Fact("place", "called in", waiting.place))
    return finding(code, message, tuple(evidence), waiting.exposed_ns, result.judged_ns, result.judged_words)


def _total(sets: dict[int, IntervalSet]) -> int:
    """Return nanoseconds in all sets together."""
    return sum(part.total for part in sets.values())
