"""Exclusive parts of the recorded time of the training process. They add up to that time exactly.

::

    start       first step                                       last step ends   last sample    end
    |-imports-|-preparation-|-warm-up-|-steps-|-saving-|-between-|-steps-|-after-|-shut-down-|

Each moment belongs to the first of these that applies: the recording itself works; a checkpoint or model is saved
(which may include compiling what is saved); something is compiled; the model is evaluated; the loop does other work
than its steps; a step runs; the stack sampler had ended early; else the position of the moment decides. Hooks in the
program show most of these, ranges show some, and the stacks of the main thread show the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from traceviz.analyses.derived.frames import having, intervals
from traceviz.analyses.derived.patterns import matches
from traceviz.analyses.derived.run_parts.main_process import (
    MIN_SAMPLES,
    MainProcess,
    find_early_loop,
    find_occasional_work,
    main_process,
    saves,
    validates,
)
from traceviz.analyses.derived.run_parts.run_places import MainSamples, Place, find_leading_line, find_places
from traceviz.analyses.derived.run_parts.run_steps import run_steps
from traceviz.analyses.derived.stacks.trees import Mask, StackTree, stack_meanings, stack_tree
from traceviz.analyses.derived.steps.bounds import OTHER_WORK
from traceviz.analyses.derived.steps.steps import warmup_steps
from traceviz.analyses.derived.view import TraceView, once_per_trace
from traceviz.core.arrays.intervals import Array, IntervalSet, exclusive

UNSAMPLED = "unsampled"
"""Time without information, since the stack sampler had ended early."""
LABELS: Mapping[str, str] = {
    "imports": "imports",
    "preparation": "start-up",
    "compilation": "compilation",
    "warmup": "warm-up steps",
    "steps": "steady steps",
    "validation": "validation",
    "saving": "saving",
    "between": "between steps",
    "after": "after the last step",
    "shutdown": "shut-down",
    "other": "outside of steps",
    UNSAMPLED: "not sampled",
    "unexplained": "unexplained",
}
"""The parts of a run with display labels, in order of time."""
STEPS = ("warmup", "steps")
STARTUP = ("imports", "preparation")
RECORDING = "recording"
"""Time in which the recording starts, stops and saves. It does not belong to the program's run."""


@dataclass(frozen=True, slots=True)
class RunParts:
    """Division of the run of one process.

    Args:
        process_id: The process.
        processes: Number of the program's processes that trained.
        times: Time of each part; with ``recording_ns``, these are all recorded time.
        recording_ns: Time in which the recording itself worked.
        loop: From the start of the first step to the end of the last; empty if there are none.
        steps: Number of its steps.
        places: Places of each part in the program, the one with the most time first.
        mostly: The innermost line of the program that leads to half of a part's time, if there is one.
        sampled: True if stacks were sampled.
        cut: True if an unsampled part of the run has been removed.
        is_slowed: True if other programs used much of the machine.
    """

    process_id: int
    processes: int
    times: Mapping[str, IntervalSet]
    recording_ns: int
    loop: IntervalSet
    steps: int
    places: Mapping[str, tuple[Place, ...]]
    mostly: Mapping[str, Place]
    sampled: bool
    cut: bool = False
    is_slowed: bool = False

    def time_ns(self, *parts: str) -> int:
        """Return the time of these parts."""
        return sum(self.times[part].total for part in parts if part in self.times)

    @property
    def judged(self) -> RunParts:
        """The same division without the time in which nothing was sampled."""
        return replace(self, times={key: time for key, time in self.times.items() if key != UNSAMPLED}, cut=self.is_cut)

    @property
    def is_cut(self) -> bool:
        """True if a part of the run was not sampled."""
        return self.cut or self.time_ns(UNSAMPLED) > 0

    def words(self, whole: str = "this run") -> str:
        """Return the base of the parts' shares as text: ``whole``, or its sampled part."""
        return f"the sampled part of {whole}" if self.is_cut else whole

    @property
    def run_ns(self) -> int:
        """Run time of the program without the recording: the sum of the parts."""
        return sum(part.total for part in self.times.values())

    def share(self, *parts: str) -> float:
        """Return the time of these parts as a share of the run."""
        return self.time_ns(*parts) / self.run_ns if self.run_ns else 0.0


