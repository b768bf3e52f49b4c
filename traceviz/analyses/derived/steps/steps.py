"""Training steps of a trace: declared ones if there are any, else inferred from repetition.

Sources in order of trust: the steps of a serving engine; steps that the trace declares; NVTX ranges with a step-like
name (or the user's); annotations of the framework with such a name; the cycle of NVTX ranges on the training thread;
the cycle of compiled modules on a device; steps that hooks in the program counted; the marks of passes (batches taken
from a loader, updates of an optimizer); the cycle of the training thread's calls; the cycle of kernels. Steps carry
their source and its confidence.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import polars as pl

from traceviz.analyses.derived.frames import codes, end_ns, having, parts_by
from traceviz.analyses.derived.patterns import matches
from traceviz.analyses.derived.steps.bounds import WHOLE_PASS, end_before_others, start_to_start
from traceviz.analyses.derived.steps.cycles import find_cycle
from traceviz.core.arrays.intervals import Array, IntervalSet

StepSource = Literal[
    "serving",
    "trace",
    "nvtx",
    "annotation",
    "nvtx_cycle",
    "module_cycle",
    "counted",
    "passes",
    "host_cycle",
    "kernel_cycle",
    "none",
]

INFERRED: frozenset[StepSource] = frozenset({"nvtx_cycle", "module_cycle", "host_cycle", "kernel_cycle"})
"""Sources that are a guess; reports mention this."""

STEP_NAME = (
    r"(?i)^(?:profilerstep#?|train(?:ing)?|(?:(?:train(?:ing)?|global|mini|micro)[ _-]?)?(?:step|iter(?:ation)?|batch)"
    r"|event/batch|(?:\[\w+\])*(?:\w+[./])*(?:run_)?train(?:ing)?_(?:step|iter|iteration|batch)"
    r"|(?:DeepSpeed|Pipeline)Engine\.(?:train_batch|forward)|(?:\[pl\])\[profile\](?:\w+\.)*run_training_epoch)"
    r"(?:[ _:#=-]*#+)?$"
)
"""Step-like names, after replacing running numbers by ``#``: plain words, and those of Composer (``event/batch``),
Lightning (``[pl][profile]run_training_batch``) and DeepSpeed."""

MIN_STEPS = 3
"""Minimum number of repetitions in a loop."""

MIN_CONFIDENCE = 0.8
"""Minimum likeness for a cycle of ranges or calls to count as a training loop."""

MIN_RANGES = 2
"""Minimum number of sibling ranges in an inferred step, for example loading and computing."""
MIN_KERNELS = 3
"""Minimum number of kernels in an inferred step; one kernel launched repeatedly is not a training step."""

STEP_SCHEMA = {
    "process_id": pl.Int32,
    "step": pl.Int64,
    "name": pl.String,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "warmup": pl.Boolean,
    "cut": pl.Boolean,
}
"""Columns of steps; a ``cut`` step lacks the time after its mark, which other steps include."""


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of a trace.

    Args:
        source: Their source.
        marker: Display name of their marker.
        confidence: 1 for declared steps, else the likeness of the inferred cycles (0 to 1).
        frame: One row per step and process, with the columns of :data:`STEP_SCHEMA`; sorted by process and start.
        thread_id: Thread with the markers, by process.
        host: If steps are device work that the host queued early, the host's time for them: ``process_id, step,
            start_ns, end_ns``; else ``None``.
    """

    source: StepSource
    marker: str
    confidence: float
    frame: pl.DataFrame
    thread_id: dict[int, int]
    host: pl.DataFrame | None = None
    steady: pl.DataFrame = field(init=False, repr=False, compare=False)
    """Steps after the warm-up that are not cut."""

    def __post_init__(self) -> None:
        is_steady = ~pl.col("warmup") & ~pl.col("cut")
        # No query without rows: it would start polars threads on import, which a fork would not copy
        object.__setattr__(self, "steady", self.frame.filter(is_steady) if self.frame.height else self.frame)


NO_STEPS = Steps("none", "", 0.0, pl.DataFrame(schema=STEP_SCHEMA), {})


