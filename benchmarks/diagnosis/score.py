"""The score of a report against the truth, and tables of many."""

from __future__ import annotations

import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from random import Random

import traceviz
from benchmarks.diagnosis.captures import Capture, write_capture
from benchmarks.diagnosis.flaws import Flaw, apply_flaw
from benchmarks.diagnosis.knobs import KNOBS, Format, Knob
from benchmarks.diagnosis.record import Work
from benchmarks.diagnosis.truth import Truth, find_truth
from benchmarks.diagnosis.worlds import draw_world
from traceviz.core.errors import TracevizError
from traceviz.report import Verdict
from traceviz.report.verdicts import VerdictCode

MATTERS, NEGLIGIBLE = 0.05, 0.02
"""Below the first gain a world is healthy; below the second, a named cause is false blame."""
AS_GOOD = 0.9
"""A cause with this part of the greatest gain is as good as it."""
CLEAN = 0.6
"""Share of captures without a flaw."""
NO_CAUSE = frozenset({"", "healthy"})
MINOR = "the largest other part"
"""Words of a first sentence that names a small cause after the time in which devices compute."""


class Grade(StrEnum):
    """Score of a first sentence."""

    RIGHT = "right"
    HONEST = "honest"
    WEAK = "weak"
    WRONG = "wrong"
    FALSE_BLAME = "false blame"


GOOD = frozenset({Grade.RIGHT, Grade.HONEST})


@dataclass(frozen=True, slots=True)
class Scored:
    """The score of one capture, and what is needed to look at it."""

    seed: int
    capture: Capture
    cause: str
    """The knob with the greatest gain; ``healthy`` if none matters."""
    gains: str
    lead: str
    sentence: str
    grade: Grade


def draw_capture(seed: int) -> Capture:
    """Return the format and the flaw of the capture of a world."""
    random = Random(f"{seed}/capture")
    flaw = Flaw.NONE if random.random() < CLEAN else random.choice([flaw for flaw in Flaw if flaw is not Flaw.NONE])
    return Capture(random.choice(list(Format)), flaw, random.randrange(3))


def score_seed(seed: int, captures: Iterable[Capture]) -> list[Scored]:
    """Score the reports on captures of the world of a seed."""
    truth = find_truth(draw_world(seed))
    return [score_capture(truth, capture) for capture in captures]


def score_capture(truth: Truth, capture: Capture) -> Scored:
    """Write a capture, read its report, and grade it."""
    with tempfile.TemporaryDirectory() as folder:
        paths = write_capture(truth.record, capture, truth.world.seed, Path(folder))
        try:
            verdict = traceviz.report_on(*paths).verdict
        except TracevizError as error:
            verdict = Verdict(VerdictCode.CANNOT_JUDGE, f"Error: {error}", "error")
    gains = sorted(truth.gains.items(), key=lambda item: -item[1])
    cause = gains[0][0].value if gains and gains[0][1] >= MATTERS else "healthy"
    listed = ", ".join(f"{knob} {gain:.0%}" for knob, gain in gains)
    return Scored(
        truth.world.seed, capture, cause, listed, verdict.cause, verdict.sentence, grade(truth, capture, verdict)
    )


