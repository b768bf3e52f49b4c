"""Nesting of events, and the nodes that belong to each root event: plain arrays in, plain arrays out.

Each compiled function has an equivalent in NumPy, which runs if nothing is compiled.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traceviz.parsers.shared.arrays.native import native
from traceviz.parsers.shared.arrays.operations import NONE, Array, by_key, take


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """Links from nodes to other nodes: node ``n`` links to ``other[first[n]:first[n + 1]]``.

    Args:
        first: Offset of the first link of each node (int64, one more than there are nodes).
        other: Nodes at the far ends (int32).
    """

    first: Array
    other: Array

    @classmethod
    def between(cls, nodes: int, near: Array, far: Array) -> Links:
        """Return links from each of ``near`` to its element of ``far``; several links of a node keep their order."""
        first, order = by_key(near, nodes)
        return cls(first, take(np.ascontiguousarray(far, np.int32), order))


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Spans of time on lines: events, or regions within them. The spans of a line are contiguous.

    Args:
        line: Line of each (int32).
        start: Start of each (int64), counted from any one moment per line.
        duration: Duration of each (int64).
        base: Node of the first one.
        parent: Output: node of the innermost span of the same line that encloses each (int32), or :data:`NONE`.
    """

    line: Array
    start: Array
    duration: Array
    base: int
    parent: Array


def nest(events: Spans, regions: Spans | None = None, own: Array | None = None) -> None:
    """Write the parents of ``events`` and ``regions``, which are nested as one.

    Args:
        events: The events of a plane.
        regions: Regions on the same lines; their nodes come after those of all events.
        own: Mask of the events that take part (bool); ``None`` for all. The others have no parent, and are no parents.

    One span encloses a later one if it ends no earlier. So of two equal spans the first is the parent, and an instant
    belongs to the span that ends at the same time. Spans that overlap in part are siblings. Events come before regions.

    ::

        a |---------------------|         parent of b: a
        b   |-------|                     parent of c: b
        c     |--|                        parent of d: a, the nearest before it that ends no earlier
        d             |------|

    The compiled function takes spans that are sorted within each line, by start and falling end, as profilers write
    them; all others are sorted here.
    """
    if regions is None:
        none, narrow = np.empty(0, np.int64), np.empty(0, np.int32)
        regions = Spans(narrow, none, none, events.base + events.line.size, narrow)
    own = np.empty(0, dtype=bool) if own is None else own
    library = native()
    if library is None or not library.nest(_buffers(events), _buffers(regions), own.view(np.uint8)):
        _nest_any(events, regions, own)


def _buffers(spans: Spans) -> tuple[Array, Array, Array, int, Array]:
    line, start = np.ascontiguousarray(spans.line, np.int32), np.ascontiguousarray(spans.start, np.int64)
    return line, start, np.ascontiguousarray(spans.duration, np.int64), spans.base, spans.parent


def _nest_any(events: Spans, regions: Spans, own: Array) -> None:
    """Do the same as :func:`nest`, for spans in any order."""
    selected = np.flatnonzero(own) if own.size else np.arange(events.line.size)
    line, start, duration = (
        np.concatenate((of_event[selected], of_region))
        for of_event, of_region in (
            (events.line, regions.line),
            (events.start, regions.start),
            (events.duration, regions.duration),
        )
    )
    end = start + duration
    order = np.arange(line.size) if are_sorted(line, start, end) else np.lexsort((-end, start, line))
    parents = nest_sorted(line[order], start[order], end[order])
    nodes = np.concatenate((selected + events.base, np.arange(regions.line.size) + regions.base))
    parent = np.empty(line.size, np.int32)
    parent[order] = np.where(parents >= 0, nodes[order[parents]], NONE) if parents.size else parents
    events.parent[:] = NONE
    events.parent[selected], regions.parent[:] = parent[: selected.size], parent[selected.size :]


def are_sorted(line: Array, start: Array, end: Array) -> bool:
    """Return whether spans are sorted by line, start and falling end."""
    later = (start[1:] > start[:-1]) | ((start[1:] == start[:-1]) & (end[1:] <= end[:-1]))
    return bool(((line[1:] > line[:-1]) | ((line[1:] == line[:-1]) & later)).all())


def nest_sorted(line: Array, start: Array, end: Array) -> Array:  # noqa: ARG001
    """Return positions of the parents of sorted spans (int32), :data:`NONE` at the top.

    The parent is the nearest earlier span of the line whose end is not smaller. In each round, all spans whose
    candidate is too short move to the candidate's own candidate: skipped spans are shorter still. Jumps double, so
    about log2(spans) rounds are enough.
    """
    run_starts = np.flatnonzero(np.r_[True, line[1:] != line[:-1]])
    first = np.repeat(run_starts, np.diff(np.r_[run_starts, line.size]))
    parent = np.arange(-1, line.size - 1, dtype=np.int32)
    parent[parent < first] = NONE
    open_events = np.flatnonzero(parent >= 0)
    while True:
        candidates = parent[open_events]
        too_short = end[candidates] < end[open_events]
        open_events, candidates = open_events[too_short], candidates[too_short]
        if not open_events.size:
            return parent
        parent[open_events] = parent[candidates]
        open_events = open_events[parent[open_events] >= 0]


