"""The events of an XPlane capture as one graph: nesting, and causes in other threads.

Nodes are numbered over all planes: the events of the first plane, those of the next, and so on; last come the regions
of thread pools, which the profiler writes as pairs of instants. Of the planes of TPUs only one line takes part, whose
events stand for all events within them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from traceviz.parsers.shared.arrays.nesting import Links, Spans, are_sorted, nearest, nest, spread
from traceviz.parsers.shared.arrays.operations import NONE, joined, take
from traceviz.parsers.xplane.decode.raw import Array, Line, Plane, Space
from traceviz.parsers.xplane.groups.context import (
    HOST_PLANE,
    MODULE_LINES,
    TPU_PREFIX,
    Column,
    PlaneStats,
    correlation_column,
    ends_of,
    hash_rows,
    intersect,
    is_among,
    is_core,
    roots_of,
)

STEP_LINES = ("Steps", "Sparse Core Steps")
EXECUTOR = "ExecutorState::Process"
_GET_NEXT = ("IteratorGetNextOp::DoCompute", "IteratorGetNextAsOptionalOp::DoCompute")
_TF_DATA_FUNCTIONS = tuple(
    f"InstantiatedCapturedFunction::{run}" for run in ("Run", "RunAsync", "RunInstantiated", "RunWithBorrowedArgs")
)
_LOOPS = frozenset(("WhileOp-EvalCond", "WhileOp-StartBody", "ForOp", "ParallelForOp", "ForeverOp"))
_CROWD = 64
"""Maximum number of producers and consumers that share an id; a larger group links nothing."""


@dataclass(frozen=True, eq=False)
class Sheet:
    """A plane with the times of its events.

    Args:
        stats: The plane and those of its stats that connect events.
        base: Node of its first event.
        origin_ns: Origin of its times.
    """

    stats: PlaneStats
    base: int
    origin_ns: int

    @property
    def plane(self) -> Plane:
        """The plane."""
        return self.stats.plane

    @cached_property
    def start(self) -> Array:
        """Starts of its events in picoseconds (int64). For few events, :meth:`starts_of` is cheaper."""
        return self.plane.start_ps(self.origin_ns)

    @cached_property
    def end(self) -> Array:
        """Ends of its events in picoseconds (int64)."""
        return self.start + self.plane.events.dur_ps

    def starts_of(self, events: Array) -> Array:
        """Return starts of some events in picoseconds (int64)."""
        return self.plane.start_ps(self.origin_ns, events)

    @property
    def is_tpu(self) -> bool:
        """True if it is the plane of a TPU."""
        return self.plane.name.startswith(TPU_PREFIX)


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """The graph of a capture.

    Args:
        sheets: Its planes.
        parent: Node that encloses each node (int32).
        cause, effect: Links between threads: nodes at both ends (int64).
        cores: For each tensor core, the nodes that stand for its events (int64).
    """

    sheets: tuple[Sheet, ...]
    parent: Array
    cause: Array
    effect: Array
    cores: tuple[Array, ...]

    def place(self, node: int) -> tuple[int, int]:
        """Return plane and event of ``node``."""
        plane = int(np.searchsorted([sheet.base for sheet in self.sheets], node, side="right")) - 1
        return plane, node - self.sheets[plane].base

    def with_links(self, cause: Array, effect: Array) -> Forest:
        """Return the graph with more links between threads."""
        causes, effects = np.concatenate((self.cause, cause)), np.concatenate((self.effect, effect))
        return Forest(self.sheets, self.parent, causes, effects, self.cores)

    def starts_of(self, nodes: Array) -> Array:
        """Return starts of events in picoseconds (int64)."""
        starts = np.empty(nodes.size, np.int64)
        for sheet in self.sheets:
            own = (nodes >= sheet.base) & (nodes < sheet.base + len(sheet.plane.events))
            starts[own] = sheet.starts_of(nodes[own] - sheet.base)
        return starts


def has_loop_ops(space: Space) -> bool:
    """Return whether the capture has loop operations of early TensorFlow; then nothing is grouped."""
    return any(not _LOOPS.isdisjoint(plane.names) for plane in space.planes)


def sheets_of(space: Space) -> tuple[Sheet, ...]:
    """Return the planes of ``space`` with their times, counted from the earliest line."""
    origin = min((line.timestamp_ns for plane in space.planes for line in plane.lines), default=0)
    sheets: list[Sheet] = []
    base = 0
    for plane in space.planes:
        sheets.append(Sheet(PlaneStats(plane), base, origin))
        base += len(plane.events)
    return tuple(sheets)


def forest_of(sheets: tuple[Sheet, ...]) -> Forest:
    """Return the graph of the events of all planes."""
    nodes = sheets[-1].base + len(sheets[-1].plane.events) if sheets else 0
    regions = [_regions(sheet) for sheet in sheets]
    parent = np.full(nodes + sum(line.size for line, *_ in regions), NONE, np.int32)
    for sheet, columns in zip(sheets, regions, strict=True):
        if not sheet.is_tpu:
            # Asynchronous events (``_a``) neither enclose nor are enclosed
            events = sheet.plane.events
            asynchronous = sheet.stats.column("_a", last=True, signed=True)
            own = None
            if asynchronous.value.any():
                own = np.ones(len(events), dtype=bool)
                own[asynchronous.event[asynchronous.value != 0]] = False
            stop, size = sheet.base + len(events), columns[0].size
            nest(
                Spans(events.line, events.offset_ps, events.dur_ps, sheet.base, parent[sheet.base : stop]),
                Spans(*columns, nodes, parent[nodes : nodes + size]),
                own,
            )
            nodes += columns[0].size
    lines = tuple(grouping_line(sheet.plane) if sheet.is_tpu else None for sheet in sheets)
    links = [*_dispatches(sheets), _launches(sheets), _contexts(sheets, lines)]
    cores = tuple(
        sheet.base + np.arange(line.events.start, line.events.stop)
        for sheet, line in zip(sheets, lines, strict=True)
        if line is not None and is_core(sheet.plane.name, sparse=False)
    )
    return Forest(
        sheets,
        parent,
        np.concatenate([link[0] for link in links]),
        np.concatenate([link[1] for link in links]),
        cores,
    )


_Pairs = tuple[Array, Array]
Value = TypeVar("Value")


# Within a thread


def _regions(sheet: Sheet) -> tuple[Array, Array, Array]:
    """Return line, offset and duration of each thread-pool region: from the last start before each stop of its line."""
    events = sheet.plane.events
    begins = sheet.stats.named("ThreadpoolListener::StartRegion")
    stops = sheet.stats.named("ThreadpoolListener::StopRegion") if begins.size else begins
    begins = begins[is_among(begins, sheet.stats.column("_c").event)]
    place = np.searchsorted(begins, stops) - 1
    begins, stops = begins[place[place >= 0]], stops[place >= 0]
    same = events.line[begins] == events.line[stops]
    line, start, end = events.line[stops[same]], events.offset_ps[begins[same]], events.offset_ps[stops[same]]
    if not are_sorted(line, start, end):  # several stops may follow one start
        order = np.lexsort((-end, start, line))
        line, start, end = line[order], start[order], end[order]
    return line, start, end - start


# Between threads


def _dispatches(sheets: Sequence[Sheet]) -> Iterator[_Pairs]:
    """Yield pairs of an executor and the ``IteratorGetNext`` that it ran: same step, same iteration."""
    parents = _numbered(sheets, EXECUTOR)
    for name in _GET_NEXT:
        yield _last_match(parents, _numbered(sheets, name))


def _numbered(sheets: Sequence[Sheet], name: str) -> Column:
    """Return nodes called ``name`` that state step and iteration, and a key of both."""

    def find(sheet: Sheet) -> Column:
        stats = sheet.stats
        events, (step, iteration) = intersect((stats.column("id"), stats.column("iter_num")), stats.named(name))
        return Column(events, hash_rows(step, iteration))

    return gather([sheet for sheet in sheets if not sheet.is_tpu], find)


def _launches(sheets: Sequence[Sheet]) -> _Pairs:
    """Return pairs of a launch on the host and its work on a device: same correlation id."""
    host = [sheet for sheet in sheets if sheet.plane.name == HOST_PLANE]
    devices = [sheet for sheet in sheets if sheet.plane.name != HOST_PLANE and not sheet.is_tpu]
    causes, effects = (gather(side, lambda sheet: correlation_column(sheet.stats)) for side in (host, devices))
    return _last_match(causes, effects)


def gather(sheets: Sequence[Sheet], find: Callable[[Sheet], Column]) -> Column:
    """Return the results of ``find`` for all planes, with events as nodes."""
    columns = [(sheet.base, find(sheet)) for sheet in sheets]
    return Column(_chained(base + column.event for base, column in columns), _chained(c.value for _, c in columns))


def _chained(parts: Iterable[Array]) -> Array:
    return np.concatenate([np.empty(0, np.int64), *parts])


def _last_match(causes: Column, effects: Column) -> _Pairs:
    """Return each of ``effects`` with the last of ``causes`` that has its value."""
    order = np.argsort(causes.value, kind="stable")
    values = causes.value[order]
    place = np.searchsorted(values, effects.value, side="right") - 1
    hit = place >= 0
    hit[hit] = values[place[hit]] == effects.value[hit]
    return causes.event[order[place[hit]]], effects.event[hit]


def _contexts(sheets: Sequence[Sheet], lines: Sequence[Line | None]) -> _Pairs:
    """Return every producer with every consumer of the same connection."""
    sides: tuple[list[_Pairs], list[_Pairs]] = ([], [])
    for sheet, line in zip(sheets, lines, strict=True):
        for side, ends in zip(sides, ends_of(sheet.stats), strict=True):
            nodes = _delegated(sheet, line, ends.event) if sheet.is_tpu else ends.event
            side.append((sheet.base + nodes[nodes >= 0], hash_rows(*ends.key[nodes >= 0].T)))
    producers, consumers = (Column(_chained(n for n, _ in side), _chained(v for _, v in side)) for side in sides)
    causes, effects = joined(producers.value, consumers.value, _CROWD)
    return take(producers.event, causes), take(consumers.event, effects)


# TPUs


def grouping_line(plane: Plane) -> Line | None:
    """Return the line that stands for a TPU's plane: steps, else modules; ``None`` if there is neither."""
    if not (is_core(plane.name, sparse=False) or is_core(plane.name, sparse=True)):
        return None
    for names in (STEP_LINES, MODULE_LINES):
        line = next((line for line in reversed(plane.lines) if line.name in names), None)
        if line is not None and line.events.stop > line.events.start:
            return line
    return None


