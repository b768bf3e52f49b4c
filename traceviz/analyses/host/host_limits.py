"""Limits of a program that the host holds up: activities of the main thread in the steps other than computing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

from traceviz.analyses.base import Analysis, finding, known
from traceviz.analyses.derived.capture.step_words import FEW_STEPS
from traceviz.analyses.derived.frames import bounds, having, intervals
from traceviz.analyses.derived.judged_time import within_sentence
from traceviz.analyses.derived.stacks.functions import placed, wilson
from traceviz.analyses.derived.stacks.kinds import KIND_LABELS
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.host.gil import Contention, contention
from traceviz.analyses.host.own_function import ONE_KIND, OwnFunction, calling_function, own_function
from traceviz.analyses.host.small_operators import SMALL_NS, SmallOperators, small_operators
from traceviz.analyses.host.stalled_pool import StalledPool, stalled_pool
from traceviz.analyses.host.step_samples import LEAST_SAMPLES, StepSamples, step_samples
from traceviz.core.lazy_module import Later
from traceviz.core.units import counted, format_ns, format_number, format_ratio
from traceviz.report import STEADY_STEP_TIME, Column, Fact, Facts, Finding, Grid, Section, Skipped
from traceviz.report.findings.registry import record_of

if TYPE_CHECKING:
    from traceviz.report.findings import tv615_garbage_collection as tv615
else:
    tv615 = Later("traceviz.report.findings.tv615_garbage_collection")

FEW = 30
"""A share of fewer samples is reported with *about*."""
MOSTLY = 0.5
"""A place is named with *mostly* if this part of the time was spent in it."""


@dataclass(frozen=True, slots=True)
class Part:
    """Activity of the main thread in a part of the steps.

    Args:
        group: Key of the part: ``io, lock, logging, python, compute, input, ...``.
        share: Its share of the steps.
        samples: Samples in it; ``None`` if a profiler recorded exact times.
        interval: The 95 % interval of the share.
        activity: The activity with most of the time.
        location: The line of the program in which most of it is spent.
        leaf: The innermost frame there.
        location_share: Part of it that is spent in that line.
        function_share: Part of it that is spent in the function of that line.
        calls: Compiled functions that it calls, the largest first, each with its share of the steps.
        waits_for: Target of its wait, if the files of its stack show it.
    """

    group: str
    share: float
    samples: float | None
    interval: tuple[float, float]
    activity: str
    location: str
    leaf: str
    location_share: float
    function_share: float
    calls: tuple[tuple[str, float], ...]
    waits_for: str

    @property
    def words(self) -> str:
        """The share, with *about* if few samples make it uncertain."""
        return f"{'about ' if self.samples is not None and self.samples < FEW else ''}{format_ratio(self.share)}"

    @property
    def mostly(self) -> str:
        """The place, after a comma; with its own share of the steps if it is the smaller part."""
        place = placed(self.location)
        if self.location_share >= MOSTLY:
            return f", mostly in {place}"
        return f", most of all in {place} ({format_ratio(self.location_share * self.share)})"


@dataclass(frozen=True, slots=True)
class Meanwhile:
    """Activity of other threads while the main thread waits: the largest, and its share of the wait."""

    thread: str
    activity: str
    location: str
    share: float


@dataclass(frozen=True, slots=True)
class HostLimits:
    """Limits of the steps of a program on the host.

    Args:
        steps: The samples of its steps; ``None`` without.
        parts: Activities of its main thread in them, the largest first.
        gil: Contention for the interpreter.
        threads: Names of the threads that want it, besides the main thread.
        meanwhile: Activity of other threads while the main thread waits for a lock.
        collections: Garbage collections in the steps.
        operators: Small operators of the steps that a profiler recorded.
        stalled: Operators in the steps whose threads wait for cores.
        largest: The function that takes most of the steps without training; ``None`` if it is below ``python_share``.
        working: The same among functions that may compute for the model.
    """

    steps: StepSamples | None
    parts: tuple[Part, ...]
    gil: Contention | None
    threads: tuple[str, ...]
    meanwhile: Meanwhile | None
    collections: int
    operators: SmallOperators | None
    stalled: StalledPool | None
    largest: OwnFunction | None
    working: OwnFunction | None

    @property
    def function(self) -> OwnFunction | None:
        """The largest function, unless the statement on a single kind names it, and how much it takes."""
        whole, steps = self.largest, self.steps
        if whole is None or steps is None:
            return None
        part = self.part(whole.kind)
        if part is None or part.group not in _OF_PART or not whole.is_mostly(whole.kind):
            return whole
        is_inner = part.function_share >= ONE_KIND and whole.is_at(part.location, inner=True)
        has_most = whole.has_most_of(whole.kind, round(part.share * steps.step_ns))
        return None if has_most and (is_inner or whole.is_at(part.location)) else whole

    def part(self, group: str) -> Part | None:
        """Return the part of this key."""
        return next((part for part in self.parts if part.group == group), None)


@dataclass(frozen=True, slots=True)
class HostLimitsAnalysis(Analysis[HostLimits]):
    """Findings about activities of the host in the steps of a program.

    Args:
        least_share: Input and output, locks, logging, garbage collection and the interpreter's lock are findings from
            this share of the steps on,
        python_share: Python itself, and small operators, from this share on.
        least_samples: Least number of samples of a part.
        gil_threads: Least mean number of threads that want the interpreter at once.
        small_ns: Operators are small if their median takes at most this long,
        small_calls: and there are at least this many in a step.
        small_batch: A batch of at most this many examples is small.
        computes: A program is bound by its own computing from this share on.
    """

    slug = "host_limits"
    title = "What limits the host"
    rules = ("TV610", "TV611", "TV612", "TV613", "TV614", "TV615", "TV616", "TV617", "TV621", "TV622")

    least_share: float = 0.05
    python_share: float = 0.20
    least_samples: float = 3.0
    gil_threads: float = 1.5
    small_ns: int = SMALL_NS
    small_calls: int = 100
    small_batch: int = 8
    computes: float = 0.80

    def run(self, trace: TraceView) -> HostLimits | Skipped:
        """Sum up the activities of the threads in the steps."""
        found = step_samples(trace)
        steps = found if found is not None and found.is_enough else None
        operators = small_operators(trace)
        if steps is None and operators is None:
            few = f"fewer than {LEAST_SAMPLES} samples of stacks lie in steps"
            return self.skipped(few if found is not None else "no stacks were sampled in steps")
        if steps is None:
            return HostLimits(None, (), None, (), None, 0, operators, stalled_pool(trace), None, None)
        gil = contention(steps)
        names = dict(trace.frame("threads", "thread_id", pl.col("name").cast(pl.String)).iter_rows())
        wanting = [
            names.get(thread) or f"thread {thread}" for thread in gil.others["thread_id"].unique(maintain_order=True)
        ]
        # With a device, steps wait only while it idles. The parts of that time then show the causes.
        function = None if steps.has_device else own_function(trace, steps, self.python_share)
        return HostLimits(
            steps,
            _parts(steps),
            gil,
            tuple(wanting),
            _meanwhile(steps, names),
            len(steps.collections),
            operators,
            stalled_pool(trace),
            function,
            None if steps.has_device else calling_function(trace, steps),
        )

    def judge(self, result: HostLimits) -> tuple[Finding, ...]:
        """Return findings on activities that take much of the steps; if none does and the program computes, on that."""
        found = tuple(self._found(result))
        return found or tuple(self._computes(result))

    def _found(self, result: HostLimits) -> Iterator[Finding]:
        steps = result.steps
        is_small = result.operators is not None and self._are_small(result.operators)
        is_named = is_small and _is_same(result.function, result.working) and not self._are_few(result.operators)
        if steps is not None:
            yield from self._collects(result, steps)
            yield from self._contends(result, steps)
            if result.function is not None and not is_named:
                yield _of_function(result.function, steps, result.part("lock"))
            for part in result.parts:
                least = self.python_share if part.group == "python" else self.least_share
                is_sampled = part.samples is None or part.samples >= self.least_samples
                # A wait for threads that compute for the main thread is no starvation.
                others, function = result.meanwhile, result.function
                computes_elsewhere = (part.group == "lock" and others is not None) and (
                    others.activity == "compute" and others.share >= MOSTLY
                )
                in_function = function is not None and function.has_most_of(
                    part.group, round(part.share * steps.step_ns)
                )
                if (part.group in _OF_PART and part.share >= least and is_sampled) and not (
                    computes_elsewhere or in_function
                ):
                    yield _of_part(_OF_PART[part.group], part, result, steps)
        if result.operators is not None and is_small:
            yield self._of_operators(result.operators, result.working)
        if result.stalled is not None:
            # On a busy machine, a function of the program is the cause that the program can change
            is_hint = result.stalled.fits_machine and result.largest is not None
            yield _stalls(result.stalled, is_hint=is_hint)

    def _collects(self, result: HostLimits, steps: StepSamples) -> Iterator[Finding]:
        share = steps.collections.total / steps.step_ns
        if share < self.least_share:
            return
        where = f", mostly in {placed(steps.collecting)}" if steps.collecting else ""
        message = (
            f"Garbage collection: in {format_ratio(share)} of {within_sentence(steps.words)} Python collects garbage "
            f"({counted(result.collections, 'collection')}{where})."
        )
        facts = (
            Fact("share", "of the steps", share, "ratio"),
            Fact("collections", "collections", result.collections, "count"),
            Fact("collection_ns", "each, mean", round(steps.collections.total / max(result.collections, 1)), "ns"),
        )
        advice = record_of("TV615").advice
        own = advice if steps.is_called else tuple(line for line in advice if line != tv615.WITHOUT_CALLS)
        cost, heading = round(share * steps.judged_ns), "garbage collection"
        yield finding("TV615", message, facts, cost, steps.judged_ns, steps.words, advice=own, heading=heading)

    def _contends(self, result: HostLimits, steps: StepSamples) -> Iterator[Finding]:
        gil = result.gil
        share = gil.lost_ns / steps.step_ns if gil is not None else 0.0
        if gil is None or share < self.least_share or gil.threads < self.gil_threads or not gil.others.height:
            return
        _, location, _ = gil.others.row(0)
        number = counted(round(gil.threads), "thread")
        about = "about " if steps.samples is not None and steps.samples < FEW else ""
        among = f", among them {result.threads[0]}" if len(result.threads) > 1 else ""
        message = (
            f"GIL: {number} want Python's interpreter lock at once{among} in {placed(location)}: the steps wait for it "
            f"in {about}{format_ratio(share)} of their time."
        )
        facts = (
            Fact("share", "of the steps", share, "ratio"),
            Fact("threads", "threads that want it at once", gil.threads, "number"),
            Fact("others", "other threads that want it", len(result.threads), "count"),
            Fact("location", "most of it in", location),
            Fact("samples", "samples in the steps", steps.samples, "number"),
        )
        yield _finding("TV612", message, known(facts), share, steps, "GIL")

    def _are_small(self, operators: SmallOperators) -> bool:
        is_many = operators.per_step >= self.small_calls and operators.steps >= FEW_STEPS
        return is_many and operators.median_ns <= self.small_ns and operators.share >= self.python_share

    def _are_few(self, operators: SmallOperators | None) -> bool:
        """Return whether a step has few examples."""
        return operators is not None and operators.batch is not None and operators.batch <= self.small_batch

    def _of_operators(self, operators: SmallOperators, function: OwnFunction | None) -> Finding:
        """Return a finding on small operators, with the function of the program that calls most of them."""
        calls = (
            f"{format_number(round(operators.per_step))} operator calls a step, {format_ns(operators.median_ns)} each"
        )
        taken = f"they and the Python between them take {format_ratio(operators.share)} of steady step time"
        facts: tuple[Fact, ...] = (
            Fact("per_step", "operator calls in a step", operators.per_step, "number"),
            Fact("median_ns", "each, in the median", operators.median_ns, "ns"),
            Fact("share", "of the steps", operators.share, "ratio"),
            Fact("operator", "most often", operators.most),
            Fact("operator_calls", "its calls in a step", operators.most_calls / max(operators.steps, 1), "number"),
            Fact("batch", "examples in a batch", operators.batch, "count"),
        )
        code, heading, message = "TV611", "small operators", f"Small operators: {calls} in the median: {taken}."
        if self._are_few(operators):
            code, heading = "TV616", "small batch"
            message = (
                f"Small batch: {counted(operators.batch or 0, 'example')} a step, and {calls}: {taken}, nearly as long "
                "as for many examples."
            )
        cost = round(operators.share * operators.step_ns)
        own = _advice(code, small=True)
        if function is not None and function.share >= WORTH_A_FUNCTION and code == "TV611":
            facts = (*facts, Fact("location", "mostly in", function.location))
            message = (
                f"The function {function.words} takes {format_ratio(function.share)} of the steps, in small operators: "
                f"{calls} in the median. {taken[0].upper()}{taken[1:]}."
            )
        return finding(
            code, message, known(facts), cost, operators.step_ns, STEADY_STEP_TIME, advice=own, heading=heading
        )

    def _computes(self, result: HostLimits) -> Iterator[Finding]:
        steps = result.steps
        if steps is None or steps.has_device:
            return
        parts = [part for part in result.parts if part.group in {"compute", "device_wait"}]
        share = sum(part.share for part in parts)
        if share < self.computes:
            return
        message = (
            f"The program is bound by its own computing: {format_ratio(share)} of {within_sentence(steps.words)}"
            f"{parts[0].mostly}."
        )
        facts = (Fact("share", "of the steps", share, "ratio"),)
        yield finding("TV617", message, facts, 0, steps.judged_ns, steps.words)

    def describe(self, result: HostLimits) -> Section:
        """Describe the activities of the main thread in the steps, and the figures of the findings."""
        steps, gil, operators = result.steps, result.gil, result.operators
        per_step, each = (None, None) if operators is None else (operators.per_step, operators.median_ns)
        facts = (
            Fact("samples", "samples in the steps", None if steps is None else steps.samples, "number"),
            Fact("step_ns", "steps judged", None if steps is None else steps.step_ns, "ns"),
            Fact("gil_threads", "threads that want the interpreter", None if gil is None else gil.threads, "number"),
            Fact("collections", "garbage collections", None if steps is None else result.collections, "count"),
            Fact("calls_per_step", "operator calls in a step", per_step, "number"),
            Fact("call_ns", "each, in the median", each, "ns"),
        )
        rows = tuple(
            (
                *(LABELS.get(part.group, part.group), part.share, *part.interval, part.samples),
                *(part.location, part.location_share, part.leaf, part.group),
            )
            for part in result.parts
        )
        grid = Grid(_COLUMNS, rows, "What the main thread does in the steps")
        return Section(self.slug, self.title, (Facts(known(facts)), *((grid,) if rows else ())))


LABELS: dict[str, str] = {
    **KIND_LABELS,
    "io": "input and output, saving",
    "lock": "locks, queues, sleep",
    "python": "Python",
}
"""Labels of parts of the steps, for readers."""
_COLUMNS = (
    Column("what", "What", "text", 0),
    Column("share_of_steps", "Of steps", "ratio", 0, bar=True, additive=False),
    Column("low", "At least", "ratio", 2),
    Column("high", "At most", "ratio", 2),
    Column("samples", "Samples", "number", 3),
    Column("location", "Mostly in", "text", 0),
    Column("share_of_part", "Of it", "ratio", 4),
    Column("leaf", "Calls", "text", 5),
    Column("group", "Key", "text", 9),
)
_OF_PART = {"io": "TV610", "python": "TV611", "lock": "TV613", "logging": "TV614"}
"""Findings of parts of the steps."""


def _finding(  # noqa: PLR0917 (the parts of a finding)
    code: str, message: str, facts: tuple[Fact, ...], share: float, steps: StepSamples, heading: str
) -> Finding:
    cost, advice = round(share * steps.judged_ns), _advice(code)
    return finding(code, message, facts, cost, steps.judged_ns, steps.words, advice=advice, heading=heading)


def _advice(code: str, *, small: bool = False) -> tuple[str, ...]:
    """Return advice of the rule. For Python in the loop, the lines about small operators come first if they apply."""
    lines = record_of(code).advice
    if code != "TV611":
        return lines
    return lines[:_ABOUT_SMALL] if small else lines[_ABOUT_SMALL:]


_ABOUT_SMALL = 3
"""Number of lines of TV611's advice that are about small operators."""


