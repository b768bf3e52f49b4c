"""Traces whose processes are lanes: names of processes show which lanes are devices, and which are the host.

====================  ================================================================================================
TensorFlow 1          ``/device:GPU:0/stream:15 Compute`` is a stream, and ``/job:w/.../device:GPU:0 Compute`` the
                      host's view of the same calls. ``stream:all`` and ``memcpy`` repeat what streams show.
PyTorch before 1.8    ``CUDA functions`` shows the device work of ``CPU functions``: nested, one lane per device
torch_npu             ``Ascend Hardware`` has streams; ``HCCL`` has collectives, and once more their parts (planes);
                      ``CANN`` has calls; ``Overlap Analysis`` repeats all as sums
====================  ================================================================================================

Lanes that repeat others are ignored, so that no time counts twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from traceviz.parsers.kineto.raw import RawTrace
from traceviz.parsers.shared.arrays.nesting import enclosing, nearest
from traceviz.parsers.shared.arrays.operations import take

KERNEL, COPY, SCOPE, CALL, OPERATOR, IGNORED = (
    *("kernel", "gpu_memcpy", "gpu_user_annotation", "privateuse1_runtime", "cpu_op", "trace"),
)
"""PyTorch's categories for the events of lanes."""

_TENSORFLOW = re.compile(
    r"(?P<task>/job:[^/]+/replica:\d+/task:\d+)?/(?:device:)?(?P<kind>[A-Za-z_]+):(?P<device>\d+)"
    r"(?:/(?P<part>(?:stream|memcpy)\S*))? (?P<what>Compute|Tensors)",
    re.IGNORECASE,
)
_STREAM = re.compile(r"stream:(\d+)")
_IS_COPY = r"(?i)^(?:memcpy|sdma|pcie_dma)"
_AUTOGRAD_HOST, _AUTOGRAD_DEVICE = "CPU functions", "CUDA functions"
_NPU, _NPU_CALLS, _NPU_SUMS = "Ascend Hardware", "CANN", "Overlap Analysis"
_NPU_COLLECTIVES = ("HCCL", "Communication")
_NPU_GROUP = r"^Group .*Communication$"
_NPU_WAITS = r"(?i)^(?:event|notify|model|profiling|stream)[ _]|^write value|place_holder"
"""Tasks of a stream that compute nothing: they wait for another stream, or signal it to continue."""
_NPU_PART = r"^SDMA$|^Reduce_Inline$"
"""Tasks of collectives, whose time the collective already has."""


@dataclass(frozen=True, slots=True)
class Lanes:
    """A profiler whose processes are lanes.

    Args:
        producer: The profiler.
        framework: The framework.
        applies: Returns whether names of processes are those of this profiler.
        translate: Translates its trace to PyTorch's categories, with devices and streams as pid and tid.
    """

    producer: str
    framework: str
    applies: Callable[[frozenset[str]], bool]
    translate: Callable[[RawTrace], RawTrace]


def process_names(events: pl.DataFrame) -> dict[str, str]:
    """Return the names of processes by pid; a pid that is no number and has no name is its own."""
    pids = [str(pid) for pid in events["pid"].unique().drop_nulls().cast(pl.String)]
    stated = _stated_names(events, "process_name").iter_rows()
    return {pid: pid for pid in pids if not pid.lstrip("-").isdecimal()} | {pid: name for pid, _, name in stated}


def _stated_names(events: pl.DataFrame, what: str) -> pl.DataFrame:
    """Return ``pid, tid, label`` of the events that name processes or threads."""
    if "label" not in events.columns:
        return pl.DataFrame(schema={"pid": pl.String, "tid": pl.String, "label": pl.String})
    columns = [pl.col(column).cast(pl.String) for column in ("pid", "tid", "label")]
    naming = events.filter((pl.col("phase").cast(pl.String) == "M") & (pl.col("name").cast(pl.String) == what))
    return naming.select(columns).drop_nulls(["pid", "label"])