@once_per_trace
def run_parts(trace: TraceView) -> RunParts | None:
    """Return the parts of the run; ``None`` if only the profiled time was recorded."""
    main = main_process(trace)
    if main is None or main.end_ns <= main.begin_ns:
        return None
    tree = stack_tree(trace)
    places = _find_rows(tree, main.rows["stack_id"])
    told = _Evidence(trace, main, tree, places)
    rare, lines = find_occasional_work(main, tree, places)  # lines also show the main thread's place between steps
    named = [(RECORDING, told.of(RECORDING).union(_time_after_program(trace, main).subtract(told.unsampled)))]
    named += [(kind, told.of(kind)) for kind in ("saving", "compilation", "validation")]
    named.append(("between", told.rows(rare)))
    layers = [*named, *_layers_by_place(main, told, [layer for _, layer in named])]
    keys = {str(place): key for place, (key, _) in enumerate(layers)}  # a key may have several layers
    numbered = [(str(place), layer) for place, (_, layer) in enumerate(layers)]
    times: dict[str, IntervalSet] = {}
    for name, owned in exclusive(numbered, main.begin_ns, main.end_ns, "unexplained").items():
        key = keys.get(name, name)
        times[key] = times[key].union(owned) if key in times else owned
    recording, loop = times.pop(RECORDING).total, IntervalSet.empty()
    if main.steps.height:
        loop = IntervalSet.span(int(main.steps["start_ns"][0]), int(main.steps["end_ns"][-1]))
    samples = MainSamples(main, tree, places, lines)
    counted, steps = run_steps(trace), main.steps.height  # until a source is known, calls of a model count as steps
    return RunParts(
        main.process_id,
        main.processes,
        {key: times[key] for key in LABELS if key in times},
        recording,
        loop,
        steps if counted is None else min(counted.count, steps),
        {key: find_places(key, times[key], samples) for key in LABELS if key in times},
        {key: place for key in LABELS if key in times and (place := find_leading_line(times[key], samples))},
        bool(places.size),
        is_slowed=_is_slowed(trace),
    )


OTHERS = 0.2
"""Other programs slow a run down if they use this share of the machine's cores."""


def _is_slowed(trace: TraceView) -> bool:
    """Return whether other programs used much of the machine's processor time during the run."""
    rows = trace.frame("samples", "value", "device_id", pl.col("metric").cast(pl.String))
    means = rows.filter(pl.col("device_id").is_null()).group_by("metric").agg(pl.col("value").mean())
    busy = dict(means.iter_rows())
    settings = trace.frame("settings", pl.col("key", "value").cast(pl.String))
    cores = settings.filter(pl.col("key") == "machine.cores")["value"].cast(pl.Int64, strict=False).max()
    if cores is None or not {"program CPU", "machine CPU"} <= busy.keys():
        return False
    others = busy["machine CPU"] - busy["program CPU"] - busy.get("profiler CPU", 0.0)
    return bool(others / 100 >= OTHERS * float(str(cores)))


def _layers_by_place(main: MainProcess, told: _Evidence, before: list[IntervalSet]) -> list[tuple[str, IntervalSet]]:
    """Return the layers for time without more specific evidence: steps, or the position relative to steps."""
    imports, seen = told.of("imports"), told.seen
    until = int(main.rows["end_ns"].max() or main.begin_ns) if main.rows.height else main.begin_ns  # type: ignore[arg-type]
    unsampled = told.unsampled
    if not main.steps.height:
        shutdown = IntervalSet.span(until, main.end_ns)
        return [(UNSAMPLED, unsampled), ("imports", imports), ("shutdown", shutdown), ("other", seen)]
    starts, ends = (main.steps[name].to_numpy() for name in ("start_ns", "end_ns"))
    first, last = int(starts[0]), int(ends[-1])
    warmup = warmup_steps(ends - starts - IntervalSet.empty().union(*before).overlap(starts, ends))
    return [
        ("warmup", IntervalSet.of(starts[warmup], ends[warmup])),
        ("steps", IntervalSet.of(starts[~warmup], ends[~warmup])),
        (UNSAMPLED, unsampled),
        ("imports", imports.clip(main.begin_ns, first)),
        ("warmup", told.rows(find_early_loop(main, told.tree, told.places)).clip(main.begin_ns, first)),
        ("preparation", IntervalSet.span(main.begin_ns, first)),
        ("after", IntervalSet.span(last, until)),
        ("shutdown", IntervalSet.span(last, main.end_ns)),
        ("between", seen),
    ]


