"""Activities of the host while no device worked: kinds and causes of the time, each with its place in the program."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from traceviz.analyses.base import Analysis, finding
from traceviz.analyses.derived.calls.host_calls import calls_named
from traceviz.analyses.derived.capture.kind import capture_kind, nothing_says_what_lanes_are, why_idle_is_unknown
from traceviz.analyses.derived.causes.attribution import describe_first_use, host_causes, time_in_calls
from traceviz.analyses.derived.causes.kinds import HOST, KIND_LABELS, KindKey
from traceviz.analyses.derived.causes.parts import find_culprit, find_place
from traceviz.analyses.derived.causes.places import PLACES
from traceviz.analyses.derived.causes.sampling import find_ticks_within
from traceviz.analyses.derived.frames import having, intervals, parts_by
from traceviz.analyses.derived.host.classes import sees_host
from traceviz.analyses.derived.host.migrations import describe_migrations
from traceviz.analyses.derived.judged_time import judged_time, judged_words
from traceviz.analyses.derived.patterns import extracted
from traceviz.analyses.derived.stacks.functions import without_module
from traceviz.analyses.derived.statistics import frame_grid, ratio, share
from traceviz.analyses.derived.view import TraceView
from traceviz.core.units import format_ratio
from traceviz.report import STEADY_STEP_TIME, Bar, Bars, Block, Column, Fact, Facts, Finding, Prose, Section, Skipped
from traceviz.report.findings.record import ERROR_SHARE
from traceviz.report.findings.registry import record_of
from traceviz.report.findings.tv205_host_bound import FRAMEWORK, OPERATOR_ON_HOST, OTHER

_PARTS = "around the parts of a step"
_MARK = {
    "pytorch": f"torch.profiler.record_function {_PARTS}",
    "tensorflow": f"tf.profiler.experimental.Trace {_PARTS}",
    "jax": f"jax.profiler.TraceAnnotation {_PARTS}",
}
_TRACER = "Python frames (python_tracer_level=1)"
_FRAMES = {"pytorch": "torch.profiler.profile(with_stack=True)", "tensorflow": _TRACER, "jax": _TRACER}
_MORE_STEPS = "more steps (collect --steps FIRST:END): too few samples of stacks lie in these"
_OF_CUDA = frozenset({"nsys", "nvprof"})
_NSYS = "nsys profile --trace=cuda,nvtx,osrt"
_UNEXPLAINED = "{} is unexplained: no recorded event covers it. To see more, record {}."
_WORTH_SAYING = 0.1
"""A kind with less than this share of a finding's time is not named in its sentence."""
_MOST_TOTALS = 200
"""Causes whose total time is computed. The total of further causes is not stated."""


def _record(trace: TraceView) -> tuple[str, ...]:
    """Return what to record in addition so that less remains unexplained, the most helpful first."""
    framework = next((name for name in _MARK if name in trace.frameworks), "")
    if trace.tables.rows("stacks"):
        few = all(find_ticks_within(trace, rank, judged_time(trace, rank)).is_empty() for rank in trace.ranks)
        return (_MORE_STEPS if few else _MARK.get(framework, f"ranges {_PARTS}"),)
    if framework and "host_ops" in trace.tables:
        has_frames = "python" in trace.host_names["category"]
        return (_MARK[framework],) if has_frames else (_FRAMES[framework], _MARK[framework])
    if trace.tables.run_facts().get("format") not in _OF_CUDA:
        return (f"ranges {_PARTS}",)
    tracing = () if {"cuda_api", "os_calls"} <= set(trace.tables) else (_NSYS,)
    if trace.tables.rows("scheduling"):
        tracing = ("CPU samples (nsys profile --sample=process-tree)", *tracing)
    return (*tracing, f"NVTX ranges {_PARTS}")


