"""Run the analyses over a trace and put their results into one report."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from traceviz.analyses.advice import fit_advice, inapplicable
from traceviz.analyses.derived.device.shapes import kernel_shapes
from traceviz.analyses.derived.host.classes import host_classes
from traceviz.analyses.derived.host.copy_calls import copy_calls, unasked_waits
from traceviz.analyses.derived.launch.first import first_calls
from traceviz.analyses.derived.likely_frameworks import likely_frameworks
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.headline.verdict import verdict
from traceviz.analyses.options import AnalysisOptions
from traceviz.analyses.registry import Entry, entries
from traceviz.analyses.suppressed_advice import followed
from traceviz.core.units import Unit
from traceviz.report import Fact, Finding, Note, Report, Section, Severity, Skipped, rules
from traceviz.trace.names.cuda_names import api_kind
from traceviz.trace.names.kernel_names import catalogue
from traceviz.trace.tables import TraceTables
from traceviz.untrusted.errors import foreign_errors_in_words

MAX_WORKERS = 4
"""More threads would wait for each other: analyses share most of what they compute."""
LARGE_ROWS = 100_000
"""With fewer rows, most of the time is spent in Python, of which one thread runs at a time."""


def load_analyses(sections: Collection[str] | None) -> None:
    """Import what :func:`analyze` will need. Reading lets other threads run: one of them may do this meanwhile."""
    for entry in entries(sections):
        entry.load()
    catalogue()
    api_kind("")  # compiles patterns


def analyze(
    tables: TraceTables, options: AnalysisOptions | None = None, sections: Collection[str] | None = None
) -> Report:
    """Analyse a trace.

    Args:
        tables: The trace.
        options: What the user tells about the program.
        sections: Slugs of the sections to make; ``None`` for all.

    Returns:
        The report: findings sorted by time at stake, sections in their fixed order, what was skipped with the reason.

    Raises:
        UsageError: a section does not exist.
        DamagedTraceError: the trace holds values that cannot be computed with.
        OutOfMemoryError: it needs more memory than there is.
    """
    return analyze_view(view(tables, options), sections)


@foreign_errors_in_words("The trace cannot be analysed.")
def view(tables: TraceTables, options: AnalysisOptions | None = None) -> TraceView:
    """A trace as analyses see it, for :func:`analyze_view` and for what needs the same intervals after it.

    Raises:
        DamagedTraceError, OutOfMemoryError: as :func:`analyze`.
    """
    return TraceView(tables, options)


@foreign_errors_in_words("The trace cannot be analysed.")
def analyze_view(trace: TraceView, sections: Collection[str] | None = None) -> Report:
    """:func:`analyze`, of a trace that keeps what was derived of it."""
    tables = trace.tables
    results: dict[str, Any] = {}
    skipped: list[Skipped] = []
    described: list[Section] = []
    findings: list[Finding] = []
    notes: list[Note] = []
    run = tables.run_facts()
    chosen = entries(sections)
    for entry, outcome in zip(chosen, _outcomes(trace, chosen), strict=True):
        if isinstance(outcome, Skipped):
            if entry.is_expected(run) or sections is not None:
                skipped.append(outcome)
            continue
        results[entry.slug] = outcome.result
        findings.extend(outcome.findings)
        notes.extend(outcome.notes)
        described.append(outcome.section)
    stakes = {finding.code: finding.cost_ns for finding in findings}
    findings = [finding for finding in findings if not _is_said_by_others(finding, stakes)]
    has_frames = "python" in trace.host_names["category"]
    others = inapplicable(likely_frameworks(trace), run.get("producer"), has_frames=has_frames)
    needless = followed(trace, stakes) if findings else ()
    findings = [_doubted(fit_advice(finding, others, needless), trace.clock_doubt) for finding in findings]
    run = {**run, "span_ns": trace.captured_ns or None}  # a summary without events lasted longer than nothing
    facts = [Fact(key, label, run.get(key), unit) for key, (label, unit) in _RUN_LABELS.items()]
    ranked = tuple(sorted(findings, key=lambda f: (-f.cost_ns, -f.severity.rank, f.code)))
    return Report(
        run=(*facts, Fact("devices", "devices", _devices_in_words(trace))),
        verdict=verdict(trace, results, ranked),
        sections=tuple(described),
        findings=ranked,
        skipped=tuple(skipped),
        notes=(
            *notes,
            *(
                Note(row["code"], Severity(row["severity"]), row["message"], row["count"])
                for row in tables.arrow("notes").to_pylist()
            ),
        ),
    )


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What an analysis gave: its result, and what that says."""

    result: Any
    findings: tuple[Finding, ...]
    notes: tuple[Note, ...]
    section: Section


