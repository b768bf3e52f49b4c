"""Step time by the classes of PyTorch's TensorBoard plugin, so that users recognise familiar figures.

The rules are those of its last source (pytorch/kineto, ``tb_plugin``: ``event_parser``, ``overall_parser``), checked
against its output, as it applies them to each process:

* Steps are the host's ``ProfilerStep#N`` marks, moved to include the device work that their runtime calls launched::

      marks of the host     |-- step 0 --|-- step 1 --|
      device work               |--- of 0 ---||--- of 1 ---|
      steps                 |---- step 0 ----|-- step 1 ---|

  A step ends with the last of its mark, its last device work and its predecessor. It starts with its mark or the end of
  its predecessor. Steps at the end without device work are dropped. A last step with less than four fifths of its
  predecessor's device work is then dropped, too. Their kernels may not have been recorded. A trace without marks is one
  step, from the first to the last operator.
* Each class takes the time that earlier ones left of the step, in the order of :data:`CLASSES`.

In two points the rules are not followed. The profiler copies the host's marks to the device's timeline. Here these
copies are no steps and no CPU time, while the plugin counts every marked step twice if it finds them. And if the first
classes leave nothing of any step, the plugin starts again with the next class, and counts time twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from traceviz.analyses.derived.frames import end_ns, having, intervals, knowing
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.steps.bases.kineto_clues import Clues, GpuFigures, clues, gpu_figures
from traceviz.analyses.steps.bases.section import BasisClass, BasisSteps
from traceviz.core.arrays.intervals import IntervalSet

KINETO = "kineto"
"""Name of the basis."""

TITLE = "PyTorch's TensorBoard plugin"

FORMAT = "kineto"
"""Format of the traces whose steps this basis knows."""


@dataclass(frozen=True, slots=True)
class KinetoClass(BasisClass):
    """A class. With ``of_device``, it is shown only if a device or the CUDA API was recorded."""

    of_device: bool = False


COMMUNICATION = "communication"
CLASSES: tuple[KinetoClass, ...] = (
    KinetoClass("kernel", "Kernel", of_device=True),
    KinetoClass("memcpy", "Memcpy", of_device=True),
    KinetoClass("memset", "Memset", of_device=True),
    KinetoClass(COMMUNICATION, "Communication"),
    KinetoClass("runtime", "Runtime", of_device=True),
    KinetoClass("data_loader", "DataLoader"),
    KinetoClass("cpu_exec", "CPU Exec"),
    KinetoClass("other", "Other"),
)
"""Classes by precedence, highest first."""

COLLECTIVES = tuple(
    f"{library}:{name}"
    for library in ("nccl", "gloo")
    for name in ("broadcast", "reduce", "all_reduce", "all_gather", "reduce_scatter")
)
"""Names of the operators that communicate, and of the kernels that they launch. Others, as all_to_all, do not count."""

_LOADER = r"^enumerate\(DataLoader\)#.*\.__next__$|^enumerate\(DataPipe\)#"
_OPERATOR = "op"
"""Category of operators, which form the step of a trace without marks.

DataLoaders are annotations, except in the oldest traces.
"""
_HOST = (_OPERATOR, "input", "annotation", "compile")
"""Categories of events on the host, besides the steps. Python frames do not count."""

_KEPT = 0.8
"""A last step with less than this share of its predecessor's device work is dropped."""


@dataclass(frozen=True, slots=True, eq=False)
class KinetoSteps(BasisSteps):
    """Steps as the plugin sees them, in order of time.

    Args:
        frame: See :class:`BasisSteps`, with the keys of :data:`CLASSES`; names of steps are their numbers.
        classes: The classes that the plugin shows for this trace.
        gpus: The plugin's figures of each GPU.
        clues: Further clues for the plugin's recommendations.
        marked: True if the trace marks steps.
    """

    classes: tuple[KinetoClass, ...]
    gpus: tuple[GpuFigures, ...]
    clues: Clues
    marked: bool


