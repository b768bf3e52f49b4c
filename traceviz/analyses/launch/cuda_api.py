"""Time in the CUDA API: the host's time by call, and the part of it in which the device had to wait.

This is the table that nvprof printed as "API calls", with three additions: the share of wall time, the part before and
after the first steady step, and the *exposed* part, in which no device of the process works. A call that only runs at
start-up, or behind a busy device, is not a problem, even with a large share.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from traceviz.analyses.base import Analysis, finding
from traceviz.analyses.derived.frames import bounds, codes, intervals, is_one_name, parts_by, without_nulls
from traceviz.analyses.derived.grouped import Groups
from traceviz.analyses.derived.host.copy_calls import copy_calls, unasked_waits
from traceviz.analyses.derived.judged_time import (
    host_time,
    judged_time,
    judged_words,
    steady_grid,
    steady_time,
    sums_in_steps,
)
from traceviz.analyses.derived.launch.first import first_calls
from traceviz.analyses.derived.statistics import (
    CALLS,
    DURATION_COLUMNS,
    TOTAL,
    duration_columns,
    frame_grid,
    largest_first,
    rows_of,
)
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.launch.blocking_copies import BlockingCopies, blocking_copies, blocking_finding
from traceviz.analyses.launch.waits import HostWaits, advice_for, host_waits
from traceviz.core.arrays.intervals import IntervalSet
from traceviz.core.arrays.nested import Codes, alike
from traceviz.core.units import counted, format_ns, format_ratio
from traceviz.report import Block, Column, Fact, Facts, Finding, Grid, Prose, Section, Skipped
from traceviz.report.findings.record import READ_RARELY, WARNING_SHARE
from traceviz.report.findings.registry import record_of
from traceviz.trace.names.cuda_names import ApiKind, api_kind


@dataclass(frozen=True, slots=True)
class ApiShares:
    """Calls by name and by thread, with the time that findings weigh.

    Args:
        by_name: One row per (name, domain), the largest total first.
        by_thread: One row per (process, thread).
        in_steps: Calls that start in steady steps, by name and domain.
        nested_ns: Time of driver calls inside a runtime call of the same thread, which both domains count.
        steady_exposed: Calls and exposed nanoseconds within judged time, by name.
        judged_ns: The time that findings are judged on, summed over processes.
        judged_words: Text that names that time.
        steps: Number of steady steps; 0 if none were found.
        waits: Calls in which the host waits for a device, and their cost.
        copies: Copies that block the host without an explicit wait while no device works.
        remarks: Sentences about facts that function names do not show: copies that wait, and first calls.
    """

    by_name: pl.DataFrame
    by_thread: pl.DataFrame
    in_steps: pl.DataFrame
    nested_ns: int
    steady_exposed: dict[str, tuple[int, int]]
    judged_ns: int
    judged_words: str
    steps: int
    waits: HostWaits
    copies: BlockingCopies
    remarks: tuple[str, ...] = ()

    @property
    def exposed_ns(self) -> int | None:
        """Time of calls in which no device works; ``None`` if no device work was recorded."""
        known = self.by_name["exposed_ns"].drop_nulls()
        return int(known.sum()) if len(known) or not self.by_name.height else None


@dataclass(frozen=True, slots=True)
class CudaApiAnalysis(Analysis[ApiShares]):
    """Time per CUDA API function.

    Args:
        min_share: Exposed steady time is a finding from this share of the judged time on.
        copy_share: Copies in which the host waits are a finding from this share of the judged time on.
        fold_below: Rows below this share of API time fold into "other" in pictures, never in data.
    """

    slug = "cuda_api"
    title = "CUDA API time share"
    rules = ("TV203", "TV206", "TV301", "TV304")

    min_share: float = 0.02
    copy_share: float = WARNING_SHARE
    fold_below: float = 0.01

    def run(self, trace: TraceView) -> ApiShares | Skipped:
        """Aggregate the calls."""
        if not trace.tables.rows("cuda_api"):
            return self.skipped("no call of the device's API was captured")
        calls = trace.frame("cuda_api", *_COLUMNS)
        begin, end = trace.recorded_window  # one source records devices and calls at the same time
        by_name, sums = _grouped(trace, calls, end - begin)
        judged_ns = sum(judged_time(trace, rank).total for rank in trace.ranks)
        nested_ns = 0
        if _nests(sums):  # driver calls inside runtime calls of the same thread
            for part in parts_by(calls, "thread_id").values():
                runtime, driver = (part.filter(pl.col("domain") == domain) for domain in ("runtime", "driver"))
                nested_ns += int(intervals(runtime).overlap(*bounds(driver)).sum())
        return ApiShares(
            by_name=by_name,
            by_thread=_by_thread(calls, sums, end - begin),
            in_steps=sums_in_steps(trace, calls, "name", "domain", of_host=True),
            nested_ns=nested_ns,
            steady_exposed=_steady_exposed(trace),
            judged_ns=judged_ns,
            judged_words=judged_words(trace),
            steps=training_steps(trace).steady.height,
            waits=host_waits(trace),
            copies=blocking_copies(trace, self.copy_share * judged_ns),
            remarks=_remarks(trace, self.fold_below * int(sums["total_ns"].sum())),
        )

    def judge(self, result: ApiShares) -> tuple[Finding, ...]:
        """Return findings on copies that wait, and on allocation, streams and synchronisation that idle devices."""
        copies, blocking = result.copies, None
        if copies.calls and copies.exposed_ns >= self.copy_share * result.judged_ns:
            blocking = blocking_finding(copies, result.judged_ns, result.judged_words, result.steps)
        if not result.steps:
            return () if blocking is None else (blocking,)
        findings = (
            blocking,
            self._of_kind(result, "TV301", "allocation", "Memory is allocated or freed"),
            self._of_kind(result, "TV304", "stream", "Streams are created or destroyed"),
            self._waits(result),
        )
        return tuple(finding for finding in findings if finding is not None)

    def _of_kind(self, result: ApiShares, code: str, kind: ApiKind, event: str) -> Finding | None:
        names = {name: entry for name, entry in result.steady_exposed.items() if api_kind(name) == kind}
        cost = sum(exposed for _, exposed in names.values())
        if not names or cost < self.min_share * result.judged_ns:
            return None
        calls = sum(count for count, _ in names.values())
        worst = max(names, key=lambda name: names[name][1])
        message = (
            f"{event} {calls / result.steps:.1f} times per steady step, and the device is idle for "
            f"{format_ns(cost)} of it ({format_ratio(cost / result.judged_ns)} of the {result.judged_words})."
        )
        evidence = (
            Fact("calls_per_step", "calls per step", round(calls / result.steps, 2), "number"),
            Fact("exposed_ns", "exposed time", cost, "ns"),
            Fact("worst", "largest", worst),
        )
        return finding(code, message, evidence, cost, result.judged_ns, result.judged_words)

    def _waits(self, result: ApiShares) -> Finding | None:
        waits, cost = result.waits, result.waits.exposed_ns
        if not waits.calls or cost < self.min_share * result.judged_ns:
            return None
        causes = waits.causes["op"].head(3).to_list()
        where = f", in {' and '.join(causes)}" if causes else ""
        message = (
            f"The host waits for the device {waits.calls / result.steps:.1f} times per steady step (mostly "
            f"{waits.worst}{where}), and the device then idles: {format_ratio(cost / result.judged_ns)} of the "
            f"{result.judged_words}."
        )
        evidence = (
            Fact("calls_per_step", "calls per step", round(waits.calls / result.steps, 2), "number"),
            Fact("exposed_ns", "idle until new work arrives", cost, "ns"),
            Fact("worst", "largest", waits.worst),
            *(Fact("cause", "operation that waits", cause) for cause in causes[:1]),
        )
        specific = advice_for(waits.causes)
        general = (line for line in record_of("TV203").advice if not specific or line != READ_RARELY)
        return finding(
            "TV203", message, evidence, cost, result.judged_ns, result.judged_words, advice=(*specific, *general)
        )

    def describe(self, result: ApiShares) -> Section:
        """Describe the table of functions, and threads for machines."""
        total = int(result.by_name["total_ns"].sum())
        facts = [
            Fact("api_total_ns", "time, all threads", total, "ns"),
            Fact("calls", "calls", int(result.by_name["calls"].sum()), "count"),
            Fact("exposed_ns", "with the device idle", result.exposed_ns, "ns"),
        ]
        if result.nested_ns:
            facts.append(Fact("nested_ns", "driver calls inside runtime calls", result.nested_ns, "ns"))
        columns = (
            Column("name", "Function", "text", 0),
            Column("domain", "Domain", "text", 6),
            CALLS,
            TOTAL,
            Column("share_of_api", "Of API time", "ratio", 0, bar=True),
            Column("share_of_wall", "Of wall", "ratio", 4, additive=True),
            Column("startup_ns", "Start-up", "ns", 3, additive=True),
            Column("steady_ns", "Steady", "ns", 2, additive=True),
            Column("exposed_ns", "Exposed", "ns", 1, additive=True),
            *DURATION_COLUMNS,
        )
        blocks: list[Block] = [
            Facts(tuple(facts)),
            frame_grid(columns, result.by_name, fold_below=self.fold_below),
            _threads(result.by_thread),
            steady_grid(result.in_steps, Column("name", "Function", "text", 0), Column("domain", "Domain", "text", 6)),
        ]
        blocks += [Prose(remark) for remark in result.remarks]
        if not result.steps:
            blocks.append(Prose("No steps were found, so start-up and steady time are not told apart."))
        return Section(self.slug, self.title, tuple(blocks))


_BLOCK = 1 << 18
"""Number of calls whose ends are in memory at a time."""
_COLUMNS = ("start_ns", "dur_ns", "process_id", "thread_id", "name", "domain")


def _grouped(trace: TraceView, calls: pl.DataFrame, span_ns: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return statistics per function, and :func:`_sums`. The groups take memory and are released here."""
    finest = _finest_groups(calls)
    sums = _sums(trace, calls, finest)
    return _by_name(calls["dur_ns"], finest.codes, sums, span_ns), sums


