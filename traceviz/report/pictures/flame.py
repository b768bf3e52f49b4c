"""A flame graph: a tree of names with the time of each, as a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Flame:
    """One tree. Nodes are numbered depth-first: a node, then all inside it; siblings mostly by time, the largest first.

    Args:
        key: Stable key: ``operators-host``, ``modules-device``, ``ranges-host``, ``stacks-samples``.
        label: Readable label.
        measure: Source of the time: the host, the device, or sampled stacks.
        whole: The time of the root as text: ``29 steady steps``.
        parents: Node around each node; -1 for those at the top.
        names: Texts of the nodes.
        families: Keys of colours (:mod:`traceviz.render.palette`).
        classes: Key and label of each class of step time; empty if the time is not divided.
        times: Inclusive nanoseconds, one row per node, one column per class; one column if there are no classes.
        base: The same of the other side of a difference; ``None`` if this is not a difference.
        places: ``file:line`` of a node, empty if there is none.
        steps: Number of steps that the time covers; 0 if it is not time of steps.
    """

    key: str
    label: str
    measure: Literal["host", "device", "samples"]
    whole: str
    parents: Array
    names: tuple[str, ...]
    families: tuple[str, ...]
    classes: tuple[tuple[str, str], ...]
    times: Array
    base: Array | None = None
    places: tuple[str, ...] = ()
    steps: int = 0
