"""Opening of a verdict on steps, if steps are the smaller part of the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from traceviz.analyses.capture.whole_run import OUTSIDE, START_UP, largest, said, where_of, whole
from traceviz.analyses.derived.capture.step_words import FEW_STEPS
from traceviz.analyses.derived.capture.time_spent import find_costliest_name
from traceviz.analyses.derived.frames import end_ns, having, intervals
from traceviz.analyses.derived.judged_time import steady_time
from traceviz.analyses.derived.run_parts.parts import LABELS, STARTUP, STEPS, RunParts
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.headline.choice import BOUND, UNEXPLAINED
from traceviz.analyses.headline.sentences import continue_sentence
from traceviz.core.arrays.intervals import IntervalSet
from traceviz.core.units import format_ratio
from traceviz.report import Candidate, Certainty

LEAST_STEPS = 0.5
"""Steps with less than this share of the run are not its main part."""
FEW_PERCENT = 0.1
"""If steady steps have less than this share of a capture, the largest part outside of them comes first."""
NAMED_CALLS = 0.1
"""Calls outside of steps are named from this share of the captured time on."""
LONG_STARTUP_NS = 120_000_000_000
"""Imports of this length are the main part of a run. Short runs, and all on a busy machine, mostly import."""
BEFORE = (*STARTUP, "compilation")
"""Parts that make up most of a short run."""
OTHER = "other"
"""Key for all other time of a run without steps."""
OF_THE_RUN = "run"
"""Key of the time that the shares of its parts refer to."""


@dataclass(frozen=True, slots=True)
class RunText:
    """Text about the whole run, which comes before any about steps.

    Args:
        sentence: A sentence of its own; empty if the text continues with the steps.
        prefix: The start of the sentence about steps; empty if :attr:`sentence` states it.
        candidate: The option that leads the verdict, unless a cause within the steps does.
    """

    sentence: str = ""
    prefix: str = ""
    candidate: Candidate | None = None

    def before(self, sentences: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
        """Return the sentences of a verdict with this text in front of them."""
        if self.sentence:
            return [(0, self.sentence), *sentences]
        first = next((place for place, (_, text) in enumerate(sentences) if text), None)
        if not self.prefix or first is None:
            return list(sentences)
        rank, text = sentences[first]
        return [*sentences[:first], (rank, f"{self.prefix}: {continue_sentence(text)}"), *sentences[first + 1 :]]

    def among(self, candidates: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
        """Return the candidates of a verdict. If one of the run leads, the others do not."""
        if self.candidate is None:
            return candidates
        return (self.candidate, *(replace(candidate, leads=False) for candidate in candidates))


def describe_run(run: object, *, are_steps_judged: bool, leads: bool) -> RunText:
    """Return the text of a verdict about the whole run; empty if steps are most of it.

    Args:
        run: The result of the section on the whole run, if there is one.
        are_steps_judged: True if the trace has steps by which it is judged.
        leads: True if something leads within the steps.
    """
    if not isinstance(run, RunParts) or not run.judged.run_ns:
        return RunText()
    run = run.judged
    if not run.steps:
        return RunText() if are_steps_judged else _describe_without_steps(run)
    if run.share(*STEPS) >= LEAST_STEPS:
        return RunText()
    before, outside = largest(run, BEFORE), run.time_ns(*OUTSIDE)
    if outside > run.time_ns(*STEPS) and run.share(*OUTSIDE) >= BOUND:
        part = largest(run, OUTSIDE if _is_a_start(run, before, leads=leads) else run.times)
    elif run.time_ns(*whole(before)) >= outside and _is_a_start(run, before, leads=leads):
        share, label = format_ratio(run.share(*whole(before))), START_UP if before in STARTUP else LABELS[before]
        return RunText(prefix=f"In steps, {_share_of_steps(run)} of {run.words()} ({share} is {label})")
    else:
        part = largest(run, [key for key in run.times if key not in STEPS])
    share = format_ratio(run.share(*whole(part)))
    sentence = f"Steps are {_share_of_steps(run)} of {run.words()}; {share} is {said(run, part)}."
    return RunText(sentence, candidate=_make_candidate(run, part))


def _is_a_start(run: RunParts, before: str, *, leads: bool) -> bool:
    """Return whether the time before the steps is a normal start-up: frameworks are imported, and compile.

    This also holds for longer runs if something leads within the steps.
    """
    own = run.time_ns("preparation") if where_of(run, ("preparation",)) else 0
    is_own = before in STARTUP and own > run.time_ns(*STEPS) and own >= BOUND * run.run_ns
    return (leads or run.time_ns(*whole(before)) < LONG_STARTUP_NS) and not is_own


def has_whole_run(run: object) -> bool:
    """Return whether all of the run was recorded."""
    return isinstance(run, RunParts) and run.run_ns > 0


def _describe_without_steps(run: RunParts) -> RunText:
    """Return the text about a run without steps: the two parts or places that took most of it."""
    parts = sorted((key for key in run.times if run.time_ns(key)), key=run.time_ns, reverse=True)
    if parts[0] == UNEXPLAINED:
        return RunText()
    spent = [  # the start-up is not "before" any steps
        (run.time_ns(part), LABELS[part] if part in STARTUP else said(run, part))
        for part in parts
        if part not in (OTHER, UNEXPLAINED)
    ]
    spent += [(place.time_ns, place.name) for place in run.places.get(OTHER, ())]
    spent += [(run.time_ns(OTHER), "the program's own work")] if OTHER in parts and not run.places.get(OTHER) else []
    ranked = sorted(spent, reverse=True)[:2]
    worth = [(time, what) for time, what in ranked if time >= BOUND * run.run_ns] or ranked[:1]
    shares = ", ".join(f"{format_ratio(time / run.run_ns)} is {what}" for time, what in worth)
    return RunText(f"No steps were seen in {run.words()}: {shares}.", candidate=_make_candidate(run, parts[0]))


def _share_of_steps(run: RunParts) -> str:
    return format_ratio(run.share(*STEPS))


def _make_candidate(run: RunParts, part: str) -> Candidate:
    parts = whole(part)
    certainty: Certainty = "unexplained" if part == UNEXPLAINED else "measured"
    reason = f"The largest part of {run.words('the run')}; steps are {_share_of_steps(run)} of it."
    key = f"{OF_THE_RUN}_{'startup' if part in STARTUP else part}"
    time, share = run.time_ns(*parts), run.share(*parts)
    return Candidate(key, said(run, part), time, share, OF_THE_RUN, certainty, "the whole run", reason, leads=True)


def describe_capture(trace: TraceView) -> RunText:
    """Return the text for a capture of part of a run: the share of its steady steps, if that is small.

    If more time passes before or after them, its share is reported as well, and its calls if steps are a few percent.
    """
    begin, end = trace.recorded_window
    captured, steady = IntervalSet.span(begin, end), steady_time(trace)
    whole = max(len(steady) * captured.total, 1)
    share = sum(own.intersect(captured).total for own in steady.values()) / whole
    if not steady or share >= LEAST_STEPS:
        return RunText()
    outside = {
        "before": {rank: captured.clip(begin, max(begin, int(own.starts[0]))) for rank, own in steady.items()},
        "after": {rank: captured.clip(min(end, int(own.ends[-1])), end) for rank, own in steady.items()},
    }
    where, parts = max(outside.items(), key=lambda item: sum(part.total for part in item[1].values()))
    other = sum(part.total for part in parts.values()) / whole
    is_judged = training_steps(trace).steady.height >= FEW_STEPS  # else the time before the first work is reported
    said = f"{format_ratio(other)} passes {where} them" if other > share and is_judged else ""
    if not said or share >= FEW_PERCENT:
        return RunText(prefix=f"In steps, {format_ratio(share)} of the captured time{f' ({said})' if said else ''}")
    rank = max(parts, key=lambda process: parts[process].total)
    calls = _name_calls(trace, rank, parts[rank])
    return RunText(f"Steady steps are {format_ratio(share)} of the captured time; {said}{calls}.")


def _name_calls(trace: TraceView, rank: int, time: IntervalSet) -> str:
    """Return what the process does in ``time``: the event that covers most of it, else the largest device API calls."""
    name, inside = find_costliest_name(trace, rank, time)
    if name:
        return f", {format_ratio(inside / trace.captured_ns)} in {name}"
    columns = pl.col("name").cast(pl.String), "start_ns", end_ns(), "process_id"
    calls = having(trace.frame("cuda_api", *columns), "process_id", rank)
    times = {part["name"][0]: intervals(part).intersect(time).total for part in calls.partition_by("name")}
    large = [name for name in times if times[name] >= NAMED_CALLS * trace.captured_ns]
    large.sort(key=lambda name: -times[name])
    if not large:
        return ""
    spent = sum(times[name] for name in large[:2]) / trace.captured_ns
    return f", {format_ratio(spent)} in {' and '.join(large[:2])}"
