"""Reports on one question: the reason for the verdict, and the steps without a cause."""

from __future__ import annotations

import re
from dataclasses import replace

from traceviz.report import Block, Candidate, Column, Grid, Prose, Report, Section, Verdict
from traceviz.report.verdicts import Cause

_IS_CODE = re.compile(r"TV\d+")

WHY = "why"
"""Slug of the section."""
WHAT_IF = "what_if"
"""Slug of the section of predictions."""

_COLUMNS = (
    Column("candidate", "May take the time", "text", 0),
    Column("share", "Share", "ratio", 0, bar=True),
    Column("certainty", "How sure", "text", 0),
    Column("time_ns", "Time", "ns", 1),
    Column("evidence", "What shows it", "text", 2),
    Column("share_of", "Of", "text", 3),
    Column("reason", "Why it leads or not", "text", 9),
    Column("key", "Key", "text", 9),
    Column("leads", "Leads", "text", 9),
)
WORTH_SAYING = 0.02
"""Share below which a candidate has no line of its own."""
_NONE: dict[str, str] = {
    Cause.HEALTHY: "Nothing takes 5 % of the judged time beside computing.",
    Cause.UNKNOWN: "Nothing that was recorded can lead: there is no judged time, or the program does nothing but "
    "compute in it.",
}
_RULE = "The largest that is certain enough leads. The rule, with its reasons: docs/causes.md."


def why(report: Report) -> Report:
    """Reduce the report to its verdict and the candidates for it."""
    candidates = report.verdict.candidates
    reasons = tuple(Prose(_because(c)) for c in candidates if c.leads or c.share >= WORTH_SAYING)
    grid: tuple[Block, ...] = (candidates_grid(report.verdict),) if candidates else ()
    leads = any(candidate.leads for candidate in candidates)
    said = Prose(_RULE if leads else f"{_NONE.get(report.verdict.cause, _NONE[Cause.UNKNOWN])} {_RULE}")
    full = (Prose(f"In full: {report.verdict.sentence}"),) if report.verdict.headline else ()
    section = Section(WHY, "Why this headline", (*full, said, *grid, *reasons))
    return replace(report, sections=(section,), findings=(), skipped=(), notes=())


def what_if(report: Report) -> Report:
    """Reduce the report to its verdict and its predictions."""
    found = tuple(section for section in report.sections if section.slug == WHAT_IF)
    reasons = [Prose(f"Nothing can be predicted: {s.reason}.") for s in report.skipped if s.slug == WHAT_IF]
    none = Section(WHAT_IF, "What if a cause vanished", tuple(reasons))
    return replace(report, sections=found or (none,), findings=(), skipped=(), notes=())


def candidates_grid(verdict: Verdict) -> Grid:
    """List the candidate causes, one row each."""
    rows = tuple(
        (
            *(_named(c), c.share, c.certainty, c.time_ns, c.evidence, c.share_of, c.reason, c.key),
            "yes" if c.leads else "no",
        )
        for c in verdict.candidates
    )
    return Grid(_COLUMNS, rows, complete=True)


def _named(candidate: Candidate) -> str:
    """Return its label, with the code of its finding, because a part may have the same label."""
    return f"{candidate.label} ({candidate.evidence})" if _IS_CODE.fullmatch(candidate.evidence) else candidate.label


def _because(candidate: Candidate) -> str:
    name = _named(candidate)
    said = f"{name[0].upper()}{name[1:]}"
    if not candidate.leads:
        return f"{said}: {candidate.reason}"
    return f"{said} leads: {candidate.reason[0].lower()}{candidate.reason[1:]}"
