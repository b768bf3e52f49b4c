"""Findings that explain judged time more precisely than parts do, and bounds on the computing itself."""

from __future__ import annotations

from collections.abc import Iterator

from traceviz.analyses.headline.judged import Judged
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
    """Options from ``findings``; what is only for information is none.

    Args:
        findings: All findings.
        judged: The judged time.
        doubt: What was added to their messages about clocks, which the verdict says itself.
        input_copies: Whether copies to the device are part of the input.
        is_network: Whether the program may be of a framework; else it chose the precision of its matrices itself.
    """
    for finding in findings:
        record = record_of(finding.code)
        if not record.is_candidate or finding.severity is Severity.INFO or not finding.cost_ns:
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
    """The input as a possible cause: time of the host in which nothing was launched, without ranges to tell."""
    evidence = f"{format_ratio(share)} of host time without launches, and no range of data loading"
    within = frozenset({"os_call", HOST, UNEXPLAINED})
    return Option(
        POSSIBLE_INPUT, "input, possibly", time_ns, share, judged.words, "suspected", evidence, sentence, within
    )


def _lowered(message: str) -> str:
    """A message after a colon: its first letter small, unless the word is a name."""
    first, _, _ = message.partition(" ")
    is_name = not first[1:].islower() and len(first) > 1
    return message if is_name else f"{message[:1].lower()}{message[1:]}"
