"""Which event encloses which, and how far the groups of root events reach: plain arrays in, plain arrays out.

The compiled scanner has the same two functions; these are what they must agree with, and what runs without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from traceviz.parsers.xplane_raw import Array

_SCANNER = "traceviz.parsers._xplane"
_compiled: Any = import_module(_SCANNER) if find_spec(_SCANNER) else None

NONE = -1
"""Stands for no event, no root, no group."""


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """Links from nodes to other nodes: those of node ``n`` are ``other[first[n]:first[n + 1]]``.

    Args:
        first: Where the links of each node begin (int64, one more than there are nodes).
        other: Nodes at the far ends (int32).
    """

    first: Array
    other: Array

    @classmethod
    def between(cls, nodes: int, near: Array, far: Array) -> Links:
        """Links from each of ``near`` to its element of ``far``; several links of a node keep their order."""
        order = np.argsort(near, kind="stable")
        first = np.zeros(nodes + 1, np.int64)
        np.cumsum(np.bincount(near, minlength=nodes), out=first[1:])
        return cls(first, far[order].astype(np.int32))


def enclosing(line: Array, start: Array, end: Array) -> Array:
    """As :func:`nest`, for events in any order within their lines; of equal spans the earlier one is the parent."""
    nested = _nested(line, start, end)
    if nested is not None:
        return nested
    order = np.lexsort((-end, start, line))
    nested = _nested(line[order], start[order], end[order])
    assert nested is not None
    parent = np.empty_like(nested)
    parent[order] = np.where(nested >= 0, order[nested], NONE)
    return parent


def _in_order(line: Array, start: Array, end: Array) -> bool:
    later = (start[1:] > start[:-1]) | ((start[1:] == start[:-1]) & (end[1:] <= end[:-1]))
    return bool(((line[1:] > line[:-1]) | ((line[1:] == line[:-1]) & later)).all())


def _nested(line: Array, start: Array, end: Array) -> Array | None:
    """As :func:`nest`, ``None`` where the events are not in order."""
    if _compiled is None:
        return nest(line, start, end) if _in_order(line, start, end) else None
    times = (np.ascontiguousarray(column, dtype=np.int64) for column in (start, end))
    found = _compiled.nest(np.ascontiguousarray(line, dtype=np.int32), *times)
    return None if found is None else np.frombuffer(found, np.int32)


def nest(line: Array, start: Array, end: Array) -> Array:  # noqa: ARG001
    """Position of the innermost event of the same line that encloses each event (int32), :data:`NONE` at the top.

    Args:
        line: Line of each event (int32); the events of a line lie together.
        start: Start of each event (int64), ascending within a line; of equal starts the longer comes first.
        end: End of each event (int64).

    One event encloses a later one if it ends no earlier, so that of two equal spans the first is the parent, and an
    instant belongs to what ends at that very moment. Spans that overlap in part are siblings.

    ::

        a |---------------------|         parent of b: a
        b   |-------|                     parent of c: b
        c     |--|                        parent of d: a, the nearest before it that ends no earlier
        d             |------|

    The parent is therefore the nearest earlier event of the line whose end is not smaller. Each round lets all events
    whose candidate is too short jump to the candidate's own candidate: what is skipped is shorter still. Jumps double,
    so about log2(events) rounds are enough.
    """
    first = _firsts(line)
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


def _firsts(line: Array) -> Array:
    """Position of the first event of the run of equal ``line`` that each event is in."""
    starts = np.flatnonzero(np.r_[True, line[1:] != line[:-1]])
    return np.repeat(starts, np.diff(np.r_[starts, line.size]))


def nearest(parent: Array, wanted: Array) -> Array:
    """The event itself where it is ``wanted`` (bool), else its nearest wanted ancestor, else :data:`NONE` (int32)."""
    found = np.where(wanted, np.arange(parent.size, dtype=np.int32), parent)
    open_events = np.flatnonzero((found >= 0) & ~wanted)
    while open_events.size:
        open_events = open_events[~wanted[found[open_events]]]
        found[open_events] = found[found[open_events]]
        open_events = open_events[found[open_events] >= 0]
    return found


def spread(children: Links, parents: Links, roots: Array, levels: Array, *, every: bool) -> Array:
    """Position in ``roots`` of the root that claims each node (int32), :data:`NONE` where none does.

    Args:
        children: What each node leads to.
        parents: The same links backwards.
        roots: Root nodes in the order in which they claim (int32).
        levels: Level of each root (int32).
        every: Let every root claim. Otherwise a root claims only if none of its ancestors is a root of its own level.

    A root that is free claims itself and all free nodes that can be reached from it over free nodes.

    The result is the same in whatever order the nodes below a root are visited.
    """
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


def claimed(children: Links, parents: Links, roots: Array, levels: Array, *, every: bool) -> Array:
    """As :func:`spread`, by the compiled scanner where there is one."""
    if _compiled is None:
        return spread(children, parents, roots, levels, every=every)
    columns = (children.first, children.other, parents.first, parents.other)
    firsts = (roots.astype(np.int32), levels.astype(np.int32))
    return np.frombuffer(_compiled.spread(*columns, *firsts, every), np.int32)


def _has_equal_above(first: list[int], parent: list[int], root: int, level_of: dict[int, int]) -> bool:
    """Whether a root of the level of ``root`` is among its ancestors."""
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
