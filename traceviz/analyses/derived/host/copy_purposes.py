"""Purposes of copies between host and device: a batch of input, parameters, or unknown.

::

    host     |--take a batch: copy--|--forward-----|--FSDP::pre_forward: copy--|--backward--|
    device                |input|       |kernels|                    |parameters|  |kernels|

The direction of a copy alone does not make it input. It is input if it was called in a range that takes or moves a
batch, or directly after a batch was taken. It is also input if it resembles a batch: few copies in every step, near
the step's first or last kernels or on a separate stream. Copies are of parameters in three cases: they were called in
a range that moves parameters (FSDP, ZeRO, offloading); they have the size of such copies; or a framework moves many
tensors out and as much back in every step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from traceviz.analyses.derived.calls.call_tree import CallTree
from traceviz.analyses.derived.device.work import computing
from traceviz.analyses.derived.frames import bounds, end_ns, having, knowing, of_process, parts_by
from traceviz.analyses.derived.host.input_fetches import ANNOTATION, FETCHED_PART, is_input, parameter_fetches
from traceviz.analyses.derived.likely_frameworks import likely_frameworks
from traceviz.analyses.derived.patterns import matches, replaced
from traceviz.analyses.derived.steps.search import training_steps, training_thread
from traceviz.analyses.derived.steps.steps import INFERRED
from traceviz.analyses.derived.view import TraceView, once_per_trace
from traceviz.core.arrays.intervals import Array

Purpose = Literal["input", "parameters", "unknown"]

PARAMETERS = (
    r"(?i)FSDP::((root_)?(pre|post)_(forward|backward)|unshard|all_gather|(forward|backward)_prefetch)"
    r"|FullyShardedDataParallel\._?(root_)?(pre|post)_(forward|backward)"
    r"|(^|[^a-z])unshard([^a-z]|$)|all_?gather_(params|parameters|coalesced)"
    r"|(^|[^a-z])zero([-_ ]?[123])?[-_ ]?(offload|fetch|gather|partition)|DeepSpeedZe|partition(ed)?_param"
    rf"|(pre)?fetch_(sub_?modules?|params?|weights?|layers?)|{FETCHED_PART}"
    r"|(^|[^a-z])(h2d|htod|host[-_ ]?to[-_ ]?device)[-_ ]?((copy|transfer)[-_ ]?)?"
    r"(param(eter)?|weight|layer)s?([^a-z]|$)"
    r"|swap_(in|out)_?(tensors?|params?|optimizer|$)"
    r"|AlignDevicesHook|accelerate/hooks\.py|offload_hook|hooks/group_offloading\.py"
    r"|(^|[^a-z])(cpu|disk|host|param(eter)?s?|weights?|model|optimizer|states?|layers?|activations?|tensors?)[-_ ]?"
    r"(off|on)load"
    r"|(^|[^a-z])(off|on)load(ed|ing)?[-_ ]?"
    r"(param(eter)?s?|weights?|model|optimizer|states?|layers?|activations?|tensors?)"
    r"|^[^a-z]*(off|on)load(ing)?[^a-z]*$|(^|[^a-z])save_on_cpu"
)
"""Names of ranges and functions that move parameters (or other offloaded data) to or from the host."""

BATCHES = (
    r"(?i)inputs?_to_device|FullyShardedDataParallel\._to_kwargs|batch(es)?[-_ ]?to[-_ ]?(the[-_ ]?)?(device|gpu|cuda)"
    r"|(copy|move|transfer|send|upload|put)[-_ ]?(the[-_ ]?)?(next[-_ ]?)?"
    r"(batch(es)?|data|inputs?|images?|samples?|labels?)([^a-z]|$)"
    r"|^\W*((copy|move|transfer|send|upload)[-_ ]?)?to[-_ ]?(the[-_ ]?)?(device|gpu|cuda)\W*\d*\W*$"
    r"|^\W*(h2d|htod|host[-_ ]?to[-_ ]?device)([-_ ]?(copy|transfer))?\W*\d*\W*$"
)
"""Names of ranges in which a batch is moved to the device."""

FEW = 8
"""Maximum number of copies per batch and step, except small ones: a model has more tensors than that."""
SMALL = 0.01
"""Copies below this share of their step's copying time are small: scalars, and labels of a batch."""
EDGE = 0.1
"""Batches are copied before the first or after the last tenth of a step's kernels, or on a separate stream."""
USUAL = 0.5
"""Share of the steps in which something must happen to count as part of the step."""
LIKE = 0.5
"""Two amounts are about equal if neither is less than this share of the other."""
TENSOR_BYTES = 1 << 20
"""Minimum size of copies that are recognized by size: scalars and small vectors of all kinds have the same sizes."""
BATCH_BYTES = 1 << 10
"""The same as :data:`TENSOR_BYTES`, among the few copies of a step."""

