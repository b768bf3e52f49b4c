"""Nested calls of threads as trees of names, with inclusive host time and the time of launched device work."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl

from traceviz.analyses.derived.calls.call_tree import CallTree
from traceviz.analyses.derived.launch.join import with_origins, work_with_calls
from traceviz.analyses.derived.view import TraceView, once_per_trace
from traceviz.core.arrays.intervals import Array
from traceviz.core.arrays.nested import Codes, Mask, Rows, alike
from traceviz.core.sanitize import bounded
from traceviz.pictures.flame.division import OUTSIDE, Division, Spans
from traceviz.pictures.flame.folding import OTHER, Bounds, Folded, accumulated, folded, levels
from traceviz.pictures.flame.texts import (
    OTHER_THREADS,
    TRAINING_THREAD,
    kernel_family,
    kernel_name,
    operation_family,
    operation_name,
    thread_labels,
)
from traceviz.report.pictures.values import Flame

Measure = Literal["host", "device", "samples"]


@dataclass(frozen=True, slots=True)
class Label:
    """A node's label: its name, the key of its colour, and its place in the source code.

    A node with a ``group`` lies in a node of that name. Groups collect operators of one type, which can have hundreds
    of names.
    """

    name: str
    family: str
    place: str = ""
    group: str = ""


THREAD = "thread"
"""Family of the outermost nodes: threads, and other owners of work."""
TRAINING = Label(TRAINING_THREAD, THREAD)


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """Names by the path of the names around them, before their times are known.

    Args:
        parents: Node around each; -1 for none.
        codes: Row of ``labels`` of each.
        labels: Labels of nodes.
    """

    parents: Array
    codes: Array
    labels: tuple[Label, ...]

    @property
    def size(self) -> int:
        """Number of nodes."""
        return int(self.parents.size)

    @property
    def training(self) -> Array:
        """The node of the training thread, which is drawn first; empty if there is none."""
        code = next((row for row, label in enumerate(self.labels) if label == TRAINING), None)
        return np.flatnonzero((self.parents < 0) & (self.codes == code)) if code is not None else self.parents[:0]

    def with_inside(self, around: Array, codes: Array, labels: tuple[Label, ...]) -> tuple[Tree, Array]:
        """Add nodes, given the node around each and their label; return the tree and the node of each row."""
        group, first = alike(_narrow(around), _narrow(codes))
        tree = Tree(
            np.concatenate([self.parents, around[first]]),
            np.concatenate([self.codes, len(self.labels) + codes[first]]),
            (*self.labels, *labels),
        )
        return tree, self.size + group.astype(np.int64)


@dataclass(frozen=True, slots=True)
class Title:
    """The identity of a flame graph: its key, its label, and whose time it shows."""

    key: str
    label: str
    measure: Measure


@dataclass(frozen=True, slots=True, eq=False)
class Called:
    """Calls of one kind.

    Args:
        tree: The calls and their nesting; with ``thread_id`` and ``process_id``.
        codes: Row of ``labels`` of each call.
        labels: Labels of calls.
        launches: True for calls that launch work and are not shown around it: calls of the device's API.
        is_by_thread: True if threads are the outermost nodes.
    """

    tree: CallTree
    codes: Codes
    labels: tuple[Label, ...]
    launches: Mask | None = None
    is_by_thread: bool = True

    def contexts(self, trace: TraceView) -> tuple[Tree, Array]:
        """Return the tree of names, and the node of each call."""
        threads, names = threads_of(trace, self.tree.calls["thread_id"])
        if not self.is_by_thread:
            threads, names = np.zeros(threads.size, np.int32), ()
        kinds, shift = len(self.labels), len(names)
        outer = self.tree.parent < 0
        found = self.tree.contexts(_narrow(np.where(outer, self.codes + kinds * threads, self.codes)))
        top = threads[found.first].astype(np.int64) if shift else np.full(found.first.size, -1)
        parents = np.where(found.parent >= 0, shift + found.parent.astype(np.int64), top)
        tree = Tree(
            np.concatenate([np.full(shift, -1, np.int64), parents]),
            np.concatenate([kinds + np.arange(shift), self.codes[found.first].astype(np.int64)]),
            (*self.labels, *(Label(name, THREAD) for name in names)),
        )
        return _grouped(tree), shift + found.of_call.astype(np.int64)

    def ends(self) -> Array:
        """Return the end of each call, limited to the end of the call around it."""
        if self.tree.nests:
            return self.tree.ends
        ends = self.tree.ends.copy()
        for rows in levels(self.tree.parent)[1:]:
            ends[rows] = np.maximum(np.minimum(ends[rows], ends[self.tree.parent[rows]]), self.tree.starts[rows])
        return ends


def host_flame(trace: TraceView, called: Called, title: Title, time: Division, bounds: Bounds) -> Flame | None:
    """Draw inclusive time of calls on their threads; ``None`` if there is none."""
    tree, node = called.contexts(trace)
    time = time.within_host()
    processes = called.tree.calls["process_id"].to_numpy().astype(np.int64)
    spans = Spans(processes, called.tree.starts, called.ends())
    totals = np.zeros(tree.size, np.int64)
    np.add.at(totals, node, _lengths(time, spans))
    sums = np.bincount(node, minlength=tree.size) == 0  # threads and groups, which are not calls
    kept = folded(tree.parents, _summed(tree.parents, totals, sums), bounds, tree.training)
    # Children of a sum that is too small to draw belong to the node that represents it.
    found = kept.whole.copy()
    for rows in levels(tree.parents)[1:]:
        alone = rows[(found[rows] < 0) & sums[tree.parents[rows]]]
        found[alone] = found[tree.parents[alone]]
    owners = found[node]
    times = _divided(time, spans, owners, kept.count)
    is_sum = (kept.sources >= 0) & sums[kept.sources]
    times[is_sum] = 0
    times = _summed(kept.parents, times, is_sum)
    return drawn(title, time, tree, kept, times)


def _summed(parents: Array, values: Array, sums: Mask) -> Array:
    """Fill the values of nodes that are sums with the values of their children."""
    total = values.copy()
    for rows in reversed(levels(parents)[1:]):
        inside = rows[sums[parents[rows]]]
        np.add.at(total, parents[inside], total[inside])
    return total


def owned_flame(  # noqa: PLR0917 (columns)
    tree: Tree, node: Array, spans: Spans, title: Title, time: Division, bounds: Bounds
) -> Flame | None:
    """Draw the time of intervals by the node that owns each and by all nodes around it; -1 for no owner.

    Device work counts in full. Other work counts for its part within counted time.
    """
    time = replace(time, host=None) if title.measure == "device" else time.within_host()
    known = node >= 0
    own = np.zeros(tree.size, np.int64)
    np.add.at(own, node[known], _lengths(time, spans)[known])
    kept = folded(tree.parents, accumulated(tree.parents, own), bounds, tree.training)
    owners = np.where(known, np.append(kept.own, -1)[node], -1)
    times = accumulated(kept.parents, _divided(time, spans, owners, kept.count))
    return drawn(title, time, tree, kept, times)


def _lengths(time: Division, spans: Spans) -> Array:
    """Return the nanoseconds of each interval that count."""
    return spans.ends - spans.starts if time.host is None else time.covered(spans)


def _divided(time: Division, spans: Spans, owners: Array, count: int) -> Array:
    """Return nanoseconds by owner and class; the last column holds time in no class."""
    times = time.times(spans, _narrow(owners), count)
    return np.concatenate([times, time.outside(spans, owners, times)[:, None]], axis=1)


def _grouped(tree: Tree) -> Tree:
    """Put nodes of one group in the same parent into a node of that group."""
    names = [label.group for label in tree.labels]
    groups = tuple(dict.fromkeys(filter(None, names)))
    if not groups:
        return tree
    number = {name: code for code, name in enumerate(groups)}
    of_label = np.array([number.get(name, -1) for name in names], np.int64)
    families = {label.group: label.family for label in reversed(tree.labels)}
    rows = np.flatnonzero(of_label[tree.codes] >= 0)
    grown, inner = tree.with_inside(
        tree.parents[rows], of_label[tree.codes[rows]], tuple(Label(name, families[name]) for name in groups)
    )
    parents = grown.parents.copy()
    parents[rows] = inner
    return Tree(parents, grown.codes, grown.labels)


def drawn(title: Title, time: Division, tree: Tree, kept: Folded, times: Array) -> Flame | None:
    """Draw the nodes that stay, with the classes in which they have time; the last column is time in no class."""
    top = kept.parents < 0
    used = np.flatnonzero(times[top].sum(axis=0))
    if not kept.count or not used.size:
        return None
    keys = [*((part.key, part.label) for part in time.parts), OUTSIDE]
    labels = [tree.labels[tree.codes[source]] if source >= 0 else Label(OTHER, "other") for source in kept.sources]
    return Flame(
        key=title.key,
        label=title.label,
        measure=title.measure,
        whole=time.whole,
        parents=kept.parents,
        names=tuple(bounded(label.name) for label in labels),
        families=tuple(label.family for label in labels),
        classes=tuple(keys[column] for column in used),
        times=np.ascontiguousarray(times[:, used]),
        places=tuple(bounded(label.place) for label in labels),
        steps=time.steps,
    )


@once_per_trace
def device_work(trace: TraceView) -> pl.DataFrame:
    """Return all device work with its call, where its node was made, and its ``leaf`` name and ``family``."""
    work = with_origins(trace, work_with_calls(trace))
    names = work["kernel"].unique().drop_nulls().cast(pl.String).to_list()
    leaves = {name: kernel_name(name) for name in names}
    families = {name: kernel_family(trace.kernel_classes[name].family) for name in names}
    kernel = pl.col("kernel").cast(pl.String)
    other = (
        pl.when(pl.col("by_graph") & pl.col("graph_node_id").is_null()).then(pl.lit(_GRAPH)).otherwise(pl.lit(_COPY))
    )
    return work.with_columns(
        pl.coalesce(kernel.replace_strict(leaves, default=None, return_dtype=pl.String), other).alias("leaf"),
        kernel.replace_strict(families, default="copy", return_dtype=pl.String).alias("family"),
    )


_GRAPH, _COPY = "CUDA graph", "copy or fill"
_NO_CALL, _BY_NAME = "launched by an unknown call", "device work by operator"
_MOST_SCOPES = 64


def device_flame(trace: TraceView, called: Called, title: Title, time: Division, bounds: Bounds) -> Flame | None:
    """Draw device work by the innermost call that launched it, or that made its node in a graph.

    The work itself is the innermost node. Work without a known call belongs to the operator that it names, by its
    scopes.
    """
    work = device_work(trace)
    if not work.height:
        return None
    base, node = called.contexts(trace)
    launched = called.tree.around_known(work, "thread_id", "call_ns")
    made = called.tree.around_known(work, "made_thread_id", "made_ns")
    row = np.where(made >= 0, made, launched)
    if called.launches is not None:
        shown = np.append(called.tree.nearest(~called.launches), -1)
        row = shown[row]
    tree, place = _placed(trace, work, base, np.where(row >= 0, np.append(node, -1)[row], -1))
    labels, codes = _leaves(work)
    tree, leaf = tree.with_inside(place, codes, labels)
    processes = work["process_id"].to_numpy().astype(np.int64)
    begins, ends = work["begin_ns"].to_numpy(), work["end_ns"].to_numpy()
    return owned_flame(
        tree, np.where(counted(time, work), leaf, -1), Spans(processes, begins, ends), title, time, bounds
    )


def counted(time: Division, work: pl.DataFrame) -> Mask:
    """Return a mask of device work launched in counted time; if the launch is unknown, use the work's start."""
    processes = work["process_id"].to_numpy().astype(np.int64)
    return np.where(
        work["call_ns"].is_not_null().to_numpy(),
        time.begins_of_host(processes, work["call_ns"].fill_null(0).to_numpy()),
        time.begins_of_device(processes, work["begin_ns"].to_numpy()),
    )