def _delegated(sheet: Sheet, line: Line | None, events: Array) -> Array:
    """Return the event of the grouping line that encloses each of ``events``, or is it; :data:`NONE` if none."""
    if line is None:
        return np.full(events.size, NONE, np.int64)
    span = line.events
    place = np.searchsorted(sheet.end[span], sheet.start[events], side="right")
    inside = place < span.stop - span.start
    inside[inside] &= sheet.start[span][place[inside]] <= sheet.start[events[inside]]
    inside[inside] &= sheet.end[span][place[inside]] >= sheet.end[events[inside]]
    itself = (events >= span.start) & (events < span.stop)
    return np.where(itself, events, np.where(inside, span.start + place, NONE))


# Roots


def root_nodes(forest: Forest, extra: Array) -> tuple[Column, int]:
    """Return root nodes with their levels, and how many claim. Higher levels come first, then earlier starts.

    Functions that tf.data runs for itself come last, as do events that cause themselves. They claim nothing, but events
    that they caused are not roots.

    Args:
        forest: The graph.
        extra: More nodes that are roots, of level 1.
    """
    sheets = [sheet for sheet in forest.sheets if not sheet.is_tpu]
    roots = gather(sheets, lambda sheet: roots_of(sheet.stats))
    nodes = np.concatenate((roots.event, extra))
    levels = np.concatenate((roots.value, np.ones(extra.size, np.int64)))
    steps = gather(sheets, lambda sheet: sheet.stats.column("id", signed=True))
    of_tf_data = steps.event[np.isin(steps.value, _tf_data_steps(sheets))]
    idle = np.isin(nodes, of_tf_data) | np.isin(nodes, forest.cause[forest.cause == forest.effect])
    order = np.lexsort((forest.starts_of(nodes), -levels, idle))
    return Column(nodes[order], levels[order]), int((~idle).sum())


