"""Content of the capture, and whether it can be trusted."""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl

from traceviz.analyses.base import Analysis, finding, known
from traceviz.analyses.derived.capture.kind import EVENTS, UNKNOWN, CaptureKind, capture_kind
from traceviz.analyses.derived.capture.step_words import SOURCE_WORDS
from traceviz.analyses.derived.capture.unused_devices import UnusedDevices, unused_devices
from traceviz.analyses.derived.device.names import in_words, stated_ranks, world_sizes
from traceviz.analyses.derived.frames import intervals
from traceviz.analyses.derived.judged_time import judged_time, judged_words, steady_time
from traceviz.analyses.derived.recorded.device_window import Unseen, find_unseen
from traceviz.analyses.derived.recorded.losses import Refusal, find_refusal, losses
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.derived.view import TraceView
from traceviz.core.arrays.intervals import IntervalSet
from traceviz.core.units import format_ratio
from traceviz.report import Fact, Facts, Finding, Prose, Section
from traceviz.trace import schema
from traceviz.trace.names.framework_signs import EVIDENCE


@dataclass(frozen=True, slots=True)
class CaptureFacts:
    """Content of the capture. Times in nanoseconds.

    ``unseen`` describes device work that was not recorded; ``None`` if all was. ``judged_overhead_ns`` is the
    profiler's part of ``judged_ns``, both summed over ranks. ``overhead_ns`` is ``None`` if the profiler does not
    record its own overhead. ``edges_ns`` is the time to start and stop the profiler, at the edges of the capture. It is
    no part of ``span_ns`` and of ``overhead_ns``. ``ranks`` are the captured ranks, ``world_sizes`` the sizes of the
    job that the traces state; both are empty if the trace knows of no ranks. ``kind`` is the kind of capture,
    ``sees_devices`` whether device work could be recorded, ``unused`` are devices that nothing uses.
    ``framework_shown_by`` is the evidence for the framework if the profiler states none.
    """

    span_ns: int
    devices: int
    processes: int
    steps_source: str
    events: int
    device_events: int
    overhead_ns: int | None
    judged_overhead_ns: int
    judged_ns: int
    judged_words: str
    losses: tuple[str, ...]
    refusal: Refusal | None = None
    ranks: tuple[int, ...] = ()
    world_sizes: tuple[int, ...] = ()
    unseen: Unseen | None = None
    kind: CaptureKind = UNKNOWN
    sees_devices: bool = True
    edges_ns: int = 0
    unused: UnusedDevices | None = None
    framework_shown_by: str = ""


@dataclass(frozen=True, slots=True)
class Capture(Analysis[CaptureFacts]):
    """Size of the capture, and problems that the profiler reports.

    Args:
        overhead_share: Profiler overhead above this share of the judged time is a finding; at start-up it is none.
        unseen_share: If device work is unknown for this share of the captured time, the sentence states it.
    """

    slug = "capture"
    title = "Capture"
    rules = ("TV411", "TV901", "TV902")

    overhead_share: float = 0.05
    unseen_share: float = 0.05

    def run(self, trace: TraceView) -> CaptureFacts:
        """Count events and times."""
        tables = trace.tables
        rows = {name: tables.rows(name) for name in EVENTS if name in tables}
        overhead = trace.frame("overhead", "start_ns", "dur_ns", "process_id")
        # Otherwise the capture holds only the start of a program that failed. Overhead then has no cost.
        worked = bool(steady_time(trace) or trace.rank_busy or trace.host_names.height)
        judged = {rank: judged_time(trace, rank) for rank in trace.ranks if worked}
        return CaptureFacts(
            span_ns=trace.captured_ns,
            devices=len(trace.device_busy),
            processes=len(trace.traced),
            steps_source=training_steps(trace).source,
            events=sum(rows.values()),
            device_events=sum(rows.get(name, 0) for name in schema.DEVICE_WORK),
            overhead_ns=_while_recording(trace, overhead),
            judged_overhead_ns=sum(_overhead_of(overhead, rank).intersect(own).total for rank, own in judged.items()),
            judged_ns=sum(own.total for own in judged.values()),
            judged_words=judged_words(trace),
            losses=losses(tables),
            refusal=find_refusal(tables),
            ranks=stated_ranks(trace),
            world_sizes=world_sizes(trace),
            unseen=find_unseen(trace.recorded_window, trace.device_windows, self.unseen_share, is_cut=trace.is_window),
            kind=capture_kind(trace),
            sees_devices=trace.has_device_tables,
            edges_ns=trace.span_ns - trace.captured_ns,
            unused=unused_devices(trace),
            framework_shown_by=_framework_shown_by(trace),
        )

    def judge(self, result: CaptureFacts) -> tuple[Finding, ...]:
        """Return findings on devices that nothing uses, on lost events, and on the profiler's own overhead."""
        findings = [_not_used(result.unused)] if result.unused else []
        if result.refusal:
            evidence = (Fact("message", "message", result.refusal.message),)
            message = f"No device work could be recorded: {result.refusal.words}."
            refused = finding("TV901", message, evidence, 0, 0, "", advice=(result.refusal.remedy,))
            findings.append(replace(refused, share=None))
        if result.losses:
            evidence = tuple(Fact("message", "message", message) for message in result.losses[:3])
            lost = finding("TV901", "Events are missing from the capture; totals are lower bounds.", evidence, 0, 0, "")
            findings.append(replace(lost, share=None))
        cost, judged = result.judged_overhead_ns, result.judged_ns
        if cost > self.overhead_share * judged:
            message = f"The profiler itself took {format_ratio(cost / judged)} of the {result.judged_words}."
            evidence = (Fact("overhead_ns", "profiler overhead", cost, "ns"),)
            findings.append(finding("TV902", message, evidence, cost, judged, result.judged_words))
        return tuple(findings)

    def describe(self, result: CaptureFacts) -> Section:
        """Describe the capture with facts only."""
        facts = (
            Fact("kind", "kind of capture", result.kind.words),
            Fact("span_ns", "captured time", result.span_ns or None, "ns"),
            *_edges(result),
            *known((Fact("framework_evidence", "framework shown by", result.framework_shown_by or None),)),
            Fact("devices", "devices used", result.devices if result.sees_devices else None, "count"),
            Fact("processes", "processes", result.processes, "count"),
            *_ranks(result),
            Fact("steps_source", "steps", SOURCE_WORDS[result.steps_source]),
            Fact("events", "events", result.events, "count"),
            Fact("device_events", "device events", result.device_events if result.sees_devices else None, "count"),
        )
        if result.overhead_ns is not None:
            facts += (Fact("overhead_ns", "profiler overhead while recording", result.overhead_ns, "ns"),)
        evidence = Facts((Fact("kind_evidence", "shown by", result.kind.evidence),), audience="machine")
        if result.unseen is None:
            return Section(self.slug, self.title, (Facts(facts), evidence))
        seen = (*facts, *known(_seen(result.unseen)))
        return Section(self.slug, self.title, (Facts(seen), evidence, Prose(" ".join(result.unseen.reasons))))