def unusable(trace: TraceView) -> str | None:
    """Return the reason why the plugin's rules cannot be applied to the trace, or ``None``."""
    run = trace.tables.run_facts()
    if run.get("format") == FORMAT or (run.get("format") == "run" and FORMAT in str(run.get("reader"))):
        return None
    return "kineto breaks down what PyTorch's profiler recorded, and this trace is of another; use --basis traceviz"


def kineto_steps(trace: TraceView) -> KinetoSteps:
    """Break down the steps of every process by the plugin's rules; no rows if no operator was recorded."""
    marks = having(trace.frame("steps", *_MARK, "dur_ns", "marker"), "marker", "ProfilerStep")
    marks = marks.select(*_MARK[:2], pl.col("step").cast(pl.String), end_ns()).sort("start_ns", "end_ns")
    parts, gpus = [_NO_STEPS], []
    for process in trace.ranks:
        host_steps, work = _host_steps(trace, marks, process), _device_work(trace, process)
        if not host_steps.height:
            continue
        steps = _moved(host_steps, work, _runtime_calls(trace, process))
        if trace.is_window:  # the window's edges may have cut steps
            steps = steps.filter((pl.col("start_ns") > 0) & (pl.col("end_ns") < trace.span_ns))
        if steps.height:
            roles = _roles(trace, process, work)
            starts, ends = steps["start_ns"].to_numpy(), steps["end_ns"].to_numpy()
            free = IntervalSet.of(starts, ends)
            columns = []
            for step_class in CLASSES[:-1]:
                owned = roles[step_class.key].intersect(free)
                free = free.subtract(owned)
                columns.append(pl.Series(step_class.key, owned.overlap(starts, ends)))
            columns.append(pl.Series(CLASSES[-1].key, free.overlap(starts, ends)))
            length = (pl.col("end_ns") - pl.col("start_ns")).alias("step_ns")
            parts.append(steps.select("process_id", "step", "start_ns", length).with_columns(columns))
            gpus += gpu_figures(trace, process, int(steps["start_ns"][0]), int(steps["end_ns"][-1]))
    frame = pl.concat(parts)
    tables = ("kernels", "memcpy", "memset", "cuda_api")
    device = any(name in trace.tables and trace.tables.rows(name) for name in tables)
    communicates = bool(frame[COMMUNICATION].sum()) or trace.host_names["name"].is_in(COLLECTIVES).any()
    shown = tuple(c for c in CLASSES if (communicates if c.key == COMMUNICATION else device or not c.of_device))
    return KinetoSteps(frame, shown, tuple(gpus), clues(trace), bool(marks.height))


_MARK = ("process_id", "start_ns", "step")
_NO_STEPS = pl.DataFrame(
    schema={
        "process_id": pl.Int32,
        "step": pl.String,
        "start_ns": pl.Int64,
        "step_ns": pl.Int64,
        **{c.key: pl.Int64 for c in CLASSES},
    }
)


def _host_steps(trace: TraceView, marks: pl.DataFrame, process: int) -> pl.DataFrame:
    """Return a process's steps before they are moved: one step if none is marked, none without operators."""
    own = having(marks, "process_id", process)
    if own.height:
        return own
    operators = having(trace.host_ops(_OPERATOR), "process_id", process)
    extent = operators.select(
        pl.lit(process, pl.Int32).alias("process_id"),
        pl.lit("0").alias("step"),
        pl.col("start_ns").min(),
        pl.col("end_ns").max(),
    )
    return extent.drop_nulls()


def _device_work(trace: TraceView, process: int) -> pl.DataFrame:
    """Return device work of a process: ``start_ns, end_ns, correlation_id, role`` (keys of :data:`CLASSES`)."""
    communicates = pl.col("op").is_in(COLLECTIVES).fill_null(value=False)
    parts = [
        trace.frame(table, "process_id", "start_ns", "dur_ns", "correlation_id", "op")
        .filter(pl.col("process_id") == process)
        .select(
            "start_ns",
            end_ns(),
            "correlation_id",
            pl.when(communicates & (table == "kernels"))
            .then(pl.lit(COMMUNICATION))
            .otherwise(pl.lit(role))
            .alias("role"),
        )
        for table, role in (("kernels", "kernel"), ("memcpy", "memcpy"), ("memset", "memset"))
    ]
    return pl.concat(parts)


