"""Stages of the input pipeline that a framework's trace records, and the program's wait in each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from traceviz.analyses.derived.frames import bounds, codes, having, intervals, taken
from traceviz.analyses.derived.host.classes import host_classes
from traceviz.analyses.derived.judged_time import steady_time
from traceviz.analyses.derived.patterns import matching
from traceviz.analyses.derived.view import TraceView, once_per_trace
from traceviz.analyses.input.dataloader import DATALOADER, LABELS, loader_advice, loader_kind
from traceviz.analyses.input.stages import TF_DATA, Stage, summed
from traceviz.analyses.input.tfdata import MAPS, PYTHON_MAP, stage_advice, stage_path, take_advice, take_label
from traceviz.analyses.input.tfdata_tree import (
    ITERATES,
    LINK_KEYS,
    OTHER,
    PRODUCES,
    Forest,
    build_forest,
    role_of,
    waited_in,
)
from traceviz.core.arrays.intervals import IntervalSet
from traceviz.core.arrays.matching import Pairs, first_rows
from traceviz.core.arrays.nested import alike

PYTHON_CALL = r":(Eager)?PyFunc(Stateless)?$"
"""Operations in which TensorFlow calls back into Python."""

RECORDED_STAGE = "_ipl_stage_name"
"""Property by which a program names the stage of an input pipeline other than tf.data."""


def pipeline_stages(trace: TraceView) -> list[Stage]:
    """Return stages of tf.data and operations that take a batch, by path. :func:`range_stages` has NVTX ranges."""
    by_path: dict[tuple[str, str], list[Stage]] = {}
    for rank, steady in steady_time(trace).items():
        for stage in _stages_of(trace, rank, steady):
            by_path.setdefault((stage.path, stage.name), []).append(stage)
    stages = [summed(parts) for parts in by_path.values()]
    names = [stage.name for stage in stages]
    return [
        replace(stage, name=f"{stage.name} ({stage.path})") if stage.path and names.count(stage.name) > 1 else stage
        for stage in stages
    ]


@once_per_trace
def forest_of(trace: TraceView, rank: int) -> Forest:
    """Return the trees of iterators of a process."""
    takes = host_classes(trace)[rank].input_ops
    filed = having(trace.host_ops("pipeline", "input"), "process_id", rank).select(_OPERATION)
    others = takes.select(_OPERATION).with_columns(pl.col("name", "category").cast(pl.Categorical))
    own = pl.concat([filed, others.filter(~others["op_id"].is_in(filed["op_id"].implode()))])
    own = own.with_columns(pl.col("op_id").is_in(takes["op_id"].implode()).alias("takes"))
    own = own.with_columns(_roles(own)).filter(pl.col("role") != OTHER).drop("category", "takes")
    return build_forest(own, links_of(trace, own), takes)


_OPERATION = ("start_ns", "end_ns", "thread_id", "op_id", "name", "category")


def _roles(operations: pl.DataFrame) -> pl.Series:
    """Return the roles of operations, from their names and categories. Distinct ones are few."""
    takes = operations["takes"].cast(pl.Int32).to_numpy()
    group, first = alike(codes(operations["name"]), codes(operations["category"]), takes)
    distinct = operations.select(pl.all().gather(first)).with_columns(pl.col("name", "category").cast(pl.String))
    category = pl.when("takes").then(pl.lit("input")).otherwise(pl.col("category"))
    roles = distinct.select(role_of(pl.col("name"), category).alias("role")).to_series()
    return roles.gather(group)


def links_of(trace: TraceView, operations: pl.DataFrame) -> pl.DataFrame:
    """Return ``op_id, key, integer`` of properties that link iterators; none if no stage has its own thread."""
    columns = ("op_id", "key", "integer")
    if "op_args" not in trace.tables or not (operations["role"] == PRODUCES).any():
        return trace.frame("op_args", *columns).head(0)
    return (
        trace.tables.scan("op_args")
        .filter(pl.col("key").is_in(LINK_KEYS))
        .select(columns)
        .collect(engine=trace.tables.engine)
    )


def op_args(trace: TraceView, operations: pl.DataFrame, keys: tuple[str, ...]) -> pl.DataFrame:
    """Return the properties ``keys`` of ``operations``: ``op_id, key, integer, real, text``, texts as they are stored.

    The result also has the other columns of ``operations``.
    """
    columns, others = ("op_id", "key", "integer", "real", "text"), operations.drop("op_id")
    if "op_args" not in trace.tables or not operations.height:
        return trace.frame("op_args", *columns).head(0).hstack(others.head(0))
    recorded = trace.tables.scan("op_args").select(columns).filter(pl.col("key").is_in(keys))
    args = recorded.collect(engine=trace.tables.engine)
    owners = first_rows(_ids(args), _ids(operations))
    known = np.flatnonzero(owners >= 0)
    return taken(args, known).hstack(taken(others, owners[known]))


def _ids(rows: pl.DataFrame) -> Pairs:
    return Pairs(np.zeros(rows.height, np.int8), rows["op_id"].to_numpy())


def _stages_of(trace: TraceView, rank: int, steady: IntervalSet) -> list[Stage]:
    classes = host_classes(trace)[rank]
    waits = classes.sets["input_wait"].intersect(steady).subtract(intervals(classes.input_ranges))
    forest = forest_of(trace, rank)
    waited = waited_in(forest, waits)
    calls = forest.operations.with_columns(
        pl.Series("within", steady.overlap(*bounds(forest.operations))),
        (pl.col("end_ns") - pl.col("start_ns")).alias("dur_ns"),
    )
    by_name = calls.group_by("name", "role").agg(
        (pl.col("within") > 0).sum().alias("calls"),
        pl.col("within").sum().alias("total_ns"),
        pl.len().alias("capture_calls"),
        pl.col("dur_ns").sum().alias("capture_ns"),
    )
    rows = waited.join(by_name, on=["name", "role"]).sort("name", "role")
    named = op_args(trace, forest.operations[["op_id", "name"]], (RECORDED_STAGE,))
    labels = dict(named[["name", "text"]].drop_nulls().unique("name", keep="first").iter_rows())
    python = bool(matching(trace.host_names["name"], PYTHON_CALL).any())
    return [_stage(row, labels, python=python) for row in rows.iter_rows(named=True)]  # once per stage


def _stage(row: dict[str, Any], labels: dict[str, str], *, python: bool) -> Stage:
    name = str(row["name"])
    path = stage_path(name) if row["role"] == ITERATES else ()
    loader = loader_kind(name) if row["role"] != ITERATES else None
    if loader:
        label, kind, advice = LABELS[loader], DATALOADER, loader_advice(loader)
    elif row["role"] != ITERATES:
        label, kind, advice = labels.get(name, take_label(name)), "taking a batch", take_advice(name)
    else:
        label, kind, advice = path[-1] if path else "pipeline root", TF_DATA, stage_advice(path)
    if python and path and path[-1] in MAPS:
        advice = (PYTHON_MAP, *advice)
    return Stage(
        name=label,
        kind=kind,
        calls=row["calls"],
        total_ns=row["total_ns"],
        capture_calls=row["capture_calls"],
        capture_ns=row["capture_ns"],
        self_ns=row["self_ns"],
        inside="",
        advice=advice[0],
        further=advice[1:],
        path=" > ".join(reversed(path)),
    )
