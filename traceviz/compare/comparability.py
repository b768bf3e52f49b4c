"""Checks of whether two sides can be compared, and remarks on those that can.

Different work forbids a verdict: a step of 128 samples takes longer than one of 32, but is not slower. Other remarks
forbid less: different devices, another profiler, classes that only one side measured, lost events.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np

from traceviz.compare.attribution import MATTERS, share_of
from traceviz.compare.changes.by_name import IN_COMMON, KernelChanges, bytes_by_kind, compare_kernels
from traceviz.compare.changes.events import Status
from traceviz.compare.changes.figures import why_not
from traceviz.compare.effect import are_copies, recording
from traceviz.compare.options import CompareOptions
from traceviz.compare.remark import Remark, has_no_device, in_capital, in_words, info, is_inferred, warning
from traceviz.compare.sides.basis import STEP, TOTAL, Basis
from traceviz.compare.sides.load_sides import are_mixed
from traceviz.compare.sides.measures import was_busy
from traceviz.compare.sides.sides import Side, fact, grid
from traceviz.compare.sides.units_of_work import mixtures
from traceviz.compare.work.amounts import same_kernels_per_step
from traceviz.compare.work.parameters import BY_SHAPES
from traceviz.compare.work.programs import OF_MODULES, Programs, programs
from traceviz.compare.work.remarks import VOUCH, work_remarks
from traceviz.core.units import counted, format_ratio, format_value
from traceviz.report import IN_STEPS, Report, Severity

FEW_STEPS = 10
"""Step count below which intervals are wide and one slow step moves them."""
MANY_MORE = 2
"""Ratio of step counts from which a remark is made."""
OVERHEAD = 0.05
"""Smallest difference of profiler overheads, as shares of the captured time, that gets a remark."""
MORE_BYTES = 0.05
"""Copies to the device get a remark if they differ by more than this share of the larger."""
FEW_BYTES = 64 * 1024
"""They also have to exceed this many bytes."""


def remarks(base: Side, new: Side, options: CompareOptions, basis: Basis = STEP) -> tuple[Remark, ...]:
    """Return all remarks on a pair of sides.

    Remarks that forbid something come first (different work before others), then the more serious. Times of whole runs
    stay comparable if steps do different work: another batch size is another way to do the same work.
    """
    of_programs = Programs() if options.same_work else programs(base, new)
    any_step = bool(options.per) or not basis.is_step
    known = [] if options.same_work else list(work_remarks(base, new, of_programs, per_unit=any_step))
    known.extend(
        remark for check in _CHECKS if basis.is_step or check not in _ABOUT_STEPS for remark in check(base, new)
    )
    vouched = _VOUCHED_FOR if options.same_work else _SHOWN if of_programs.is_same else frozenset()
    doubts = {remark for remark in known if remark.code in vouched and remark.forbids}
    known = [replace(r, severity=Severity.WARNING, forbids="") if r in doubts else r for r in known]
    return tuple(sorted(known, key=lambda remark: (not remark.forbids, -remark.severity.rank)))


_VOUCHED_FOR = frozenset({"step-source", "kernel-set"})
"""Remarks that doubt whether steps do the same work; the user can set them aside."""
_SHOWN = frozenset({"kernel-set"})
"""Remarks that equal parameters, modules or operators set aside: different kernels then do the same work."""


# Steps


def _check_step_numbers(base: Side, new: Side) -> Iterator[Remark]:
    """Remark on sides with no steps, few steps, or many more than the other."""
    for side in (base, new):
        if not side.steps:
            skipped = (skip for report in side.reports for skip in report.skipped)
            reasons = dict.fromkeys(skip.reason for skip in skipped if skip.slug == "steps")
            because = f": {'; '.join(reasons).rstrip('.')}" if reasons else ""
            instead = ". --measure total compares whole runs" * (TOTAL.measure(side) is not None)
            text = f"{side.label} has no steady steps{because}{instead}"
            yield Remark("no-steps", Severity.ERROR, text, "verdict")
        elif side.steps < FEW_STEPS:
            few = f"{side.label} has {counted(side.steps, 'steady step')}"
            yield warning("few-steps", f"{few}: capture {FEW_STEPS} or more for figures that hold")
        if side.steps and side.stepless:
            left_out = f"{counted(side.stepless, 'run')} of {side.label} left out of all that is per step"
            yield warning("runs-without-steps", f"{left_out}: of {len(side.reports)}, no more have steady steps")
    counts = sorted((base.steps, new.steps))
    if counts[0] and counts[1] >= MANY_MORE * counts[0]:
        yield info("step-count", f"{counted(base.steps, 'steady step')} against {new.steps:,}")


def _check_step_sources(base: Side, new: Side) -> Iterator[Remark]:
    """Remark on differences in how steps were found or marked."""
    sources = [_values(side, "steps", "source") for side in (base, new)]
    inferred = [is_inferred(side) for side in (base, new)]
    markers = [_values(side, "steps", "marker") for side in (base, new)]
    if not all(sources):
        return
    if set(sources[0]) != set(sources[1]):
        how = f"steps are {in_words(sources[0])} in {base.label}, {in_words(sources[1])} in {new.label}"
        if any(inferred) and same_kernels_per_step(base, new):
            yield info("step-source", f"{how}, and a step runs the same kernels as often on both sides")
        elif any(inferred):
            doubt = f"{how}: what repeats may be a layer and no step. Name steps with --step-marker, or {VOUCH}"
            yield Remark("step-source", Severity.ERROR, doubt, "verdict", "steps found in other ways")
        else:
            yield info("step-source", how)
    elif all(markers) and set(markers[0]) != set(markers[1]):
        how = f"steps are marked by {in_words(markers[0])} in {base.label}, by {in_words(markers[1])} in {new.label}"
        declared_elsewhere = not any(inferred) and any(_differ(base, new, key) for key in ("format", "framework"))
        yield info("step-marker", how) if declared_elsewhere else warning("step-marker", how)


def _check_step_time(base: Side, new: Side) -> Iterator[Remark]:
    """Remark on a mix of host and device step times. Saved reports cannot be timed again."""
    if are_mixed((*base.reports, *new.reports)):
        why = "some steps are as the host marked them, others as devices ran what it had launched ahead"
        yield warning(
            "step-time", f"{why}: compare the traces rather than saved reports", "steps are timed in two ways"
        )


def _check_inferred_steps(base: Side, new: Side) -> Iterator[Remark]:
    """Remark on steps that both sides inferred in the same way."""
    sources = [_values(side, "steps", "source") for side in (base, new)]
    if all(is_inferred(side) for side in (base, new)) and set(sources[0]) == set(sources[1]):
        doubt = "what repeats may be a layer and no step. Shares and speed-up are of what repeats"
        yield warning("inferred-steps", f"steps are {in_words(sources[0])}: {doubt}", "steps are inferred")


def _check_ranks(base: Side, new: Side) -> Iterator[Remark]:
    """Remark on different numbers of ranks that have steps."""
    if base.ranks and new.ranks and base.ranks != new.ranks:
        ranks = f"{counted(base.ranks, 'rank')} against {new.ranks:,}"
        yield warning("ranks", f"{ranks}: steps may share their work among them")


def _check_copies(base: Side, new: Side) -> Iterator[Remark]:
    """Remark on the same recording on both sides, or twice on one.

    Steps that all have the same duration prove nothing.
    """
    recordings = [[recording(run) for run in side.runs if np.unique(run).size > 1] for side in (base, new)]
    for side, of_side in zip((base, new), recordings, strict=True):
        if len(set(of_side)) < len(of_side):
            text = f"runs of {side.label} have the same steps to the nanosecond: one recording, given more than once"
            yield Remark("copied-runs", Severity.ERROR, text, "verdict")
    if not set(recordings[0]) & set(recordings[1]):
        return
    if are_copies(base.runs, new.runs):
        yield info("copies", "both sides have the same steps to the nanosecond: one recording, or copies of it")
    else:
        text = f"a run of {base.label} and one of {new.label} have the same steps to the nanosecond"
        yield Remark("shared-runs", Severity.ERROR, f"{text}: one recording, given to both sides", "verdict")


_STOPPED = frozenset({"run-failed", "run-killed", "run-interrupted", "run-timed-out"})
"""Notes on a run that did not end by itself."""


def _check_endings(base: Side, new: Side) -> Iterator[Remark]:
    """Remark on runs that did not end by themselves: the missing part may be the one that takes time."""
    for side in (base, new):
        messages = dict.fromkeys(
            note.message for report in side.reports for note in report.notes if note.code in _STOPPED
        )
        for message in messages:
            text = f"a run of {side.label} did not end by itself: {message.rstrip('.')}"
            yield warning("stopped", text, f"{side.label} did not end by itself")


# Where and how they were recorded


def _check_busy_machines(base: Side, new: Side) -> Iterator[Remark]:
    """Remark on sides that other programs slowed down. One run's times may be chance; several runs show more."""
    busy = [side.label for side in (base, new) if was_busy(side)]
    if busy:
        yield warning(
            "busy-machine", f"other programs used the machine while {in_words(busy)} ran: its times are longer"
        )


