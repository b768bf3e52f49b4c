"""Findings in the order in which they deserve attention, and what findings and notes weigh in words."""

from __future__ import annotations

from traceviz.report import Finding, Note
from traceviz.units import format_ns, format_ratio


def by_time_at_stake(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Findings with the largest time at stake first; equal ones by severity, then by code."""
    return tuple(sorted(findings, key=lambda finding: (-finding.cost_ns, -finding.severity.rank, finding.code)))


def time_at_stake(finding: Finding) -> str:
    """``8.10 s at stake, 70.9 % of steady steps``; empty where no time can be named."""
    if finding.cost_ns == 0:
        return ""
    stake = f"{format_ns(finding.cost_ns)} at stake"
    if finding.share is None:
        return stake
    of = f" of {finding.share_of}" if finding.share_of else ""
    return f"{stake}, {format_ratio(finding.share)}{of}"


def times(note: Note) -> str:
    """`` (3×)`` behind a note of something that happened more than once, else nothing."""
    return f" ({note.count:,}×)" if note.count is not None and note.count > 1 else ""