def _framework_shown_by(trace: TraceView) -> str:
    """Return the evidence for frameworks: ``names in at::native::, c10:: (22), ranges of PyTorch (17,994)``."""
    stated = trace.frame("settings", pl.col("key", "value").cast(pl.String)).drop_nulls()
    shown = stated.filter(pl.col("key").str.starts_with(EVIDENCE)).unique(maintain_order=True)
    return ", ".join(value for _, value in shown.iter_rows())


def _seen(unseen: Unseen) -> tuple[Fact, ...]:
    """Return the time in which devices are judged, and why it is not all of the capture."""
    before, without = unseen.launched_before or None, unseen.without_work or None
    return (
        Fact("judged_from_ns", "devices judged from", unseen.begin_ns, "ns"),
        Fact("judged_until_ns", "devices judged until", unseen.end_ns, "ns"),
        Fact("launched_before", "device work launched before the capture", before, "count"),
        Fact("launches_without_work", "launches without device work", without, "count"),
    )


def _not_used(unused: UnusedDevices) -> Finding:
    message = (
        f"The program computes on the CPU, and {unused.words} {'is' if unused.count == 1 else 'are'} there and not "
        f"used at all: {unused.shown_by}."
    )
    evidence = (
        Fact("devices", "devices not used", unused.count, "count"),
        Fact("host_ns", "computing on the CPU", unused.host_ns, "ns"),
    )
    # A program that only applies a model may use the CPU on purpose.
    cost, is_hint = unused.host_ns, not unused.trains
    return finding("TV411", message, evidence, cost, unused.judged_ns, unused.judged_words, is_hint=is_hint)


def _overhead_of(overhead: pl.DataFrame, process_id: int) -> IntervalSet:
    """Return the profiler's overhead in a process; overhead without a process holds up all of them."""
    return intervals(overhead.filter(pl.col("process_id").eq_missing(process_id) | pl.col("process_id").is_null()))


def _while_recording(trace: TraceView, overhead: pl.DataFrame) -> int | None:
    """Return the profiler's overhead within the captured time; ``None`` if only its start and stop were recorded."""
    if "overhead" not in trace.tables:
        return None
    taken = intervals(overhead).clip(*trace.program_window).total
    return taken if taken or trace.program_window == (0, trace.span_ns) else None


def _edges(result: CaptureFacts) -> tuple[Fact, ...]:
    """Return the time that the profiler took at the edges of the capture, if any."""
    if not result.edges_ns:
        return ()
    return (Fact("edges_ns", "profiler's start and stop, left out", result.edges_ns, "ns"),)


def _ranks(result: CaptureFacts) -> tuple[Fact, ...]:
    """Return the captured ranks and the size of the job, if the trace knows of ranks."""
    whole = result.world_sizes[0] if len(result.world_sizes) == 1 else None
    if not result.ranks or (len(result.ranks) == 1 and whole in {None, 1}):
        return ()
    words = f"{len(result.ranks):,}{f' of {whole:,}' if whole else ''} ({in_words(result.ranks)})"
    return (Fact("ranks", "ranks", words),)