def enclosing(line: Array, start: Array, duration: Array) -> Array:
    """Return the position of the innermost event of the same line around each event (int32), see :func:`nest`."""
    parent = np.empty(line.size, np.int32)
    nest(Spans(line, start, duration, 0, parent))
    return parent


def nearest(parent: Array, selected: Array) -> Array:
    """Return, for each event, its own number if selected, else that of its nearest selected ancestor (int32).

    Args:
        parent: Parent of each event (int32), negative at the top.
        selected: Mask of the selected events (bool). They are numbered in order; :data:`NONE` stands for none.
    """
    library = native()
    if library is not None:
        ancestor = np.empty(parent.size, np.int32)
        library.nearest(np.ascontiguousarray(parent), np.ascontiguousarray(selected).view(np.uint8), ancestor)
        return ancestor
    ancestor = np.where(selected, np.arange(parent.size, dtype=np.int32), parent)
    open_events = np.flatnonzero((ancestor >= 0) & ~selected)
    while open_events.size:
        open_events = open_events[~selected[ancestor[open_events]]]
        ancestor[open_events] = ancestor[ancestor[open_events]]
        open_events = open_events[ancestor[open_events] >= 0]
    return take(np.cumsum(selected, dtype=np.int32) - np.int32(1), ancestor)


def depths(parent: Array) -> Array:
    """Return the number of ancestors of each event (int32).

    Args:
        parent: Position of the parent of each (int32), negative at the top.
    """
    library = native()
    if library is not None:
        depth = np.empty(parent.size, np.int32)
        if library.depths(np.ascontiguousarray(parent, np.int32), depth):
            return depth
    return _by_doubling(parent)


def _by_doubling(parent: Array) -> Array:
    """Do the same as :func:`depths`, also for parents that come after their children.

    Each round doubles the range of the search: after ``n`` rounds, ``depth`` counts the ancestors within ``2**n``
    steps, and ``ancestor`` is the one after that many. Elements that have reached the top drop out.
    """
    depth = (parent >= 0).astype(np.int32)
    ancestor = parent.astype(np.int32)
    climbing = np.flatnonzero(ancestor >= 0).astype(np.int32)
    while climbing.size:
        above = ancestor[climbing]
        # Read both before writing either: the ancestor may be climbing as well.
        more, further = depth[above], ancestor[above]
        depth[climbing] += more
        ancestor[climbing] = further
        climbing = climbing[further >= 0]
    return depth


def spread(children: Links, parents: Links, roots: Array, levels: Array, *, every: bool) -> Array:
    """Return the position in ``roots`` of the root that claims each node (int32), :data:`NONE` if none does.

    Args:
        children: Links from each node to its children.
        parents: The same links backwards.
        roots: Root nodes in the order in which they claim.
        levels: Level of each root.
        every: Let every root claim. Otherwise a root claims only if none of its ancestors is a root of its own level.

    A root that is free claims itself and all free nodes that can be reached from it over free nodes.

    The result does not depend on the order in which the nodes below a root are visited.
    """
    library = native()
    if library is None:
        return _spread(children, parents, roots, levels, every=every)
    owner = np.empty(children.first.size - 1, np.int32)
    columns = (children.first, children.other, parents.first, parents.other)
    library.spread(*columns, roots.astype(np.int32), levels.astype(np.int32), every, owner)
    return owner


def _spread(children: Links, parents: Links, roots: Array, levels: Array, *, every: bool) -> Array:
    owner = [NONE] * (children.first.size - 1)
    child_first, child = children.first.tolist(), children.other.tolist()
    parent_lists = parents.first.tolist(), parents.other.tolist()
    level_of = dict(zip(roots.tolist(), levels.tolist(), strict=True))
    for claim, root in enumerate(roots.tolist()):
        if owner[root] != NONE or (not every and _has_equal_above(*parent_lists, root, level_of)):
            continue
        owner[root] = claim
        waiting = [root]
        while waiting:
            node = waiting.pop()
            for below in child[child_first[node] : child_first[node + 1]]:
                if owner[below] == NONE:
                    owner[below] = claim
                    waiting.append(below)
    return np.array(owner, dtype=np.int32)


def _has_equal_above(first: list[int], parent: list[int], root: int, level_of: dict[int, int]) -> bool:
    """Return whether a root of the level of ``root`` is among its ancestors."""
    seen, waiting = {root}, [root]
    while waiting:
        node = waiting.pop()
        for above in parent[first[node] : first[node + 1]]:
            if above not in seen:
                if level_of.get(above) == level_of[root]:
                    return True
                seen.add(above)
                waiting.append(above)
    return False