def _of_part(code: str, part: Part, result: HostLimits, steps: StepSamples) -> Finding:
    """Return a finding about an activity of the main thread."""
    of, where = within_sentence(steps.words), placed(part.location)
    match code:
        case "TV610":
            heading = "Saving" if _SAVES in part.activity else "Input and output"
            large = [(leaf, share) for leaf, share in part.calls if share >= _LISTED * part.share]
            calls = [(call, share) for leaf, share in large if (call := called(leaf))]
            if calls and calls[0][1] >= MOSTLY * part.share:  # a single call only if it takes most of the time
                what = f"{calls[0][0]} in {where}"
            else:
                much = [f"{call} ({format_ratio(share)})" for call, share in calls if share >= _LISTED * part.share]
                listed = " and ".join(much[:2])
                inside = "spent in" if part.function_share >= MOSTLY else "spent so, most of all in"
                what = f"{inside} {where}{f': {listed}' if listed else ''}"
            said = f"{part.words} of {of} is {what}"
        case "TV613":
            heading, does = _waits_for(part)
            others, also = result.meanwhile, ""
            if others is not None and others.share >= MOSTLY / 2:
                also = f"; meanwhile {others.thread} {_DOES.get(others.activity, 'is in')} {placed(others.location)}"
            said = f"in {part.words} of {of} the main thread {does} in {where}{also}"
        case "TV614":
            heading = "Logging"
            said = f"{part.words} of {of} is spent on messages and metrics{part.mostly}"
        case _ if part.activity == "serialization":
            heading = "Serialization"
            said = f"in {part.words} of {of} objects become text or bytes, or back{part.mostly}"
        case _:
            heading, said = "Python", f"{part.words} of {of} is Python itself{part.mostly}"
    facts = (
        Fact("share", "of the steps", part.share, "ratio"),
        Fact("location", "mostly in", part.location),
        Fact("location_share", "in that place", part.location_share, "ratio"),
        Fact("leaf", "which calls", part.leaf if part.leaf != part.location else None),
        Fact("samples", "samples", None if part.samples is None else round(part.samples), "count"),
        Fact("low", "at least", part.interval[0], "ratio"),
        Fact("high", "at most", part.interval[1], "ratio"),
    )
    name = heading if heading == "Python" else heading.lower()
    found = _finding(code, f"{heading}: {said}.", known(facts), part.share, steps, name)
    return _with_lines_on_waits(found, heading)