def lanes_of(raw: RawTrace) -> Lanes | None:
    """Return the profiler whose lanes these are; ``None`` if names of processes show none."""
    names = frozenset(process_names(raw.events).values())
    return next((lanes for lanes in LANES if lanes.applies(names)), None)


def _moved(raw: RawTrace, pid: pl.Expr, tid: pl.Expr, category: pl.Expr) -> RawTrace:
    """Return the trace with other processes, threads and categories (null: as before); names of the others stay."""
    changed = [
        pl.coalesce(new.cast(pl.String), pl.col(column).cast(pl.String)).cast(pl.Categorical).alias(column)
        for column, new in (("pid", pid), ("tid", tid), ("category", category))
    ]
    return replace(raw, events=raw.events.with_columns(changed))


def _by_pid(values: Mapping[str, str]) -> pl.Expr:
    return pl.col("pid").cast(pl.String).replace_strict(dict(values), default=None, return_dtype=pl.String)


def _from_tensorflow(raw: RawTrace) -> RawTrace:
    matches = {pid: _TENSORFLOW.fullmatch(name) for pid, name in process_names(raw.events).items()}
    lanes = {pid: match for pid, match in matches.items() if match is not None}
    on_device = {pid: match for pid, match in lanes.items() if match["part"]}
    best: dict[str, int] = {}  # the most precise kind of lane that each device has
    for match in on_device.values():
        best[match["device"]] = max(best.get(match["device"], 0), _precision(match["part"]))
    pids, tids, categories = {}, {}, {}
    for pid, match in lanes.items():
        stream = _STREAM.fullmatch(match["part"] or "")
        if match["what"].lower() == "tensors" or (match["part"] and _precision(match["part"]) < best[match["device"]]):
            categories[pid] = IGNORED
        elif match["part"]:
            pids[pid], tids[pid], categories[pid] = match["device"], stream[1] if stream else "0", KERNEL
        else:
            where = match[0].rpartition("/")[2].removeprefix("device:").removesuffix(f" {match['what']}")
            pids[pid], categories[pid] = match["task"] or "host", OPERATOR
            tids[pid] = f"{where} lane "
    name = pl.col("name").cast(pl.String)
    category = pl.when((_by_pid(categories) == KERNEL) & name.str.contains(_IS_COPY)).then(pl.lit(COPY))
    lane = pl.when(_by_pid(categories) == OPERATOR).then(_by_pid(tids) + pl.col("tid").cast(pl.String))
    events = raw.events.filter(pl.col("phase").cast(pl.String) != "M")  # lanes are no processes
    return _moved(
        replace(raw, events=events),
        _by_pid(pids),
        pl.coalesce(lane, _by_pid(tids)),
        category.otherwise(_by_pid(categories)),
    )


def _precision(part: str) -> int:
    """Return how precise a lane is: a stream, all streams, or copies."""
    return 3 if _STREAM.fullmatch(part) else 2 if part.startswith("stream") else 1


def _from_autograd(raw: RawTrace) -> RawTrace:
    """Put device work on its device.

    Its events nest::

    convolution      |----------------|     a range: others have most of it
      cudnn          |---------------|      work: most of it is its own
        contiguous   |-|                    part of that work
    """
    on_device = pl.col("pid").cast(pl.String) == _AUTOGRAD_DEVICE
    end = pl.col("start_ns") + pl.col("dur_ns").fill_null(0)
    work = raw.events.with_row_index().filter(on_device & (pl.col("phase").cast(pl.String) == "X"))
    work = work.select("index", "start_ns", end.alias("end_ns"), pl.col("tid").cast(pl.String).rank("dense"))
    work = work.sort("tid", "start_ns", "end_ns", "index", descending=[False, False, True, False])
    starts = work["start_ns"].to_numpy()
    lengths = work["end_ns"].to_numpy() - starts
    parent = enclosing(work["tid"].cast(pl.Int32).to_numpy(), starts, lengths)
    inside = np.bincount(parent[parent >= 0], lengths[parent >= 0], starts.size)
    is_work = 2 * inside <= lengths
    is_part = take(nearest(parent, is_work), parent) >= 0
    kinds = pl.Series(np.where(is_part, IGNORED, np.where(is_work, KERNEL, SCOPE)), dtype=pl.String)
    found = pl.DataFrame({"index": work["index"], "kind": kinds})
    rows = pl.DataFrame({"index": pl.int_range(raw.events.height, dtype=pl.UInt32, eager=True)})
    category = rows.join(found, on="index", how="left", maintain_order="left")["kind"]
    device = pl.col("tid").cast(pl.String).str.extract(r"(\d+)$").fill_null("0")
    return _moved(
        raw,
        pl.when(on_device).then(device).otherwise(pl.lit("0")),
        pl.when(on_device).then(pl.lit("0")),
        pl.coalesce(category, pl.when(~on_device).then(pl.lit(OPERATOR))),
    )


