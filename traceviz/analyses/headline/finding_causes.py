"""Findings that explain judged time more precisely than parts do, and bounds on the computing itself."""

from __future__ import annotations

from collections.abc import Iterator

from traceviz.analyses.headline.judged_time import Judged
from traceviz.analyses.headline.options import HOST, INPUT, POSSIBLE_INPUT, UNEXPLAINED, Option
from traceviz.analyses.headline.sentences import after_colon
from traceviz.core.units import format_ratio
from traceviz.report import Finding, Severity
from traceviz.report.findings.registry import record_of


def precise(
    findings: tuple[Finding, ...],
    judged: Judged,
    *,
    input_copies: bool = False,
    is_network: bool = True,
) -> Iterator[Option]:
    """Yield options from ``findings``, except from those that are only for information.

    Args:
        findings: All findings.
        judged: The judged time.
        input_copies: True if copies to the device are part of the input.
        is_network: True if a framework may have run the program. Otherwise the program chose the precision of its
            matrices itself.
    """
    for finding in findings:
        record = record_of(finding.code)
        if not record.is_candidate or finding.severity is Severity.INFO or not finding.cost_ns:
            continue
        if finding.code == "TV405" and not is_network:
            continue
        within = frozenset[str](record.explains)
        within = within | {INPUT} if input_copies and "copy_h2d" in within else within
        share = finding.share or 0.0
        of = finding.share_of or judged.words
        message = finding.message
        if "%" not in message:
            message = f"{message} At stake: {format_ratio(share)} of the {of}."
        label = finding.heading or record.label or finding.slug.replace("-", " ")
        sentence = message if finding.heading else f"{label[0].upper()}{label[1:]}: {after_colon(message)}"
        yield Option(
            finding.slug, label, finding.cost_ns, share, of, record.certainty, finding.code, sentence, within, record
        )


def suspicion(share: float, time_ns: int, judged: Judged, sentence: str) -> Option:
    """Return the input as a suspected cause: host time without launches that no recorded range explains."""
    evidence = f"{format_ratio(share)} of host time without launches, and no range of data loading"
    within = frozenset({"os_call", HOST, UNEXPLAINED})
    return Option(
        POSSIBLE_INPUT, "input, possibly", time_ns, share, judged.words, "suspected", evidence, sentence, within
    )