def _with_lines_on_waits(found: Finding, heading: str) -> Finding:
    """Return a finding on waits with the advice that fits what the main thread waits for; others as they are."""
    lines = _LINES_ON_WAITS.get(heading) if found.code == "TV613" else None
    return found if lines is None else replace(found, advice=tuple(found.advice[line] for line in lines))


_LINES_ON_WAITS = {"Sleep": (3,), "Starved": (2, 0), "Waiting": (0, 1), "Locks": (1, 0), "Connections": (4,)}
"""Lines of TV613's advice that fit what the main thread waits for, the best first."""


WORTH_A_FUNCTION = 0.3
"""A function that calls small operators is named if it takes this share of the steps."""


def _is_same(one: OwnFunction | None, other: OwnFunction | None) -> bool:
    return one is not None and other is not None and other.location == one.location and other.share >= WORTH_A_FUNCTION


_LISTED = 0.1
"""Kinds and calls with at least this part of the time of a function are listed."""


def _of_function(function: OwnFunction, steps: StepSamples, waits: Part | None) -> Finding:
    """Return a finding on a function that takes much of the steps, with all that it calls."""
    about = "about " if function.samples is not None and function.samples < FEW else ""
    listed = [(group, time) for group, time in function.by_group.items() if time >= _LISTED * function.time_ns]
    words, heading = _KINDS, ""
    if waits is not None:
        heading, waiting = _waits_for(waits)
        if function.has_most_of("lock", round(waits.share * steps.step_ns)):
            words = _KINDS | {"lock": "sleep" if heading == "Sleep" else waiting}
    kinds = [f"{words.get(group, group)} ({format_ratio(time / steps.step_ns)})" for group, time in listed[:3]]
    name, inner = f"function {function.words}", f", mostly in {placed(function.inner)}" if function.inner else ""
    message = (
        f"The {name} takes {about}{format_ratio(function.share)} of {within_sentence(steps.words)}{inner}: "
        f"{' and '.join(filter(None, (', '.join(kinds[:-1]), *kinds[-1:])))}."
    )
    low, high = (None, None) if steps.samples is None else wilson(min(function.share, 1.0), steps.samples)
    # What reads, waits or logs all the time has advice of its own; what takes Python's time may be anything.
    code = _OF_PART.get(function.kind, "TV622") if function.is_mostly(function.kind) else "TV622"
    code = "TV622" if code == "TV611" else code
    facts = (
        Fact("share", "of the steps", function.share, "ratio"),
        Fact("location", "mostly in", function.location),
        Fact("samples", "samples", None if function.samples is None else round(function.samples), "count"),
        Fact("low", "at least", low, "ratio"),
        Fact("high", "at most", high, "ratio"),
    )
    found = _finding(code, message, known(facts), function.share, steps, f"the {name}")
    return _with_lines_on_waits(found, heading)