@dataclass(frozen=True, slots=True)
class ProcessSteps:
    """Steps of one process.

    Args:
        marker: Display name of their marker.
        confidence: As for :class:`Steps`.
        frame: One row per step, with the columns of :data:`STEP_SCHEMA`.
        thread_id: Thread with the markers.
        share: Share of the searched events' time in inferred steps, with one more for the last, whose end is unknown.
    """

    marker: str
    confidence: float
    frame: pl.DataFrame
    thread_id: int | None
    share: float = 1.0

    @property
    def is_loop(self) -> bool:
        """True if inferred steps are equal, and hold enough of the events to be whole passes."""
        return self.confidence >= MIN_CONFIDENCE and self.share >= WHOLE_PASS


def declared_steps(steps: pl.DataFrame, others: pl.DataFrame) -> Steps:
    """Return steps from the ``steps`` table of a trace; a single one is enough, since the trace declares it.

    Args:
        steps: The table.
        others: As for :func:`named_steps`.
    """
    frame = steps.with_columns(end_ns(), pl.col("name", "marker").cast(pl.String))
    parts = parts_by(frame, "process_id").values()
    return join_processes("trace", [_find_declared(part, others) for part in parts], at_least=1)


def _find_declared(steps: pl.DataFrame, others: pl.DataFrame) -> ProcessSteps:
    """Return the steps of one process, from one marker and device.

    A device's own steps are more exact than the host's, which queues work early. Of several devices (which run the same
    steps) and several markers (training, evaluation), the one whose steps cover the most time is used.
    """
    families = steps.group_by("marker", "device_id").agg(
        (pl.col("end_ns") - pl.col("start_ns")).sum().alias("covered"), pl.col("start_ns").min()
    )
    ranked = families.with_columns(pl.col("device_id").is_null().alias("of_host")).sort(
        "of_host", "covered", "start_ns", "device_id", "marker", descending=[False, True, False, False, False]
    )
    marker, device = ranked["marker"][0], ranked["device_id"][0]
    marked = steps.filter((pl.col("marker") == marker) & pl.col("device_id").eq_missing(pl.lit(device)))
    marked = marked.sort("start_ns", "end_ns").with_columns(pl.col("step").fill_null(pl.int_range(pl.len())))
    threads = marked["thread_id"].drop_nulls()
    thread = threads[0] if threads.len() else None
    return ProcessSteps(marker, 1.0, _steps_from_marks(marked, others, thread), thread)


def named_steps(ranges: pl.DataFrame, marker: str | None, others: pl.DataFrame, source: StepSource = "nvtx") -> Steps:
    """Return steps from ranges with a step-like name.

    Of several step-like families (``step`` around ``batch``), the family that covers the most time is used.

    Args:
        ranges: ``process_id, thread_id, start_ns, end_ns, name, parent_id`` of closed ranges, ``name`` as text.
        marker: The user's regular expression, used instead of :data:`STEP_NAME` on unchanged names.
        others: ``process_id, thread_id, start_ns, end_ns`` of ranges and annotations outside the loop (names match
            :data:`traceviz.analyses.derived.steps.bounds.OTHER_WORK`).
        source: The source that the ranges stand for.
    """
    folded = ranges.with_columns(fold_numbers("name").alias("family"))
    marks = pl.col("name").str.contains(marker) if marker else matches(pl.col("family"), STEP_NAME)
    if marker:
        folded = folded.with_columns(pl.lit(marker).alias("family"))
    parts = []
    for part in parts_by(folded.filter(marks), "process_id").values():
        families = part.group_by("family", "thread_id").agg(
            pl.len(), (pl.col("end_ns") - pl.col("start_ns")).sum().alias("covered"), pl.col("start_ns").min()
        )
        families = families.filter(pl.col("len") >= MIN_STEPS).sort("covered", "start_ns", descending=[True, False])
        if families.height:
            family, thread = families["family"][0], families["thread_id"][0]
            marked = part.filter((pl.col("family") == family) & (pl.col("thread_id") == thread)).sort("start_ns")
            numbered = marked.with_columns(_step_numbers(marked["name"]))
            parts.append(ProcessSteps(family, 1.0, _steps_from_marks(numbered, others, thread), thread))
    return join_processes(source, parts)


def _steps_from_marks(markers: pl.DataFrame, others: pl.DataFrame, thread: int | None) -> pl.DataFrame:
    """Return the markers of one process as steps from start to start, with their warm-up."""
    own = having(others, "process_id", markers["process_id"][0])
    if thread is not None:
        own = having(own, "thread_id", thread)
    return mark_warmup(start_to_start(markers, own))


