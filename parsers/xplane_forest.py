"""The events of an XPlane capture as one graph: what each event encloses, and what it caused elsewhere.

Nodes are numbered over all planes: the events of the first plane, those of the next, and so on; last come the regions
of thread pools, which the profiler writes as pairs of instants. Of the planes of TPUs only one line takes part, whose
events stand for all that happened within them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from traceviz.parsers.xplane_context import (
    HOST_PLANE,
    MODULE_LINES,
    TPU_PREFIX,
    Column,
    PlaneStats,
    among,
    correlated,
    ends_of,
    is_core,
    mixed,
    roots_of,
    shared,
)
from traceviz.parsers.xplane_nesting import NONE, Links, claimed, enclosing, nearest
from traceviz.parsers.xplane_raw import Array, Line, Plane, Space

STEP_LINES = ("Steps", "Sparse Core Steps")
EXECUTOR = "ExecutorState::Process"
_GET_NEXT = ("IteratorGetNextOp::DoCompute", "IteratorGetNextAsOptionalOp::DoCompute")
_TF_DATA_FUNCTIONS = tuple(
    f"InstantiatedCapturedFunction::{run}" for run in ("Run", "RunAsync", "RunInstantiated", "RunWithBorrowedArgs")
)
_LOOPS = frozenset(("WhileOp-EvalCond", "WhileOp-StartBody", "ForOp", "ParallelForOp", "ForeverOp"))
_CROWD = 64
"""Where so many producers meet so many consumers, their common id says nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Sheet:
    """A plane with the times of its events.

    Args:
        stats: The plane and those of its stats that connect events.
        base: Node of its first event.
        start, end: Times of its events in picoseconds (int64).
    """

    stats: PlaneStats
    base: int
    start: Array
    end: Array

    @property
    def plane(self) -> Plane:
        """The plane."""
        return self.stats.plane

    @property
    def is_tpu(self) -> bool:
        """Whether it is that of a TPU."""
        return self.plane.name.startswith(TPU_PREFIX)


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """The graph of a capture.

    Args:
        sheets: Its planes.
        start: Start of every node in picoseconds (int64).
        parent: Node that encloses each node (int32).
        cause, effect: Links between threads: nodes at both ends (int64).
        cores: For each tensor core the nodes that stand for its events (int64).
    """

    sheets: tuple[Sheet, ...]
    start: Array
    parent: Array
    cause: Array
    effect: Array
    cores: tuple[Array, ...]

    def place(self, node: int) -> tuple[int, int]:
        """Plane and event of ``node``."""
        plane = int(np.searchsorted([sheet.base for sheet in self.sheets], node, side="right")) - 1
        return plane, node - self.sheets[plane].base

    def with_links(self, cause: Array, effect: Array) -> Forest:
        """The graph with more links between threads."""
        causes, effects = np.concatenate((self.cause, cause)), np.concatenate((self.effect, effect))
        return Forest(self.sheets, self.start, self.parent, causes, effects, self.cores)


def has_loop_ops(space: Space) -> bool:
    """Whether the capture knows loop operations of early TensorFlow; then nothing is grouped."""
    return any(not _LOOPS.isdisjoint(plane.names) for plane in space.planes)


def sheets_of(space: Space) -> tuple[Sheet, ...]:
    """The planes of ``space`` with their times, counted from the earliest line."""
    origin = min((line.timestamp_ns for plane in space.planes for line in plane.lines), default=0)
    sheets: list[Sheet] = []
    base = 0
    for plane in space.planes:
        start = plane.start_ps(origin)
        sheets.append(Sheet(PlaneStats(plane), base, start, start + plane.events.dur_ps))
        base += len(plane.events)
    return tuple(sheets)


def forest_of(sheets: tuple[Sheet, ...]) -> Forest:
    """The graph of the events of all planes."""
    nodes = sheets[-1].base + len(sheets[-1].plane.events) if sheets else 0
    starts, parents = [sheet.start for sheet in sheets], [np.full(nodes, NONE, np.int32)]
    for sheet in sheets:
        if not sheet.is_tpu:
            region_starts, region_parents = _nest(sheet, nodes, parents[0])
            nodes += region_starts.size
            starts.append(region_starts)
            parents.append(region_parents)
    lines = tuple(grouping_line(sheet.plane) if sheet.is_tpu else None for sheet in sheets)
    links = [*_dispatches(sheets), _launches(sheets), _contexts(sheets, lines)]
    cores = tuple(
        sheet.base + np.arange(line.events.start, line.events.stop)
        for sheet, line in zip(sheets, lines, strict=True)
        if line is not None and is_core(sheet.plane.name, sparse=False)
    )
    return Forest(
        sheets,
        np.concatenate([np.empty(0, np.int64), *starts]),
        np.concatenate(parents),
        np.concatenate([link[0] for link in links]),
        np.concatenate([link[1] for link in links]),
        cores,
    )