_SCHEMA = {
    "process_id": pl.Int32,
    "start_ns": pl.Int64,
    "dur_ns": pl.Int64,
    "kind": pl.String,
    "bytes": pl.Int64,
    "src_memory": pl.String,
    "dst_memory": pl.String,
}
_KEYS = ("correlation_id", "device_id", "stream")


@once_per_trace
def copy_purposes(trace: TraceView) -> pl.DataFrame:
    """Return copies between host and device, with their purpose.

    Returns:
        ``process_id, start_ns, dur_ns, kind, bytes, src_memory, dst_memory`` of the copies, texts as text; ``purpose``
        (see :data:`Purpose`); and ``place``, the range that shows it, without numbers, or null.
    """
    texts = pl.col("kind", "src_memory", "dst_memory").cast(pl.String)
    frame = trace.frame("memcpy", *_SCHEMA, *_KEYS).with_columns(texts, pl.col("dur_ns").fill_null(0))
    frame = frame.filter(pl.col("kind").is_in(["h2d", "d2h"]))
    parts = [_find_purposes(trace, process, part) for process, part in parts_by(frame, "process_id").items()]
    columns = {**_SCHEMA, "purpose": pl.String, "place": pl.String}
    return pl.concat(parts).select(list(columns)) if parts else pl.DataFrame(schema=columns)


def _find_purposes(trace: TraceView, process: int, copies: pl.DataFrame) -> pl.DataFrame:
    copies = copies.with_row_index("row")
    calls, telling = _calls_of(trace, process, copies), telling_ranges(trace, process)
    copies = copies.join(places_of(calls, telling), on="row", how="left", maintain_order="left")
    # Copies of a size that parameter ranges copy, and input ranges do not, are parameters
    tensors = copies.filter(pl.col("bytes") >= TENSOR_BYTES)
    of = {purpose: set(having(tensors, "purpose", purpose)["bytes"].to_list()) for purpose in ("parameters", "input")}
    sizes = list(of["parameters"] - of["input"])
    by_size = pl.when(pl.col("bytes").is_in(sizes)).then(pl.lit("parameters"))
    copies = copies.with_columns(pl.col("purpose").fill_null(by_size))
    loop = _Loop.of(trace, process)
    copies = loop.placed(copies, calls)
    copies = copies.with_columns(pl.col("purpose").fill_null(_find_round_trips(trace, copies)))
    takes = telling.filter((pl.col("purpose") == "input") & pl.col("thread_id").is_in(calls["thread_id"].implode()))
    if not loop.has_input_in_most(copies):
        # Mark few copies as input if they directly follow the taking of a batch, with no launch in between.
        ends, moments = np.sort(takes["end_ns"].to_numpy()), loop.moments(copies)
        taken = np.searchsorted(ends, moments, side="right") - 1
        launched = np.searchsorted(loop.launches, moments) - 1
        follows = taken >= 0
        both = follows & (launched >= 0)
        follows[both] = ends[taken[both]] >= loop.launches[launched[both]]
        since = copies.select("row", "purpose", "kind", "dur_ns", pl.Series("taken", taken)).filter(pl.Series(follows))
        since = since.filter((pl.col("kind") == "h2d") & pl.col("purpose").is_null())
        is_large = pl.col("dur_ns") >= SMALL * pl.col("dur_ns").sum()
        few = since.filter((is_large.sum() <= FEW).over("taken"))
        after_takes = pl.when(pl.col("row").is_in(few["row"].implode())).then(pl.lit("input"))
        copies = copies.with_columns(pl.col("purpose").fill_null(after_takes))
    if not loop.has_input_in_most(copies):
        copies = copies.with_columns(pl.col("purpose").fill_null(_find_batches(copies, loop)))
    return copies.with_columns(pl.col("purpose").fill_null("unknown"))


def places_of(calls: pl.DataFrame, telling: pl.DataFrame) -> pl.DataFrame:
    """Return ``row, purpose, place`` of the ``calls`` in a range that shows their purpose.

    Args:
        calls: ``row, thread_id, call_ns`` of one process.
        telling: The process's :func:`telling_ranges`.
    """
    if not telling.height:
        return pl.DataFrame(schema={"row": pl.UInt32, "purpose": pl.String, "place": pl.String})
    tree = CallTree.of(telling.with_row_index("op_id"))
    rows = tree.around(calls["thread_id"].to_numpy(), calls["call_ns"].to_numpy())
    inside = calls.filter(pl.Series(rows >= 0, dtype=pl.Boolean))[["row"]]
    return pl.concat([inside, tree.calls[["purpose", "place"]][rows[rows >= 0]]], how="horizontal")


