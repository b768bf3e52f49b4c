"""Opening of a verdict on steps, if steps are the smaller part of the run."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from traceviz.analyses.capture.whole_run import OUTSIDE, START_UP, largest, said, where_of, whole
from traceviz.analyses.derived.capture.time_spent import (
    ENCLOSES,
    find_costliest_name,
    find_parts_of_time,
    list_parts_of_time,
)
from traceviz.analyses.derived.frames import bounds, end_ns, having, intervals
from traceviz.analyses.derived.judged_time import steady_time
from traceviz.analyses.derived.run_parts.parts import LABELS, STARTUP, STEPS, RunParts
from traceviz.analyses.derived.steps.search import time_of_unseen_steps, training_thread
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.headline.choice import BOUND, HEALTHY, MOST, UNEXPLAINED, Option
from traceviz.analyses.headline.claims import NO_HEADLINE, Headline, claim_on, describe_gain_of, say_consequence
from traceviz.core.arrays.intervals import IntervalSet
from traceviz.core.units import format_ratio
from traceviz.report import Candidate, Certainty, Claim

LEAST_STEPS = 0.5
"""Steps with less than this share of the run are not its main part."""
SPEAKS_FOR_ALL = 0.1
"""Steady steps with less than this share of a capture do not speak for it, if nothing was measured to lead in them."""
LONG_STARTUP_NS = 120_000_000_000
"""Imports of this length are the main part of a run. Short runs, and all on a busy machine, mostly import."""
BEFORE = (*STARTUP, "compilation")
"""Parts that make up most of a short run."""
OTHER = "other"
"""Key for all other time of a run without steps."""
OF_THE_RUN = "run"
"""Key of the time that the shares of its parts refer to."""
CAPTURED = "captured time"
"""The same for parts of a capture."""


@dataclass(frozen=True, slots=True)
class RunText:
    """Text about the whole run or capture, if steps are only a part of it.

    Args:
        sentence: The share of the steps, and what takes most of the rest; empty if steps are most of it.
        candidate: The option that leads the verdict, unless a cause within the steps does. The sentence is then first.
        headline: The headline if it leads.
        caveat: The share of the steps alone, if it leads.
        parts: Exclusive parts of the captured time, if the candidate is one of them.
    """

    sentence: str = ""
    candidate: Candidate | None = None
    headline: Headline = NO_HEADLINE
    caveat: str = ""
    parts: tuple[Claim, ...] = ()

    def among(self, candidates: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
        """Return the candidates of a verdict. If one of the run leads, the others do not."""
        if self.candidate is None:
            return candidates
        return (self.candidate, *(replace(candidate, leads=False) for candidate in candidates))


def describe_run(
    run: object,
    lead: Option | None,
    *,
    are_steps_judged: bool,
    are_recorded: bool,
    has_device: bool,
    recompiles: bool = False,
) -> RunText:
    """Return the text of a verdict about the whole run; empty if steps are most of it, and no part outside is large.

    Args:
        run: The result of the section on the whole run, if there is one.
        lead: The option that leads within the judged time, if any.
        are_steps_judged: True if the trace has steps by which it is judged.
        are_recorded: True if a profiler recorded these steps.
        has_device: True if device work was recorded.
        recompiles: True if a finding shows that steady steps compile again: then that is no start-up.
    """
    if not isinstance(run, RunParts) or not run.judged.run_ns:
        return RunText()
    run = run.judged
    if not run.steps:
        text = RunText() if are_steps_judged else _describe_without_steps(run)
        # A function that encloses all known time of the run says nothing next to what devices wait for.
        known_ns = run.run_ns - run.time_ns(UNEXPLAINED)
        encloses = text.candidate is not None and text.candidate.time_ns >= ENCLOSES * known_ns
        return RunText() if encloses and has_device and lead is not None else text
    leads, before, outside = are_recorded and lead is not None, largest(run, BEFORE), run.time_ns(*OUTSIDE)
    if run.share(*STEPS) >= LEAST_STEPS:
        part = largest(run, OUTSIDE)
        least = max(BOUND, lead.share * run.share(*STEPS) if lead is not None else 0.0)
        if not has_device or run.share(*whole(part)) < least:
            return RunText()
    elif outside > run.time_ns(*STEPS) and run.share(*OUTSIDE) >= BOUND:
        part = largest(run, OUTSIDE if _is_a_start(run, before, leads=leads) else run.times)
    elif run.time_ns(*whole(before)) >= outside and _is_a_start(run, before, leads=leads):
        share, label = format_ratio(run.share(*whole(before))), START_UP if before in STARTUP else LABELS[before]
        if before == "compilation" and recompiles:
            return RunText(f"{share} of {run.words()} is {said(run, before)}, which recurs in steps.")
        return RunText(f"Steps are {_share_of_steps(run)} of {run.words()}; {share} is {label}.")
    else:
        part = largest(run, [key for key in run.times if key not in STEPS])
    share = format_ratio(run.share(*whole(part)))
    base = f"Steps are {_share_of_steps(run)} of {run.words()}"
    sentence, candidate = f"{base}; {share} is {said(run, part)}.", _make_candidate(run, part)
    return RunText(sentence, candidate, _make_headline(run, part, candidate), f"{base}.")


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


def has_long_warm_up(run: object) -> bool:
    """Return whether warm-up steps take a large part of a run."""
    return isinstance(run, RunParts) and run.judged.run_ns > 0 and run.judged.share("warmup") >= BOUND


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
    places, leading = run.places.get(OTHER, ()), run.mostly.get(OTHER)
    if leading is not None and leading.time_ns > max((place.time_ns for place in places), default=0):
        places = (leading,)  # with all that it calls it takes longer than each of them alone
    spent += [(place.time_ns, place.name) for place in places]
    spent += [(run.time_ns(OTHER), "the program's own work")] if OTHER in parts and not run.places.get(OTHER) else []
    ranked = sorted(spent, reverse=True)[:2]
    worth = [(time, what) for time, what in ranked if time >= BOUND * run.run_ns] or ranked[:1]
    shares = ", ".join(f"{format_ratio(time / run.run_ns)} is {what}" for time, what in worth)
    candidate = _make_candidate(run, parts[0])
    if run.places.get(parts[0]) and parts[0] == OTHER:  # the sentence states a place in it, not all of it
        time, what = worth[0]
        candidate = replace(candidate, label=what, time_ns=time, share=time / run.run_ns)
    caveat = f"No steps were seen in {run.words()}."
    return RunText(
        f"{caveat[:-1]}: {shares}.", candidate, _make_headline(run, parts[0], candidate, has_steps=False), caveat
    )


def _share_of_steps(run: RunParts) -> str:
    return format_ratio(run.share(*STEPS))


_SUBJECTS = {
    "compilation": "Compilation takes",
    "validation": "Validation takes",
    "saving": "Saving takes",
    "between": "Time between steps takes",
    "after": "Time after the steps takes",
    "shutdown": "Shutdown takes",
    OTHER: "The program's own work takes",
    UNEXPLAINED: "Unexplained: no event covers",
}
"""Subjects of headlines about a part of the run."""


def _make_headline(run: RunParts, part: str, candidate: Candidate, *, has_steps: bool = True) -> Headline:
    """Return the headline of a part that leads. Less start-up or compilation makes only short runs faster."""
    subject = "Start-up takes" if part in STARTUP else _SUBJECTS.get(part, f"{LABELS[part].capitalize()} takes")
    is_place = part == OTHER and bool(run.places.get(part))
    made = claim_on(subject, candidate.share, OF_THE_RUN)
    places = [place for key in whole(part) for place in run.places.get(key, ())]
    largest_place = max(places, key=lambda place: place.time_ns, default=None)
    start = "" if largest_place is None else largest_place.line or largest_place.name
    if is_place:
        made = claim_on("One function takes", candidate.share, OF_THE_RUN, candidate.label)
    gain = "" if part in BEFORE or not has_steps else describe_gain_of(candidate.share)
    return replace(made, consequence=say_consequence(gain, start))


def _make_candidate(run: RunParts, part: str) -> Candidate:
    parts = whole(part)
    certainty: Certainty = "unexplained" if part == UNEXPLAINED else "measured"
    key = f"{OF_THE_RUN}_{'startup' if part in STARTUP else part}"
    time, share = run.time_ns(*parts), run.share(*parts)
    besides = " besides the steps" if time < run.time_ns(*STEPS) else ""
    reason = f"The largest part of {run.words('the run')}{besides}; steps are {_share_of_steps(run)} of it."
    return Candidate(key, said(run, part), time, share, OF_THE_RUN, certainty, "the whole run", reason, leads=True)


def describe_start_up(trace: TraceView, working: float) -> RunText:
    """Return the candidate for the time before or after all device work, if that is most of a capture.

    Args:
        trace: The trace.
        working: Share of the captured time from the first to the last device work.
    """
    begin, end = trace.device_window
    starts, ends = zip(*trace.rank_extents.values(), strict=True)
    before, after = min(starts) - begin, end - max(ends)
    where, time_ns = max(((_BEFORE, before), (_AFTER, after)), key=lambda part: part[1])
    label = "start-up" if where == _BEFORE else "time after the last device work"
    reason = f"The largest part of the captured time; devices work within {format_ratio(working)} of it."
    share = time_ns / max(trace.captured_ns, 1)
    evidence = "the time without device work"
    key = f"{OF_THE_RUN}_{_KEYS[where]}"
    candidate = Candidate(key, label, time_ns, share, CAPTURED, "measured", evidence, reason, leads=True)
    made = claim_on(f"{label[0].upper()}{label[1:]} takes", share, CAPTURED)
    advice = "record later, when the program is at work" if where == _BEFORE else "stop the recording earlier"
    parts = _list_parts(
        trace.captured_ns,
        (_BEFORE, "start-up", before),
        ("work", "first to last device work", max(ends) - min(starts)),
        (_AFTER, "after the last device work", after),
    )
    headline = replace(made, consequence=say_consequence("", "", advice))
    return RunText(candidate=candidate, headline=headline, parts=parts)


def _list_parts(whole_ns: int, *parts_of_time: tuple[str, str, int]) -> tuple[Claim, ...]:
    """Return the parts of the captured time that have a length (key, label and time), and the rest of it."""
    parts = [part for part in parts_of_time if part[2] > 0]
    rest = whole_ns - sum(time for _, _, time in parts)
    parts += [("other", "other", rest)] if rest > 0 else []
    evidence = "the time between the first and the last event"
    return tuple(
        Claim(_KEYS.get(key, key), label, time, time / max(whole_ns, 1), CAPTURED, "measured", evidence)
        for key, label, time in parts
    )


def describe_capture(trace: TraceView, lead: Option | None, *, is_good: bool = False) -> RunText:
    """Return the text for a capture of part of a run: the share that is judged, and what is larger outside of it.

    The time without device work before, between or after the steady steps is named with the calls in it. It leads if
    it is larger than what leads in the steps, and is between them, or they are too little of the capture to speak for
    it.

    Args:
        trace: The trace.
        lead: The option that leads within the steps.
        is_good: True if the verdict says that steps are fine. It then names its base if devices idle outside of them.
    """
    steady = steady_time(trace)
    if not steady:
        return RunText()
    captured = IntervalSet.span(*trace.recorded_window)
    whole = max(len(steady) * captured.total, 1)
    judged_ns = sum(own.intersect(captured).total for own in steady.values())
    times = {rank: _find_time_outside(trace, rank, captured) for rank in steady}
    outside = {where: sum(own[where].total for own in times.values()) for where in (_BEFORE, _BETWEEN, _AFTER)}
    where = max(outside, key=outside.__getitem__)
    of, share = format_ratio(judged_ns / whole), outside[where] / whole
    has_device = bool(trace.rank_busy)
    idle_ns = sum(time.subtract(_busy(trace, rank)).total for rank, own in times.items() for time in own.values())
    are_idle = has_device and idle_ns >= HEALTHY * whole
    # Some findings count the time of one rank: only shares compare.
    measured = lead.share * judged_ns if lead and lead.certainty == "measured" else 0.0
    is_large = share >= BOUND and outside[where] > measured
    # Time between steps recurs. It is stated even if devices work in it: a validation of each epoch.
    recurs = where == _BETWEEN and share >= HEALTHY
    if not (judged_ns < LEAST_STEPS * whole or is_large or ((are_idle or recurs) and (is_good or lead is None))):
        return RunText()
    if share < HEALTHY:
        return RunText(f"Steady steps are {of} of the captured time.")
    rank = max(times, key=lambda rank: times[rank][where].total)
    idle = times[rank][where].subtract(_busy(trace, rank))
    is_idle = has_device and 2 * idle.total > times[rank][where].total
    did, start = _name_parts(trace, rank, idle) if is_idle else _name_place(trace, rank, times[rank][where])
    idly = " without device work" if is_idle and where != _BETWEEN else ""
    continues = where == _BETWEEN and int(times[rank][where].ends[-1]) > int(steady[rank].ends[-1])
    when = f"{where} and {_AFTER}" if continues else where
    text = f"Steady steps are {of} of the captured time; {format_ratio(share)} is {when} them{idly}{did}."
    speaks_for_all = judged_ns >= SPEAKS_FOR_ALL * whole or (lead is not None and lead.certainty == "measured")
    leads = has_device and is_large and bool(did if where == _BETWEEN else not speaks_for_all)
    if not leads:
        return RunText(text)
    label = "start-up" if where == _BEFORE else f"time {where} the steps"
    reason = f"The largest part of the captured time; steady steps are {of} of it."
    candidate = Candidate(
        f"{OF_THE_RUN}_{_KEYS[where]}",
        *(label, outside[where], share, CAPTURED, "measured", f"no steps{did}", reason),
        leads=True,
    )
    made = claim_on(f"{label[0].upper()}{label[1:]} takes", share, CAPTURED)
    made = replace(made, consequence=say_consequence("", start))
    labels = {_BEFORE: "start-up", _BETWEEN: "between the steps", _AFTER: "after the steps"}
    before, *others = ((key, labels[key], time) for key, time in outside.items())
    parts = _list_parts(whole, before, ("steps", "steady steps", judged_ns), *others)
    return RunText(text, candidate, made, f"Steady steps are {of} of the captured time.", parts)


_BEFORE, _BETWEEN, _AFTER = "before", "between", "after"
_KEYS = {_BEFORE: "startup", _BETWEEN: "between", _AFTER: "after"}


def _busy(trace: TraceView, rank: int) -> IntervalSet:
    return trace.rank_busy.get(rank, IntervalSet.empty())


def _find_time_outside(trace: TraceView, rank: int, captured: IntervalSet) -> dict[str, IntervalSet]:
    """Return the time between the steady steps of a process, and that without device work before and after them.

    Between steps, devices may work for the same loop: they validate, say. Before and after, they do other work. What
    the loop does between steps may also follow the last one::

        host    |-step-|-step-|-validation-|-step-|-step-|-validation-|---export---|
        between                ^----------^               ^----------^

    Steps that are not judged because their device work is not known are none of these.
    """
    steady = steady_time(trace)[rank]
    first, last = int(steady.starts[0]), int(steady.ends[-1])
    again = _find_recurring(trace, rank, steady)
    begin, end = int(captured.starts[0]), int(captured.ends[-1])
    busy = _busy(trace, rank)
    spans = {
        _BEFORE: IntervalSet.span(begin, max(begin, first)).subtract(busy),
        _BETWEEN: IntervalSet.span(first, last).subtract(steady).union(again),
        _AFTER: IntervalSet.span(min(last, end), end).subtract(busy.union(again)),
    }
    unseen = time_of_unseen_steps(trace).get(rank, IntervalSet.empty())
    return {where: span.clip(*trace.window_of(rank)).subtract(unseen) for where, span in spans.items()}


def _find_recurring(trace: TraceView, rank: int, steady: IntervalSet) -> IntervalSet:
    """Return the time after the last steady step in ranges and operations that take most of the time between steps."""
    thread, last = training_thread(trace, rank), int(steady.ends[-1])
    between = steady.complement(int(steady.starts[0]), last)
    found = IntervalSet.empty()
    if not between.total:
        return found
    for table in ("nvtx", "host_ops"):
        events = trace.frame(table, "start_ns", end_ns(), "thread_id", "name")
        after = events.filter((pl.col("start_ns") >= last) & (pl.col("thread_id") == thread))
        if not after.height:
            continue
        again = having(events, "thread_id", thread).filter(pl.col("name").is_in(after["name"].unique().implode()))
        starts, ends = bounds(again)
        inside = np.where(steady.overlap(starts, ends) == 0, between.overlap(starts, ends), 0)
        sums = again.with_columns(pl.Series("inside", inside)).group_by("name").agg(pl.col("inside").sum())
        names = sums.filter(pl.col("inside") >= MOST * between.total)["name"]
        found = found.union(intervals(after.filter(pl.col("name").is_in(names.implode()))))
    return found


def _name_parts(trace: TraceView, rank: int, time: IntervalSet) -> tuple[str, str]:
    """Return the calls of the device's API that take much of ``time``, else the event around most of it.

    They are a clause for the sentence, and the largest of them.

    A range of the program (*validation*) says more than the calls of the operating system within it.
    """
    parts = find_parts_of_time(trace, rank, time, ("cuda_api",))
    return (f", above all {list_parts_of_time(parts)}", parts[0][0]) if parts else _name_place(trace, rank, time)


def _name_place(trace: TraceView, rank: int, time: IntervalSet) -> tuple[str, str]:
    name, _ = find_costliest_name(trace, rank, time)
    return (f", mostly in {name}", name) if name else ("", "")
