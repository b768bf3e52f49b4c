"""Comparison of a world with and without its cause, and of two runs of the same world."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from statistics import fmean

from benchmarks.diagnosis.captures import Capture, write_capture
from benchmarks.diagnosis.knobs import KNOBS, Knob
from benchmarks.diagnosis.record import Record
from benchmarks.diagnosis.scoring.findings import MATTERS, has_word
from benchmarks.diagnosis.scoring.places import place_words
from traceviz.api import compare, to_text
from traceviz.compare.changes.findings import Seen
from traceviz.compare.compare import Comparison
from traceviz.compare.effect import Outcome
from traceviz.compare.report.document import document
from traceviz.core.errors import TracevizError
from traceviz.report import Report

Pair = tuple[Record, Record]
"""The records of the base and of the new side."""


class Change(StrEnum):
    """Score of a comparison."""

    NAMED = "named"
    EFFECT = "effect named"
    UNNAMED = "not named"
    MISSED = "missed"
    UNJUDGED = "cannot judge"
    OUTSIDE = "outside steps"
    QUIET = "quiet"
    FALSE = "false change"


_CLASSES = {
    "input_wait": {"input"},
    "host_blocked": {"os_call", "waiting"},
    "host_compute": {"host", "unexplained"},
    "device_compute": {"healthy"},
}
"""Keys of causes for the classes of a comparison whose keys are others."""


def score_cause(
    pair: Pair, cause: Knob, capture: Capture, seed: int, folder: Path, *, report: Report | None = None
) -> Change:
    """Compare a world without its cause and with it.

    ``named``: the largest class of the change, the most expensive new finding, or a word of the first sentence is an
    answer or a place of the cause. ``effect named``: it is a symptom. ``outside steps``: steps do not differ, as the
    cause lies before or between them, and the comparison claims nothing. ``report`` is that on the world with the
    cause, if there is one.
    """
    comparison = _compare((pair[0], report or pair[1]), capture, (seed, seed), folder)
    if comparison is None:
        return Change.UNJUDGED
    (without, with_cause), shown = pair, comparison.shown
    outcome = shown.judgement.outcome
    if outcome is Outcome.UNKNOWN:
        return Change.UNJUDGED
    first, second = without.step_times, with_cause.step_times
    if outcome is Outcome.NO_CHANGE:
        differs = not first or not second or abs(fmean(second) / fmean(first) - 1) >= MATTERS
        return Change.MISSED if differs else Change.OUTSIDE
    names: set[str] = set()
    if shown.attribution is not None and shown.attribution.classes:
        sign = 1 if shown.attribution.difference_ns > 0 else -1
        largest = max(shown.attribution.classes, key=lambda one: sign * one.difference_ns)
        names |= _CLASSES.get(largest.key, {largest.key})
    names |= {change.slug for change in shown.findings.of(Seen.APPEARED)[:1]}
    sentence = document(comparison).verdict.sentence
    facts = KNOBS[cause]
    if names & facts.answers or any(has_word(word, sentence) for word in place_words(with_cause, without)):
        return Change.NAMED
    return Change.EFFECT if names & facts.symptoms else Change.UNNAMED


def score_equal(
    pair: Pair, capture: Capture, seeds: tuple[int, int], folder: Path, *, report: Report | None = None
) -> Change:
    """Compare two runs of a world that differ by chance alone; ``report`` is that on the first, if there is one."""
    comparison = _compare((report or pair[0], pair[1]), capture, seeds, folder)
    outcome = Outcome.UNKNOWN if comparison is None else comparison.shown.judgement.outcome
    if outcome is Outcome.UNKNOWN:
        return Change.UNJUDGED
    return Change.QUIET if outcome is Outcome.NO_CHANGE else Change.FALSE


def _compare(
    pair: tuple[Record | Report, Record | Report], capture: Capture, seeds: tuple[int, int], folder: Path
) -> Comparison | None:
    sides = []
    for name, side, seed in zip(("base", "new"), pair, seeds, strict=True):
        if isinstance(side, Report):
            sides.append(folder / f"{name}.json")
            sides[-1].write_text(to_text(side, "json"), encoding="utf-8")
            continue
        (folder / name).mkdir()
        files = write_capture(side, capture, seed, folder / name)
        sides.append(files[0] if len(files) == 1 else folder / name)
    try:
        return compare(*sides)
    except TracevizError:
        return None
