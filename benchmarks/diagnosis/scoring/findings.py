"""Precision and recall of all findings of a report."""

from __future__ import annotations

import re
from dataclasses import dataclass

from benchmarks.diagnosis.captures import Capture
from benchmarks.diagnosis.flaws import Flaw
from benchmarks.diagnosis.knobs import KNOBS, Knob
from benchmarks.diagnosis.scoring.numbers import waits_for_ranks
from benchmarks.diagnosis.truth import Truth
from traceviz.report import Report

MATTERS, NEGLIGIBLE = 0.05, 0.02
"""A cause with the first gain should be found. A cause with less than the second gain should not be named."""
LATE = "late-collectives"
"""Costs that differ by chance make ranks late, too. No knob stands for that, but the record shows it."""
AFTER_READS = "synchronisation-exposes-idle"
"""Every step of every world ends with a read of its loss, and the device idles after it if any cause makes the host
slow. Then this finding is about an effect and belongs to no cause.
"""


@dataclass(frozen=True, slots=True)
class FindingScore:
    """Findings of a report by their truth, and causes of the world by whether the report names them.

    Args:
        true: Findings about a cause that has a gain.
        false: Findings about causes that the world does not have, or whose gain is negligible.
        other: Findings that belong to no cause of the simulator. Nothing is known about them.
        found: Causes that matter and are among the findings or candidates.
        missed: Causes that matter, have evidence in the capture, and are not named.
    """

    true: tuple[str, ...] = ()
    false: tuple[str, ...] = ()
    other: tuple[str, ...] = ()
    found: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()


NO_FINDINGS = FindingScore()


def is_shown(knob: Knob, capture: Capture) -> bool:
    """Return whether a capture holds evidence of a cause."""
    has_ranges, has_calls = capture.flaw is not Flaw.NO_ANNOTATIONS, capture.flaw is not Flaw.NO_CALLS
    return KNOBS[knob].is_shown_by(capture.format, has_ranges=has_ranges, has_calls=has_calls)


def has_word(word: str, text: str) -> bool:
    """Return whether a text holds a word, not only as a part of a longer one."""
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def score_findings(truth: Truth, capture: Capture, report: Report) -> FindingScore:
    """Score the findings of a report.

    A finding claims at most its share. One with less than the gain from which a cause matters is a remark, as small
    causes are in the first sentence: it is not scored, but it may name a cause.
    """
    claims = [finding.slug for finding in report.findings if (finding.share or 0.0) >= MATTERS]
    causes = {
        slug: [knob for knob, facts in KNOBS.items() if slug in facts.answers | facts.symptoms] for slug in claims
    }
    real = {knob for knob, gain in truth.gains.items() if gain >= NEGLIGIBLE}
    true = {slug for slug in claims if real.intersection(causes[slug])}
    if LATE in claims and waits_for_ranks(truth.record) >= NEGLIGIBLE:
        true.add(LATE)
    if any("host" in KNOBS[knob].symptoms for knob in real):
        causes[AFTER_READS] = []
    candidates = [candidate for candidate in report.verdict.candidates if candidate.share >= NEGLIGIBLE]
    names = {report.verdict.cause} | {finding.slug for finding in report.findings} | {one.key for one in candidates}
    text = " ".join(
        (
            report.verdict.sentence,
            *(finding.message for finding in report.findings),
            *(one.evidence for one in candidates),
        )
    )
    found: list[str] = []
    missed: list[str] = []
    for knob, gain in truth.gains.items():
        facts = KNOBS[knob]
        # Where the answer is that the device computes, there is nothing to find.
        if gain < MATTERS or "healthy" in facts.answers or not is_shown(knob, capture):
            continue
        by_place = names & facts.symptoms and any(place in text for place in facts.places)
        (found if names & facts.answers or by_place else missed).append(knob.value)
    return FindingScore(
        true=tuple(slug for slug in claims if slug in true),
        false=tuple(slug for slug in claims if slug not in true and causes[slug]),
        other=tuple(slug for slug in claims if slug not in true and not causes[slug]),
        found=tuple(found),
        missed=tuple(missed),
    )
