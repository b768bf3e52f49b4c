"""Flame graphs as texts that a test can read: paths and their times."""

from __future__ import annotations

import numpy as np

from traceviz.pictures.flame.division import division
from traceviz.pictures.flame.flames import flames
from traceviz.pictures.flame.folding import Bounds
from traceviz.report.pictures.values import Flame

EVERYTHING = Bounds(least=0.0, most=10**9, deepest=10**9)


def flame_of(view, key, bounds=EVERYTHING):
    """Return the graph ``key`` of a trace."""
    return {flame.key: flame for flame in flames(view, bounds)}[key]


def paths(flame: Flame):
    """Return the path of each node, joined by `` > ``."""
    found: list[str] = []
    for name, parent in zip(flame.names, flame.parents.tolist(), strict=True):
        found.append(f"{found[parent]} > {name}" if parent >= 0 else name)
    return found


def times(flame: Flame):
    """Return inclusive nanoseconds by path."""
    return dict(zip(paths(flame), flame.times.sum(axis=1).tolist(), strict=True))


def by_class(flame: Flame):
    """Return nanoseconds by path and class, if there are any."""
    keys = [key for key, _ in flame.classes]
    return {
        path: {key: value for key, value in zip(keys, row, strict=True) if value}
        for path, row in zip(paths(flame), flame.times.tolist(), strict=True)
    }


def made(rows, *, steps=0, classes=(("host_compute", "other host time"),), **extra):
    """Return a graph from ``(path, time or times per class)``, the outer nodes before those in them."""
    number: dict[str, int] = {}
    parents = []
    for path, _ in rows:
        parents.append(number.get(path.rpartition(" > ")[0], -1))
        number[path] = len(number)
    values = [[value] if isinstance(value, int) else list(value) for _, value in rows]
    return Flame(
        key="operators-host",
        label="Operators, host time",
        measure="host",
        whole=f"{steps} steady steps" if steps else "the whole capture",
        parents=np.array(parents, np.int64),
        names=tuple(path.rpartition(" > ")[2] for path, _ in rows),
        families=("op",) * len(rows),
        classes=tuple(classes),
        times=np.array(values, np.int64).reshape(len(rows), -1),
        places=("",) * len(rows),
        steps=steps,
        **extra,
    )


def checked(flame: Flame):
    """Return the graph, after its laws were checked: parents first, no node with more than the one around it."""
    values = flame.times.sum(axis=1)
    assert (flame.times >= 0).all()
    inner = np.flatnonzero(flame.parents >= 0)
    assert (flame.parents[inner] < inner).all()
    inside = np.zeros(len(flame.names), np.int64)
    np.add.at(inside, flame.parents[inner], values[inner])
    assert (inside <= values).all()
    assert len(flame.names) == len(flame.families) == len(flame.places) == flame.times.shape[0]
    return flame


__all__ = ["EVERYTHING", "by_class", "checked", "division", "flame_of", "made", "paths", "times"]
