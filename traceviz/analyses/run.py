"""Run the analyses over a trace and put their results into one report."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from traceviz import rules
from traceviz.analyses.advice import fit_advice, inapplicable
from traceviz.analyses.derived.likely_frameworks import likely_frameworks
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.followed import followed
from traceviz.analyses.headline.verdict import verdict
from traceviz.analyses.options import AnalysisOptions
from traceviz.analyses.registry import entries
from traceviz.foreign.errors import foreign_errors_in_words
from traceviz.report import Fact, Finding, Note, Report, Section, Severity, Skipped
from traceviz.tables import TraceTables
from traceviz.units import Unit


def tables_for(sections: Collection[str] | None) -> frozenset[str]:
    """Tables that the analyses of ``sections`` can make use of."""
    return frozenset(table for entry in entries(sections) for table in entry.tables)


def columns_for(sections: Collection[str] | None) -> dict[str, frozenset[str]]:
    """Nullable columns that the analyses of ``sections`` need, for the tables that they do not need as a whole."""
    users: dict[str, list[frozenset[str] | None]] = {}
    for entry in entries(sections):
        for table in entry.tables:
            users.setdefault(table, []).append(entry.columns.get(table))
    return {
        table: frozenset[str]().union(*(names for names in needed if names is not None))
        for table, needed in users.items()
        if None not in needed
    }


@foreign_errors_in_words("The trace cannot be analysed.")
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
    trace = TraceView(tables, options)
    tables = trace.tables
    results: dict[str, Any] = {}
    skipped: list[Skipped] = []
    described: list[Section] = []
    findings: list[Finding] = []
    notes: list[Note] = []
    run = tables.run_facts()
    for entry in entries(sections):
        absent = entry.missing(frozenset(tables))
        reason = f"the capture has no {' or '.join(absent)} table"
        outcome = Skipped(entry.slug, reason, absent) if absent else entry.load().run(trace)
        if isinstance(outcome, Skipped):
            if entry.is_expected(run) or sections is not None:
                skipped.append(outcome)
            continue
        analysis = entry.load()
        results[entry.slug] = outcome
        findings.extend(analysis.judge(outcome))
        notes.extend(analysis.notes(outcome))
        described.append(analysis.describe(outcome))
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
