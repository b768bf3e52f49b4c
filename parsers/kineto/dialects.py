"""Translation of other profilers' traces in this format to PyTorch's names, the only ones that later code knows.

============  ========================================================================================================
PaddlePaddle  ``paddle.profiler``: durations within names (``conv2d[260.1 us]``), Python and C++ of a thread apart
MXNet         ``mxnet.profiler``: operators of the engine's threads, under one process per device
others        whose processes are lanes of devices and of the host: :mod:`traceviz.parsers.kineto.device_lanes`
============  ========================================================================================================
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import polars as pl

from traceviz.parsers.kineto.categories import HOST_NODE
from traceviz.parsers.kineto.device_lanes import lanes_of
from traceviz.parsers.kineto.raw import RawTrace

_PADDLE_THREAD = re.compile(r"\d+\((?:Python|C\+\+)\)")
_PADDLE_KINDS = {
    "profilestep": "user_annotation",
    "dataloader": "user_annotation",
    "forward": "user_annotation",
    "backward": "user_annotation",
    "optimization": "user_annotation",
    "pythonop": "user_annotation",
    "pythonuserdefined": "user_annotation",
    "operator": "cpu_op",
    "dygraphkernellaunch": "cpu_op",
    "communication": "cpu_op",
    "operatorinner": "",
    "userdefined": "",
    "cudaruntime": "cuda_runtime",
}
"""Category of Paddle's, in lower case -> PyTorch's name; the others have the same name."""

_PADDLE_NAMES = (
    (r"\[\d+(?:\.\d+)? [mu]s\]$", ""),
    (r"^ProfileStep#", "ProfilerStep#"),
    (r"^Gradient Backward$", "backward"),
    (r"^Optimization Step(?:_\d+)?$", "optimizer"),
    (r" dygraph$", ""),
    (r"^(\w+) kernel launch$", "phi::${1}"),
)
_EXACT = r"^(\d{1,12}(?:\.\d{1,6})?) us$"
_MICROSECOND = 1_000
_WELL_KNOWN_NS = 10**9
"""Limit of exact times: Paddle writes times within the capture as single floats, exact to 60 ns in the first second."""
_FLOAT_ERROR_NS = 60

_MXNET_ENGINE = ("DeleteVariable", "WaitForVar", "ResourceParallelRandomSetSeed", "ResourceParallelRandomSetState")
"""Internal work of MXNet's engine, in the form of operators."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """A profiler whose traces are translated.

    Args:
        producer: The profiler.
        framework: The framework.
        translate: Translates its trace to PyTorch's names.
    """

    producer: str
    framework: str
    translate: Callable[[RawTrace], RawTrace]


def dialect_of(raw: RawTrace) -> Dialect | None:
    """Return the dialect of a trace; ``None`` if it is PyTorch's own, or no framework's."""
    words = {
        column: set(raw.events[column].unique().drop_nulls().cast(pl.String)) if column in raw.events.columns else set()
        for column in ("tid", "category", "label")
    }
    if any(map(_PADDLE_THREAD.fullmatch, words["tid"])):
        return PADDLE
    if "MXNET_C_API" in words["category"] or "cpu pinned/" in words["label"]:
        return MXNET
    lanes = lanes_of(raw)
    return None if lanes is None else Dialect(lanes.producer, lanes.framework, lanes.translate)


def _from_paddle(raw: RawTrace) -> RawTrace:
    name = pl.col("name").cast(pl.String)
    for pattern, instead in _PADDLE_NAMES:
        name = name.str.replace(pattern, instead)
    tid = pl.col("tid").cast(pl.String).str.replace(r"\((?:Python|C\+\+)\)$", "")
    kind = pl.col("category").cast(pl.String).str.to_lowercase().replace(_PADDLE_KINDS)
    columns = {"name": name, "tid": tid, "category": kind}
    translated = raw.events.with_columns(column.cast(pl.Categorical).alias(key) for key, column in columns.items())
    return replace(raw, events=_with_exact_times(translated))


def _with_exact_times(events: pl.DataFrame) -> pl.DataFrame:
    """Return events with starts to the nanosecond, if the file states them.

    In whole microseconds, events would end after the events that enclose them.
    """
    if "exact_start" not in events.columns:
        return events
    exact = pl.col("exact_start").cast(pl.String).str.extract(_EXACT).cast(pl.Float64) * 1_000
    timed = events.with_columns(exact.round().cast(pl.Int64).alias("exact"))
    early = pl.col("exact") < _WELL_KNOWN_NS
    anchor = timed.select((pl.col("start_ns") - pl.col("exact")).filter(early).max()).item()
    if anchor is None:
        return events
    start = pl.col("exact") + anchor
    # The start of the anchor and this one each have the error of a float
    agrees = (start - pl.col("start_ns")).is_between(0, _MICROSECOND - 1 + 2 * _FLOAT_ERROR_NS)
    return timed.with_columns(pl.when(agrees).then(start).otherwise("start_ns").alias("start_ns")).drop("exact")


def _from_mxnet(raw: RawTrace) -> RawTrace:
    """Put the operators of all devices into one process, and mark the engine's internal work as the framework's."""
    is_name = pl.col("phase").cast(pl.String) == "M"
    engine = pl.col("name").cast(pl.String).is_in(_MXNET_ENGINE)
    kind = pl.when(engine).then(pl.lit("")).otherwise(pl.col("category").cast(pl.String))
    events = raw.events.filter(~is_name).with_columns(
        kind.cast(pl.Categorical).alias("category"), pl.lit("0").cast(pl.Categorical).alias("pid")
    )
    return replace(raw, events=events)


def with_host_nodes(raw: RawTrace) -> RawTrace:
    """Move callbacks of CUDA graphs from the stream that shows them to the thread that ran them."""
    events = raw.events
    if not {"host_process", "host_thread"} <= set(events.columns):
        return raw
    moved = (pl.col("category").cast(pl.String) == HOST_NODE) & pl.col("host_process").is_not_null()
    places = [
        pl.when(moved)
        .then(pl.col(column).cast(pl.String))
        .otherwise(pl.col(shown).cast(pl.String))
        .cast(pl.Categorical)
        .alias(shown)
        for shown, column in (("pid", "host_process"), ("tid", "host_thread"))
    ]
    return replace(raw, events=events.with_columns(places).drop("host_process", "host_thread"))


_VIZTRACER_FRAME = r"^(.+) \((?:.*/(?:site-packages|dist-packages|venv)/)?(.+):(\d+)\)$"
_TAKES_BATCH = (
    r"^__next__ \(.*torch/utils/data/dataloader\.py:\d+\)$",
    r"^_next_data \(.*torch/utils/data/dataloader\.py:\d+\)$",
)
"""Functions in which PyTorch's DataLoader gives the next batch; the first contains the second."""
_NEXT_BATCH = "enumerate(DataLoader)#_BaseDataLoaderIter.__next__"


