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
from traceviz.analyses.derived.host.classes import class_times
from traceviz.analyses.derived.judged_time import judged_time, judged_words, steady_time
from traceviz.analyses.derived.launch.join import unrecorded_time
from traceviz.analyses.derived.recorded.device_window import Unseen, find_unseen
from traceviz.analyses.derived.recorded.losses import Refusal, find_refusal, losses
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.derived.view import TraceView
from traceviz.core.units import format_ratio
from traceviz.report import Fact, Facts, Finding, Prose, Section
from traceviz.trace import schema
from traceviz.trace.names.framework_signs import EVIDENCE


@dataclass(frozen=True, slots=True)
class CaptureFacts:
    """Content of the capture. Times in nanoseconds.

    ``unseen`` describes device work that was not recorded; ``None`` if all was. ``judged_overhead_ns`` is the part
    of ``judged_ns`` in which the profiler works and no device does, both summed over ranks. ``overhead_ns`` is
    ``None`` if the profiler does not record its own overhead. ``edges_ns`` is the time to start and stop the
    profiler, at the edges of the capture. It is no part of ``span_ns`` and of ``overhead_ns``. ``ranks`` are the
    captured ranks, ``world_sizes`` the sizes of the job that the traces state; both are empty if the trace knows of
    no ranks. ``kind`` is the kind of capture, ``sees_devices`` whether device work could be recorded, ``unused``
    are devices that nothing uses. ``framework_shown_by`` is the evidence for the framework if the profiler states
    none.
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
        overhead = trace.frame("overhead", "start_ns", "dur_ns")
        # Otherwise the capture holds only the start of a program that failed. Overhead then has no cost.
        worked = bool(steady_time(trace) or trace.rank_busy or trace.host_names.height)
        judged = {rank: judged_time(trace, rank) for rank in trace.ranks if worked}
        # ``None`` if only the profiler's start and stop were recorded
        taken = intervals(overhead).clip(*trace.program_window).total if "overhead" in tables else None
        is_whole = trace.program_window == (0, trace.span_ns)
        stated = trace.frame("settings", pl.col("key", "value").cast(pl.String)).drop_nulls()
        shown = stated.filter(pl.col("key").str.starts_with(EVIDENCE)).unique(maintain_order=True)
        return CaptureFacts(
            span_ns=trace.captured_ns,
            devices=len(trace.device_busy),
            processes=len(trace.traced),
            steps_source=training_steps(trace).source,
            events=sum(rows.values()),
            device_events=sum(rows.get(name, 0) for name in schema.DEVICE_WORK),
            overhead_ns=taken or (0 if is_whole and taken is not None else None),
            judged_overhead_ns=class_times(trace, judged)["profiler"],
            judged_ns=sum(own.total for own in judged.values()),
            judged_words=judged_words(trace),
            losses=losses(tables),
            refusal=find_refusal(tables),
            ranks=stated_ranks(trace),
            world_sizes=world_sizes(trace),
            unseen=find_unseen(
                trace.recorded_window,
                trace.device_windows,
                unrecorded_time(trace),
                self.unseen_share,
                is_cut=trace.is_window,
            ),
            kind=capture_kind(trace),
            sees_devices=trace.has_device_tables,
            edges_ns=trace.span_ns - trace.captured_ns,
            unused=unused_devices(trace),
            framework_shown_by=", ".join(value for _, value in shown.iter_rows()),
        )

    def judge(self, result: CaptureFacts) -> tuple[Finding, ...]:
        """Return findings on devices that nothing uses, on lost events, and on the profiler's own overhead."""
        findings = []
        if unused := result.unused:
            message = (
                f"The program computes on the CPU, and {unused.words} {'is' if unused.count == 1 else 'are'} there and "
                f"not used at all: {unused.shown_by}."
            )
            evidence = (
                Fact("devices", "devices not used", unused.count, "count"),
                Fact("host_ns", "computing on the CPU", unused.host_ns, "ns"),
            )
            # A program that only applies a model may use the CPU on purpose.
            cost, of_ns, is_hint = unused.host_ns, unused.judged_ns, not unused.trains
            findings.append(finding("TV411", message, evidence, cost, of_ns, unused.judged_words, is_hint=is_hint))
        if result.refusal:
            seen = (Fact("message", "message", result.refusal.message),)
            refused_message = f"No device work could be recorded: {result.refusal.words}."
            refused = finding("TV901", refused_message, seen, 0, 0, "", advice=(result.refusal.remedy,))
            findings.append(replace(refused, share=None))
        if result.losses:
            messages = tuple(Fact("message", "message", message) for message in result.losses[:3])
            lost = finding("TV901", "Events are missing from the capture; totals are lower bounds.", messages, 0, 0, "")
            findings.append(replace(lost, share=None))
        cost, judged = result.judged_overhead_ns, result.judged_ns
        if cost > self.overhead_share * judged:
            idle = ", while no device worked" if result.devices else ""
            message = f"The profiler itself took {format_ratio(cost / judged)} of the {result.judged_words}{idle}."
            overhead = (Fact("overhead_ns", "profiler overhead", cost, "ns"),)
            findings.append(finding("TV902", message, overhead, cost, judged, result.judged_words))
        return tuple(findings)

    def describe(self, result: CaptureFacts) -> Section:
        """Describe the capture with facts only."""
        edges = result.edges_ns
        whole = result.world_sizes[0] if len(result.world_sizes) == 1 else None
        ranks = f"{len(result.ranks):,}{f' of {whole:,}' if whole else ''} ({in_words(result.ranks)})"
        is_of_ranks = bool(result.ranks) and (len(result.ranks) > 1 or whole not in {None, 1})
        facts = (
            Fact("kind", "kind of capture", result.kind.words),
            Fact("span_ns", "captured time", result.span_ns or None, "ns"),
            *((Fact("edges_ns", "profiler's start and stop, left out", edges, "ns"),) if edges else ()),
            *known((Fact("framework_evidence", "framework shown by", result.framework_shown_by or None),)),
            Fact("devices", "devices used", result.devices if result.sees_devices else None, "count"),
            Fact("processes", "processes", result.processes, "count"),
            *((Fact("ranks", "ranks", ranks),) if is_of_ranks else ()),
            Fact("steps_source", "steps", SOURCE_WORDS[result.steps_source]),
            Fact("events", "events", result.events, "count"),
            Fact("device_events", "device events", result.device_events if result.sees_devices else None, "count"),
        )
        if result.overhead_ns is not None:
            facts += (Fact("overhead_ns", "profiler overhead while recording", result.overhead_ns, "ns"),)
        evidence = Facts((Fact("kind_evidence", "shown by", result.kind.evidence),), audience="machine")
        unseen = result.unseen
        if unseen is None:
            return Section(self.slug, self.title, (Facts(facts), evidence))
        before, without = unseen.launched_before or None, unseen.without_work or None
        judged = (
            Fact("judged_from_ns", "devices judged from", unseen.begin_ns, "ns"),
            Fact("judged_until_ns", "devices judged until", unseen.end_ns, "ns"),
            Fact("launched_before", "device work launched before the capture", before, "count"),
            Fact("launches_without_work", "launches without device work", without, "count"),
        )
        return Section(
            self.slug, self.title, (Facts((*facts, *known(judged))), evidence, Prose(" ".join(unseen.reasons)))
        )
