"""Two flame graphs merged into one: nodes by their path, with the time of both sides.

::

    base, 10 steps         new, 20 steps          per step: base, new
    train 1000             train 1000             train 100, 50
      load 600               load 200               load 60, 10
      log 100                eval 200               log 10, 0
                                                    eval 0, 10
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from traceviz.analyses.derived.host.classes import CLASSES
from traceviz.core.arrays.intervals import Array
from traceviz.pictures.flame.division import OUTSIDE
from traceviz.pictures.flame.folding import OTHER, Bounds, accumulated, folded
from traceviz.report.pictures.values import Flame

FINE = Bounds(least=0.0001, most=20_000)
"""Limits for the sides of a difference: fine, because one side may keep what the other would fold."""

_ORDER = {key: place for place, key in enumerate([*(known.key for known in CLASSES), OUTSIDE[0]])}


def differences(base: Iterable[Flame], new: Iterable[Flame], bounds: Bounds | None = None) -> tuple[Flame, ...]:
    """Return the differences of the graphs that both sides have, in the order of the new side."""
    known = {flame.key: flame for flame in base}
    return tuple(difference(known[flame.key], flame, bounds) for flame in new if flame.key in known)


def difference(base: Flame, new: Flame, bounds: Bounds | None = None) -> Flame:
    """Merge two graphs: the new side, with the time of the base for each node.

    Time is per step if both sides have steps, so that runs of different length compare. Nodes of one side are 0 on the
    other. The time of both sides together decides which nodes are too small.

    Args:
        base: The side to compare with.
        new: The side that is shown.
        bounds: Limits for the size and number of nodes.
    """
    nodes: dict[tuple[int, str], int] = {}
    parents: list[int] = []
    described: list[tuple[str, str, str]] = []
    places = [_placed(side, nodes, parents, described) for side in (new, base)]
    classes = tuple(sorted({*new.classes, *base.classes}, key=lambda known: (_ORDER.get(known[0], len(_ORDER)), known)))
    per_step = bool(base.steps and new.steps)
    own = [
        _own(side, place, len(parents), classes, side.steps if per_step else 1)
        for side, place in zip((new, base), places, strict=True)
    ]
    around = np.array(parents, np.int64)
    both = accumulated(around, own[0].sum(axis=1) + own[1].sum(axis=1))
    kept = folded(around, both, bounds or Bounds())
    times, others = (accumulated(kept.parents, _moved(part, kept.own, kept.count)) for part in own)
    texts = [described[source] if source >= 0 else (OTHER, "other", "") for source in kept.sources.tolist()]
    sides = f"{new.whole}, and {base.whole} of the base"
    words = f"one step on average: {sides}" if per_step else sides
    return Flame(
        key=new.key,
        label=new.label,
        measure=new.measure,
        whole=words,
        parents=kept.parents,
        names=tuple(name for name, _, _ in texts),
        families=tuple(family for _, family, _ in texts),
        classes=classes,
        times=times,
        base=others,
        places=tuple(place for _, _, place in texts),
        steps=1 if per_step else 0,
    )


def _placed(
    side: Flame, nodes: dict[tuple[int, str], int], parents: list[int], described: list[tuple[str, str, str]]
) -> Array:
    """Map each node of a side to its node in the merged tree; add missing nodes."""
    place = np.empty(len(side.names), np.int64)
    for node, (name, family, where) in enumerate(_described(side)):
        outer = int(side.parents[node])
        key = -1 if outer < 0 else int(place[outer]), name
        if key not in nodes:
            nodes[key] = len(parents)
            parents.append(key[0])
            described.append((name, family, where))
        place[node] = nodes[key]
    return place


def _described(side: Flame) -> Iterator[tuple[str, str, str]]:
    return zip(side.names, side.families, side.places or ("",) * len(side.names), strict=True)


def _own(side: Flame, place: Array, count: int, classes: tuple[tuple[str, str], ...], steps: int) -> Array:
    """Return self time by node of the merged tree and class, rounded so that the sums are preserved."""
    inclusive = np.zeros((count, max(len(classes), 1)), np.int64)
    columns = [classes.index(known) for known in side.classes] or [0]
    rounded = (side.times + steps // 2) // steps
    inner = np.flatnonzero(side.parents >= 0)
    own = rounded.copy()
    np.subtract.at(own, side.parents[inner], rounded[inner])
    for column, values in zip(columns, own.T, strict=True):
        np.add.at(inclusive[:, column], place, values)
    return inclusive


def _moved(own: Array, owner: Array, count: int) -> Array:
    moved = np.zeros((count, own.shape[1]), np.int64)
    known = owner >= 0
    np.add.at(moved, owner[known], own[known])
    return moved
