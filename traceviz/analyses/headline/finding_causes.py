"""Findings that explain judged time more precisely than parts do, and bounds on the computing itself."""

from __future__ import annotations

from collections.abc import Iterator

from traceviz.analyses.headline.judged_time import Judged
from traceviz.analyses.headline.options import HOST, INPUT, POSSIBLE_INPUT, UNEXPLAINED, Option
from traceviz.core.units import format_ratio
from traceviz.report import Finding, Severity
from traceviz.report.findings.registry import record_of

_NAMES = frozenset({"GIL", "Python"})
"""Headings that are names."""


def precise(
    findings: tuple[Finding, ...],
    judged: Judged,
    doubt: str,
    *,
    input_copies: bool = False,
    is_network: bool = True,
) -> Iterator[Option]:
    """Yield options from ``findings``, except from those that are only for information.

    Args:
        findings: All findings.
        judged: The judged time.
        doubt: Text about clocks that was added to their messages. The verdict states it itself.
        input_copies: True if copies to the device are part of the input.
        is_network: True if a framework may have run the program. Otherwise the program chose the precision of its
            matrices itself.
    """
    for finding in findings:
        record = record_of(finding.code)
        if not record.can_lead or finding.severity is Severity.INFO or not finding.cost_ns:
            continue
        if finding.code == "TV405" and not is_network:
            continue
        label = record.label or finding.slug.replace("-", " ")
        within = frozenset[str](record.explains)
        within = within | {INPUT} if input_copies and "copy_h2d" in within else within
        share = finding.share or 0.0
        of = finding.share_of or judged.words
        message = finding.message.removesuffix(doubt).rstrip()
        if "%" not in message:
            message = f"{message} At stake: {format_ratio(share)} of the {of}."
        sentence = f"{label[0].upper()}{label[1:]}: {_lowered(message)}"
        if record.heading_end:
            heading = message.partition(record.heading_end)[0]
            label, sentence = heading if heading in _NAMES else _lowered(heading), message
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


def _lowered(message: str) -> str:
    """Return a message for use after a colon. Its first letter is small unless the word is a name."""
    first, _, _ = message.partition(" ")
    is_name = not first[1:].islower() and len(first) > 1
    return message if is_name else f"{message[:1].lower()}{message[1:]}"
