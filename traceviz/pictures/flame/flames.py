"""All flame graphs of a trace: operators, ranges, Python functions, modules."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from traceviz.analyses.derived.calls.call_tree import CallTree
from traceviz.analyses.derived.frames import bounds as bounds_of
from traceviz.analyses.derived.frames import codes, end_ns, having, taken
from traceviz.analyses.derived.stacks.sampled import recorded_calls, recorded_names
from traceviz.analyses.derived.stacks.trees import stack_tree
from traceviz.analyses.derived.view import TraceView
from traceviz.core.arrays.intervals import Array
from traceviz.core.arrays.nested import Codes, alike, contexts
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
from traceviz.pictures.flame.division import Division, Spans, division
from traceviz.pictures.flame.folding import Bounds
from traceviz.pictures.flame.modules import module_flames
from traceviz.pictures.flame.texts import api_family, operation_family, operation_group, without_numbers
from traceviz.report.pictures.values import Flame


def operator_flames(trace: TraceView, time: Division, bounds: Bounds) -> Iterator[Flame | None]:
    """Draw operators on the host and on the device.

    Python frames are not operators. They have graphs of their own.
    """
    called = called_operators(trace)
    what = "Operators" if (called.launches is None or not called.launches.all()) else "Calls of the device's API"
    if called.tree.calls.height:
        yield host_flame(trace, called, Title("operators-host", f"{what}, host time", "host"), time, bounds)
    yield device_flame(trace, called, Title("operators-device", f"{what}, device time", "device"), time, bounds)


def called_operators(trace: TraceView) -> Called:
    """Return all host operations except Python frames, and the calls of the device's API."""
    number, names = trace.host_name_rows, trace.host_names
    labels = [_operator_label(name, category) for name, category in names.iter_rows()]
    distinct = list(dict.fromkeys(labels))
    code_of = {label: code for code, label in enumerate(distinct)}
    of_name = np.array([code_of[label] for label in labels], np.int32)
    shown = (names["category"] != "python").fill_null(value=True).to_numpy()
    rows = np.flatnonzero(shown[number]) if number.size else np.empty(0, np.int64)
    calls = taken(trace.frame("host_ops", *_TIMES, "op_id"), rows).with_columns(
        pl.Series("code", of_name[number[rows]] if rows.size else np.empty(0, np.int32), pl.Int32)
    )
    api, api_labels = _api_calls(trace, len(distinct), int(calls["op_id"].max() or 0) + 1)  # type: ignore[arg-type]
    both = pl.concat([calls.select(_COLUMNS), api.select(_COLUMNS)]).with_columns(end_ns()).drop("dur_ns")
    tree = CallTree.of(both, ("thread_id", "process_id", "code"))
    code = tree.calls["code"].to_numpy()
    return Called(tree, code, (*distinct, *api_labels), launches=code >= len(distinct))


def _operator_label(name: str, category: str) -> Label:
    shown, group = operation_group(name, category)
    return Label(shown, operation_family(name, category), group=group)


_TIMES = ("start_ns", "dur_ns", "process_id", "thread_id")
_COLUMNS = (*_TIMES, "op_id", "code")


def _api_calls(trace: TraceView, first_code: int, first_id: int) -> tuple[pl.DataFrame, tuple[Label, ...]]:
    """Return device API calls as operations, ordered after operations with the same start and end."""
    calls = trace.frame("cuda_api", *_TIMES, "name")
    group, first = _distinct(calls["name"])
    names = calls["name"].gather(first).cast(pl.String).to_list()
    ids = pl.Series("op_id", np.arange(first_id, first_id + calls.height), pl.Int64)
    code = pl.Series("code", first_code + group, pl.Int32)
    return calls.with_columns(ids, code), tuple(Label(bounded(name), api_family(name)) for name in names)


def _distinct(names: pl.Series) -> tuple[Codes, Codes]:
    return alike(codes(names))