def with_python_frames(raw: RawTrace) -> RawTrace:
    """Give VizTracer's functions the names of PyTorch's frames: ``load (/site-packages/a.py:3)``: ``a.py(3): load``.

    PyTorch marks the next batch of a DataLoader with a range, so the function that gives it becomes this range.
    """
    words = raw.events["category"].unique().drop_nulls().cast(pl.String)
    if not words.str.to_lowercase().is_in(["fee"]).any():
        return raw
    kind, name = pl.col("category").cast(pl.String), pl.col("name").cast(pl.String)
    is_frame = kind.str.to_lowercase() == "fee"
    names = raw.events["name"].unique().drop_nulls().cast(pl.String)
    takes = next((pattern for pattern in _TAKES_BATCH if names.str.contains(pattern).any()), _TAKES_BATCH[0])
    is_batch = is_frame & name.str.contains(takes)
    frame = pl.when(is_frame).then(name.str.replace(_VIZTRACER_FRAME, "${2}(${3}): ${1}")).otherwise(name)
    columns = {
        "name": pl.when(is_batch).then(pl.lit(_NEXT_BATCH)).otherwise(frame),
        "category": pl.when(is_batch).then(pl.lit("user_annotation")).otherwise(kind),
    }
    translated = raw.events.with_columns(column.cast(pl.Categorical).alias(key) for key, column in columns.items())
    return replace(raw, events=translated)


PADDLE = Dialect("PaddlePaddle profiler", "PaddlePaddle", _from_paddle)
MXNET = Dialect("MXNet profiler", "MXNet", _from_mxnet)
