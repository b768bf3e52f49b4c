"""Flaws of captures: what profilers lose, distort or were not asked for. A flaw changes a record, not the truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from random import Random

from benchmarks.diagnosis.record import Kind, Record, Span, ThreadFacts

MILLISECOND = 1_000_000
HELPER_THREAD = 40
CLOCK_ERROR = (20_000, 400_000)
"""Least and greatest error of the device clock in nanoseconds."""


class Flaw(StrEnum):
    """A flaw of a capture."""

    NONE = "none"
    WINDOW = "window"
    FIRST_KERNELS = "first-kernels-missing"
    LAST_KERNELS = "last-kernels-missing"
    LOST_EVENTS = "lost-events"
    CLOCK = "device-clock-off"
    NO_ANNOTATIONS = "no-annotations"
    NO_STEPS = "no-steps"
    ODD_NAMES = "odd-names"
    HELPER_THREADS = "helper-threads"


def apply_flaw(record: Record, flaw: Flaw, seed: int) -> Record:
    """Return the record as a capture with this flaw has it."""
    if flaw is Flaw.NONE:
        return record
    return _FLAWS[flaw](record, Random(f"{seed}/{flaw}"))


def _cut_window(record: Record, random: Random) -> Record:
    """Keep the events that lie in a window of at least half of the record."""
    length = record.end * random.uniform(0.5, 0.8)
    start = round(random.uniform(0, record.end - length))
    end = round(start + length)
    spans = tuple(span for span in record.spans if start <= span.start and span.end <= end)
    device = tuple(span for span in record.device if start <= span.start and span.end <= end)
    return replace(record, spans=spans, device=device, start=start, end=end)


def _drop_first_kernels(record: Record, random: Random) -> Record:
    limit = record.end * random.uniform(0.05, 0.25)
    return replace(record, device=tuple(span for span in record.device if span.start >= limit))


def _drop_last_kernels(record: Record, random: Random) -> Record:
    limit = record.end * random.uniform(0.75, 0.95)
    return replace(record, device=tuple(span for span in record.device if span.end <= limit))


def _lose_events(record: Record, random: Random) -> Record:
    """Lose a few buffers of device work: neighbouring events."""
    ordered = sorted(record.device, key=lambda span: span.end)
    length = max(1, len(ordered) // 20)
    starts = [random.randrange(max(1, len(ordered) - length)) for _ in range(3)]
    kept = [span for index, span in enumerate(ordered) if not any(start <= index < start + length for start in starts)]
    return replace(record, device=tuple(kept), lost=len(ordered) - len(kept))


def _shift_clock(record: Record, random: Random) -> Record:
    error = random.randint(*CLOCK_ERROR) * random.choice((-1, 1))
    device = tuple(
        replace(span, start=span.start + error, end=span.end + error)
        for span in record.device
        if span.start + error >= 0
    )
    return replace(record, device=device)


def _drop_kinds(record: Record, *kinds: Kind) -> Record:
    return replace(record, spans=tuple(span for span in record.spans if span.kind not in kinds))


def _drop_annotations(record: Record, _: Random) -> Record:
    return _drop_kinds(record, Kind.STEP, Kind.RANGE)


def _drop_steps(record: Record, _: Random) -> Record:
    return _drop_kinds(record, Kind.STEP)


def _rename_steps(record: Record, random: Random) -> Record:
    """Give the ranges of steps the words of the program."""
    word = random.choice(("iteration", "batch", "Trainer.run_one", "train/iter"))
    spans = tuple(
        replace(span, name=f"{word} {span.name.rpartition('#')[2]}", kind=Kind.RANGE)
        if span.kind is Kind.STEP
        else span
        for span in record.spans
    )
    return replace(record, spans=spans)


def _add_helpers(record: Record, random: Random) -> Record:
    """Add a thread that sleeps in the operating system all the time, as watchdogs and exporters do."""
    period = round(random.uniform(1, 20) * MILLISECOND)
    call = random.choice(("clock_nanosleep", "poll", "pthread_cond_timedwait"))
    sleeps = tuple(
        Span(0, HELPER_THREAD, Kind.OS, call, start, min(record.end, start + period - 5_000))
        for start in range(0, record.end, period)
    )
    helper = ThreadFacts(0, HELPER_THREAD, "watchdog", 0)
    return replace(record, spans=record.spans + sleeps, threads=(*record.threads, helper))


_FLAWS: dict[Flaw, Callable[[Record, Random], Record]] = {
    Flaw.WINDOW: _cut_window,
    Flaw.FIRST_KERNELS: _drop_first_kernels,
    Flaw.LAST_KERNELS: _drop_last_kernels,
    Flaw.LOST_EVENTS: _lose_events,
    Flaw.CLOCK: _shift_clock,
    Flaw.NO_ANNOTATIONS: _drop_annotations,
    Flaw.NO_STEPS: _drop_steps,
    Flaw.ODD_NAMES: _rename_steps,
    Flaw.HELPER_THREADS: _add_helpers,
}