def _placed(trace: TraceView, work: pl.DataFrame, base: Tree, node: Array) -> tuple[Tree, Array]:
    """Add nodes for work outside any call: by its thread, by its operator, or for an unknown call."""
    threads, names = threads_of(trace, work["thread_id"])
    has_thread = (node < 0) & work["thread_id"].is_not_null().to_numpy()
    tree, node = _at_top(base, node, has_thread, threads.astype(np.int64), tuple(Label(name, THREAD) for name in names))
    ops = work["op"].cast(pl.String)
    named = (node < 0) & ops.is_not_null().to_numpy()
    nothing = (node < 0) & ~named
    tree, node = _at_top(tree, node, nothing, np.zeros(node.size, np.int64), (Label(_NO_CALL, THREAD),))
    if not named.any():
        return tree, node
    distinct = ops.filter(pl.Series(named)).unique(maintain_order=True)
    grown, places = _scopes(tree, distinct.to_list())
    of_text = dict(zip(distinct.to_list(), places, strict=True))
    found = ops.replace_strict(of_text, default=-1, return_dtype=pl.Int64).fill_null(-1).to_numpy()
    return grown, np.where(named, found, node)


def _at_top(tree: Tree, node: Array, chosen: Mask, codes: Array, labels: tuple[Label, ...]) -> tuple[Tree, Array]:
    """Put ``chosen`` work into outermost nodes by ``codes``; reuse outermost nodes of the same name."""
    if not chosen.any():
        return tree, node
    top = np.flatnonzero(tree.parents < 0)
    known = {tree.labels[tree.codes[place]].name: int(place) for place in top}
    places = np.full(len(labels), -1, np.int64)
    parents, own = [tree.parents], [tree.codes]
    for code in np.unique(codes[chosen]).tolist():
        places[code] = known.get(labels[code].name, tree.size + len(parents) - 1)
        if places[code] >= tree.size:
            parents.append(np.array([-1]))
            own.append(np.array([len(tree.labels) + code]))
    grown = Tree(np.concatenate(parents), np.concatenate(own), (*tree.labels, *labels))
    return grown, np.where(chosen, places[np.where(chosen, codes, 0)], node)