def grade(truth: Truth, capture: Capture, verdict: Verdict) -> Grade:
    """Grade the first cause of a report; README.md has the rules."""
    lead, sentence = verdict.cause, verdict.sentence
    tied = re.search(r"As much: ([^(]*\([^.]*\.?[^.]*)", sentence)
    leads = {lead} | {c.key for c in verdict.candidates if tied and c.label in tied.group(1)}
    says_nothing = lead in NO_CAUSE or MINOR in sentence
    if says_nothing:
        leads.add("healthy")
    gains = find_gains_within(truth, capture)
    best = max(gains.values(), default=0.0)
    if best < MATTERS:
        if says_nothing:
            return Grade.RIGHT
        return Grade.HONEST if lead == "unexplained" else Grade.FALSE_BLAME
    named = {
        knob: gain
        for knob, gain in gains.items()
        if leads & KNOBS[knob].answers
        or (leads & KNOBS[knob].symptoms and any(place in sentence for place in KNOBS[knob].places))
    }
    first = KNOBS[max(gains, key=lambda knob: gains[knob])]
    if _names_best(named, gains):
        return Grade.RIGHT
    if first.once and any(place in sentence for place in first.places):
        recurring = {knob: gain for knob, gain in gains.items() if not KNOBS[knob].once}
        if _names_best(named, recurring):
            return Grade.RIGHT
    is_symptom = bool(leads & (first.symptoms | {"unexplained"}))
    has_ranges = capture.flaw is not Flaw.NO_ANNOTATIONS
    shown = {k: gain for k, gain in gains.items() if KNOBS[k].is_shown_by(capture.format, has_ranges=has_ranges)}
    if first.knob not in shown and (is_symptom or says_nothing or _names_best(named, shown)):
        return Grade.HONEST
    if named:
        return Grade.WRONG if max(named.values()) >= NEGLIGIBLE else Grade.FALSE_BLAME
    if is_symptom and not says_nothing:
        return Grade.WEAK
    return Grade.WRONG if says_nothing or lead == "error" else Grade.FALSE_BLAME


def _names_best(named: dict[Knob, float], among: dict[Knob, float]) -> bool:
    """Return whether a cause was named that is as good as the best of those that matter among some."""
    best = max(among.values(), default=0.0)
    return best >= MATTERS and any(gain >= AS_GOOD * best for knob, gain in named.items() if knob in among)


def find_gains_within(truth: Truth, capture: Capture) -> dict[Knob, float]:
    """Return the gains of the causes that a capture holds.

    A window may begin after a cause that happens once, before the first kernel, or cut its call, which is then lost:
    no call that begins before that kernel has half of its gain.
    """
    if capture.flaw is not Flaw.WINDOW:
        return truth.gains
    kernel = min((span.start for span in truth.record.device if span.work is Work.KERNEL), default=0)
    kept = apply_flaw(truth.record, capture.flaw, truth.world.seed).spans
    longest = max((span.end - span.start for span in kept if span.start < kernel), default=0)
    return {
        knob: gain
        for knob, gain in truth.gains.items()
        if not KNOBS[knob].once or longest >= gain * truth.record.end / 2
    }


def table(scores: list[Scored], row: Callable[[Scored], str], title: str) -> str:
    """Return the counts of grades by a property of the captures, worst first."""
    counts: dict[str, Counter[Grade]] = defaultdict(Counter)
    for scored in scores:
        counts[row(scored)][scored.grade] += 1
    lines = [f"{title:24} {'good':>6} " + " ".join(f"{grade:>11}" for grade in Grade)]
    for name, grades in sorted(counts.items(), key=lambda item: (_share(item[1]), item[0])):
        lines.append(f"{name:24} {_share(grades):6.0%} " + " ".join(f"{grades[grade]:11}" for grade in Grade))
    return "\n".join(lines)


def cross_table(scores: list[Scored]) -> str:
    """Return the share of right and honest reports by cause and format."""
    cells: dict[tuple[str, Format], Counter[Grade]] = defaultdict(Counter)
    for scored in scores:
        cells[scored.cause, scored.capture.format][scored.grade] += 1
    lines = [f"{'cause':20}" + "".join(f"{format_:>15}" for format_ in Format)]
    for cause in sorted({cause for cause, _ in cells}):
        shares = [cells.get((cause, format_)) for format_ in Format]
        cause_cells = (f"{_share(cell):.0%} of {cell.total()}" if cell else "" for cell in shares)
        lines.append(f"{cause:20}" + "".join(f"{cell:>15}" for cell in cause_cells))
    return "\n".join(lines)


def summary(scores: list[Scored]) -> str:
    """Return the last line of a run."""
    grades = Counter(scored.grade for scored in scores)
    blamed = grades[Grade.FALSE_BLAME] / max(1, grades.total())
    worlds = len({scored.seed for scored in scores})
    return f"right or honest: {100 * _share(grades):.1f} %, false blame: {100 * blamed:.1f} %, worlds: {worlds}"


def _share(grades: Counter[Grade]) -> float:
    return sum(grades[grade] for grade in GOOD) / max(1, grades.total())