def _tf_data_steps(sheets: Sequence[Sheet]) -> Array:
    """Return ids of the steps that tf.data runs for itself."""

    def find(sheet: Sheet) -> Column:
        events, (step,) = intersect((sheet.stats.column("id", signed=True),), sheet.stats.named(*_TF_DATA_FUNCTIONS))
        return Column(events, step)

    return np.unique(gather(sheets, find).value)


def loop_iterations(forest: Forest) -> tuple[Array, Forest]:
    """Return roots if TensorFlow runs a loop in a graph: the first executor event of each iteration, by time.

    There are no roots if no step has an iteration other than 0. Otherwise also return the graph in which the first
    event of each iteration causes its others.
    """
    sheets = [sheet for sheet in forest.sheets if not sheet.is_tpu]

    def executor_column(key: str) -> Column:
        def find(sheet: Sheet) -> Column:
            columns = [sheet.stats.column(name, signed=True) for name in (key, "id", "iter_num")]
            events, values = intersect(columns, sheet.stats.named(EXECUTOR))
            return Column(events, values[0])

        return gather(sheets, find)

    steps, iterations = executor_column("id"), executor_column("iter_num")
    looping = np.unique(steps.value[iterations.value != 0])
    kept = np.isin(steps.value, looping) & ~np.isin(steps.value, _tf_data_steps(sheets))
    nodes, keys = steps.event[kept], hash_rows(steps.value[kept], iterations.value[kept])
    if not nodes.size:
        return nodes, forest
    order = np.lexsort((forest.starts_of(nodes), keys))
    nodes, keys = nodes[order], keys[order]
    begins = np.r_[True, keys[1:] != keys[:-1]]
    first = nodes[begins][np.cumsum(begins) - 1]
    roots = nodes[begins]
    linked = forest.with_links(first[~begins], nodes[~begins])
    return roots[np.argsort(forest.starts_of(roots), kind="stable")], linked