_HOW_MANY = re.compile(r"^\d+ × | \(\d+ used\)$")
"""Parts of a device's description besides its model."""


def _check_machines(base: Side, new: Side) -> Iterator[Remark]:
    """Remark on different devices and machines."""
    if _differ(base, new, "devices"):
        which = _against(base.run_fact("devices"), new.run_fact("devices"))
        models = [{_HOW_MANY.sub("", device) for device in side.run_fact("devices")} for side in (base, new)]
        yield warning("devices", f"devices differ: {which}", "other devices" if models[0] != models[1] else "")
    for on, off in ((base, new), (new, base)):
        if has_no_device(off, on):
            shown = f"{on.label} ran on {in_words(on.run_fact('devices') or ('a device',))}, {off.label} shows none"
            yield warning("no-device", shown, f"no device in {off.label}")
    machines = [_values(side, "run", "machine") for side in (base, new)]
    if all(machines) and set(machines[0]) != set(machines[1]):
        yield warning("machine", f"machines differ: {_against(*machines)}", "another machine")
    elif _differ(base, new, "host"):
        yield info("host", f"hosts differ: {_against(base.run_fact('host'), new.run_fact('host'))}")


_SOFTWARE = (("driver_version", "driver"), ("cuda_version", "CUDA"))


def _check_software(base: Side, new: Side) -> Iterator[Remark]:
    """Remark on different frameworks, drivers and CUDA versions."""
    if _differ(base, new, "framework"):
        yield info("framework", f"frameworks differ: {_against(base.run_fact('framework'), new.run_fact('framework'))}")
    versions = [
        f"{label} {_against(base.run_fact(key), new.run_fact(key))}"
        for key, label in _SOFTWARE
        if _differ(base, new, key)
    ]
    if versions:
        yield info("software", f"versions differ: {', '.join(versions)}")


