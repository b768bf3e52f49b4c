"""A flame graph: a tree of names with the time of each, as a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Flame:
    """One tree. Nodes are numbers in its order: a node, then all in it; of siblings mostly that of most time first.

    Args:
        key: Stable key: ``operators-host``, ``modules-device``, ``ranges-host``, ``stacks-samples``.
        label: For people.
        measure: Whose time it is: of the host, of the device, or of sampled stacks.
        whole: What the root is, in words: ``29 steady steps``.
        parents: Node around each node; -1 for those at the top.
        names: Texts of the nodes.
        families: Keys of colours (:mod:`traceviz.render.palette`).
        classes: Key and label of each class of step time; empty where the time is not divided.
        times: Inclusive nanoseconds, one row per node, one column per class; one column where there are no classes.
        base: The same of the other side, where this is a difference; ``None`` where it is none.
        places: ``file:line`` of a node, empty where there is none.
        steps: Steps that the time is of; 0 where it is not of steps.
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