def _outcomes(trace: TraceView, chosen: Sequence[Entry]) -> Iterator[_Outcome | Skipped]:
    """The outcome of each analysis, in their order. Those of a large trace run beside each other on several cores.

    Most of their time they compute in compiled code, which lets other threads run; what several of them need is
    computed once (:class:`traceviz.analyses.derived.memo.Kept`). Where polars may use one thread only, so may they; and
    where tables lie in files, there is no memory for several at a time, nor to keep what only some of them need.
    """
    workers = min(cores(), MAX_WORKERS)
    rows = sum(trace.tables.rows(name) for name in trace.tables)
    if trace.tables.are_spilled:
        for short in _SHORT if len(chosen) > len(_LONG) else ():
            short(trace)
            trace.spare()
        for entry in chosen:
            yield _outcome(trace, entry)
            trace.spare(host_classes)
        return
    if workers < 2 or rows < LARGE_ROWS:
        yield from (_outcome(trace, entry) for entry in chosen)
        return
    turns = _turns(trace, chosen)
    with ThreadPoolExecutor(workers, "traceviz-analysis") as pool:
        try:
            futures = {entry.slug: pool.submit(_outcome, trace, entry) for entry in turns[:1]}
            for shared in _SHARED if len(chosen) > len(_LONG) else ():
                pool.submit(shared, trace)  # what fails here fails again for whoever needs it
            futures |= {entry.slug: pool.submit(_outcome, trace, entry) for entry in turns[1:]}
            for entry in chosen:
                yield futures[entry.slug].result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


_LEADERS = ("device_use", "host_waits")
"""The first of these computes the causes of idle time, on which several others wait."""
_LONG = (
    *("kernels", "launch", "gpu_efficiency", "cuda_api"),
    *("operators", "modules", "framework_ops", "input_pipeline"),
)
"""Analyses that take long and need no causes begin next: the others fill what time is left."""
_BY_CAUSE = ("host_waits", "host_limits", "host_time", "cpu_steps")
"""Analyses that would only wait for the causes come last."""
_SHARED = (kernel_shapes, first_calls, copy_calls)
"""What many analyses need and no steps: computed while the first of them looks for steps, which all wait for."""


_SHORT = (first_calls, unasked_waits)
"""What is short, but takes much memory to compute: computed while nothing else is there, and kept."""


def _turns(trace: TraceView, chosen: Sequence[Entry]) -> list[Entry]:
    """The analyses in the order in which they begin beside each other."""
    there = {entry.slug for entry in chosen if not entry.missing(frozenset(trace.tables))}
    leader = next((slug for slug in _LEADERS if slug in there), None)
    order = {slug: number for number, slug in enumerate((leader, *_LONG))}
    order |= {slug: len(order) + 1 for slug in _BY_CAUSE if slug not in order}
    return sorted(chosen, key=lambda entry: order.get(entry.slug, len(_LONG) + 1))


def cores() -> int:
    """Processors that analyses may use: those of the process, as far as polars may use them."""
    return min(len(os.sched_getaffinity(0)), pl.thread_pool_size())


def _outcome(trace: TraceView, entry: Entry) -> _Outcome | Skipped:
    if absent := entry.missing(frozenset(trace.tables)):
        return Skipped(entry.slug, f"the capture has no {' or '.join(absent)} table", absent)
    analysis = entry.load()
    result = analysis.run(trace)
    if isinstance(result, Skipped):
        return result
    return _Outcome(result, tuple(analysis.judge(result)), tuple(analysis.notes(result)), analysis.describe(result))


def _is_said_by_others(finding: Finding, stakes: dict[str, int]) -> bool:
    """Whether more precise findings explain the same time.

    Args:
        finding: The finding.
        stakes: The time at stake of all that were raised, by code.
    """
    rule = rules.rule(finding.code)
    explained = max((stakes.get(code, 0) for code in rule.half_of), default=0)
    return not stakes.keys().isdisjoint(rule.part_of) or (explained > 0 and 2 * explained >= finding.cost_ns)


def _doubted(finding: Finding, doubt: str) -> Finding:
    """``finding`` with the ``doubt`` about clocks of devices, where what it says rests on them."""
    if not doubt or not rules.rule(finding.code).compares_clocks:
        return finding
    return replace(finding, message=f"{finding.message} {doubt}")


_RUN_LABELS: dict[str, tuple[str, Unit]] = {
    "format": ("format", "text"),
    "producer": ("recorded by", "text"),
    "producer_version": ("version", "text"),
    "source_schema": ("schema", "text"),
    "framework": ("framework", "text"),
    "driver_version": ("driver", "text"),
    "cuda_version": ("CUDA", "text"),
    "host": ("host", "text"),
    "command": ("command", "text"),
    "t0_unix_ns": ("start, Unix time in ns", "id"),
    "span_ns": ("captured time", "ns"),
    "reader": ("read by", "text"),
}


def _devices_in_words(trace: TraceView) -> str | None:
    """Products of all devices that the trace names, and how many of them were used where some were not."""
    names = [device["name"] for device in trace.tables.arrow("devices").to_pylist() if device["name"]]
    counted = [f"{names.count(name)} × {name}" if names.count(name) > 1 else name for name in dict.fromkeys(names)]
    used = len(trace.device_busy)
    unused = f" ({used} used)" if 0 < used < len(names) else ""
    return ", ".join(counted) + unused if counted else None
