"""The score of a report against the truth."""

from __future__ import annotations

import gc
import json
import re
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from random import Random

import traceviz
from benchmarks.diagnosis.captures import Capture, flaws_of, formats_of, write_capture
from benchmarks.diagnosis.flaws import Flaw, apply_flaw
from benchmarks.diagnosis.knobs import KNOBS, Format, Knob
from benchmarks.diagnosis.record import Work
from benchmarks.diagnosis.scoring.changes import Change, score_cause, score_equal
from benchmarks.diagnosis.scoring.findings import (
    MATTERS,
    NEGLIGIBLE,
    NO_FINDINGS,
    FindingScore,
    is_shown,
    score_findings,
)
from benchmarks.diagnosis.scoring.numbers import find_errors
from benchmarks.diagnosis.scoring.places import score_places
from benchmarks.diagnosis.truth import Truth, find_truth, run
from benchmarks.diagnosis.worlds import draw_world
from traceviz.report import Report, Verdict
from traceviz.report.verdicts import VerdictCode

__all__ = ["GOOD", "MATTERS", "Grade", "Scored", "draw_capture", "grade", "read_report", "score_capture", "score_seeds"]

AS_GOOD = 0.9
"""A cause with this part of the greatest gain is as good as it."""
OTHER_COSTS = 1_000_000
"""Added to the seed of a world for a second run of it, whose costs differ by chance."""
CAUSE_PAIRS = 0.6
"""Share of comparisons of a world with and without its cause; the others are of two equal worlds."""
PLACES_EVERY = 4
"""Worlds whose places are scored: every fourth."""
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
    """The score of one capture, and what is needed to look at it.

    Args:
        seed: The world.
        capture: Its format and flaw.
        cause: The knob with the greatest gain; ``healthy`` if none matters.
        gains: The gain of each cause, the greatest first.
        lead: Key of the first cause of the report.
        sentence: Its first sentence.
        grade: The score of that.
        hiding: Pairs of causes that hide each other.
        findings: The score of all findings.
        places: Kinds of places of the cause that the capture holds, and whether the report names
            them. Sampled worlds only.
        errors: Error of each class of step time, as a share of it.
        change: The score of a comparison; empty for worlds that are not sampled.
    """

    seed: int
    capture: Capture
    cause: str
    gains: dict[str, float]
    lead: str
    sentence: str
    grade: Grade
    hiding: tuple[str, ...] = ()
    findings: FindingScore = NO_FINDINGS
    places: dict[str, bool] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)
    change: Change | None = None

    def to_json(self) -> str:
        """Return one line of JSON."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, line: str) -> Scored:
        """Return the score of a line of :meth:`to_json`."""
        values = json.loads(line)
        capture, findings, change = values["capture"], values["findings"], values["change"]
        return cls(
            **values
            | {
                "capture": Capture(Format(capture["format"]), Flaw(capture["flaw"]), capture["age"]),
                "grade": Grade(values["grade"]),
                "hiding": tuple(values["hiding"]),
                "findings": FindingScore(**{name: tuple(slugs) for name, slugs in findings.items()}),
                "change": Change(change) if change else None,
            }
        )


def draw_capture(seed: int) -> Capture:
    """Return the format and the flaw of the capture of a world."""
    random = Random(f"{seed}/capture")
    world, is_clean = draw_world(seed), random.random() < CLEAN
    format_ = random.choice(formats_of(world))
    flaw = Flaw.NONE if is_clean else random.choice(flaws_of(format_, world))
    return Capture(format_, flaw, random.randrange(3))


def captures_of(seed: int, *, clean: bool, every: bool) -> list[Capture]:
    """Return the captures of a world to score."""
    drawn, world = draw_capture(seed), draw_world(seed)
    flaw = Flaw.NONE if clean else drawn.flaw
    formats = formats_of(world) if every else [drawn.format]
    return [Capture(format_, flaw if flaw in flaws_of(format_, world) else Flaw.NONE, drawn.age) for format_ in formats]


def score_seeds(
    seeds: list[int], *, clean: bool = False, every: bool = False, compare_every: int = 0, jobs: int = 1
) -> Iterator[list[Scored]]:
    """Yield the scores of each world in the order of the seeds."""
    score = partial(_score_world, clean=clean, every=every, compare_every=compare_every)
    if jobs == 1:
        yield from map(score, seeds)
        return
    # A fork of a process with threads, as those of polars, may hang.
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        yield from pool.map(score, seeds)


def _score_world(seed: int, *, clean: bool, every: bool, compare_every: int) -> list[Scored]:
    compares = compare_every > 0 and seed % compare_every == 0
    captures = captures_of(seed, clean=clean, every=every)
    gc.disable()  # a record has very many objects and no cycles: collections in a run would pass over all of them
    try:
        return score_seed(seed, captures, places=seed % PLACES_EVERY == 0, compares=compares)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()  # what is left are modules and caches


def score_seed(seed: int, captures: Iterable[Capture], *, places: bool = False, compares: bool = False) -> list[Scored]:
    """Score the reports on captures of the world of a seed, as :func:`score_capture`."""
    try:
        truth = find_truth(draw_world(seed))
        return [score_capture(truth, capture, places=places, compares=compares) for capture in captures]
    except Exception as error:
        error.add_note(f"The seed is {seed}.")
        raise


def score_capture(truth: Truth, capture: Capture, *, places: bool = False, compares: bool = False) -> Scored:
    """Write a capture, read its report, and score it.

    Args:
        truth: The world and its truth.
        capture: The format and the flaw.
        places: True to score the places of the cause, which takes another run.
        compares: True to score a comparison, which takes as long as two reports: of the world without its cause and
            with it. A part of the worlds, and each healthy one, is compared with a run of itself with other costs.
    """
    seed, world = truth.world.seed, truth.world
    gains = dict(sorted(((knob, gain) for knob, gain in truth.gains.items()), key=lambda item: -item[1]))
    first = next(iter(gains), None)
    cause = first if first is not None and gains[first] >= MATTERS else None
    without = run(world.without(cause)) if cause is not None and (places or compares) else None
    named, change = {}, None
    with tempfile.TemporaryDirectory() as folder:
        paths = write_capture(truth.record, capture, seed, Path(folder))
        report = read_report(paths)
        if places and cause is not None and without is not None and "healthy" not in KNOBS[cause].answers:
            named = score_places(truth.record, without, report, paths)
    if compares:
        with tempfile.TemporaryDirectory() as folder:
            if cause is not None and without is not None and Random(f"{seed}/compare").random() < CAUSE_PAIRS:
                change = score_cause((without, truth.record), cause, capture, seed, Path(folder), report=report)
            else:
                other = replace(world, seed=seed + OTHER_COSTS)
                pair = (seed, other.seed)
                change = score_equal((truth.record, run(other)), capture, pair, Path(folder), report=report)
    return Scored(
        seed=seed,
        capture=capture,
        cause=cause.value if cause else "healthy",
        gains={knob.value: round(gain, 4) for knob, gain in gains.items()},
        lead=report.verdict.cause,
        sentence=report.verdict.sentence,
        grade=grade(truth, capture, report.verdict),
        hiding=tuple(" and ".join(sorted(pair)) for pair in truth.hiding),
        findings=score_findings(truth, capture, report),
        places=named,
        errors=find_errors(truth.record, apply_flaw(truth.record, capture.flaw, seed), report),
        change=change,
    )


def read_report(paths: Iterable[Path]) -> Report:
    """Return the report on files; one that states the error if they cannot be read or analysed."""
    try:
        return traceviz.report_on(*paths)
    except Exception as error:  # noqa: BLE001 (a crash is a failure of the report, not of the score)
        return Report((), Verdict(VerdictCode.CANNOT_JUDGE, f"Error: {error}", "error"))


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
    shown = {knob: gain for knob, gain in gains.items() if is_shown(knob, capture)}
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
    if capture.flaw not in {Flaw.WINDOW, Flaw.RANK_WINDOWS}:
        return truth.gains
    kernel = min((span.start for span in truth.record.device if span.work is Work.KERNEL), default=0)
    kept = apply_flaw(truth.record, capture.flaw, truth.world.seed).spans
    longest = max((span.end - span.start for span in kept if span.start < kernel), default=0)
    return {
        knob: gain
        for knob, gain in truth.gains.items()
        if not KNOBS[knob].once or longest >= gain * truth.record.end / 2
    }
