"""Waits of the program by stage of a tf.data pipeline. Every nanosecond belongs to one stage.

Iterators call each other on one thread or, if a stage prefetches, across threads. The ids of the iterator and of the
element link the thread that *consumes* an element to the thread that *produces* it. A call waits for the deepest stage
that runs within it::

    program    |------- take the next batch -------|
    Prefetch     |----- consume ------------------|
    (thread 2)  produce  |----- Map ------------|
                            |-Source-|
    waits      |t|-Prefetch-|-Map-|-Source-|-Map--|P|t|

A stage that produced its element before the call started caused no wait.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from traceviz.analyses.derived.frames import having
from traceviz.analyses.input.tfdata import DEVICE_PREFETCH, ITERATOR, stage_path
from traceviz.core.arrays.intervals import Array, IntervalSet, nesting
from traceviz.core.arrays.nested import nesting_order

MAX_DEPTH = 100
"""Most stages inside one another; a deeper chain is damage."""

LINK_KEYS = ("id", "parent_id", "element_id")
"""Properties of operations that link iterators."""

ITERATES, PRODUCES, CONSUMES, TAKES, OTHER = range(5)
"""Roles of operations in the pipeline."""


@dataclass(frozen=True, slots=True)
class Forest:
    """Operations of a pipeline as trees.

    Args:
        operations: ``op_id, start_ns, end_ns, thread_id, name, role``, one row per operation.
        parent: Row of the operation that waits for each one, -1 for none.
        segments: Part ``(starts, ends)`` of each operation for which a call of the program waited; else empty.
        stage: Row of the operation that names the stage of each operation; -1 if no call waited.
    """

    operations: pl.DataFrame
    parent: Array
    segments: tuple[Array, Array]
    stage: Array


def role_of(names: pl.Expr, category: pl.Expr) -> pl.Expr:
    """Return roles of operations in the pipeline, from their names (text) and categories (text)."""
    return (
        pl.when(category == "input")
        .then(TAKES)
        .when(names.str.starts_with(ITERATOR))
        .then(ITERATES)
        .when(names.str.ends_with("Produce"))
        .then(PRODUCES)
        .when(names.str.ends_with("Consume"))
        .then(CONSUMES)
        .otherwise(OTHER)
    )


def build_forest(operations: pl.DataFrame, links: pl.DataFrame, takes: pl.DataFrame) -> Forest:
    """Build trees of iterators below the operations in which the program takes a batch.

    Args:
        operations: ``op_id, start_ns, end_ns, thread_id, name, role`` of one process; roles are those of
            :func:`role_of`, without :data:`OTHER`.
        links: ``op_id, key, integer`` of the properties :data:`LINK_KEYS`.
        takes: ``op_id`` of the operations in which the program itself waits for a batch.
    """
    columns = (operations[name].to_numpy() for name in ("thread_id", "start_ns", "end_ns", "op_id"))
    order = nesting_order(*columns)
    ordered = operations if order is None else operations[order]
    starts, ends = ordered["start_ns"].to_numpy(), ordered["end_ns"].to_numpy()
    _, nested = nesting(starts, ends, ordered["thread_id"].to_numpy())
    parent = _with_host_pipelines(ordered, _linked(ordered, nested, links))
    roots = ordered["op_id"].is_in(takes["op_id"].implode()).to_numpy() & (parent < 0)
    segments, stage = _waited(ordered, parent, roots)
    return Forest(ordered, parent, segments, stage)


def _ids(operations: pl.DataFrame, links: pl.DataFrame) -> pl.DataFrame:
    """Return the properties :data:`LINK_KEYS` of each operation as columns, null if it has none."""
    ids = operations[["op_id"]]
    for key in LINK_KEYS:
        values = having(links, "key", key).select("op_id", pl.col("integer").alias(key))
        ids = ids.join(values.unique("op_id", keep="first"), on="op_id", how="left", maintain_order="left")
    return ids


def _linked(operations: pl.DataFrame, nested: Array, links: pl.DataFrame) -> Array:
    """Return the parent of each operation: the one around it on its thread; for a producer, the consuming iterator."""
    if not (operations["role"] == PRODUCES).any():
        return nested
    ids = _ids(operations, links)
    columns = (pl.Series("around", nested), ids["id"], ids["parent_id"], ids["element_id"])
    numbered = operations[["role", "start_ns"]].with_row_index("row")
    frame = numbered.with_columns(pl.col("row").cast(pl.Int64), *columns)
    iterators = having(frame, "role", ITERATES)
    consumed = having(frame, "role", CONSUMES).join(
        iterators.select(pl.col("row").alias("around"), pl.col("id").alias("iterator")), on="around"
    )
    first_inside = iterators.sort("start_ns").unique("around", keep="first", maintain_order=True)
    produced = having(frame, "role", PRODUCES).join(
        first_inside.select(pl.col("around").alias("row"), pl.col("parent_id").alias("iterator")), on="row"
    )
    pairs = produced.drop_nulls(["iterator", "element_id"]).join(
        consumed.select(pl.col("around").alias("consumer"), "iterator", "element_id"), on=["iterator", "element_id"]
    )
    pairs = pairs.sort("row", "consumer").unique("row", keep="first", maintain_order=True)
    parent = nested.copy()
    parent[pairs["row"].to_numpy()] = pairs["consumer"].to_numpy()
    return parent


def _with_host_pipelines(operations: pl.DataFrame, parent: Array) -> Array:
    """Attach pipelines of the host to the device's prefetch during which they run.

    The trace does not link the two. Only their times show that one waits for the other.
    """
    names = operations["name"].unique().to_list()
    generators = [name for name in names if name.startswith(ITERATOR) and stage_path(name) == DEVICE_PREFETCH]
    rows = np.flatnonzero(operations["name"].is_in(generators).to_numpy())
    orphans = np.flatnonzero((parent < 0) & (operations["role"] == ITERATES).to_numpy())
    if not rows.size or not orphans.size:
        return parent
    starts, ends = operations["start_ns"].to_numpy(), operations["end_ns"].to_numpy()
    rows = rows[np.argsort(starts[rows], kind="stable")]
    before = np.searchsorted(starts[rows], starts[orphans], side="right") - 1
    around = rows[np.maximum(before, 0)]
    inside = (before >= 0) & (starts[orphans] < ends[around]) & (around != orphans)
    parent = parent.copy()
    parent[orphans[inside]] = around[inside]
    return parent


def _waited(operations: pl.DataFrame, parent: Array, roots: npt.NDArray[np.bool_]) -> tuple[tuple[Array, Array], Array]:
    """Return the part of each operation that ``roots`` waited for, level by level, and the stage of each operation."""
    count = parent.size
    starts, ends = operations["start_ns"].to_numpy(), operations["end_ns"].to_numpy()
    names_stage = np.isin(operations["role"].to_numpy(), (ITERATES, TAKES))
    begin, finish, stage = np.zeros(count, np.int64), np.zeros(count, np.int64), np.full(count, -1, np.int64)
    level = np.flatnonzero(roots)
    begin[level], finish[level] = _apart(np.zeros(level.size, np.int64), starts[level], ends[level])
    stage[level] = level
    children_of = np.argsort(parent, kind="stable")
    firsts = np.searchsorted(parent[children_of], np.arange(count + 1))
    for _ in range(MAX_DEPTH):  # once per depth of the pipeline, not per operation
        level = level[finish[level] > begin[level]]
        if not level.size:
            break
        children = children_of[_ranges(firsts[level], firsts[level + 1])]
        above = parent[children]
        first, last = np.maximum(starts[children], begin[above]), np.minimum(ends[children], finish[above])
        begin[children], finish[children] = _apart(above, first, last)
        stage[children] = np.where(names_stage[children], children, stage[above])
        level = children
    return (begin, np.maximum(begin, finish)), stage


def _ranges(firsts: Array, ends: Array) -> Array:
    """Return the numbers ``firsts[i] .. ends[i] - 1`` of all ``i``, one after the other."""
    sizes = ends - firsts
    offsets = np.cumsum(sizes) - sizes
    return np.asarray(np.arange(int(sizes.sum())) + np.repeat(firsts - offsets, sizes), dtype=np.int64)


def _apart(group: Array, starts: Array, ends: Array) -> tuple[Array, Array]:
    """Remove from the intervals what earlier ones of their ``group`` cover, so that none of a group overlap."""
    frame = pl.DataFrame({"group": group, "start": starts, "end": ends}).with_row_index("row")
    ordered = frame.sort("group", "start", "end", "row", descending=[False, False, True, False])
    reach = pl.col("end").cum_max().shift(1).over("group")
    cut = ordered.with_columns(pl.max_horizontal("start", reach).alias("start")).sort("row")
    return cut["start"].to_numpy(), cut["end"].to_numpy()


def waited_in(forest: Forest, waits: IntervalSet) -> pl.DataFrame:
    """Return nanoseconds of ``waits`` in each stage itself: ``name, role, self_ns``. They add up to the coverage."""
    begin, finish = forest.segments
    spent = waits.overlap(begin, finish)
    spent[forest.stage < 0] = 0
    inner = np.zeros(spent.size, dtype=np.int64)
    has_parent = (forest.parent >= 0) & (forest.stage >= 0)
    np.add.at(inner, forest.parent[has_parent], spent[has_parent])
    own = np.where(forest.stage >= 0, spent - inner, 0)
    reached = forest.stage >= 0
    by_stage = forest.operations[["name", "role"]][forest.stage[reached]]
    totals = by_stage.with_columns(pl.Series("self_ns", own[reached]))
    sums = totals.group_by("name", "role").agg(pl.col("self_ns").sum())
    return sums.sort("self_ns", "name", descending=[True, False])
