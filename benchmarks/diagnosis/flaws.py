"""Flaws of captures: what profilers lose, distort or were not asked for. A flaw changes a record, not the truth.

Flaws of files (:data:`OF_FILES`) leave the record as it is: :mod:`benchmarks.diagnosis.writers.file_flaws`.
"""

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
CLOCK_DRIFT = (50_000, 1_000_000)
"""Least and greatest error of a drifting device clock at the end of the record."""
SECOND_LAUNCHER = 44
AUTOGRAD = 2
"""Threads that launch the backward pass: the one of the record, and the one that a flaw adds."""
LAYER = "block"
"""The range of each layer, without a number."""


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
    RANK_WINDOWS = "window-by-rank"
    CLOCK_DRIFT = "device-clock-drifts"
    NO_CALLS = "no-calls"
    SEVERAL_LAUNCHERS = "several-launchers"
    REPEATED_LAYERS = "layers-repeat"
    MERGED_RANKS = "ranks-in-one-file"
    CUT_FILE = "file-cut-off"


OF_FILES = frozenset({Flaw.MERGED_RANKS, Flaw.CUT_FILE})


def apply_flaw(record: Record, flaw: Flaw, seed: int) -> Record:
    """Return the record as a capture with this flaw has it."""
    if flaw is Flaw.NONE or flaw in OF_FILES:
        return record
    return _FLAWS[flaw](record, Random(f"{seed}/{flaw}"))


def _cut_window(record: Record, random: Random) -> Record:
    """Keep the events that lie in a window of at least half of the record."""
    length = record.end * random.uniform(0.5, 0.8)
    start = round(random.uniform(0, record.end - length))
    end = round(start + length)
    spans = tuple(span for span in record.spans if start <= span.start and span.end <= end)
    device = tuple(span for span in record.device if start <= span.start and span.end <= end)
    moves = tuple(span for span in record.migrations if start <= span.start and span.end <= end)
    return replace(record, spans=spans, device=device, migrations=moves, start=start, end=end)


def _cut_each_rank(record: Record, random: Random) -> Record:
    """Keep for each rank the events of a window of its own: profilers of ranks start and stop on their own."""
    windows = []
    for _ in range(record.ranks):
        length = record.end * random.uniform(0.6, 0.9)
        start = round(random.uniform(0, record.end - length))
        windows.append((start, round(start + length)))
    spans = tuple(s for s in record.spans if windows[s.rank][0] <= s.start and s.end <= windows[s.rank][1])
    device = tuple(s for s in record.device if windows[s.rank][0] <= s.start and s.end <= windows[s.rank][1])
    moves = tuple(s for s in record.migrations if windows[s.rank][0] <= s.start and s.end <= windows[s.rank][1])
    start, end = min(start for start, _ in windows), max(end for _, end in windows)
    return replace(record, spans=spans, device=device, migrations=moves, start=start, end=end)


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


def _drift_clock(record: Record, random: Random) -> Record:
    """Let the clock of each device run fast or slow: the error grows from 0."""
    rates = [1 + random.randint(*CLOCK_DRIFT) * random.choice((-1, 1)) / record.end for _ in range(record.ranks)]
    device = tuple(
        replace(span, start=round(span.start * rates[span.rank]), end=round(span.end * rates[span.rank]))
        for span in record.device
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


def _drop_calls(record: Record, _: Random) -> Record:
    """Leave out the calls of the runtime, as profilers of devices alone do."""
    return _drop_kinds(record, Kind.API)


def _add_launchers(record: Record, random: Random) -> Record:
    """Let a second thread launch a part of the backward pass, with all that lies in it."""
    moved: set[int] = set()
    for rank in range(record.ranks):
        own = [
            (span.start, -span.end, index)
            for index, span in enumerate(record.spans)
            if span.rank == rank and span.thread == AUTOGRAD
        ]
        until, moves = -1, False
        for start, negative_end, index in sorted(own):
            if start >= until:
                until, moves = -negative_end, random.random() < 0.5
            if moves:
                moved.add(index)
    spans = tuple(
        replace(span, thread=SECOND_LAUNCHER) if index in moved else span for index, span in enumerate(record.spans)
    )
    threads = tuple(ThreadFacts(rank, SECOND_LAUNCHER, f"pt_autograd_{rank}", 0) for rank in range(record.ranks))
    return replace(record, spans=spans, threads=record.threads + threads)


def _repeat_layers(record: Record, _: Random) -> Record:
    """Give all layers one name, and mark each with a range of this name."""
    spans: list[Span] = []
    for span in record.spans:
        if span.kind is Kind.PYTHON and span.name.startswith("nn.Module: "):
            spans += [replace(span, name="nn.Module: Block_0"), replace(span, kind=Kind.RANGE, name=LAYER)]
        else:
            spans.append(span)
    return replace(record, spans=tuple(spans))


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
    Flaw.RANK_WINDOWS: _cut_each_rank,
    Flaw.CLOCK_DRIFT: _drift_clock,
    Flaw.NO_CALLS: _drop_calls,
    Flaw.SEVERAL_LAUNCHERS: _add_launchers,
    Flaw.REPEATED_LAYERS: _repeat_layers,
}