@dataclass(frozen=True, slots=True)
class _Rule:
    """A finding of this analysis, for the exclusive parts that its record explains: they have the same remedy."""

    code: str
    words: str

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the judged time that the finding explains."""
        return record_of(self.code).explains


OF_FRAMEWORK: frozenset[KindKey] = frozenset({"operator", "optimizer", "runtime"})
"""Kinds of work that compiling the step can save, as well as Python in modules of a model."""
_WORTH_COMPUTING = 0.05
"""Operators below this share of the host's own work are not examined."""
_RULES: tuple[_Rule, ...] = (
    _Rule("TV205", "no device works while the host prepares work"),
    _Rule("TV207", "no device works while the host waits"),
    _Rule("TV208", "no device works while first calls set up the device or a library"),
    _Rule("TV209", "no device works while the leading thread waits"),
    _Rule("TV210", "no device works while memory is allocated, freed or registered, or streams are created"),
    _Rule("TV211", "no device works while code is compiled or loaded"),
    _Rule("TV212", "no device works while pages of managed memory migrate"),
)


@dataclass(frozen=True)
class HostCauses:
    """Causes of the judged time without device work, over all ranks.

    Args:
        causes: Rows of :func:`~traceviz.analyses.derived.causes.attribution.host_causes`.
        totals: Judged time of all calls with a name, with or without a busy device, by ``cause``.
        judged_ns: Judged time, summed over ranks.
        judged_words: Text that names the judged time.
        host_only: True if there is no device, so that the host's work is the program's own.
        sees_host: True if anything of the host was recorded.
        record: Advice on what to record so that less remains unexplained, the most helpful first.
        within: The innermost event in which most of the host's own work was done; may be empty.
        sampled: True if stacks were sampled. Lines are then those that ran.
        first_use: Sentence about the operator whose first call takes most time, if one is much slower than later.
        computes: True if most of the host's own work is in operators that launch nothing: they compute on the host.
        migrations: Sentence about the migrations of managed memory in the capture; empty if there are none.
    """

    causes: pl.DataFrame
    totals: pl.DataFrame
    judged_ns: int
    judged_words: str
    host_only: bool
    sees_host: bool
    record: tuple[str, ...]
    within: str = ""
    sampled: bool = False
    first_use: str = ""
    computes: bool = False
    migrations: str = ""

    @cached_property
    def kinds(self) -> dict[str, int]:
        """Time by kind, the largest first; unexplained time is last."""
        sums = (
            self.causes.group_by("kind").agg(pl.col("time_ns").sum()).sort("time_ns", "kind", descending=[True, False])
        )
        times = dict(sums.iter_rows())
        unexplained = times.pop("unexplained", 0)
        return {**times, "unexplained": unexplained} if unexplained else times

    @property
    def idle_ns(self) -> int:
        """Judged time without device work."""
        return sum(self.kinds.values())

    def time_of(self, kinds: Collection[str]) -> int:
        """Return the time of these kinds."""
        return sum(time for kind, time in self.kinds.items() if kind in kinds)

    def of_parts(self, parts: Collection[str]) -> pl.DataFrame:
        """Return the causes of these exclusive parts."""
        return self.causes.filter(pl.col("part").is_in(list(parts)))

    def share(self, time_ns: int) -> str:
        """Format a part of the judged time as a share, for readers."""
        return format_ratio(time_ns / self.judged_ns)