def _calls_of(trace: TraceView, process: int, copies: pl.DataFrame) -> pl.DataFrame:
    """Return ``row, thread_id, call_ns`` of the calls of ``copies``. If no calls are known, use the leading thread."""
    keys = ("correlation_id", "thread_id", "start_ns")
    ids = copies[["correlation_id"]].drop_nulls().unique()
    calls = of_process(trace.frame("cuda_api", "process_id", *keys), process)
    calls = calls.join(ids, on="correlation_id", how="semi").unique("correlation_id", keep="first").select(keys)
    if not calls.height:
        thread = pl.lit(training_thread(trace, process), pl.Int32)
        return copies.select("row", thread.alias("thread_id"), pl.col("start_ns").alias("call_ns"))
    calls = calls.rename({"start_ns": "call_ns"})
    return copies[["row", "correlation_id"]].join(calls, on="correlation_id").select("row", *calls.columns[1:])


def telling_ranges(trace: TraceView, process: int) -> pl.DataFrame:
    """Return ranges, operations and Python functions that show what they move, with ``purpose`` and ``place``."""
    pattern = trace.options.input_range
    ranges = trace.ranges.filter((pl.col("process_id") == process) & pl.col("depth").is_not_null())
    loads = is_input(pattern)
    if pattern is None:
        loads &= ~pl.col("name").is_in(list(parameter_fetches(trace)))
    purpose = _purpose(loads)
    ranges = knowing(ranges.select("start_ns", "end_ns", "thread_id", "name", purpose.alias("purpose")), "purpose")
    names = trace.host_names.filter(pl.col("category") != "pipeline")
    takes = pl.col("category") == "input"
    named = pl.col("category").is_in(["annotation", "runtime"]) & matches(pl.col("name"), ANNOTATION)
    asked = pl.col("name").str.contains(pattern) if pattern is not None else takes | named
    names = knowing(names.with_columns(_purpose(asked).alias("purpose")), "purpose")
    operations = ranges.head(0)
    if names.height:
        columns = ("start_ns", "dur_ns", "thread_id", "name", "category")
        scan = trace.tables.scan("host_ops").filter(pl.col("process_id") == process)
        rows = (
            scan.filter(pl.col("name").is_in(names["name"].unique().to_list()))
            .select(columns)
            .collect(engine=trace.tables.engine)
        )
        rows = rows.with_columns(pl.col("name", "category").cast(pl.String), end_ns())
        operations = rows.join(names, on=["name", "category"]).select(ranges.columns)
    without_line = replaced(pl.col("name"), r"\.py\(\d+\): ", ".py: ")
    # The rest differs between layers: ``FSDP::pre_forward (encoder.block.3), op_id = 12``
    place = replaced(without_line, r"(?: \(|, ).*$", "").alias("place")
    return pl.concat([ranges, operations]).with_columns(place)


def _purpose(takes_input: pl.Expr) -> pl.Expr:
    parameters = matches(pl.col("name"), PARAMETERS)
    moves = matches(pl.col("name"), BATCHES)
    return pl.when(parameters).then(pl.lit("parameters")).when(takes_input | moves).then(pl.lit("input"))


