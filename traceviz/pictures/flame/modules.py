"""Parts of a PyTorch program, as in the section ``modules``: forward work, with backward work inside each part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from traceviz.analyses.derived.calls.call_tree import CallTree, innermost
from traceviz.analyses.derived.calls.host_calls import calls_named
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.program.autograd import backward_links
from traceviz.analyses.program.module_paths import MADE, PartNames, named_work, part_names
from traceviz.analyses.program.operator_calls import OperatorCalls, of_pytorch, operator_calls
from traceviz.core.arrays.intervals import Array
from traceviz.core.arrays.nested import Mask
from traceviz.core.sanitize import bounded
from traceviz.pictures.flame.calls import Called, Label, Title, Tree, counted, host_flame, owned_flame
from traceviz.pictures.flame.division import Division, Spans
from traceviz.pictures.flame.folding import Bounds
from traceviz.pictures.flame.texts import without_numbers
from traceviz.report.pictures.values import Flame

BACKWARD = Label("(backward)", "backward")
"""Node inside a part for its work of the backward pass."""
_HOST = Title("modules-host", "Modules, host time", "host")
_DEVICE = Title("modules-device", "Modules, device time", "device")


def module_flames(trace: TraceView, time: Division, bounds: Bounds) -> Iterator[Flame | None]:
    """Draw modules (or ranges of the program) on the host, and forward and backward work on the device."""
    names = part_names(trace) if of_pytorch(trace) else None
    if names is None:
        return
    operators, work = operator_calls(trace), named_work(trace)
    if names.source == "module hierarchy":
        tree, of_operator = _stated(names, operators)
        segments = innermost(operators.tree)
        processes = operators.tree.calls["process_id"].to_numpy().astype(np.int64)[segments.owner]
        spans = Spans(processes, segments.starts, segments.ends)
        yield owned_flame(tree, of_operator[segments.owner], spans, _HOST, time, bounds)  # self time of operators
        yield _device(tree, _by_hierarchy(trace, operators, work, of_operator), work, time, bounds)
        return
    called = _called(trace, names)
    if called.tree.calls.height:
        yield host_flame(trace, called, _HOST, time, bounds)
    tree, node = called.contexts(trace)
    # Calls that name parts own the work, as in :func:`traceviz.analyses.program.module_paths.named_parts`.
    launched, made = called.tree.around_known(work, "thread_id", "call_ns"), called.tree.around_known(work, *MADE)
    of_part = (made < 0) & work["named"].is_not_null().to_numpy()
    row = np.where(made >= 0, made, launched)
    known = np.append(node, -1)
    nested = operators.tree
    around = called.tree.around(nested.calls["thread_id"].to_numpy(), nested.starts)
    by_node = nested.around_known(work, *MADE)
    caller = np.where(by_node >= 0, by_node, nested.around_known(work, "thread_id", "call_ns"))
    backward = _forward_of(trace, operators, np.where((row < 0) & ~of_part, caller, -1))
    owners = _Owners(known[row], known[np.append(around, -1)[backward]], of_part)
    yield _device(tree, owners, work, time, bounds)


def _called(trace: TraceView, names: PartNames) -> Called:
    """Return the calls of the parts. Ranges that differ only in a running number are one part; modules are not."""
    of_ranges = names.source == "ranges"
    parts = {name: without_numbers(name) if of_ranges else bounded(name) for name in names.calls["part"].unique()}
    distinct = list(dict.fromkeys(parts.values()))
    number = {text: code for code, text in enumerate(distinct)}
    codes = {name: number[text] for name, text in parts.items()}
    code = names.calls["part"].replace_strict(codes, default=0, return_dtype=pl.Int32).alias("code")
    tree = CallTree.of(calls_named(trace, names.calls.with_columns(code)), ("thread_id", "process_id", "code"))
    family = "range" if of_ranges else "module"
    labels = tuple(Label(text, family) for text in distinct)
    return Called(tree, np.ascontiguousarray(tree.calls["code"].to_numpy(), np.int32), labels, is_by_thread=False)


@dataclass(frozen=True, slots=True, eq=False)
class _Owners:
    """The owner of each piece of device work.

    Args:
        node: The node of its part; -1 for none. For a part of a graph, the node that launched the graph.
        backward: The node of the part whose gradient it computes; -1 for none.
        of_part: True if the program names its part of a graph.
    """

    node: Array
    backward: Array
    of_part: Mask


def _by_hierarchy(trace: TraceView, operators: OperatorCalls, work: pl.DataFrame, of_operator: Array) -> _Owners:
    """Find owners by operators that state their part; others count as backward if they are linked to a part."""
    nested = operators.tree
    made = nested.around_known(work, *MADE)
    of_part = (made < 0) & work["named"].is_not_null().to_numpy()
    row = np.where(made >= 0, made, np.where(of_part, -1, nested.around_known(work, "thread_id", "call_ns")))
    known = np.append(of_operator, -1)
    node = known[row]
    backward = _forward_of(trace, operators, np.where(node < 0, row, -1))
    return _Owners(node, known[backward], of_part)


def _forward_of(trace: TraceView, operators: OperatorCalls, row: Array) -> Array:
    """Return, for each operator (rows; -1 for none), the forward operator of its gradient; -1 for none."""
    backward, forward = backward_links(trace, operators)
    is_linked = np.zeros(operators.tree.calls.height, np.bool_)
    is_linked[backward] = True
    partner = np.full(is_linked.size + 1, -1, np.int64)
    partner[backward] = forward
    return np.asarray(partner[np.append(operators.tree.nearest(is_linked), -1)[row]])


def _device(tree: Tree, owners: _Owners, work: pl.DataFrame, time: Division, bounds: Bounds) -> Flame | None:
    """Draw device work of the parts; named parts of a graph lie inside the part that launched the graph."""
    if not work.height:
        return None
    is_backward = (owners.node < 0) & (owners.backward >= 0)
    node = np.where(is_backward, owners.backward, owners.node)
    if owners.of_part.any():
        tree, node = _parts_of_graphs(tree, node, work, owners.of_part)
        is_backward |= owners.of_part & work["is_backward"].fill_null(value=False).to_numpy()
    if is_backward.any():
        rows = np.flatnonzero(is_backward & (node >= 0))
        tree, inner = tree.with_inside(node[rows], np.zeros(rows.size, np.int64), (BACKWARD,))
        node = node.copy()
        node[rows] = inner
    processes = work["process_id"].to_numpy().astype(np.int64)
    begins = work["begin_ns"].to_numpy()
    counts = counted(time, work)
    spans = Spans(processes, begins, work["end_ns"].to_numpy())
    return owned_flame(tree, np.where(counts, node, -1), spans, _DEVICE, time, bounds)


def _parts_of_graphs(tree: Tree, node: Array, work: pl.DataFrame, of_part: Mask) -> tuple[Tree, Array]:
    """Add the paths that the program names, inside the node that launched their graph."""
    rows = np.flatnonzero(of_part)
    around, paths = node[rows], work["named"].gather(rows).to_list()
    known: dict[tuple[int, str], int] = {}
    parents: list[int] = []
    labels: list[Label] = []
    found: dict[tuple[int, tuple[str, ...]], int] = {}
    places = node.copy()
    for row, outer, path in zip(rows.tolist(), around.tolist(), map(tuple, paths), strict=True):
        if (outer, path) not in found:
            inner = outer
            for part in path:
                if (inner, part) not in known:
                    known[inner, part] = tree.size + len(parents)
                    parents.append(inner)
                    labels.append(Label(bounded(part), "module"))
                inner = known[inner, part]
            found[outer, path] = inner
        places[row] = found[outer, path]
    codes = len(tree.labels) + np.arange(len(labels))
    grown = Tree(
        np.concatenate([tree.parents, np.array(parents, np.int64)]),
        np.concatenate([tree.codes, codes]),
        (*tree.labels, *labels),
    )
    return grown, places


def _stated(names: PartNames, operators: OperatorCalls) -> tuple[Tree, Array]:
    """Return the tree of stated modules, and the node of each operator's module; -1 for none."""
    distinct = names.hierarchy["path"].unique(maintain_order=True)
    tree = Tree(np.empty(0, np.int64), np.empty(0, np.int64), ())
    rows = pl.DataFrame({"named": distinct})
    tree, nodes = _parts_of_graphs(tree, np.full(rows.height, -1), rows, np.ones(rows.height, np.bool_))
    placed = names.hierarchy.join(pl.DataFrame({"path": distinct, "node": nodes}), on="path")
    ids = operators.tree.calls.select("op_id").join(
        placed.unique("op_id").select("op_id", "node"), on="op_id", how="left", maintain_order="left"
    )
    return tree, ids["node"].fill_null(-1).to_numpy()
