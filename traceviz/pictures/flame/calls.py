"""Calls that nest on their threads as trees of names: inclusive time on the host, and of the device work launched."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl

from traceviz.analyses.derived.calls.call_tree import CallTree
from traceviz.analyses.derived.launch.graphs import with_origins
from traceviz.analyses.derived.launch.join import work_with_calls
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
from traceviz.report.pictures.flame import Flame

Measure = Literal["host", "device", "samples"]


@dataclass(frozen=True, slots=True)
class Label:
    """What a node says: its name, the key of its colour, and where it is written.

    Nodes with a ``group`` lie in a node of that name: operators of one type, which have names by the hundred.
    """

    name: str
    family: str
    place: str = ""
    group: str = ""


THREAD = "thread"
"""Family of the outermost nodes: threads, and what else work belongs to."""
TRAINING = Label(TRAINING_THREAD, THREAD)


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """Names by the path of those around them, before their times are known.

    Args:
        parents: Node around each; -1 for none.
        codes: Row of ``labels`` of each.
        labels: What nodes say.
    """

    parents: Array
    codes: Array
    labels: tuple[Label, ...]

    @property
    def size(self) -> int:
        """Nodes."""
        return int(self.parents.size)

    @property
    def training(self) -> Array:
        """The node of the thread that trains, which is drawn first; empty where there is none."""
        code = next((row for row, label in enumerate(self.labels) if label == TRAINING), None)
        return np.flatnonzero((self.parents < 0) & (self.codes == code)) if code is not None else self.parents[:0]

    def with_inside(self, around: Array, codes: Array, labels: tuple[Label, ...]) -> tuple[Tree, Array]:
        """The tree with further nodes, by the node around each and their label; and the node of each row."""
        group, first = alike(_narrow(around), _narrow(codes))
        tree = Tree(
            np.concatenate([self.parents, around[first]]),
            np.concatenate([self.codes, len(self.labels) + codes[first]]),
            (*self.labels, *labels),
        )
        return tree, self.size + group.astype(np.int64)


@dataclass(frozen=True, slots=True)
class Title:
    """What a flame graph is called: its key, what is in it, and whose time it shows."""

    key: str
    label: str
    measure: Measure


@dataclass(frozen=True, slots=True, eq=False)
class Called:
    """Calls of one kind.

    Args:
        tree: The calls and their nesting; with ``thread_id`` and ``process_id``.
        codes: Row of ``labels`` of each call.
        labels: What calls are called.
        launches: Which calls launch work and are not shown around it: calls of the device's API.
        is_by_thread: Whether threads are the outermost nodes.
    """

    tree: CallTree
    codes: Codes
    labels: tuple[Label, ...]
    launches: Mask | None = None
    is_by_thread: bool = True

    def contexts(self, trace: TraceView) -> tuple[Tree, Array]:
        """The tree of names, and the node of each call."""
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
        """End of each call, none later than that of the call around it."""
        if self.tree.nests:
            return self.tree.ends
        ends = self.tree.ends.copy()
        for rows in levels(self.tree.parent)[1:]:
            ends[rows] = np.maximum(np.minimum(ends[rows], ends[self.tree.parent[rows]]), self.tree.starts[rows])
        return ends


def host_flame(trace: TraceView, called: Called, title: Title, time: Division, bounds: Bounds) -> Flame | None:
    """Inclusive time of calls on their threads; ``None`` where there is none."""
    tree, node = called.contexts(trace)
    time = time.within_host()
    processes = called.tree.calls["process_id"].to_numpy().astype(np.int64)
    spans = Spans(processes, called.tree.starts, called.ends())
    totals = np.zeros(tree.size, np.int64)
    np.add.at(totals, node, _lengths(time, spans))
    sums = np.bincount(node, minlength=tree.size) == 0  # threads and groups, which are no calls
    kept = folded(tree.parents, _summed(tree.parents, totals, sums), bounds, tree.training)
    owners = _whole(tree.parents, kept.whole, sums)[node]
    times = _divided(time, spans, owners, kept.count)
    is_sum = (kept.sources >= 0) & sums[kept.sources]
    times[is_sum] = 0
    times = _summed(kept.parents, times, is_sum)
    return drawn(title, time, tree, kept, times)


def _summed(parents: Array, values: Array, sums: Mask) -> Array:
    """``values`` of nodes, with those of all children in place of nothing where a node is a sum."""
    total = values.copy()
    for rows in reversed(levels(parents)[1:]):
        inside = rows[sums[parents[rows]]]
        np.add.at(total, parents[inside], total[inside])
    return total


def _whole(parents: Array, whole: Array, sums: Mask) -> Array:
    """:attr:`Folded.whole`, where what is in a sum that is too small to be drawn belongs to where the sum does."""
    found = whole.copy()
    for rows in levels(parents)[1:]:
        alone = rows[(found[rows] < 0) & sums[parents[rows]]]
        found[alone] = found[parents[alone]]
    return found


def owned_flame(  # noqa: PLR0917 (columns)
    tree: Tree, node: Array, spans: Spans, title: Title, time: Division, bounds: Bounds
) -> Flame | None:
    """Time of stretches by the node that each belongs to and by all around it; -1 belongs to none.

    Work of devices counts as a whole; of others, what lies in time that counts.
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
    """Nanoseconds of each stretch that count."""
    return spans.ends - spans.starts if time.host is None else time.covered(spans)


