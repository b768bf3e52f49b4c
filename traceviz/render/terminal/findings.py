"""Findings, notes and missing sections, as paragraphs."""

from __future__ import annotations

from collections.abc import Collection

from rich.text import Text

from traceviz.core.sanitize import sentence, visible
from traceviz.core.units import format_ratio, format_value
from traceviz.render.rows import by_time_at_stake, time_at_stake, times
from traceviz.render.terminal.lines import (
    INDENT,
    QUIET,
    SEVERITY_MARK,
    SEVERITY_STYLE,
    STRONG,
    paragraph,
    wrap,
)
from traceviz.report import Finding, Note, Severity

_BODY = " " * (INDENT + 3)


def summary_line(findings: tuple[Finding, ...], width: int) -> list[Text]:
    """Return one sentence for the top of the page with the number of findings and their names."""
    if not findings:
        return []
    names = ", ".join(
        visible(finding.slug) + (f" ({format_ratio(finding.share)})" if finding.share else "")
        for finding in by_time_at_stake(findings)
    )
    count = f"{len(findings)} finding{'s' if len(findings) > 1 else ''}"
    return paragraph(f"{count}, explained at the end: {names}", width, first=" " * INDENT)


def finding_lines(finding: Finding, width: int, given: Collection[str] = ()) -> list[Text]:
    """Return heading with time at stake, message, evidence and advice; info findings show only their first advice.

    Advice already ``given`` by findings above is not repeated.
    """
    mark = " " * INDENT + SEVERITY_MARK[finding.severity] + " "
    stake = sentence(time_at_stake(finding))
    text = f"{visible(finding.code)} {visible(finding.slug)}" + (f" · {stake}" if stake else "")
    lines = paragraph(text, width, first=mark, style=STRONG, first_style=SEVERITY_STYLE[finding.severity])
    lines += [Text(_BODY + line) for line in wrap(sentence(finding.message), width - len(_BODY))]
    if finding.evidence:
        evidence = " · ".join(
            f"{visible(fact.label)}: {sentence(format_value(fact.value, fact.unit))}" for fact in finding.evidence
        )
        lines += paragraph(evidence, width, first=_BODY, style=QUIET)
    for step in shown_advice(finding):
        if step not in given:
            lines += paragraph(sentence(step), width, first=_BODY + "• ")
    return lines


def shown_advice(finding: Finding) -> tuple[str, ...]:
    """Return all advice of a finding with time at stake; of an info finding, only the most promising."""
    return finding.advice[:1] if finding.severity is Severity.INFO else finding.advice


def note_lines(note: Note, width: int) -> list[Text]:
    """Return marker, message, and the number of occurrences."""
    mark = " " * INDENT + SEVERITY_MARK[note.severity] + " "
    return paragraph(sentence(note.message) + times(note), width, first=mark, first_style=SEVERITY_STYLE[note.severity])


def skipped_lines(names: str, reason: str, width: int, absence: str) -> list[Text]:
    """Report the sections that were not measured or compared, with the reason; missing data is not a good result."""
    text = f"{visible(names)} ({sentence(reason)})"
    return paragraph(text, width, first=" " * INDENT + f"{absence}: ", style=QUIET, first_style=QUIET)