def _check_recorders(base: Side, new: Side) -> Iterator[Remark]:
    """Remark on different profilers. Each has its own cost, and records different events."""
    cost = "what recording costs the program, and what it sees, differs"
    if _differ(base, new, "format"):
        formats = _against(base.run_fact("format"), new.run_fact("format"))
        yield warning("format", f"formats differ, {formats}: {cost}", "another profiler")
    elif base.recorders and new.recorders and base.recorders != new.recorders:
        yield warning("recorders", f"recorded by {_against(sorted(base.recorders), sorted(new.recorders))}: {cost}")
    elif _differ(base, new, "producer"):
        yield info("producer", f"recorded by {_against(base.run_fact('producer'), new.run_fact('producer'))}: {cost}")


def _check_overhead(base: Side, new: Side) -> Iterator[Remark]:
    """Remark on profiler overheads that differ, as shares of the captured time, if one is known."""
    shares = [_mean_overhead(side) for side in (base, new)]
    known = [share for share in shares if share is not None]
    if not known or max(known) - (min(known) if len(known) == 2 else 0) <= OVERHEAD:
        return
    words = [
        f"an unknown share of {side.label}" if share is None else f"{format_ratio(share)} of {side.label}"
        for side, share in zip((base, new), shares, strict=True)
    ]
    text = f"the profiler took {words[0]} and {words[1]}: part of the difference may be its own"
    brief = f"the profiler took {words[0]} and {words[1]}" if len(known) == 2 else ""
    yield warning("overhead", text, brief)