def _finest_groups(calls: pl.DataFrame) -> Groups:
    """Return the groups that all others are made from: calls of one function, in one domain, on one thread."""
    columns = [codes(calls["name"])]
    if not is_one_name(calls, "domain"):
        columns.append(codes(calls["domain"]))
    columns += [calls[name].to_numpy() for name in ("process_id", "thread_id")]
    several = [column for column in columns if column.min() != column.max()]
    group, firsts = alike(*several or columns[:1])
    keys = calls.select("name", "domain", "process_id", "thread_id")[firsts]
    return Groups(keys.with_columns(pl.col("name", "domain").cast(pl.String)), group)


def _sums(trace: TraceView, calls: pl.DataFrame, groups: Groups) -> pl.DataFrame:
    """Return keys of ``groups`` with ``calls``, ``total_ns``, and its parts; unknown parts are null.

    ``startup_ns`` is before the first steady step, ``steady_ns`` the rest. In ``exposed_ns`` no device works.
    """
    starts, lasting = calls["start_ns"].to_numpy(), without_nulls(calls["dur_ns"], 0).to_numpy()
    total = groups.sums(lasting)
    users = groups.keys["process_id"].to_numpy()
    startup, exposed = np.zeros_like(total), np.zeros_like(total)
    known = bool(steady_time(trace))
    for process in np.unique(users).tolist():
        owners = groups.codes
        if not (users == process).all():
            owners = np.where(users == process, np.arange(users.size, dtype=np.int32), -1)[owners]
        idle, before = _idle_of_user(trace, process), IntervalSet.empty()
        if known:
            # The first steady step of the process; if it has none, that of any process.
            firsts = {rank: int(window.starts[0]) for rank, window in host_time(trace).items()}
            first_steady = firsts.get(process, min(firsts.values()))
            before = IntervalSet.span(int(starts[0]), max(int(starts[0]), first_steady))
        for begin in range(0, starts.size, _BLOCK):
            part = slice(begin, begin + _BLOCK)
            ends = starts[part] + lasting[part]
            idle.add_overlap(starts[part], ends, owners[part], exposed)
            before.add_overlap(starts[part], ends, owners[part], startup)
    parts = {
        "startup_ns": startup if known else None,
        "steady_ns": total - startup if known else None,
        "exposed_ns": exposed if trace.has_device_tables else None,
    }
    return groups.keys.with_columns(
        pl.Series("calls", groups.counts),
        pl.Series("total_ns", total),
        *(pl.Series(name, [None] * len(groups) if part is None else part, pl.Int64) for name, part in parts.items()),
    )