_Pairs = tuple[Array, Array]
Told = TypeVar("Told")


# Within a thread


def _nest(sheet: Sheet, regions_base: int, parent: Array) -> _Pairs:
    """Write the parents of the events of a plane into ``parent``; give starts and parents of its regions.

    Asynchronous events (``_a``) neither enclose nor are enclosed.
    """
    line, start, end = _regions(sheet)
    plane = sheet.plane
    asynchronous = sheet.stats.column("_a", last=True, signed=True)
    own = np.ones(len(plane.events), dtype=bool)
    own[asynchronous.event[asynchronous.value != 0]] = False
    parents = np.full(start.size, NONE, np.int32)
    crowded = np.isin(plane.events.line, line) & own
    for events, with_regions in ((np.flatnonzero(own & ~crowded), False), (np.flatnonzero(crowded), True)):
        regions = slice(None) if with_regions else slice(0)
        found = enclosing(
            np.concatenate((plane.events.line[events], line[regions])),
            np.concatenate((sheet.start[events], start[regions])),
            np.concatenate((sheet.end[events], end[regions])),
        )
        nodes = np.concatenate((events + sheet.base, regions_base + np.arange(start[regions].size)))
        found = np.where(found >= 0, nodes[found], NONE).astype(np.int32) if found.size else found
        parent[nodes[: events.size]] = found[: events.size]
        parents[regions] = found[events.size :]
    return start, parents


def _regions(sheet: Sheet) -> tuple[Array, Array, Array]:
    """Line, start and end of each region of a thread pool: from the last start before each stop of its line."""
    lines = sheet.plane.events.line
    begins = sheet.stats.named("ThreadpoolListener::StartRegion")
    begins = begins[among(begins, sheet.stats.column("_c").event)]
    stops = sheet.stats.named("ThreadpoolListener::StopRegion")
    place = np.searchsorted(begins, stops) - 1
    stops, place = stops[place >= 0], place[place >= 0]
    same = lines[begins[place]] == lines[stops]
    return lines[stops[same]], sheet.start[begins[place[same]]], sheet.start[stops[same]]


# Between threads


def _dispatches(sheets: Sequence[Sheet]) -> Iterator[_Pairs]:
    """An executor and the ``IteratorGetNext`` that it ran: same step, same iteration."""
    parents = _numbered(sheets, EXECUTOR)
    for name in _GET_NEXT:
        yield _last_match(parents, _numbered(sheets, name))


def _numbered(sheets: Sequence[Sheet], name: str) -> Column:
    """Nodes called ``name`` that tell step and iteration, and a key of both."""

    def find(sheet: Sheet) -> _Pairs:
        stats = sheet.stats
        events, (step, iteration) = shared((stats.column("id"), stats.column("iter_num")), stats.named(name))
        return events, mixed(step, iteration)

    return gather([sheet for sheet in sheets if not sheet.is_tpu], find)


def _launches(sheets: Sequence[Sheet]) -> _Pairs:
    """A launch on the host and what it launched on a device: same correlation id."""

    def find(sheet: Sheet) -> _Pairs:
        column = correlated(sheet.stats)
        return column.event, column.value

    host = gather([sheet for sheet in sheets if sheet.plane.name == HOST_PLANE], find)
    devices = gather([sheet for sheet in sheets if sheet.plane.name != HOST_PLANE and not sheet.is_tpu], find)
    return _last_match(host, devices)


def gather(sheets: Sequence[Sheet], find: Callable[[Sheet], _Pairs]) -> Column:
    """What ``find`` finds in each plane, events as nodes."""
    found = [(sheet.base, *find(sheet)) for sheet in sheets]
    return Column(_chained(base + events for base, events, _ in found), _chained(values for *_, values in found))


def _chained(parts: Iterable[Array]) -> Array:
    return np.concatenate([np.empty(0, np.int64), *parts])