def _mean_overhead(side: Side) -> float | None:
    """Return the mean overhead share of the runs that state it."""
    shares = [
        overhead / span
        for report in side.reports
        if isinstance(overhead := fact(report, "capture", "overhead_ns"), int | float)
        and isinstance(span := fact(report, "capture", "span_ns"), int | float)
        and span > 0
    ]
    return sum(shares) / len(shares) if shares else None


def _check_detail(base: Side, new: Side) -> Iterator[Remark]:
    """Remark on details that only one side recorded. Recording each event costs the program time."""
    if _differ(base, new, "format"):
        return  # already in another remark
    details = [
        {name for name, shows in _DETAILS if side.reports and all(map(shows, side.reports))} for side in (base, new)
    ]
    only = [(side, mine - others) for side, mine, others in zip((base, new), details, details[::-1], strict=True)]
    said = [f"only {side.label} recorded {in_words(sorted(names))}" for side, names in only if names]
    if not said:
        return
    text = f"{'; '.join(said)}: recording costs the program time, which no profiler states"
    with_frames = [side.label for side, names in only if _FRAMES in names]
    if with_frames:
        yield warning("detail", text, f"only {with_frames[0]} recorded {_FRAMES}")
    else:
        yield info("detail", text)


_FRAMES = "frames of Python"
_DETAILS: tuple[tuple[str, Callable[[Report], bool]], ...] = (
    (_FRAMES, lambda report: fact(report, "modules", "source") == OF_MODULES),
    ("shapes of inputs", lambda report: grid(report, "operators", BY_SHAPES) is not None),
    ("ranges", lambda report: any(table.rows for table in report.grids("ranges"))),
    ("calls of the operating system", lambda report: any(report.blocks("os_calls"))),
)
"""Optional details that a profiler can record, with a test of whether a report shows them."""


LOST = "TV901"
"""Code of the finding about events that are missing from a capture."""
DAMAGED = "damaged"
"""Code of the note on a file that is cut off or broken."""


def _check_losses(base: Side, new: Side) -> Iterator[Remark]:
    """Remark on missing events."""
    for side in (base, new):
        messages = dict.fromkeys(message for report in side.reports for message in _lost(report))
        if messages:
            first = next(iter(messages)).rstrip(".")
            yield warning("lost", f"events are missing from {side.label}, and its totals are lower bounds: {first}")


def _lost(report: Report) -> Iterator[str]:
    for finding in report.findings:
        if finding.code == LOST:
            yield next((str(fact.value) for fact in finding.evidence), finding.message)
            return
    yield from (note.message for note in report.notes if note.code == DAMAGED)


# What can be compared


def _check_basis(base: Side, new: Side) -> Iterator[Remark]:
    """Remark on different rules for dividing steps into classes."""
    bases = [_values(side, "breakdown", "basis") for side in (base, new)]
    if all(bases) and set(bases[0]) != set(bases[1]):
        rules = [f"of {in_words(of_side)} in {side.label}" for of_side, side in zip(bases, (base, new), strict=True)]
        text = f"classes of step time follow the rules {', '.join(rules)}: make both reports with the same --basis"
        yield Remark("basis", Severity.ERROR, text, "attribution")
        return
    without = [side.label for side in (base, new) if side.steps and not side.classes]
    if without:
        how = "make it again from the trace, without another --basis"
        text = f"what each step consists of is not in the report of {in_words(without)}: {how}"
        yield Remark("no-classes", Severity.WARNING, text, "attribution")