def nvtx_cycle_steps(ranges: pl.DataFrame, busy_extent: dict[int, tuple[int, int]]) -> Steps:
    """Return steps from the cycle of sibling NVTX ranges (data loading, forward, backward ...) on one thread.

    The thread whose ranges cover most time comes first: a loop that waits for the work of other threads covers them.
    Its outermost depth with a convincing cycle is used, if its cycles cover most of the device work.

    Args:
        ranges: As for :func:`named_steps`, with ``depth``.
        busy_extent: First and last device work of each process; ranges of other processes do not count.
    """
    parts = []
    for process_id, (first, last) in busy_extent.items():
        own = having(ranges, "process_id", process_id).with_columns(fold_numbers("name").alias("family"))
        duration = pl.when(pl.col("depth") == 0).then(pl.col("end_ns") - pl.col("start_ns"))
        covered = duration.sum().over("thread_id").alias("covered")
        order = pl.col("covered"), "thread_id", "depth", "start_ns"
        levels = own.filter(pl.col("depth") <= 4).with_columns(covered).sort(order, descending=[True, *[False] * 3])
        for part in levels.partition_by("thread_id", "depth", maintain_order=True):
            steps = cycle_steps(part, "family", at_least=MIN_RANGES)
            if steps and steps.is_loop and covers(steps.frame, first, last):
                parts.append(steps)
                break
    return join_processes("nvtx_cycle", parts)


def counted_range_steps(ranges: pl.DataFrame, busy_extent: dict[int, tuple[int, int]]) -> Steps:
    """Return steps from outermost ranges that are counted up, of any name; arguments of :func:`nvtx_cycle_steps`."""
    parts = []
    for process_id, extent in busy_extent.items():
        outer = having(ranges, "process_id", process_id).filter(pl.col("depth") == 0)
        parts.append(_find_counted_ranges(outer.with_columns(fold_numbers("name").alias("family")), *extent))
    return join_processes("nvtx", [part for part in parts if part is not None])


def _find_counted_ranges(ranges: pl.DataFrame, first: int, last: int) -> ProcessSteps | None:
    """Return steps from outermost ranges of one thread that are counted up, and that cover most of the device work.

    ::

        ranges   |--train/iter 7--|--train/iter 8--|--train/iter 9--|
        ranges     |load| |forward|  |load| |forward|
    """
    key, number = ("family", "thread_id"), pl.col("step")
    is_next = (number.diff().is_null() | (number.diff() == 1)).all() & number.is_not_null().all()
    is_counted = (pl.len() >= MIN_STEPS) & is_next
    numbers = pl.col("name").str.extract(r"(\d+)\D*$").cast(pl.Int64, strict=False)
    marked = ranges.filter(pl.col("name") != pl.col("family")).sort("start_ns").with_columns(numbers.alias("step"))
    counted = marked.filter(is_counted.over(key)).filter(~matches(pl.col("family"), _NO_STEPS_COUNTED))
    for marks in counted.partition_by(key, maintain_order=True):
        is_within = IntervalSet.of(marks["start_ns"].to_numpy(), marks["end_ns"].to_numpy()).clip(first, last)
        if is_within.total >= COUNTED_SHARE * (last - first):
            frame = _steps_from_marks(marks, marks.clear(), None)
            return ProcessSteps(str(marks["family"][0]), 1.0, frame, marks["thread_id"][0])
    return None


COUNTED_SHARE = 0.5
"""Least share of the time from first to last device work that counted ranges cover if they are steps."""
_NO_STEPS_COUNTED = r"(?i)epoch|layer|block|stage|module|rank|request|eval|valid"
"""Names of ranges that may be counted up and are no steps."""


def kernel_cycle_steps(kernels: pl.DataFrame) -> Steps:
    """Return steps from the cycle of kernel names of each process.

    Args:
        kernels: ``process_id, start_ns, end_ns, name``, sorted by start.
    """
    parts = [cycle_steps(part, "name", at_least=MIN_KERNELS) for part in parts_by(kernels, "process_id").values()]
    return join_processes("kernel_cycle", [part for part in parts if part])


def fold_numbers(column: str) -> pl.Expr:
    """Return the text of ``column`` with every run of digits replaced by ``#``."""
    return pl.col(column).str.replace_all(r"\d+", "#")