def range_flames(trace: TraceView, time: Division, bounds: Bounds) -> Iterator[Flame | None]:
    """Draw ranges on the host, and the device work that was launched in them."""
    called = called_ranges(trace)
    if called is None:
        return
    yield host_flame(trace, called, Title("ranges-host", "NVTX ranges, host time", "host"), time, bounds)
    yield device_flame(trace, called, Title("ranges-device", "NVTX ranges, device time", "device"), time, bounds)


def called_ranges(trace: TraceView) -> Called | None:
    """Return the closed ranges of all threads; ``None`` if there are none.

    A range that may end on another thread does not nest. It gets a thread of its own that has no work.
    """
    columns = ("start_ns", "dur_ns", "process_id", "thread_id", "range_id", "depth")
    events = trace.frame("nvtx", *columns, pl.col("name", "domain", "kind").cast(pl.String))
    closed = events.filter((pl.col("kind") != "mark") & pl.col("dur_ns").is_not_null())
    if not closed.height:
        return None
    text = pl.when(pl.col("domain") == "").then(pl.col("name")).otherwise(pl.format("{}: {}", "domain", "name"))
    crossing = pl.col("depth").is_null()
    named = closed.with_columns(text.fill_null("").alias("text")).select(
        pl.when(crossing).then(-1 - pl.col("range_id")).otherwise(pl.col("thread_id")).alias("thread_id"),
        pl.col("range_id").alias("op_id"),
        "start_ns",
        (pl.col("start_ns") + pl.col("dur_ns")).alias("end_ns"),
        "process_id",
        "text",
    )
    texts = named["text"].unique(maintain_order=True).to_list()
    labels = [Label(bounded(without_numbers(text)), "range") for text in texts]
    distinct = list(dict.fromkeys(labels))
    code_of = {label: code for code, label in enumerate(distinct)}
    codes = {text: code_of[label] for text, label in zip(texts, labels, strict=True)}
    code = named["text"].replace_strict(codes, return_dtype=pl.Int32).alias("code")
    tree = CallTree.of(named.drop("text").with_columns(code), ("thread_id", "process_id", "code"))
    return Called(tree, np.ascontiguousarray(tree.calls["code"].to_numpy(), np.int32), tuple(distinct))


def stack_flames(trace: TraceView, time: Division, bounds: Bounds) -> Iterator[Flame | None]:
    """Draw sampled stacks, and recorded functions on the host with the device work that they launched."""
    if trace.tables.rows("stacks"):
        yield _sampled(trace, time, bounds)
    if not having(trace.host_names, "category", "python").height:
        return
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
    ids = stacks.frames["stack_id"].to_numpy()
    sought = rows["stack_id"].to_numpy()
    row = np.minimum(np.searchsorted(ids, sought), max(ids.size - 1, 0))  # ids ascend
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


_MAKERS = (operator_flames, module_flames, range_flames, stack_flames)
_MOST_TOGETHER = 5000
"""Limit of the nodes of all graphs of a page. A node takes about 35 bytes, or 170 with a long name of its own."""


def flames(trace: TraceView, bounds: Bounds | None = None) -> tuple[Flame, ...]:
    """Draw flame graphs of operators, modules, NVTX ranges and Python stacks, as far as the trace has them.

    Graphs show the time of steady steps, if there are any, divided by the rank's class of step time. Host time is the
    inclusive time of a call on its thread. Device time is the work launched within a call, even if it runs later.

    Args:
        trace: The trace.
        bounds: Limits for the size and number of nodes; by default limits that suit a page.
    """
    found = _drawn(trace, bounds or Bounds())
    if bounds is None and sum(len(flame.names) for flame in found) > _MOST_TOGETHER:
        return _drawn(trace, Bounds(most=_MOST_TOGETHER // len(found)))
    return found


def _drawn(trace: TraceView, bounds: Bounds) -> tuple[Flame, ...]:
    time = division(trace)
    return tuple(flame for make in _MAKERS for flame in make(trace, time, bounds) if flame is not None)
