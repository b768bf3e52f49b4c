"""What a verdict on steps says first where they are the smaller part of the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from traceviz.analyses.capture.whole_run import OUTSIDE, START_UP, largest, said, where_of, whole
from traceviz.analyses.derived.frames import unions_by
from traceviz.analyses.derived.judged_time import steady_time
from traceviz.analyses.derived.run_parts.parts import LABELS, STARTUP, STEPS, RunParts
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.headline.choice import BOUND
from traceviz.analyses.headline.options import UNEXPLAINED
from traceviz.core.arrays.intervals import IntervalSet
from traceviz.core.units import format_ratio
from traceviz.report import Candidate, Certainty

LEAST_STEPS = 0.5
"""Steps with less than this share of the run are not what it is about."""
LONG_STARTUP_NS = 120_000_000_000
"""Imports of this length are the matter of a run. Short runs, and all on a busy machine, mostly import."""
BEFORE = (*STARTUP, "compilation")
"""Parts of which a short run mostly consists."""
OTHER = "other"
"""All else of a run without steps."""
OF_THE_RUN = "run"
"""What its parts are shares of."""


@dataclass(frozen=True, slots=True)
class OfTheRun:
    """What is said of the whole run before anything about steps.

    Args:
        sentence: A sentence of its own; empty where what is said of steps follows in the same one.
        prefix: The begin of that sentence; empty where :attr:`sentence` says it.
        candidate: What leads the verdict, unless a cause within the steps does.
    """

    sentence: str = ""
    prefix: str = ""
    candidate: Candidate | None = None

    def before(self, sentences: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
        """The sentences of a verdict, with what is said before them."""
        if self.sentence:
            return [(0, self.sentence), *sentences]
        first = next((place for place, (_, text) in enumerate(sentences) if text), None)
        if not self.prefix or first is None:
            return list(sentences)
        rank, text = sentences[first]
        return [*sentences[:first], (rank, f"{self.prefix}: {lowered(text)}"), *sentences[first + 1 :]]

    def among(self, candidates: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
        """The candidates of a verdict: with one that leads, the others do not."""
        if self.candidate is None:
            return candidates
        return (self.candidate, *(replace(candidate, leads=False) for candidate in candidates))


def of_the_run(run: object, *, are_steps_judged: bool, leads: bool) -> OfTheRun:
    """What a verdict says of the whole run; nothing where steps are most of it.

    Args:
        run: The result of the section on the whole run, if there is one.
        are_steps_judged: Whether the trace has steps by which it is judged.
        leads: Whether something leads within the steps.
    """
    if not isinstance(run, RunParts) or not run.judged.run_ns:
        return OfTheRun()
    run = run.judged
    if not run.steps:
        return OfTheRun() if are_steps_judged else _without_steps(run)
    if run.share(*STEPS) >= LEAST_STEPS:
        return OfTheRun()
    before, outside = largest(run, BEFORE), run.time_ns(*OUTSIDE)
    if outside > run.time_ns(*STEPS) and run.share(*OUTSIDE) >= BOUND:
        part = largest(run, OUTSIDE if _is_a_start(run, before, leads=leads) else run.times)
    elif run.time_ns(*whole(before)) >= outside and _is_a_start(run, before, leads=leads):
        share = format_ratio(run.share(*whole(before)))
        return OfTheRun(prefix=f"In steps, {_steps(run)} of {run.words()} ({share} is {_label(before)})")
    else:
        part = largest(run, [key for key in run.times if key not in STEPS])
    sentence = (
        f"Steps are {_steps(run)} of {run.words()}; {format_ratio(run.share(*whole(part)))} is {said(run, part)}."
    )
    return OfTheRun(sentence, candidate=_candidate(run, part))


def _is_a_start(run: RunParts, before: str, *, leads: bool) -> bool:
    """Whether what comes before the steps is what all short runs are: frameworks are imported, and compile.

    So it is in longer ones where something leads within the steps, which is more of the program.
    """
    own = run.time_ns("preparation") if where_of(run, ("preparation",)) else 0
    is_own = before in STARTUP and own > run.time_ns(*STEPS) and own >= BOUND * run.run_ns
    return (leads or run.time_ns(*whole(before)) < LONG_STARTUP_NS) and not is_own


def is_of_the_run(run: object) -> bool:
    """Whether all of the run was recorded."""
    return isinstance(run, RunParts) and run.run_ns > 0


def _without_steps(run: RunParts) -> OfTheRun:
    """What a run was in which no step was seen: the two parts or places that took most of it."""
    parts = sorted((key for key in run.times if run.time_ns(key)), key=run.time_ns, reverse=True)
    if parts[0] == UNEXPLAINED:
        return OfTheRun()
    spent = [(run.time_ns(part), _said_alone(run, part)) for part in parts if part not in (OTHER, UNEXPLAINED)]
    spent += [(place.time_ns, place.name) for place in run.places.get(OTHER, ())]
    spent += [(run.time_ns(OTHER), "the program's own work")] if OTHER in parts and not run.places.get(OTHER) else []
    ranked = sorted(spent, reverse=True)[:2]
    worth = [(time, what) for time, what in ranked if time >= BOUND * run.run_ns] or ranked[:1]
    shares = ", ".join(f"{format_ratio(time / run.run_ns)} is {what}" for time, what in worth)
    return OfTheRun(f"No steps were seen in {run.words()}: {shares}.", candidate=_candidate(run, parts[0]))


def _said_alone(run: RunParts, part: str) -> str:
    """A part of a run without steps, where nothing is before them."""
    return LABELS[part] if part in STARTUP else said(run, part)


def _label(part: str) -> str:
    return START_UP if part in STARTUP else LABELS[part]


def _steps(run: RunParts) -> str:
    return format_ratio(run.share(*STEPS))


def _candidate(run: RunParts, part: str) -> Candidate:
    parts = whole(part)
    certainty: Certainty = "unexplained" if part == UNEXPLAINED else "measured"
    reason = f"The largest part of {run.words('the run')}; steps are {_steps(run)} of it."
    key = f"{OF_THE_RUN}_{'startup' if part in STARTUP else part}"
    time, share = run.time_ns(*parts), run.share(*parts)
    return Candidate(key, said(run, part), time, share, OF_THE_RUN, certainty, "the whole run", reason, leads=True)


def of_the_capture(trace: TraceView) -> OfTheRun:
    """The same where no more is known than what was captured: which share of it the steps are, if that is little."""
    captured = IntervalSet.span(*trace.recorded_window)
    steps = unions_by(training_steps(trace).frame, "process_id")
    share = sum(own.intersect(captured).total for own in steps.values()) / max(len(steps) * captured.total, 1)
    if not steady_time(trace) or share >= LEAST_STEPS:
        return OfTheRun()
    return OfTheRun(prefix=f"In steps, {format_ratio(share)} of the captured time")


def lowered(text: str) -> str:
    """A sentence after a colon: its first letter small, unless the word is a name."""
    first = text.partition(" ")[0]
    plain = first.rstrip(":,")
    is_name = plain == "Python" or (not plain[1:].replace("-", "").islower() and len(first) > 1)
    return text if is_name else f"{text[:1].lower()}{text[1:]}"
