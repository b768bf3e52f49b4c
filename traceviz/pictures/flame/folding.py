"""Folding a tree: large nodes stay, and one node per parent sums the small ones.

::

    train 100                  train 100
      load 60                    load 60
      log 0.05        ->         (other) 0.08
      save 0.03
        fsync 0.02
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traceviz.core.arrays.intervals import Array
from traceviz.core.arrays.nested import Mask, Rows

OTHER = "(other)"
"""Name of the node that sums the children of a node that are too small to draw."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits for the size and number of nodes.

    Args:
        least: Share of the whole below which a node is not drawn by itself.
        most: Nodes of a tree, including those called :data:`OTHER`.
        deepest: Nodes from the outermost to the innermost.
    """

    least: float = 0.001
    most: int = 3000
    deepest: int = 200


@dataclass(frozen=True, slots=True, eq=False)
class Folded:
    """The nodes that stay, in the order of the tree, siblings by their time.

    Args:
        sources: The node of the tree that each is; -1 for a node that sums several.
        parents: The node around each; -1 for none.
        whole: For each node of the tree, the kept node with its inclusive time; -1 if a node around it has that time.
        own: For each node of the tree, the kept node with its self time; -1 for none.
    """

    sources: Array
    parents: Array
    whole: Array
    own: Array

    @property
    def count(self) -> int:
        """Number of nodes that stay."""
        return int(self.sources.size)


def depths(parents: Rows) -> Array:
    """Count the nodes around each node."""
    depth, outer = (parents >= 0).astype(np.int64), parents.astype(np.int64)
    while (inside := outer >= 0).any():  # once per doubling of the depth
        depth = depth + np.where(inside, depth[outer], 0)
        outer = np.where(inside, outer[outer], -1)
    return depth


def levels(parents: Rows) -> list[Array]:
    """Return the nodes of a tree by their depth, the outermost first."""
    depth = depths(parents)
    order = np.argsort(depth, kind="stable")
    return np.split(order, np.searchsorted(depth[order], np.arange(1, int(depth.max(initial=0)) + 1)))


def accumulated(parents: Rows, own: Array) -> Array:
    """Sum the values of each node and all nodes inside it; ``own`` has one row per node."""
    total = own.astype(np.int64, copy=True)
    for rows in reversed(levels(parents)[1:]):
        np.add.at(total, parents[rows], total[rows])
    return total


def folded(parents: Rows, times: Array, bounds: Bounds, first: Array | None = None) -> Folded:
    """Fold a tree.

    Args:
        parents: The node around each, in any order; -1 for none.
        times: Inclusive time of each; at most that of the node around it.
        bounds: Limits for the size and number of nodes.
        first: Nodes that come before their siblings, however small.
    """
    whole = int(times[parents < 0].sum())
    order = times.copy()
    if first is not None:
        order[first] = whole + 1
    return _placed(parents, times, order, _kept(parents, times, max(bounds.least * whole, 1), bounds))


def _kept(parents: Rows, times: Array, least: float, bounds: Bounds) -> Mask:
    """Return a mask of the largest nodes that fit within the limits, together with the nodes that sum others."""
    depth, most = depths(parents), bounds.most
    order = np.lexsort((depth, -times))  # for equal times the outer node comes first, so that parents stay
    order = order[: int(np.searchsorted(-times[order], -least, side="right"))]
    order = order[depth[order] < bounds.deepest - 1]
    allowed = min(order.size, most)
    while True:
        kept = np.zeros(parents.size, np.bool_)
        kept[order[:allowed]] = True
        count = allowed + _others(parents, times, kept).size
        if count <= most or not allowed:
            return kept
        allowed = min(allowed - 1, allowed * most // count)


def _others(parents: Rows, times: Array, kept: Mask) -> Array:
    """Return the kept nodes with children that are not kept; -1 for the top."""
    left = np.flatnonzero(~kept & (times > 0))
    left = left[(parents[left] < 0) | kept[parents[left]]]
    return np.asarray(np.unique(parents[left]), np.int64)


def _placed(parents: Rows, times: Array, sizes: Array, kept: Mask) -> Folded:
    """Order the kept nodes depth-first, the largest sibling first and the sum of the others last."""
    above = _others(parents, times, kept)
    rows = np.flatnonzero(kept)
    sources = np.concatenate([rows, np.full(above.size, -1, np.int64)])
    number = np.full(parents.size + 1, -1, np.int64)  # the last entry is the top
    number[rows] = np.arange(rows.size)
    other = np.full(parents.size + 1, -1, np.int64)
    other[above] = rows.size + np.arange(above.size)
    inner = np.concatenate([number[np.where(parents[rows] >= 0, parents[rows], -1)], number[above]])
    order = _depth_first(inner, np.concatenate([sizes[rows], np.full(above.size, -1, np.int64)]))
    place = np.empty(order.size + 1, np.int64)
    place[order], place[-1] = np.arange(order.size), -1
    whole, own = np.full(parents.size, -1, np.int64), np.full(parents.size, -1, np.int64)
    whole[rows] = place[number[rows]]
    for level in levels(parents):
        stays = level[kept[level]]
        own[stays] = whole[stays]
        left = level[~kept[level]]
        outer = np.where(parents[left] >= 0, parents[left], -1)
        is_first = (outer < 0) | kept[outer]
        first, deeper = left[is_first], left[~is_first]
        whole[first] = own[first] = place[other[outer[is_first]]]
        own[deeper] = own[parents[deeper]]
    return Folded(sources[order], place[inner[order]], whole, own)


def _depth_first(parents: Array, sizes: Array) -> Array:
    """Order nodes depth-first: a node, then all inside it; the largest sibling first."""
    children: dict[int, list[int]] = {}
    for node in np.lexsort((np.arange(sizes.size), -sizes)).tolist():
        children.setdefault(int(parents[node]), []).append(node)
    order: list[int] = []
    waiting = children.get(-1, [])[::-1]
    while waiting:  # once per node that is drawn
        node = waiting.pop()
        order.append(node)
        waiting.extend(reversed(children.get(node, [])))
    return np.array(order, np.int64)