def _check_classes(base: Side, new: Side) -> Iterator[Remark]:
    """Remark on classes that only some runs measured. In the other runs their time counts as another class."""
    if not base.classes or not new.classes:
        return
    for side, other in ((base, new), (new, base)):
        labels = side.class_labels
        only = {key: share_of(side, key) for key in side.classes if key not in other.measured}
        for matters in (True, False):
            names = [labels.get(key, key) for key, share in only.items() if (share >= MATTERS) is matters]
            if names:
                text = f"{other.label} does not measure {in_words(names)}: such time counts there as another class"
                yield warning("classes", text) if matters else info("classes", text)


def _check_kernels(base: Side, new: Side) -> Iterator[Remark]:
    """Remark on kernels with little in common, because names cannot be compared or the kernels differ."""
    changes = compare_kernels(base, new)
    if changes.common is None or changes.common >= IN_COMMON:
        return
    if changes.why_not:
        yield Remark("kernel-names", Severity.WARNING, changes.why_not, "kernels")
    else:
        yield _other_kernels(base, new, changes)


def _other_kernels(base: Side, new: Side, changes: KernelChanges) -> Remark:
    """Remark on entirely different kernels: a different program, unless the framework or library differs."""
    text = (
        f"hardly a kernel runs on both sides: {format_ratio(changes.common or 0.0)} of kernel time is in those that do"
    )
    brief = "hardly a kernel in common"
    renamed = sum(change.base_ns + change.new_ns for change in changes.of(Status.RENAMED))
    total = (changes.base_ns or 0) + (changes.new_ns or 0)
    if _differ(base, new, "framework") or renamed >= IN_COMMON * total:
        return warning("kernel-set", text, brief)
    return Remark("kernel-set", Severity.ERROR, f"{text}. {in_capital(VOUCH)}", "verdict", brief)


def _check_bytes(base: Side, new: Side) -> Iterator[Remark]:
    """Remark on different numbers of bytes copied to the device."""
    if why_not(base, new, "copies", "copies", IN_STEPS):
        return
    before, after = (bytes_by_kind(side).get("h2d", Fraction(0)) for side in (base, new))
    if max(before, after) > FEW_BYTES and abs(after - before) > MORE_BYTES * max(before, after):
        sizes = f"{format_value(round(before), 'bytes')} against {format_value(round(after), 'bytes')}"
        why = (
            "other batches, or another type"
            if before and after
            else "the data of one side is there already, or comes another way"
        )
        yield warning("bytes-to-device", f"{sizes} are copied to the device per step: {why}")


# Words


def _values(side: Side, slug: str, key: str) -> tuple[str, ...]:
    """Return the distinct values of a fact over the runs of a side, as text."""
    return tuple(dict.fromkeys(str(value) for value in side.facts(slug, key)))


def _differ(base: Side, new: Side, key: str) -> bool:
    """Return whether a fact of the runs differs; false if a side lacks it."""
    values = set(base.run_fact(key)), set(new.run_fact(key))
    return all(values) and values[0] != values[1]


def _against(base: Iterable[str], new: Iterable[str]) -> str:
    return f"{in_words(base)} against {in_words(new)}"


def _check_mixtures(base: Side, new: Side) -> Iterator[Remark]:
    """Remark on sides that mix several programs. They are not comparable if each side mixes different ones."""
    for mix, alike in mixtures(base, new):
        if alike:
            yield warning("mixture", f"{mix}: a side is a mixture of them, and what they differ in counts as chance")
        else:
            text = f"{mix}, and the sides do not mix the same: compare like with like, with these tags in --by too"
            yield Remark("mixture", Severity.ERROR, text, "verdict")


_CHECKS: tuple[Callable[[Side, Side], Iterator[Remark]], ...] = (
    _check_mixtures,
    _check_step_numbers,
    _check_copies,
    _check_endings,
    _check_busy_machines,
    _check_step_sources,
    _check_step_time,
    _check_inferred_steps,
    _check_ranks,
    _check_machines,
    _check_software,
    _check_recorders,
    _check_overhead,
    _check_detail,
    _check_losses,
    _check_basis,
    _check_classes,
    _check_kernels,
    _check_bytes,
)
_ABOUT_STEPS = frozenset(
    {_check_step_numbers, _check_step_sources, _check_step_time, _check_inferred_steps, _check_bytes}
)
"""Checks that do not matter if times of whole runs are compared."""