def _time_after_program(trace: TraceView, main: MainProcess) -> IntervalSet:
    """Return the time from a program's last evidence to its end, if that is the end of the profiler around it."""
    states = trace.frame("settings", pl.col("key", "value").cast(pl.String)).drop_nulls()
    if not states.filter(pl.col("key").is_in(_AROUND) & pl.col("value").is_in(["recorded", "recording"])).height:
        return IntervalSet.empty()
    apart = ["program", UNSAMPLED]
    seen = pl.concat([main.rows["end_ns"], main.phases.filter(~pl.col("kind").is_in(apart))["end_ns"]])
    last = seen.max() if seen.len() else main.begin_ns
    return IntervalSet.span(int(last), main.end_ns)  # type: ignore[arg-type]


_AROUND = ("collector.nsys.state",)
"""Settings that show whether a profiler ran around the program. The run then ends after the profiler saved its data."""
_FRAMES = {"saving": saves, "validation": validates}
"""Predicates on stack frames that recognize a part."""
_PURPOSES = {"compilation": "compilation", "imports": "import"}
"""Purposes of stacks that recognize a part."""
_RANGES = {"saving": r"(?i)save|saving|ckpt|checkpoint", "validation": r"(?i)eval|valid|(?:^|[^a-z])(?:val|test)"}
"""Names of ranges outside the loop that recognize a part."""


def _find_rows(tree: StackTree, stack_ids: pl.Series) -> Array:
    """Return the row in ``tree`` of each of these stacks, or -1."""
    ids, wanted = tree.frames["stack_id"].to_numpy(), stack_ids.to_numpy()
    if not ids.size:
        return np.full(wanted.size, -1)
    nearest = np.minimum(np.searchsorted(ids, wanted), ids.size - 1)
    return np.where(ids[nearest] == wanted, nearest, -1)


@dataclass(frozen=True, slots=True)
class _Evidence:
    """Evidence about the main thread from hooks, ranges and stacks."""

    trace: TraceView
    main: MainProcess
    tree: StackTree
    places: Array

    def of(self, kind: str) -> IntervalSet:
        """Return the time of this kind."""
        phases = having(self.main.phases, "kind", kind)
        thread = self.main.thread_id
        if thread is not None:  # the loop does not wait for other threads
            phases = phases.filter(pl.col("thread_id").is_null() | (pl.col("thread_id") == thread))
        told = intervals(phases)
        return told if kind == RECORDING else told.union(self._sampled(kind), self._ranges(kind))

    def rows(self, chosen: Mask) -> IntervalSet:
        """Return the time of these samples, if there are enough."""
        rows = self.main.rows.filter(pl.Series(chosen, dtype=pl.Boolean))
        return intervals(rows) if rows["samples"].sum() >= MIN_SAMPLES else IntervalSet.empty()

    @property
    def unsampled(self) -> IntervalSet:
        """Time after the stack sampler had ended early."""
        return intervals(having(self.main.phases, "kind", UNSAMPLED))

    @property
    def seen(self) -> IntervalSet:
        """Time with any evidence."""
        return intervals(self.main.rows).union(intervals(having(self.main.phases, "kind", "epoch")))

    def _sampled(self, kind: str) -> IntervalSet:
        if kind in _FRAMES:
            of_kind = self.tree.outermost(_FRAMES[kind](self.tree)) >= 0
        else:
            purposes = stack_meanings(self.trace)["purpose"]
            of_kind = (purposes == _PURPOSES[kind]).fill_null(value=False).to_numpy()
        chosen = np.append(of_kind, [False])[self.places] & (self.places >= 0)
        if kind == "validation" and self.main.steps.height:  # before the loop, such functions only prepare data
            chosen &= self.main.rows["start_ns"].to_numpy() >= int(self.main.steps["start_ns"][0])
        return self.rows(chosen)

    def _ranges(self, kind: str) -> IntervalSet:
        pattern = _RANGES.get(kind)
        ranges = self.trace.ranges
        if pattern is None or not ranges.height:
            return IntervalSet.empty()
        own = having(ranges, "process_id", self.main.process_id)
        if self.main.thread_id is not None:
            own = having(own, "thread_id", self.main.thread_id)
        return intervals(own.filter(matches(pl.col("name"), OTHER_WORK) & pl.col("name").str.contains(pattern)))