def _scopes(tree: Tree, texts: list[str]) -> tuple[Tree, list[int]]:
    """Add nodes for operators by the scopes in their names, ``model/dense/MatMul``; return the node of each."""
    root = tree.size
    paths: dict[tuple[int, str], int] = {}
    parents, labels, places = [-1], [Label(_BY_NAME, THREAD)], []
    for text in texts:  # distinct operators, so only a few
        node = root
        parts = operation_name(text, "op").split("/")
        parts = (
            [*parts[: _MOST_SCOPES - 1], "/".join(parts[_MOST_SCOPES - 1 :])] if len(parts) > _MOST_SCOPES else parts
        )
        for level, part in enumerate(parts):
            key = node, part
            if key not in paths:
                paths[key] = root + len(parents)
                parents.append(node)
                is_last = level == len(parts) - 1
                labels.append(Label(part, operation_family(part, "op") if is_last else "range"))
            node = paths[key]
        places.append(node)
    codes = len(tree.labels) + np.arange(len(labels))
    grown = Tree(
        np.concatenate([tree.parents, np.array(parents)]), np.concatenate([tree.codes, codes]), (*tree.labels, *labels)
    )
    return grown, places


def _leaves(work: pl.DataFrame) -> tuple[tuple[Label, ...], Array]:
    """Return the distinct labels of device work, and the row of each piece of work."""
    distinct = work.select("leaf", "family").unique(maintain_order=True)
    labels = tuple(Label(leaf, family) for leaf, family in distinct.iter_rows())
    number = {label: row for row, label in reversed(list(enumerate(distinct["leaf"].to_list())))}
    return labels, work["leaf"].replace_strict(number, return_dtype=pl.Int64).to_numpy()


def threads_of(trace: TraceView, threads: pl.Series) -> tuple[Codes, tuple[str, ...]]:
    """Return the row of each thread's label, and the labels; an unknown thread gets :data:`OTHER_THREADS`."""
    known = thread_labels(trace)
    names = list(dict.fromkeys([*known["label"].to_list(), OTHER_THREADS]))
    number = {name: row for row, name in enumerate(names)}
    of_thread = {thread: number[label] for thread, label in known.iter_rows()}
    found = threads.cast(pl.Int64).replace_strict(of_thread, default=number[OTHER_THREADS], return_dtype=pl.Int32)
    return found.fill_null(number[OTHER_THREADS]).to_numpy(), tuple(names)


def _narrow(rows: Rows) -> Codes:
    return np.ascontiguousarray(rows, np.int32)
