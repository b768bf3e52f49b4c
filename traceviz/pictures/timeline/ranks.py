"""Lanes of ranks: their steps, the class of every nanosecond, phases of the run, the profiler, collectives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from traceviz.analyses.derived.device.names import rank_numbers
from traceviz.analyses.derived.host.classes import LABELS, host_classes
from traceviz.analyses.derived.run_parts.parts import LABELS as PARTS
from traceviz.analyses.derived.run_parts.parts import run_parts
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.ranks.collective_skew import collective_calls, collective_skew
from traceviz.analyses.ranks.ranks import RanksAnalysis
from traceviz.core.arrays.intervals import IntervalSet
from traceviz.pictures.timeline.names import always
from traceviz.pictures.timeline.sources import NOBODY, Lanes, Making, Source, by_group, numbers, spans_of
from traceviz.pictures.timeline.spans import Seat, Spans
from traceviz.report.pictures.values import Array, Family

MOST_NUMBERED = 5_000
"""Limit of steps that have their number in their name; each numbered name takes space in the page."""
_STEP = Family("step", "Steps")
_WARMUP = Family("idle", "Warm-up steps")
_COLLECTIVE = Family("collective", "Collectives")
_PROFILER = Family("profiler", "Profiler")
_PHASES = {
    "step": _STEP,
    "compilation": Family("compilation", "Compilation"),
    "recording": _PROFILER,
    "program": Family("host_compute", "Program"),
    "train": Family("train", "Training loops"),
    "epoch": Family("epoch", "Epochs"),
    "validation": Family("validation", "Validation"),
    "saving": Family("saving", "Saving"),
    "loading": Family("loading", "Loading"),
    "collection": Family("collection", "Garbage collection"),
}
_OTHER_PHASE = Family("other", "Other")


def rank_sources(making: Making) -> Iterator[Source]:
    """Return the sources of steps, classes, phases and overhead."""
    steps = training_steps(making.trace).frame
    if steps.height:
        last = (pl.col("end_ns") - pl.col("start_ns")).alias("dur_ns")
        ordered = steps.sort("start_ns", maintain_order=True).with_columns(last)
        yield Source.of("steps", [ordered], lambda first: _steps(making, ordered, first))
    yield from _classes(making)
    yield from _parts(making)
    if making.trace.tables.rows("phases"):
        columns = ("start_ns", "dur_ns", "process_id", "kind", "name", "number")
        phases = making.trace.frame("phases", *columns)
        yield Source.of("phases", [phases], lambda first: _phases(making, phases, first))
    if making.trace.tables.rows("overhead"):
        overhead = making.trace.frame("overhead", "start_ns", "dur_ns", "process_id", "name")
        yield Source.of("overhead", [overhead], lambda first: _overhead(making, overhead, first))


def _steps(making: Making, steps: pl.DataFrame, first: int) -> Lanes:
    warm = steps["warmup"].to_list()
    words = ["warm-up step" if is_warm else "step" for is_warm in warm]
    if steps.height <= MOST_NUMBERED:
        words = [f"{word} {number}" for word, number in zip(words, steps["step"], strict=True)]
    named = zip(words, warm, strict=True)
    names = np.array([making.names.number(text, _WARMUP if is_warm else _STEP) for text, is_warm in named], np.int32)
    for (process,), own in by_group(spans_of(steps, names, first), [numbers(steps["process_id"])]):
        yield Seat(f"steps-{process}", "steps", "steps", process), own


def _classes(making: Making) -> Iterator[Source]:
    for process, classes in host_classes(making.trace).items():
        sets = {key: owned for key, owned in classes.sets.items() if len(owned)}
        if len(sets) > 1:  # a single class distinguishes nothing
            seat = Seat(f"classes-{process}", "what the time is spent on", "classes", process)
            yield _exclusive(making, seat, sets, LABELS)


def _parts(making: Making) -> Iterator[Source]:
    run = run_parts(making.trace)
    times = {key: owned for key, owned in run.times.items() if len(owned)} if run else {}
    if run and times:
        seat = Seat(f"run-{run.process_id}", "parts of the run", "phases", run.process_id, place=-1)
        yield _exclusive(making, seat, times, PARTS)


def _exclusive(making: Making, seat: Seat, sets: Mapping[str, IntervalSet], labels: Mapping[str, str]) -> Source:
    """Return the lane of disjoint sets of time."""
    starts = np.concatenate([owned.starts for owned in sets.values()])
    lasts = np.concatenate([owned.durations for owned in sets.values()])
    numbered = [making.names.number(labels[key], Family(key, labels[key])) for key in sets]
    names = np.repeat(np.array(numbered, np.int32), [len(owned) for owned in sets.values()])
    order = np.argsort(starts)
    starts, lasts, names = starts[order], lasts[order], names[order]

    def lanes(first: int) -> Lanes:
        yield seat, Spans(starts, lasts, names, first + np.arange(starts.size))

    return Source(seat.key, starts, int(starts[-1] + lasts[-1]), lanes)


def _phases(making: Making, phases: pl.DataFrame, first: int) -> Lanes:
    texts = phases.with_columns(pl.col("kind", "name").cast(pl.String))
    named = [_phase(*row) for row in texts[["kind", "name", "number"]].iter_rows()]
    names = np.array([making.names.number(*one) for one in named], np.int32)
    for (process,), own in by_group(spans_of(phases, names, first), [numbers(phases["process_id"])]):
        yield Seat(f"phases-{process}", "phases", "phases", process), own


def _phase(kind: str, name: str, number: int | None) -> tuple[str, Family]:
    named = kind if name in {kind, ""} else f"{kind}: {name}"
    return named if number is None else f"{kind} {number}", _PHASES.get(kind, _OTHER_PHASE)


def _overhead(making: Making, overhead: pl.DataFrame, first: int) -> Lanes:
    names = making.names.of_column(overhead["name"], always(_PROFILER))
    for (process,), own in by_group(spans_of(overhead, names, first), [numbers(overhead["process_id"], NOBODY)]):
        yield Seat(f"profiler-{process}", "profiler", "phases", process, place=1), own


@dataclass(frozen=True, slots=True, eq=False)
class Collectives:
    """Collectives of ranks that can be compared.

    Args:
        source: Their lanes.
        sources: Numbers of events, from 0, at which arrows start.
        targets: Events of the same collective on the next rank.
    """

    source: Source
    sources: Array
    targets: Array


def collectives(making: Making) -> Collectives | None:
    """Return the collectives of each rank and their links; ``None`` if there are none, or only one rank."""
    trace = making.trace
    if len(rank_numbers(trace)) < 2 and not trace.tables.rows("collectives"):
        return None
    calls = collective_calls(trace).with_columns((pl.col("end_ns") - pl.col("start_ns")).alias("dur_ns"))
    if not calls.height:
        return None

    def lanes(first: int) -> Lanes:
        names = making.names.of_column(calls["name"], always(_COLLECTIVE))
        for (process,), own in by_group(spans_of(calls, names, first), [numbers(calls["process_id"])]):
            yield Seat(f"collectives-{process}", "collectives", "collectives", process), own

    return Collectives(Source.of("collectives", [calls], lanes), *_joined(trace, calls))


def _joined(trace: TraceView, calls: pl.DataFrame) -> tuple[Array, Array]:
    """Return rows of ``calls``, and those of the same collective on the next rank."""
    nothing = np.empty(0, np.int64)
    arrivals = collective_skew(trace, RanksAnalysis().tolerance).arrivals if len(rank_numbers(trace)) > 1 else None
    if arrivals is None or not arrivals.height:
        return nothing, nothing
    key = ("process_id", "group", "name", "start_ns", "end_ns")
    numbered = calls.with_row_index("row").unique(key, keep="first", maintain_order=True)
    rows = arrivals.with_columns((pl.col("start_ns") + pl.col("dur_ns")).alias("end_ns"))
    rows = rows.join(numbered.select(*key, "row"), on=key, maintain_order="left")
    instance = ("group", "name", "index")
    pairs = rows.sort(*instance, "process_id").select(
        pl.col("row").cast(pl.Int64), pl.col("row").shift(-1).over(instance).cast(pl.Int64).alias("next")
    )
    known = pairs.drop_nulls()
    return known["row"].to_numpy(), known["next"].to_numpy()