@dataclass(frozen=True, slots=True)
class HostWaitsAnalysis(Analysis[HostCauses]):
    """Causes of time without device work. Each nanosecond belongs to the innermost recorded event that explains it.

    Args:
        cause_share: From this share of the judged time on, causes with one remedy are a finding.
        fold_below: Rows below this share fold into "other" in pictures, never in data.
        least_share: Causes with less of the judged time than this are not listed; kinds contain them.
    """

    slug = "host_waits"
    title = "What the host did while the device idled"
    rules = tuple(entry.code for entry in _RULES)

    cause_share: float = ERROR_SHARE
    fold_below: float = 0.01
    least_share: float = 0.001

    def run(self, trace: TraceView) -> HostCauses | Skipped:
        """Attribute the judged time without device work."""
        if why := why_idle_is_unknown(trace):
            return self.skipped(why)
        judged_ns = sum(judged_time(trace, rank).total for rank in trace.ranks)
        if not judged_ns:
            return self.skipped("no time is judged: there are neither steps nor device work")
        if capture_kind(trace).key == "filtered":
            return self.skipped("the trace was filtered to some kernels")
        if nothing_says_what_lanes_are(trace):
            return self.skipped("nothing says what its lanes are")
        causes = host_causes(trace)
        if not causes.height:
            return self.skipped("devices worked all the time")
        return HostCauses(
            causes,
            time_in_calls(trace, by_cause(causes)["cause"].drop_nulls().unique(maintain_order=True).head(_MOST_TOTALS)),
            judged_ns,
            judged_words(trace),
            host_only=not trace.rank_busy,
            sees_host=sees_host(trace),
            record=_record(trace),
            within=find_place(trace, HOST) if trace.rank_busy else "",
            sampled=bool(trace.tables.rows("stacks")),
            first_use=describe_first_use(trace, having(causes, "kind", "first_launch")),
            computes=_computes(trace, causes),
            migrations=describe_migrations(trace) if (causes["part"] == "migration").any() else "",
        )

    def judge(self, result: HostCauses) -> tuple[Finding, ...]:
        """Return TV205 and TV207 to TV212 if causes with one remedy take much of the judged time."""
        if result.host_only:
            return ()
        times = dict(result.causes.group_by("part").agg(pl.col("time_ns").sum()).iter_rows())
        least = self.cause_share * result.judged_ns
        worth = (entry for entry in _RULES if sum(times.get(part, 0) for part in entry.parts) >= least)
        return tuple(_finding(result, entry, result.of_parts(entry.parts)) for entry in worth)

    def describe(self, result: HostCauses) -> Section:
        """Describe kinds as one stacked bar, then the causes."""
        of_steps = result.judged_words == STEADY_STEP_TIME
        did = "What the steps did" if of_steps else "What the program did"
        title = did if result.host_only else self.title
        unexplained = result.time_of(["unexplained"])
        facts = (
            Fact("idle_ns", "without device work", None if result.host_only else result.idle_ns, "ns"),
            Fact("idle_share", f"of {result.judged_words}", ratio(result.idle_ns, result.judged_ns), "ratio"),
            Fact("unexplained_share", "unexplained", ratio(unexplained, result.judged_ns), "ratio"),
        )
        shown = tuple(fact for fact in facts if fact.value is not None)
        bars = tuple(Bar(kind, KIND_LABELS[kind], time, time / result.idle_ns) for kind, time in result.kinds.items())
        judged = "time of the steps" if of_steps else result.judged_words
        whole = judged if result.host_only else "time without device work"
        blocks: list[Block] = [Facts(shown), Bars("Kinds", whole, "ns", bars)]
        if unexplained >= self.fold_below * result.judged_ns:
            blocks.append(Prose(_UNEXPLAINED.format(result.share(unexplained), ", and ".join(result.record))))
        blocks.append(self._grid(result))
        return Section(self.slug, title, tuple(blocks))

    def _grid(self, result: HostCauses) -> Block:
        rows = by_cause(result.causes).filter(pl.col("time_ns") >= self.least_share * result.judged_ns)
        # The program's line, else the range and operator around a row, if they add something to the cause.
        around = [pl.when(pl.col(place) != pl.col("cause")).then(pl.col(place)) for place in ("range", "operator")]
        chain = pl.concat_str(around, separator=" > ", ignore_nulls=True).replace("", None)
        line = pl.when(pl.col("location") != pl.col("cause")).then(extracted(pl.col("location"), r"([^/]*)$", 1))
        where = pl.coalesce(line, chain)
        rows = rows.join(result.totals, on="cause", how="left", maintain_order="left", nulls_equal=True).with_columns(
            without_module(pl.col("cause")).fill_null(pl.col("kind").replace_strict(KIND_LABELS, default=None)),
            pl.col("kind").replace_strict(KIND_LABELS, default=None).alias("label"),
            share("time_ns", result.judged_ns, "share_of_judged"),
            without_module(where).alias("where"),
        )
        of = "Of steps" if result.judged_words == STEADY_STEP_TIME else "Of time"
        columns = (
            Column("cause", "Cause", "text", 0),
            Column("where", "Most of it in", "text", 1),
            Column("label", "Kind", "text", 3),
            Column("time_ns", "Time" if result.host_only else "Exposed", "ns", 0),
            Column("share_of_judged", of, "ratio", 0, bar=True),
            Column("calls", "Calls", "count", 2, additive=True),
            Column("total_ns", "In all calls", "ns", 3, additive=True),
            Column("kind", "Key", "text", 9),
            Column("operator", "Operator", "text", 9),
            Column("module", "Module", "text", 9),
            Column("range", "Range", "text", 9),
            Column("location", "Line", "text", 9),
        )
        return frame_grid(columns, rows, "Causes", fold_below=self.fold_below)