def _from_npu(raw: RawTrace) -> RawTrace:
    names = process_names(raw.events)
    numbers = {
        pid: str(number)
        for kinds in ((_NPU,), _NPU_COLLECTIVES)
        for number, pid in enumerate(sorted(pid for pid, name in names.items() if name in kinds))
    }
    role = _by_pid(names)
    threads = _stated_names(raw.events, "thread_name").unique(["pid", "tid"])
    groups = threads.filter(pl.col("label").str.contains(_NPU_GROUP)).select(pl.col("pid", "tid"), is_group=True)
    keys = [pl.col(column).cast(pl.String).alias(f"{column}_text") for column in ("pid", "tid")]
    joined = raw.events.with_columns(keys).join(
        groups, left_on=["pid_text", "tid_text"], right_on=["pid", "tid"], how="left", maintain_order="left"
    )
    name = pl.col("name").cast(pl.String)
    task = pl.col("task_type").cast(pl.String).fill_null("") if "task_type" in joined.columns else pl.lit("")
    idle = name.str.contains(_NPU_WAITS) | task.str.contains(_NPU_WAITS) | name.str.contains(_NPU_PART)
    on_device, collective = role == _NPU, role.is_in(_NPU_COLLECTIVES)
    category = (
        pl.when(role == _NPU_SUMS)
        .then(pl.lit(IGNORED))
        .when(on_device & idle)
        .then(pl.lit(IGNORED))
        .when(on_device & (name.str.contains(_IS_COPY) | task.str.contains(_IS_COPY)))
        .then(pl.lit(COPY))
        .when(on_device | (collective & pl.col("is_group").fill_null(value=False)))
        .then(pl.lit(KERNEL))
        .when(collective)
        .then(pl.lit(IGNORED))
        .when(role == _NPU_CALLS)
        .then(pl.lit(CALL))
    )
    operators = joined.filter(pl.col("category").cast(pl.String) == OPERATOR)["pid_text"].value_counts(sort=True)
    program = operators["pid_text"][0] if operators.height else None
    pid = pl.when(role == _NPU_CALLS).then(pl.lit(program, pl.String)).otherwise(_by_pid(numbers))
    stream = pl.when(collective).then(pl.format("{}", 10_000 + pl.col("tid_text").cast(pl.Int64, strict=False)))
    moved = _moved(replace(raw, events=joined), pid, stream, category)
    is_name = pl.col("phase").cast(pl.String) == "M"
    named = is_name & pl.col("pid_text").is_in([pid for pid, name in names.items() if pid != program])
    return replace(moved, events=moved.events.filter(~named).drop("pid_text", "tid_text", "is_group"))


LANES = (
    Lanes(
        "TensorFlow timeline",
        "TensorFlow",
        lambda names: any(_TENSORFLOW.fullmatch(name) for name in names),
        _from_tensorflow,
    ),
    Lanes("PyTorch autograd profiler", "PyTorch", lambda names: _AUTOGRAD_HOST in names, _from_autograd),
    Lanes("torch_npu profiler", "PyTorch", lambda names: _NPU in names, _from_npu),
)