def cycle_steps(
    events: pl.DataFrame, name: str, at_least: int, others: pl.DataFrame | None = None
) -> ProcessSteps | None:
    """Return steps between the anchors of the cycle of ``events`` (sorted by start), if it has ``at_least`` events.

    A step ends where one of ``others`` starts, which do not belong to the loop, if they fill most of the time after its
    first event.
    """
    starts = events["start_ns"].to_numpy()

    def find_pauses() -> Array:
        """Return the time before each event in which no earlier one runs."""
        before = np.maximum.accumulate(events["end_ns"].to_numpy())[:-1]
        return np.concatenate([[0], np.maximum(starts[1:] - before, 0)])

    cycle = find_cycle(codes(events[name]), find_pauses)
    if cycle is None or np.median(np.diff(cycle.anchors)) < at_least:
        return None
    durations = events["end_ns"].to_numpy() - starts
    repeats = int(durations[cycle.anchors[0] : cycle.anchors[-1]].sum())
    share = repeats * (1 + 1 / (cycle.anchors.size - 1)) / max(1, int(durations.sum()))
    edges = starts[cycle.anchors]
    until = edges[1:]
    if others is not None:
        until = end_before_others(events["end_ns"].to_numpy()[cycle.anchors[:-1]], until, others)
    label = str(events[name][int(cycle.anchors[0])])
    frame = pl.DataFrame(
        {
            "process_id": np.full(edges.size - 1, events["process_id"][0], np.int32),
            "step": np.arange(edges.size - 1),
            "name": [label] * (edges.size - 1),
            "start_ns": edges[:-1],
            "end_ns": until,
        }
    )
    thread = events["thread_id"][0] if "thread_id" in events.columns else None
    frame = mark_warmup(frame.with_columns(pl.lit(False).alias("cut")))
    return ProcessSteps(label, cycle.likeness, frame, thread, share)


def covers(steps: pl.DataFrame, first: int, last: int, least: float = 0.5) -> bool:
    """Return whether ``steps`` span at least the share ``least`` of the time from ``first`` to ``last``."""
    start, end = int(steps["start_ns"].min() or 0), int(steps["end_ns"].max() or 0)  # type: ignore[arg-type]
    return min(end, last) - max(start, first) >= least * (last - first)


def mark_warmup(steps: pl.DataFrame) -> pl.DataFrame:
    """Mark the warm-up and select the columns of :data:`STEP_SCHEMA`."""
    warmup = warmup_steps((steps["end_ns"] - steps["start_ns"]).to_numpy())
    return steps.with_columns(pl.Series("warmup", warmup)).select(
        pl.col(name).cast(kind) for name, kind in STEP_SCHEMA.items()
    )


def warmup_steps(durations: Array) -> Array:
    """Return a mask of the first steps that are warm-up (compilation, caches, worker start-up).

    A step is an outlier if it exceeds the median by half of it and by five robust standard deviations. It must also
    exceed nine in ten of the later steps: if steps come in two kinds, neither is an outlier. Steps up to the last
    outlier among the first quarter (at most 10 steps) are warm-up; later outliers are real.
    """
    count = durations.size
    if count < MIN_STEPS:
        return np.zeros(count, dtype=bool)
    median = float(np.median(durations))
    spread = 1.4826 * float(np.median(np.abs(durations - median)))
    first = min(10, max(1, count // 4))
    usual = np.quantile(durations[first:], 0.9, method="higher")
    early = durations[:first] > max(median + max(0.5 * median, 5 * spread), usual)
    last = int(np.flatnonzero(early)[-1]) + 1 if early.any() else 0
    return np.asarray(np.arange(count) < last)


def _step_numbers(names: pl.Series) -> pl.Series:
    """Return the running number at the end of each name if all have one, else 0, 1, 2 ..."""
    numbers = names.str.extract(r"(\d+)\D*$").cast(pl.Int64, strict=False)
    if numbers.null_count() or not numbers.is_sorted():
        return pl.Series("step", np.arange(len(names)))
    return numbers.alias("step")


def join_processes(source: StepSource, parts: list[ProcessSteps], at_least: int = MIN_STEPS - 1) -> Steps:
    """Return the steps of the processes that have ``at_least`` this many."""
    parts = [part for part in parts if part.frame.height >= at_least]
    if not parts:
        return NO_STEPS
    threads = {int(p.frame["process_id"][0]): p.thread_id for p in parts if p.thread_id is not None}
    return Steps(
        source,
        parts[0].marker,
        min(part.confidence for part in parts),
        pl.concat([part.frame for part in parts]).sort("process_id", "start_ns"),
        threads,
    )
