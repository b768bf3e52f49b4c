"""The first lines of a report for every medium: headline with its figure, consequence, caveats.

A verdict without a headline, as that of a comparison or of an older saved report, shows its sentence instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from traceviz.core.units import format_ratio
from traceviz.report import SCHEMA, Finding, Report, Verdict
from traceviz.report.findings.registry import records
from traceviz.report.start import find_start


@dataclass(frozen=True, slots=True)
class FirstLines:
    """The first lines.

    Args:
        headline: One claim, or the whole sentence if the verdict has no headline.
        figure: The figure in it to emphasise; may be empty.
        consequence: The gain and the first thing to do; may be empty.
        caveats: Reservations as one line; may be empty.
    """

    headline: str
    figure: str = ""
    consequence: str = ""
    caveats: str = ""

    @property
    def text(self) -> str:
        """Headline and consequence as two sentences, for media with a single line."""
        return " ".join(f"{line.rstrip('.')}." for line in (self.headline, self.consequence) if line)

    def split(self, line: str) -> tuple[str, str, str]:
        """Return the parts of a line of the headline before, in and after the figure."""
        return line.partition(self.figure) if self.figure and self.figure in line else (line, "", "")


def first_lines(verdict: Verdict, most: int | None = None) -> FirstLines:
    """Return the first lines of ``verdict``, with at most ``most`` characters of caveats; ``None`` for all of them."""
    if not verdict.headline:
        return FirstLines(verdict.sentence)
    caveats = " ".join(_fitting(verdict.caveats, most))
    return FirstLines(verdict.headline, verdict.figure, verdict.consequence, caveats)


def _fitting(caveats: Iterable[str], most: int | None) -> Iterable[str]:
    """Return those caveats that fit together; a long one is left out for shorter ones after it."""
    used = 0
    for caveat in caveats:
        if most is None or used + len(caveat) <= most:
            used += len(caveat) + 1
            yield caveat


def describe_absence_of_findings(report: Report) -> str:
    """Return what was looked for if nothing was found, and the largest candidate; empty if a report has findings."""
    if report.findings or report.schema != SCHEMA:
        return ""
    analysed = {section.slug for section in report.sections}
    checks = sum(record.section in analysed for record in records())
    if not checks:
        return ""
    said = f"No finding: {checks} checks"
    others = [candidate for candidate in report.verdict.candidates if not candidate.leads]
    if not others:
        return f"{said}."
    largest = max(others, key=lambda one: one.share)
    other = "other " if len(others) < len(report.verdict.candidates) else ""
    of = f"{format_ratio(largest.share)} of {largest.share_of}"
    return f"{said}; the largest {other}candidate is {largest.label}, {of}."


def advice_from_evidence(finding: Finding) -> tuple[str, ...]:
    """Return the advice of a finding, of which the first starts at the place in the evidence."""
    start = find_start(finding)
    if not finding.advice or not start or start.partition(" (")[0] in finding.advice[0]:
        return finding.advice
    return f"Start at {start}. {finding.advice[0]}", *finding.advice[1:]
