"""Python stacks: sampled, or as functions that a profiler recorded."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from traceviz.analyses.derived.frames import bounds as bounds_of
from traceviz.analyses.derived.frames import having
from traceviz.analyses.derived.stacks.sampled import recorded_calls, recorded_names
from traceviz.analyses.derived.stacks.trees import stack_tree
from traceviz.analyses.derived.view import TraceView
from traceviz.core.arrays.intervals import Array
from traceviz.core.arrays.nested import alike, contexts
from traceviz.core.sanitize import bounded
from traceviz.pictures.flame.calls import (
    THREAD,
    Called,
    Label,
    Title,
    Tree,
    device_flame,
    host_flame,
    owned_flame,
    threads_of,
)
from traceviz.pictures.flame.division import Division, Spans
from traceviz.pictures.flame.folding import Bounds
from traceviz.report.pictures.flame import Flame


def stack_flames(trace: TraceView, time: Division, bounds: Bounds) -> Iterator[Flame | None]:
    """Draw sampled stacks, and recorded functions on the host with the device work that they launched."""
    if trace.tables.rows("stacks"):
        yield _sampled(trace, time, bounds)
    if not having(trace.host_names, "category", "python").height:
        return
    # Return the calls of Python functions that a profiler recorded.
    names, frames = recorded_names(trace)
    code, labels = _labelled(frames)
    called = Called(recorded_calls(trace), np.ascontiguousarray(code[names], np.int32), labels)
    yield host_flame(trace, called, Title("python-host", "Python functions, host time", "host"), time, bounds)
    yield device_flame(trace, called, Title("python-device", "Python functions, device time", "device"), time, bounds)


def _sampled(trace: TraceView, time: Division, bounds: Bounds) -> Flame | None:
    """Draw the time that samples represent, by the stack of each."""
    stacks = stack_tree(trace)
    code, labels = _labelled(stacks.frames)
    order = np.arange(stacks.parent.size)
    context, first = contexts(stacks.parent, np.ascontiguousarray(code, np.int32)) if order.size else (order, order)
    above = stacks.parent[first]
    parents = np.where(above >= 0, context[above], -1) if order.size else order
    rows = trace.frame("stacks", "start_ns", "dur_ns", "process_id", "thread_id", "stack_id")
    threads, names = threads_of(trace, rows["thread_id"])
    used, thread = np.unique(threads, return_inverse=True)
    shift, size = used.size, first.size
    offsets = shift + size * np.arange(shift)  # one copy of the stack tree for each kind of thread
    tree = Tree(
        np.concatenate(
            [np.full(shift, -1), *(np.where(parents >= 0, parents + at, kind) for kind, at in enumerate(offsets))]
        ).astype(np.int64),
        np.concatenate([len(labels) + np.arange(shift), *(code[first] for _ in offsets)]).astype(np.int64),
        (*labels, *(Label(names[kind], THREAD) for kind in used)),
    )
    # Return the row of each of ``sought`` in the ascending ``ids``; -1 for none.
    ids = stacks.frames["stack_id"].to_numpy()
    sought = rows["stack_id"].to_numpy()
    row = np.minimum(np.searchsorted(ids, sought), max(ids.size - 1, 0))
    stack = np.where(ids[row] == sought, row, -1) if ids.size else np.full(sought.size, -1)
    node = np.where(stack >= 0, offsets[thread] + np.append(context, -1)[stack], thread)
    spans = Spans(rows["process_id"].to_numpy().astype(np.int64), *bounds_of(rows))
    title = Title("stacks-samples", "Python stacks, sampled", "samples")
    return owned_flame(tree, node.astype(np.int64), spans, title, time, bounds)


def _labelled(frames: pl.DataFrame) -> tuple[Array, tuple[Label, ...]]:
    """Return each frame's label row, and the labels: one per function, with the line that occurs first."""
    texts = [frames[name].cast(pl.String).fill_null("").rank("dense").to_numpy() for name in ("function", "file")]
    group, first = alike(*(text.astype(np.int32) for text in texts))
    chosen = frames.select(pl.col("function", "file", "line", "origin").gather(first))
    found: dict[str, int] = {}
    labels: list[Label] = []
    code = np.empty(first.size, np.int64)
    for row, (function, file, line, origin) in enumerate(chosen.iter_rows()):  # distinct functions
        label = _label(function or "", file or "", line, origin)
        code[row] = found.setdefault(label.name, len(labels))
        if code[row] == len(labels):
            labels.append(label)
    return code[group], tuple(labels)


def _label(function: str, file: str, line: int | None, origin: str) -> Label:
    parts = file.split("/")
    short = "/".join(parts[-2:]) if parts[-1].startswith("__") else parts[-1]
    name = f"{function} ({short})" if short else function
    place = f"{file}:{line}" if file and line is not None else file
    family = "module" if function.startswith(_MODULE) else _FAMILIES.get(origin, "native")
    return Label(bounded(name), family, bounded(place))


_MODULE = "nn.Module: "
"""Prefix of frames that PyTorch's profiler makes for calls of modules."""
_FAMILIES = {"program": "python", "library": "library", "standard": "standard"}
