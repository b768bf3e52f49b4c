"""Folded stacks (``a;b;c 123``), the format of flamegraph.pl, inferno and speedscope; self time in nanoseconds."""

from __future__ import annotations

import numpy as np

from traceviz.report.pictures.values import Flame


def folded(flame: Flame, class_key: str | None = None) -> str:
    """Write each node with self time as a line; of a difference, the new side.

    Args:
        flame: The tree.
        class_key: Only time of this class of step time; all time by default.
    """
    keys = [key for key, _ in flame.classes]
    times = flame.times.sum(axis=1) if class_key is None else flame.times[:, keys.index(class_key)]
    own = times.copy()
    inner = np.flatnonzero(flame.parents >= 0)
    np.subtract.at(own, flame.parents[inner], times[inner])
    paths: list[str] = []
    for name, parent in zip(flame.names, flame.parents.tolist(), strict=True):
        # The format separates by semicolons and line breaks.
        plain = " ".join(name.replace(";", ":").split()) or "?"
        paths.append(f"{paths[parent]};{plain}" if parent >= 0 else plain)
    return "".join(f"{path} {value}\n" for path, value in zip(paths, own.tolist(), strict=True) if value > 0)