def _computes(trace: TraceView, causes: pl.DataFrame) -> bool:
    """Return whether most of the host's own work is in operators during whose calls nothing is launched."""
    own = having(causes, "part", HOST)
    operators, total = having(own, "kind", "operator"), int(own["time_ns"].sum())
    if not operators.height or 2 * int(operators["time_ns"].sum()) < total:
        return False
    launches = parts_by(trace.api_calls("launch", "async_copy", "blocking_copy"), "thread_id")
    if not launches:  # without launch calls, any operator may launch
        return False
    alone = 0
    by_name = by_cause(operators).filter(pl.col("time_ns") >= _WORTH_COMPUTING * total)
    for name, time in by_name[["cause", "time_ns"]].iter_rows():
        calls = parts_by(calls_named(trace, having(trace.host_names, "name", name)), "thread_id")
        launched = any(
            thread in launches and intervals(part).contains(launches[thread]["start_ns"].to_numpy()).any()
            for thread, part in calls.items()
        )
        alone += 0 if launched else time
    return 2 * alone >= total


def by_cause(causes: pl.DataFrame) -> pl.DataFrame:
    """Return ``kind, cause, time_ns, calls`` and the place of the largest part by cause, the largest first."""
    parts = causes.sort("time_ns", *PLACES, descending=[True, *[False] * len(PLACES)])
    sums = parts.group_by("kind", "cause", maintain_order=True).agg(
        pl.col("time_ns").sum(), pl.col("calls").sum(), *(pl.col(place).first() for place in PLACES)
    )
    return sums.sort("time_ns", "kind", "cause", descending=[True, False, False])


def _finding(result: HostCauses, entry: _Rule, causes: pl.DataFrame) -> Finding:
    time_ns = int(causes["time_ns"].sum())
    sums = causes.group_by("kind").agg(pl.col("time_ns").sum()).sort("time_ns", "kind", descending=[True, False])
    times = list(sums.iter_rows())
    parts = [f"{KIND_LABELS[kind]} {result.share(time)}" for kind, time in times if time >= _WORTH_SAYING * time_ns]
    found = find_culprit(causes, line=result.sampled)
    of_kinds = f" ({', '.join(parts)})" if len(parts) > 1 or not found else ""
    known = {found.name, found.place} if found else set()
    within = result.within if HOST in entry.parts and result.within not in known else ""
    largest = ""
    if found:
        place = f", in {found.place}" if found.place else ""
        largest = f"; most of all in {found.name} ({result.share(found.time_ns)}{place})"
    message = (
        f"In {result.share(time_ns)} of the {result.judged_words} {entry.words}{of_kinds}"
        f"{f', mostly within {within}' if within else ''}{largest}."
    )
    if entry.code == "TV208" and result.first_use:
        message = f"{message} {result.first_use}"
    if entry.code == "TV212" and result.migrations:
        message = f"{message} {result.migrations}"
    evidence = (
        *(Fact(f"{kind}_ns", KIND_LABELS[kind], time, "ns") for kind, time in times),
        Fact("cause", "largest cause", found.name if found else KIND_LABELS[times[0][0]]),
        Fact("calls", "its calls", found.calls if found else int(causes["calls"].sum()), "count"),
    )
    is_of_model = (pl.col("kind") == "python") & pl.col("module").is_not_null()
    of_framework = int(causes.filter(pl.col("kind").is_in(list(OF_FRAMEWORK)) | is_of_model)["time_ns"].sum())
    is_of_framework = 2 * of_framework >= time_ns and not result.computes
    work = OPERATOR_ON_HOST if result.computes else FRAMEWORK if is_of_framework else OTHER
    large = {kind for kind, time in times if time >= _WORTH_SAYING * time_ns}
    advice = record_of(entry.code).advice_for({*large, work})
    share_of = time_ns, result.judged_ns, result.judged_words
    return finding(entry.code, message, evidence, *share_of, advice=advice)