_KINDS = {
    **KIND_LABELS,
    "compute": "library code",
    "lock": "waits for a thread, a process or a lock",
    "io": "input and output",
}
"""Names of kinds within the sentence about a function."""


def _stalls(pool: StalledPool, *, is_hint: bool) -> Finding:
    """Return a finding on operators whose threads wait for cores."""
    cores = counted(round(pool.usable), "core")
    left = f", and the program may use {cores}"
    if pool.free is not None and pool.threads <= round(pool.usable):
        left = f", and other programs leave {format_number(round(pool.free, 1))} of {cores}"
    message = (
        f"Threads wait for cores: operators stall in {format_ratio(pool.share)} of steady step time, above all "
        f"{pool.operator} (usually {format_ns(pool.usual_ns)}, on average {format_ns(pool.mean_ns)}). PyTorch divides "
        f"each among {pool.threads} threads{left}."
    )
    facts = (
        Fact("share", "of the steps", pool.share, "ratio"),
        Fact("threads", "threads of an operator", pool.threads, "count"),
        Fact("cores", "cores that the program may use", pool.usable, "number"),
        Fact("free_cores", "cores that other programs leave", pool.free, "number"),
        Fact("operator", "above all", pool.operator),
        Fact("usual_ns", "it usually takes", pool.usual_ns, "ns"),
        Fact("mean_ns", "on average", pool.mean_ns, "ns"),
    )
    cost, heading = round(pool.share * pool.step_ns), "threads wait for cores"
    words = STEADY_STEP_TIME
    return finding("TV621", message, known(facts), cost, pool.step_ns, words, heading=heading, is_hint=is_hint)


