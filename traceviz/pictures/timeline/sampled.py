"""Lanes of sampled Python stacks: one row per depth; consecutive samples of the same frame form one span."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from traceviz.analyses.derived.frames import codes
from traceviz.core.arrays.nested import Codes, alike
from traceviz.pictures.timeline.names import Names
from traceviz.pictures.timeline.sources import Lanes, Making, Source, by_group, durations_of, numbers, starts_of
from traceviz.pictures.timeline.spans import MOST_ROWS, Seat, Spans
from traceviz.report.pictures.values import Array, Family

_ORIGINS = {
    "program": Family("python", "The program"),
    "library": Family("library", "Installed packages"),
    "standard": Family("standard", "Python's own library"),
    "native": Family("native", "Compiled code"),
}
_OTHER = Family("other", "Other")


@dataclass(frozen=True, slots=True, eq=False)
class _Tree:
    """Stacks by their frames, regardless of the running line: a node is a frame with all frames around it.

    Args:
        node: Node of each ``stack_id``.
        parent: Node around each node; -1 for the outermost.
        depth: Frames around each node.
        name: Number of its name.
    """

    node: Array
    parent: Array
    depth: Array
    name: Codes


def stack_sources(making: Making) -> Iterator[Source]:
    """Return the source of the stacks of threads."""
    tables = making.trace.tables
    if not tables.rows("stacks") or not tables.rows("stack_frames"):
        return
    stacks = making.trace.frame("stacks", "start_ns", "dur_ns", "process_id", "thread_id", "stack_id")
    order = np.lexsort((starts_of(stacks), numbers(stacks["thread_id"])))
    frames = making.trace.frame("stack_frames", "stack_id", "parent_id", "function", "file", "origin")
    spans, threads, processes = _merged(stacks[order], _tree(frames, making.names))
    end = int((spans.starts + spans.durations).max(initial=0))
    yield Source("stacks", spans.starts, end, lambda first: _threads(making, spans, processes, threads, first))


def _threads(making: Making, spans: Spans, processes: Array, threads: Array, first: int) -> Lanes:
    numbered = Spans(spans.starts, spans.durations, spans.names, first + spans.origins)
    for (process, thread), own in by_group(numbered, [processes, threads]):
        label = f"{making.owners.thread(thread)} stacks"
        yield Seat(f"stacks-{process}-{thread}", label, "stacks", process, thread), own


def _tree(frames: pl.DataFrame, names: Names) -> _Tree:
    """Build the tree; a caller must come before its callees in the order of ``stack_id``."""
    frames = frames.sort("stack_id")
    ids = frames["stack_id"].to_numpy()
    known = numbers(frames["parent_id"])
    caller = np.searchsorted(ids, known).clip(0, max(ids.size - 1, 0))
    around = np.where((known >= 0) & (ids[caller] == known) & (caller < np.arange(ids.size)), caller, -1)
    frame, firsts = alike(*(codes(frames[column]) for column in ("function", "file", "origin")))
    texts = frames[["function", "file", "origin"]][firsts].with_columns(pl.all().cast(pl.String))
    numbered = [
        names.number(f"{function} ({file})" if file else function, _ORIGINS.get(origin, _OTHER))
        for function, file, origin in texts.iter_rows()
    ]
    node, parent, depth, name = np.full(ids.size, -1, np.int64), [], [], []
    rows, level, count = np.flatnonzero(around < 0), 0, 0
    while rows.size:  # once per depth
        above = np.where(around[rows] >= 0, node[around[rows]], -1)
        group, first = alike(above.astype(np.int32), frame[rows].astype(np.int32))
        node[rows] = count + group
        parent.append(above[first])
        name.append(np.array(numbered, np.int32)[frame[rows][first]])
        depth.append(np.full(first.size, level))
        count, level = count + first.size, level + 1
        is_last = np.zeros(ids.size, bool)
        is_last[rows] = True
        rows = np.flatnonzero((around >= 0) & is_last[around])
    places = np.full(int(ids.max()) + 1 if ids.size else 0, -1, np.int64)
    places[ids] = node
    return _Tree(places, *(np.concatenate(one) for one in (parent, depth, name)))


def _merged(stacks: pl.DataFrame, tree: _Tree) -> tuple[Spans, Array, Array]:
    """Return spans of all threads with their threads and processes; ``stacks`` is sorted by thread and start."""
    starts, threads = starts_of(stacks), numbers(stacks["thread_id"])
    ends = starts + durations_of(stacks)
    at = tree.node[numbers(stacks["stack_id"])]
    processes = numbers(stacks["process_id"])
    found: list[tuple[Array, ...]] = []
    depths = np.where(at >= 0, tree.depth[at], -1)
    for depth in range(int(depths.max(initial=-1)), -1, -1):
        rows = np.flatnonzero(depths >= depth)
        if depth < MOST_ROWS:
            # Consecutive rows with the same frame become one span.
            own, thread_of = at[rows], threads[rows]
            goes_on = (own[1:] == own[:-1]) & (thread_of[1:] == thread_of[:-1])
            goes_on &= starts[rows][1:] <= ends[rows][:-1]
            first = np.flatnonzero(np.concatenate([[True], ~goes_on])) if rows.size else rows
            last = np.append(first[1:], rows.size) - 1
            begins = rows[first]
            until = np.maximum(ends[rows[last]], starts[begins])
            found.append((starts[begins], until, threads[begins], processes[begins], own[first]))
        at[rows] = tree.parent[at[rows]]
    empty = np.empty(0, np.int64)
    begin, end, thread, process, node = (
        (np.concatenate(column) for column in zip(*found[::-1], strict=True)) if found else (empty,) * 5
    )
    order = np.argsort(begin, kind="stable")
    names = tree.name[node[order]]
    spans = Spans(begin[order], (end - begin)[order], names, np.arange(order.size))
    return spans, thread[order], process[order]