def _runtime_calls(trace: TraceView, process: int) -> pl.DataFrame:
    """Return calls of the CUDA runtime: ``start_ns, end_ns, correlation_id``. Those of the driver do not count."""
    calls = trace.frame("cuda_api", "process_id", "start_ns", "dur_ns", "correlation_id", "domain")
    own = calls.filter((pl.col("process_id") == process) & (pl.col("domain") == "runtime"))
    return own.select("start_ns", end_ns(), "correlation_id")


def _moved(steps: pl.DataFrame, work: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """Return steps extended by the device work that calls within them launched; unchanged if there is none.

    Work that was launched before the first step, and ended before the first step's device work started, marks the end
    of the previous step.
    """
    # The step that encloses the launch call; null if there is none.
    known = knowing(calls, "correlation_id").sort("start_ns", "end_ns")
    latest = known.unique("correlation_id", keep="last", maintain_order=True)
    called = latest.select("correlation_id", pl.col("start_ns").alias("call_start"), pl.col("end_ns").alias("call_end"))
    joined = work.join(called, on="correlation_id", how="left", maintain_order="left")
    marks = steps.select(
        pl.col("start_ns").alias("mark_start"),
        pl.col("end_ns").alias("call_end"),
        pl.int_range(pl.len(), dtype=pl.Int64).alias("number"),
    )
    timed = joined.sort("call_end").set_sorted("call_end")
    enclosed = timed.join_asof(marks.sort("call_end", "number"), on="call_end", strategy="forward")
    inside = pl.col("call_start") >= pl.col("mark_start")
    numbered = enclosed.with_columns(pl.when(inside).then(pl.col("number")).alias("number"))
    launched = numbered.filter(pl.col("number").is_not_null()).group_by("number")
    own = launched.agg(pl.len().alias("count"), pl.col("start_ns").min().alias("first"), pl.col("end_ns").max())
    if not own.height:
        return steps
    every = pl.select(pl.int_range(steps.height, dtype=pl.Int64).alias("number"))
    own = every.join(own, on="number", how="left", maintain_order="left")
    first = pl.lit(own["first"][0], pl.Int64)  # null if the first step launched nothing: no work is before that
    earlier = numbered.filter(pl.col("number").is_null() & (pl.col("end_ns") < first))["end_ns"]
    previous = int(earlier.to_numpy().max(initial=steps["start_ns"][0]))
    last_work = own["end_ns"].fill_null(previous).to_numpy()
    ends = np.maximum(np.maximum.accumulate(np.maximum(steps["end_ns"].to_numpy(), last_work)), previous)
    begins = np.maximum(steps["start_ns"].to_numpy(), np.concatenate([[previous], ends[:-1]]))
    moved = steps.with_columns(pl.Series("start_ns", begins), pl.Series("end_ns", ends))
    counts = own["count"].fill_null(0).to_list()
    last = max(number for number, count in enumerate(counts) if count)
    incomplete = last > 0 and counts[last] < _KEPT * counts[last - 1]
    return moved.head(last if incomplete else last + 1)


def _roles(trace: TraceView, process: int, work: pl.DataFrame) -> dict[str, IntervalSet]:
    """Return the time of each class but the last, overlaps included."""
    host = having(trace.host_ops(*_HOST), "process_id", process)
    names = trace.host_names["name"]
    loads = pl.col("name").is_in(names.filter(names.str.contains(_LOADER)).to_list())
    communicates = pl.col("name").is_in(COLLECTIVES)
    roles = {role: intervals(having(work, "role", role)) for role in ("kernel", "memcpy", "memset", COMMUNICATION)}
    return {
        **roles,
        COMMUNICATION: roles[COMMUNICATION].union(intervals(host.filter(communicates))),
        "runtime": intervals(_runtime_calls(trace, process)),
        "data_loader": intervals(host.filter(loads)),
        "cpu_exec": intervals(host.filter(~loads & ~communicates)),
    }