# Groups


@dataclass(frozen=True, slots=True, eq=False)
class Claims:
    """The root that each node belongs to.

    Args:
        joint: For each node, the number of the joint whose root is its own (int32), :data:`NONE` for none.
        owner: For each joint, the position of its root (int32), :data:`NONE` if no root has claimed it.
    """

    joint: Array
    owner: Array

    def of(self, nodes: Array) -> Array:
        """Return the position of the root of each of ``nodes``, or :data:`NONE` (int32)."""
        return take(self.owner, self.joint[nodes])

    def by_node(self, numbers: Array) -> Array:
        """Return, for all nodes, the number of their root (int32), :data:`NONE` for none.

        Args:
            numbers: A number per root.
        """
        return take(take(np.ascontiguousarray(numbers, np.int32), self.owner), self.joint)


def claim(forest: Forest, roots: Column, taken: Array | None, *, every: bool) -> Claims:
    """Return the root that each node belongs to.

    Only nodes with links between threads can extend a group beyond the nodes that they enclose. The group is spread
    over these joints. All other nodes are in the group of the nearest joint around them.

    Args:
        forest: The graph.
        roots: Root nodes and their levels in the order in which they claim.
        taken: Mask of nodes that must not be claimed (bool); ``None`` for no node.
        every: As in :func:`traceviz.parsers.shared.arrays.nesting.spread`.
    """
    is_joint = np.zeros(forest.parent.size, dtype=bool) if taken is None else taken.copy()
    for nodes in (forest.cause, forest.effect, roots.event):
        is_joint[nodes] = True
    joint, joints = nearest(forest.parent, is_joint), np.flatnonzero(is_joint)
    around = take(joint, forest.parent[joints])
    enclosed = np.flatnonzero(around >= 0).astype(np.int32)
    cause = np.concatenate((around[enclosed], joint[forest.cause]))
    effect = np.concatenate((enclosed, joint[forest.effect]))
    if taken is not None:
        free = ~taken[joints[effect]]
        cause, effect = cause[free], effect[free]
    children, parents = Links.between(joints.size, cause, effect), Links.between(joints.size, effect, cause)
    return Claims(joint, spread(children, parents, joint[roots.event], roots.value, every=every))


# Steps and kinds of graphs, by a node or its ancestors


class Ancestry:
    """Look-up of a value of a node, or else of its nearest ancestor."""

    def __init__(self, forest: Forest) -> None:
        self._forest = forest
        self._numbers: list[dict[int, int]] = []
        for key in ("iter_num", "step_num"):
            column = gather(forest.sheets, lambda sheet, key=key: sheet.stats.column(key, signed=True))  # type: ignore[misc]
            self._numbers.append(dict(zip(column.event.tolist(), column.value.tolist(), strict=True)))
        self._graph_types = {
            sheet.base + event: text
            for sheet in forest.sheets
            for event, text in sheet.stats.texts("graph_type").items()
        }

    def number(self, node: int) -> int | None:
        """Return the number of the step: iteration of a loop, else number of an annotation; ``None`` without either."""
        stated = (self._nearest(node, numbers) for numbers in self._numbers)
        return next((number for number in stated if number is not None), None)

    def graph_type(self, node: int) -> str | None:
        """Return the kind of graph that a node belongs to."""
        return self._nearest(node, self._graph_types)

    def _nearest(self, node: int, values: dict[int, Value]) -> Value | None:
        """Search breadth-first: the enclosing event first, then causes in other threads."""
        if not values:
            return None
        visited, waiting = {node}, deque([node])
        while waiting:
            current = waiting.popleft()
            if current in values:
                return values[current]
            effects, causes = self._links
            first, last = np.searchsorted(effects, (current, current + 1))
            for above in (int(self._forest.parent[current]), *causes[first:last].tolist()):
                if above != NONE and above not in visited:
                    visited.add(above)
                    waiting.append(above)
        return None

    @cached_property
    def _links(self) -> _Pairs:
        """Links between threads, sorted by effect."""
        order = np.argsort(self._forest.effect, kind="stable")
        return self._forest.effect[order], self._forest.cause[order]