def _last_match(causes: Column, effects: Column) -> _Pairs:
    """Each of ``effects`` with the last of ``causes`` that has its value."""
    causes = _by_value(causes)
    place = np.searchsorted(causes.value, effects.value, side="right") - 1
    hit = place >= 0
    hit[hit] = causes.value[place[hit]] == effects.value[hit]
    return causes.event[place[hit]], effects.event[hit]


def _contexts(sheets: Sequence[Sheet], lines: Sequence[Line | None]) -> _Pairs:
    """Every producer with every consumer of the same connection."""
    sides: tuple[list[_Pairs], list[_Pairs]] = ([], [])
    for sheet, line in zip(sheets, lines, strict=True):
        for side, ends in zip(sides, ends_of(sheet.stats), strict=True):
            nodes = _delegated(sheet, line, ends.event) if sheet.is_tpu else ends.event
            side.append((sheet.base + nodes[nodes >= 0], mixed(*ends.key[nodes >= 0].T)))
    producers, consumers = (Column(_chained(n for n, _ in side), _chained(v for _, v in side)) for side in sides)
    producers, consumers = _by_value(producers), _by_value(consumers)
    first, last = (np.searchsorted(consumers.value, producers.value, side=side) for side in ("left", "right"))
    alike = [np.searchsorted(producers.value, producers.value, side=side) for side in ("left", "right")]
    count = np.where((alike[1] - alike[0] >= _CROWD) & (last - first >= _CROWD), 0, last - first)
    place = np.repeat(first - np.cumsum(count) + count, count) + np.arange(count.sum())
    return np.repeat(producers.event, count), consumers.event[place]


def _by_value(column: Column) -> Column:
    order = np.argsort(column.value, kind="stable")
    return Column(column.event[order], column.value[order])


# TPUs


def grouping_line(plane: Plane) -> Line | None:
    """The line of a TPU's plane that stands for it: steps, else modules; ``None`` where there is neither."""
    if not (is_core(plane.name, sparse=False) or is_core(plane.name, sparse=True)):
        return None
    for names in (STEP_LINES, MODULE_LINES):
        line = next((line for line in reversed(plane.lines) if line.name in names), None)
        if line is not None and line.events.stop > line.events.start:
            return line
    return None


def _delegated(sheet: Sheet, line: Line | None, events: Array) -> Array:
    """The event of the grouping line that encloses each of ``events``, or is it; :data:`NONE` where none does."""
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
    """Root nodes with their levels, those first that claim first (higher levels, then earlier starts); how many claim.

    Functions that tf.data runs for itself come last, as does what is its own cause: they claim nothing, yet keep what
    they caused from being a root.

    Args:
        forest: The graph.
        extra: More nodes that are roots, of level 1.
    """
    sheets = [sheet for sheet in forest.sheets if not sheet.is_tpu]

    def find(sheet: Sheet) -> _Pairs:
        column = roots_of(sheet.stats)
        return column.event, column.value

    roots = gather(sheets, find)
    nodes = np.concatenate((roots.event, extra))
    levels = np.concatenate((roots.value, np.ones(extra.size, np.int64)))
    idle = np.isin(nodes, _tf_data_roots(sheets)) | np.isin(nodes, forest.cause[forest.cause == forest.effect])
    order = np.lexsort((forest.start[nodes], -levels, idle))
    return Column(nodes[order], levels[order]), int((~idle).sum())


def _tf_data_roots(sheets: Sequence[Sheet]) -> Array:
    """Nodes of steps that tf.data runs for itself."""
    steps = gather(sheets, lambda sheet: _pairs(sheet.stats.column("id", signed=True)))
    return steps.event[np.isin(steps.value, _tf_data_steps(sheets))]


def _tf_data_steps(sheets: Sequence[Sheet]) -> Array:
    """Ids of the steps that tf.data runs for itself."""

    def find(sheet: Sheet) -> _Pairs:
        events, (step,) = shared((sheet.stats.column("id", signed=True),), sheet.stats.named(*_TF_DATA_FUNCTIONS))
        return events, step

    return np.unique(gather(sheets, find).value)