def _idle_of_user(trace: TraceView, process: int) -> IntervalSet:
    """Return idle time of the devices of a process; none if it uses no device, since no device waits for it."""
    return trace.idle_of(process) if process in trace.rank_busy else IntervalSet.empty()


def _by_name(durations: pl.Series, finest: Codes, sums: pl.DataFrame, span_ns: int) -> pl.DataFrame:
    """Return statistics per function. Its share of wall time is that of the average thread that calls it.

    The codes of the ``finest`` groups, whose ``sums`` are given, are overwritten with those of functions.
    """
    by_name = Groups.of(sums, "name", "domain")
    for begin in range(0, finest.size, _BLOCK):
        part = slice(begin, begin + _BLOCK)
        finest[part] = by_name.codes[finest[part]]
    groups = Groups(by_name.keys, finest)
    parts = [_summed(by_name, sums[name]) for name in ("startup_ns", "steady_ns", "exposed_ns")]
    threads = pl.Series("threads", by_name.distinct(sums["thread_id"]))
    rows = groups.keys.with_columns(*duration_columns(groups, durations), *parts, threads)
    return largest_first(rows, "name", "domain").with_columns(
        (pl.col("total_ns") / pl.col("total_ns").sum()).fill_nan(0.0).alias("share_of_api"),
        (pl.col("total_ns") / (pl.col("threads") * max(span_ns, 1))).alias("share_of_wall"),
    )