_SAVES = "saving"
"""Activity of a part whose purpose is to save."""


def _waits_for(part: Part) -> tuple[str, str]:
    """Return the target of the main thread's wait: a heading, and a verb."""
    if part.activity == "sleep":
        return "Sleep", "sleeps"
    if part.waits_for == "a queue":
        return "Starved", "waits for a queue"
    if part.waits_for == "a connection":
        return "Connections", "waits for a connection"
    if part.waits_for or ".join" in part.leaf:
        return "Waiting", f"waits for {part.waits_for or 'another thread'}"
    return "Locks", "waits for a lock"


_DOES = {
    "sleep": "sleeps in",
    "io": "reads or writes in",
    "compute": "computes in",
    "python": "runs",
    "gil": "runs",
    "lock": "waits in",
}


def called(leaf: str) -> str:
    """Return the compiled function that was called, if the innermost frame is one."""
    return leaf if ".py" not in leaf and _WRITES.search(leaf) else ""


_WRITES = re.compile(r"(?i)sync|write|flush|read|open|send|recv|save|dump|copy|rename|replace")
"""Compiled functions whose names show that they read or write."""


_MOST_CALLS = 5
"""Number of calls of a part that are kept."""


def _parts(steps: StepSamples) -> tuple[Part, ...]:
    """Return the activities of the main thread in the steps."""
    main = steps.of_main.with_columns((pl.col("samples") * pl.col("part")).alias("share_of_samples"))
    activity = pl.when(pl.col("kind") == _SAVES).then(pl.lit(_SAVES)).otherwise("activity").alias("activity")
    sums = pl.col("time_ns").sum(), pl.col("share_of_samples").sum()
    by_meaning = main.group_by("meaning", "group", "waits_for").agg(
        pl.col("kind", "location", "activity", "leaf").first(), *sums
    )
    named = by_meaning.with_columns(pl.col(pl.Categorical).cast(pl.String)).with_columns(activity)
    summed = named.group_by("group", "location", "activity", "leaf", "waits_for").agg(*sums)
    order = ["time_ns", "location", "activity", "leaf"]
    found = []
    for (group,), rows in summed.group_by("group"):  # once per kind
        ordered = rows.sort(order, descending=[True, False, False, False])
        ordered = ordered.with_columns(pl.col("location").str.replace(r":\d+ ", " ").alias("function"))
        by_function = ordered.group_by("function").agg(pl.col("time_ns").sum())
        function, in_function = by_function.sort("time_ns", "function", descending=[True, False]).row(0)
        own = ordered.filter(pl.col("function").eq_missing(function))
        by_line = own.group_by("location", maintain_order=True).agg(
            pl.col("time_ns").sum(), pl.first("leaf", "activity", "waits_for")
        )
        line = by_line.sort("time_ns", "location", descending=[True, False]).row(0, named=True)
        calls = ordered.group_by("leaf").agg(pl.col("time_ns").sum()).sort("time_ns", "leaf", descending=[True, False])
        time, samples = int(rows["time_ns"].sum()), float(rows["share_of_samples"].sum())
        share, whole = time / steps.step_ns, steps.samples
        found.append(
            Part(
                str(group),
                share,
                None if whole is None else samples,
                (share, share) if whole is None else wilson(min(share, 1.0), whole),
                str(line["activity"]),
                str(line["location"]),
                str(line["leaf"]),
                line["time_ns"] / time,
                in_function / time,
                tuple((str(leaf), taken / steps.step_ns) for leaf, taken in calls.head(_MOST_CALLS).iter_rows()),
                line["waits_for"] or "",
            )
        )
    return tuple(sorted(found, key=lambda part: (-part.share, part.group)))


def _meanwhile(steps: StepSamples, names: dict[int, str | None]) -> Meanwhile | None:
    """Return the activity of other threads while the main thread waits for a lock, without waits of their own."""
    waits = intervals(having(steps.of_main, "group", "lock")).intersect(steps.within)
    others = steps.rows.filter((pl.col("thread_id") != steps.main) & (pl.col("activity") != "lock"))
    if not waits.total or not others.height:
        return None
    others = others.with_columns(pl.Series("meanwhile", waits.overlap(*bounds(others)), pl.Int64))
    keys = ("thread_id", "location")
    sums = others.group_by(keys).agg(pl.col("meanwhile").sum(), pl.col("activity").sort_by("meanwhile").last())
    best = sums.sort("meanwhile", *keys, descending=[True, False, False]).row(0, named=True)
    if not best["meanwhile"]:
        return None
    thread = names.get(best["thread_id"]) or "another thread"
    return Meanwhile(thread, best["activity"], best["location"], min(best["meanwhile"] / waits.total, 1.0))