def loop_iterations(forest: Forest) -> tuple[Array, Forest]:
    """Roots where TensorFlow runs a loop in a graph: the first executor event of each iteration, by time.

    Gives no roots where no step has an iteration other than 0; else also the graph in which each iteration's first
    event leads to its others.
    """
    sheets = [sheet for sheet in forest.sheets if not sheet.is_tpu]

    def told(key: str) -> Column:
        def find(sheet: Sheet) -> _Pairs:
            columns = [sheet.stats.column(each, signed=True) for each in (key, "id", "iter_num")]
            events, values = shared(columns, sheet.stats.named(EXECUTOR))
            return events, values[0]

        return gather(sheets, find)

    steps, iterations = told("id"), told("iter_num")
    looping = np.unique(steps.value[iterations.value != 0])
    kept = np.isin(steps.value, looping) & ~np.isin(steps.value, _tf_data_steps(sheets))
    nodes, keys = steps.event[kept], mixed(steps.value[kept], iterations.value[kept])
    if not nodes.size:
        return nodes, forest
    order = np.lexsort((forest.start[nodes], keys))
    nodes, keys = nodes[order], keys[order]
    begins = np.r_[True, keys[1:] != keys[:-1]]
    first = nodes[begins][np.cumsum(begins) - 1]
    roots = nodes[begins]
    linked = forest.with_links(first[~begins], nodes[~begins])
    return roots[np.argsort(forest.start[roots], kind="stable")], linked


# Groups


def claim(forest: Forest, roots: Column, taken: Array, *, every: bool) -> Array:
    """Position in ``roots`` of the root that each node belongs to (int32), :data:`NONE` where it belongs to none.

    Only nodes with links between threads can take a group further than to what they enclose: it is spread over these,
    and all others are in the group of the nearest such node around them.

    Args:
        forest: The graph.
        roots: Root nodes and their levels in the order in which they claim.
        taken: Whether a node is not to be claimed (bool).
        every: As in :func:`traceviz.parsers.xplane_nesting.spread`.
    """
    joint = taken.copy()
    for nodes in (forest.cause, forest.effect, roots.event):
        joint[nodes] = True
    anchor, place, joints = nearest(forest.parent, joint), np.cumsum(joint) - 1, np.flatnonzero(joint)
    enclosed = joints[forest.parent[joints] >= 0]
    around = anchor[forest.parent[enclosed]]
    cause = place[np.concatenate((around[around >= 0], forest.cause))]
    effect = place[np.concatenate((enclosed[around >= 0], forest.effect))]
    free = ~taken[joints[effect]]
    children = Links.between(joints.size, cause[free], effect[free])
    parents = Links.between(joints.size, effect[free], cause[free])
    owner = np.append(claimed(children, parents, place[roots.event], roots.value, every=every), NONE)
    return owner[np.where(anchor >= 0, place[anchor], NONE)]


# What a node and its ancestors tell


class Ancestry:
    """Looks up what a node or its nearest ancestor tells."""

    def __init__(self, forest: Forest) -> None:
        self._forest = forest
        self._causes = Links.between(forest.parent.size, forest.effect, forest.cause)
        self._told = {key: self._values(key) for key in ("iter_num", "step_num")}
        self._graph_types = {
            sheet.base + event: text
            for sheet in forest.sheets
            for event, text in sheet.stats.texts("graph_type").items()
        }

    def _values(self, key: str) -> dict[int, int]:
        column = gather(self._forest.sheets, lambda sheet: _pairs(sheet.stats.column(key, signed=True)))
        return dict(zip(column.event.tolist(), column.value.tolist(), strict=True))

    def number(self, node: int) -> int | None:
        """Number of the step: iteration of a loop, else number of a step annotation; ``None`` where nothing tells."""
        for told in self._told.values():
            number = self._nearest(node, told)
            if number is not None:
                return number
        return None

    def graph_type(self, node: int) -> str | None:
        """Kind of graph that a node belongs to."""
        return self._nearest(node, self._graph_types)

    def _nearest(self, node: int, told: dict[int, Told]) -> Told | None:
        """Breadth-first: the enclosing event first, then causes in other threads."""
        if not told:
            return None
        seen, waiting = {node}, deque([node])
        while waiting:
            current = waiting.popleft()
            if current in told:
                return told[current]
            for above in self._above(current):
                if above not in seen:
                    seen.add(above)
                    waiting.append(above)
        return None

    def _above(self, node: int) -> Iterator[int]:
        parent = int(self._forest.parent[node])
        if parent != NONE:
            yield parent
        yield from self._causes.other[self._causes.first[node] : self._causes.first[node + 1]].tolist()


def _pairs(column: Column) -> _Pairs:
    return column.event, column.value