def _summed(groups: Groups, part: pl.Series) -> pl.Series:
    """Return the sums of ``part`` by group; null if it is not known."""
    if part.null_count():
        return pl.Series(part.name, [None] * len(groups), pl.Int64)
    return pl.Series(part.name, groups.sums(part.to_numpy()))


def _by_thread(calls: pl.DataFrame, sums: pl.DataFrame, span_ns: int) -> pl.DataFrame:
    """Return sums per thread. If driver calls run inside runtime calls, wall time counts once."""
    keys = ("process_id", "thread_id")
    groups = Groups.of(sums, *keys)
    columns = (_summed(groups, sums[name].fill_null(0)) for name in ("calls", "total_ns", "exposed_ns"))
    frame = groups.keys.with_columns(*columns)
    wall = frame["total_ns"]
    if _nests(sums):
        inside = {thread: intervals(part).total for thread, part in parts_by(calls, "thread_id").items()}
        wall = pl.Series([inside[thread] for thread in frame["thread_id"]], dtype=pl.Int64)
    shares = frame.with_columns((wall / max(span_ns, 1)).alias("share_of_wall"))
    return shares.sort("total_ns", *keys, descending=[True, False, False])


def _nests(sums: pl.DataFrame) -> bool:
    """Return whether there are calls of several domains. Those of the driver may then run inside others."""
    return sums["domain"].n_unique() > 1


JUDGED_KINDS: tuple[ApiKind, ...] = ("allocation", "stream")
"""Kinds of calls that findings are about."""


def _steady_exposed(trace: TraceView) -> dict[str, tuple[int, int]]:
    """Return calls of :data:`JUDGED_KINDS` in steady steps and their exposed nanoseconds there, by name."""
    sums: dict[str, tuple[int, int]] = {}
    if not steady_time(trace):
        return sums
    calls = trace.api_calls(*JUDGED_KINDS)
    for part in calls.partition_by("process_id", "name"):
        process, name = int(part["process_id"][0]), str(part["name"][0])
        window = steady_time(trace).get(process, IntervalSet.empty())
        count = int(np.count_nonzero(window.overlap(*bounds(part))))
        exposed = int(_idle_of_user(trace, process).intersect(window).overlap(*bounds(part)).sum())
        if count:
            before = sums.get(name, (0, 0))
            sums[name] = (before[0] + count, before[1] + exposed)
    return sums


def _threads(by_thread: pl.DataFrame) -> Grid:
    columns = (
        Column("process", "Process", "id", 0),
        Column("thread", "Thread", "id", 0),
        CALLS,
        TOTAL,
        Column("share_of_wall", "Of wall", "ratio", 0, additive=True),
        Column("exposed_ns", "Exposed", "ns", 1, additive=True),
    )
    names = ("process_id", "thread_id", "calls", "total_ns", "share_of_wall", "exposed_ns")
    return Grid(columns, rows_of(by_thread, names), "By thread", audience="machine")


_TEXT = pl.col("name").cast(pl.String)
_DO = {"context": "to create the context of a device", "code": "to load device code"}


def _remarks(trace: TraceView, least_ns: float) -> tuple[str, ...]:
    """Return a sentence for each function with ``least_ns`` of copies that wait, or of first calls."""
    time = (pl.col("end_ns") - pl.col("start_ns")).sum().alias("time")
    sums = first_calls(trace).group_by(_TEXT, "what").agg(pl.len().alias("calls"), time)
    rows = sums.filter(pl.col("time") >= max(least_ns, 1)).sort("time", "name", descending=True)
    of_first_calls = [
        f"{counted(calls, 'call')} of {name} took {format_ns(ns)} {_DO[what]}, which comes once."
        for name, what, calls, ns in rows[["name", "what", "calls", "time"]].iter_rows()
    ]
    return (*_of_copies(trace, least_ns), *of_first_calls)


def _of_copies(trace: TraceView, least_ns: float) -> list[str]:
    if not unasked_waits(trace).height:
        return []
    every = copy_calls(trace).group_by(_TEXT).agg(pl.len().alias("every"))
    time = (pl.col("end_ns") - pl.col("wait_ns")).sum().alias("time")
    waits = unasked_waits(trace).group_by(_TEXT).agg(pl.len().alias("calls"), time)
    rows = waits.filter(pl.col("time") >= max(least_ns, 1)).join(every, on="name").sort("time", "name", descending=True)
    return [
        f"{calls:,} of {of:,} calls of {name} wait until their copy is done, {format_ns(ns)} in all."
        for name, calls, ns, of in rows[["name", "calls", "time", "every"]].iter_rows()
    ]