def _divided(time: Division, spans: Spans, owners: Array, count: int) -> Array:
    """Nanoseconds of each owner in each class, and in the last column in none."""
    times = time.times(spans, _narrow(owners), count)
    return np.concatenate([times, time.outside(spans, owners, times)[:, None]], axis=1)


def _grouped(tree: Tree) -> Tree:
    """The tree with a node around those that have a group and are in the same node."""
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
    """The graph of the nodes that stay, with the classes in which they have time; the last column is of none."""
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
    """All device work with its call and where its node was made, and ``leaf`` and ``family``: what the work is."""
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
    """Device work by the innermost call that launched it, or that made its node in a graph; the work is innermost.

    Work without a known call belongs to the operator that it names, by its scopes.
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
    """Which device work counts: what was launched in time that counts; where that is not known, what begins in it."""
    processes = work["process_id"].to_numpy().astype(np.int64)
    return np.where(
        work["call_ns"].is_not_null().to_numpy(),
        time.begins_of_host(processes, work["call_ns"].fill_null(0).to_numpy()),
        time.begins_of_device(processes, work["begin_ns"].to_numpy()),
    )


def _placed(trace: TraceView, work: pl.DataFrame, base: Tree, node: Array) -> tuple[Tree, Array]:
    """The tree with nodes for work that lies in no call: by its thread, by its operator, or of nothing known."""
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
    """Put ``chosen`` work into outermost nodes by ``codes``, into those that are there where they say the same."""
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
    """Nodes for operators by the scopes in their names, ``model/dense/MatMul``, and the node of each."""
    root = tree.size
    paths: dict[tuple[int, str], int] = {}
    parents, labels, places = [-1], [Label(_BY_NAME, THREAD)], []
    for text in texts:  # distinct operators, of which there are few
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
    """What device work is called, and the row of each."""
    distinct = work.select("leaf", "family").unique(maintain_order=True)
    labels = tuple(Label(leaf, family) for leaf, family in distinct.iter_rows())
    number = {label: row for row, label in reversed(list(enumerate(distinct["leaf"].to_list())))}
    return labels, work["leaf"].replace_strict(number, return_dtype=pl.Int64).to_numpy()


def threads_of(trace: TraceView, threads: pl.Series) -> tuple[Codes, tuple[str, ...]]:
    """For each thread the row of its label, and the labels; a thread that is not known is one of the others."""
    known = thread_labels(trace)
    names = list(dict.fromkeys([*known["label"].to_list(), OTHER_THREADS]))
    number = {name: row for row, name in enumerate(names)}
    of_thread = {thread: number[label] for thread, label in known.iter_rows()}
    found = threads.cast(pl.Int64).replace_strict(of_thread, default=number[OTHER_THREADS], return_dtype=pl.Int32)
    return found.fill_null(number[OTHER_THREADS]).to_numpy(), tuple(names)


def _narrow(rows: Rows) -> Codes:
    return np.ascontiguousarray(rows, np.int32)