@dataclass(frozen=True, slots=True)
class _Loop:
    """The steps of a process, and the launches in them.

    ::

        host     |load|copy|-launches-|  |load|copy|-launches-|
        device        |####|---------kernels---------|####|----

    The device may be behind the host. Therefore the order of calls is used if they are known, else that of their work.

    Args:
        starts: Starts of the steps: of the host's steps if calls are known.
        ends: Ends of the steps.
        launches: Times at which kernels were launched, or started; sorted.
        streams: ``device_id, stream`` of the process's kernels.
        is_marked: True if the program marks its steps; inferred steps may start anywhere in the loop.
        by_calls: True if times are those of calls.
    """

    starts: Array
    ends: Array
    launches: Array
    streams: pl.DataFrame
    is_marked: bool
    by_calls: bool

    @classmethod
    def of(cls, trace: TraceView, process: int) -> _Loop:
        steps = training_steps(trace)
        is_marked = steps.source not in INFERRED
        own = pl.col("process_id") == process
        kernels = computing(trace, "start_ns", "process_id", "device_id", "stream").filter(own)
        calls = trace.api_calls("launch").filter(own)
        by_calls = is_marked and calls.height > 0
        frame = steps.host if steps.host is not None and by_calls else steps.frame
        launches = calls if by_calls else kernels
        return cls(
            *bounds(frame.filter(own).sort("start_ns")),
            launches=np.sort(launches["start_ns"].to_numpy()),
            streams=kernels[["device_id", "stream"]].unique().with_columns(pl.lit(value=True).alias("computes")),
            is_marked=is_marked,
            by_calls=by_calls,
        )

    def placed(self, copies: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
        """Add to ``copies`` the row of their ``step``, null outside steps, and the flag ``at_edge`` of their step."""
        copies = copies.join(calls[["row", "call_ns"]], on="row", how="left", maintain_order="left")
        moments = self.moments(copies)
        step = np.searchsorted(self.starts, moments, side="right") - 1
        known = step >= 0
        known[known] = moments[known] < self.ends[step[known]]
        within = np.where(known, step, 0)
        if self.starts.size:
            first, last = (np.searchsorted(self.launches, times[within]) for times in (self.starts, self.ends))
            before = np.searchsorted(self.launches, moments)
            margin = EDGE * (last - first)
            edge = (before - first <= margin) | (last - before <= margin)
        else:
            edge = np.zeros(moments.size, bool)
        alone = copies.join(self.streams, on=["device_id", "stream"], how="left", maintain_order="left")["computes"]
        return copies.with_columns(
            pl.when(pl.Series(known, dtype=pl.Boolean)).then(pl.Series(step, dtype=pl.Int64)).alias("step"),
            (pl.Series(edge | (not self.is_marked), dtype=pl.Boolean) | alone.is_null()).alias("at_edge"),
        )

    def moments(self, copies: pl.DataFrame) -> Array:
        """Return the time of each copy's call, or its start if the order of calls is unknown; -1 for unknown calls."""
        moment = pl.col("call_ns") if self.by_calls else pl.col("start_ns")
        return copies.select(moment.fill_null(-1)).to_series().to_numpy()

    def has_input_in_most(self, copies: pl.DataFrame) -> bool:
        """Return whether copies of input are known in most steps; then no others are searched for."""
        known = knowing(having(copies, "purpose", "input"), "step")
        return bool(known.height) and known["step"].n_unique() >= USUAL * self.starts.size


def _find_round_trips(trace: TraceView, copies: pl.DataFrame) -> pl.Expr:
    """Mark copies as parameters if a framework moves many tensors to the host and as much back in most steps.

    Either more than a few tensors of the same sizes come back, or about as many bytes come back as left in many copies:
    gradients leave one by one, and the optimizer on the host sends all parameters together.
    """
    nothing = pl.lit(None, pl.String)
    inside = knowing(copies, "step")
    if len(likely_frameworks(trace)) != 1 or not inside.height:
        return nothing
    tensors = inside.filter((pl.col("bytes") >= TENSOR_BYTES) & pl.col("purpose").is_null())
    size = pl.col("bytes")
    is_back, is_away = pl.col("kind") == "h2d", pl.col("kind") == "d2h"
    back_bytes, away_bytes = (size.filter(moves).sum().over("step") for moves in (is_back, is_away))
    both = is_back.any().over("step", "bytes") & is_away.any().over("step", "bytes")
    of_steps = tensors.with_columns(both.alias("both")).with_columns(
        ((is_back & pl.col("both")).sum().over("step") > FEW).alias("same"),
        (
            (is_away.sum().over("step") > FEW) & (away_bytes >= LIKE * back_bytes) & (LIKE * away_bytes <= back_bytes)
        ).alias("alike"),
    )
    moved = of_steps.filter((pl.col("same") & pl.col("both")) | (pl.col("alike") & is_back.any().over("step")))
    if moved["step"].n_unique() < USUAL * inside["step"].n_unique():
        return nothing
    return pl.when(pl.col("row").is_in(moved["row"].implode())).then(pl.lit("parameters"))


def _find_batches(copies: pl.DataFrame, loop: _Loop) -> pl.Expr:
    """Mark copies as input if they resemble a batch: few per step, at its edge or on a separate stream."""
    nothing = pl.lit(None, pl.String)
    others = copies.filter((pl.col("kind") == "h2d") & pl.col("purpose").is_null() & pl.col("step").is_not_null())
    of_step = pl.col("dur_ns").sum().over("step")
    large = others.filter(pl.col("dur_ns") >= SMALL * of_step).group_by("step").len()["len"].sort()
    placed = others.filter("at_edge")
    usual = USUAL * loop.starts.size
    if not large.len() or large[large.len() // 2] > FEW or placed["step"].n_unique() < usual:
        return nothing
    sizes = placed.filter(pl.col("bytes") >= BATCH_BYTES)["bytes"].unique().to_list()  # further batches have them too
    more = pl.col("row").is_in(others["row"].implode()) & pl.col("bytes").is_in(sizes)
    return pl.when(pl.col("row").is_in(placed["row"].implode()) | more).then(pl.lit("input"))
