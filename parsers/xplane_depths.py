"""How deep operations are nested, from the parent of each."""

from __future__ import annotations

import numpy as np

from traceviz.parsers.xplane_compiled import library
from traceviz.parsers.xplane_raw import Array


def depths(parent: Array) -> Array:
    """Number of ancestors of each element (int32).

    Args:
        parent: Position of the parent of each (int32), negative at the top.
    """
    if library is not None and (parent < np.arange(parent.size, dtype=np.int32)).all():
        return np.frombuffer(library.depths(np.ascontiguousarray(parent, dtype=np.int32)), np.int32)
    return _by_doubling(parent)


def _by_doubling(parent: Array) -> Array:
    """As :func:`depths`, for machines without the compiled scanner and for parents that come after their children.

    Each round doubles how far the search has come up: after ``n`` rounds, ``depth`` counts the ancestors within
    ``2**n`` steps and ``ancestor`` is the one after that many. Elements that have reached the top drop out.
    """
    depth = (parent >= 0).astype(np.int32)
    ancestor = parent.astype(np.int32)
    climbing = np.flatnonzero(ancestor >= 0).astype(np.int32)
    while climbing.size:
        above = ancestor[climbing]
        # Both are read before either is written: what is above may be climbing as well.
        more, further = depth[above], ancestor[above]
        depth[climbing] += more
        ancestor[climbing] = further
        climbing = climbing[further >= 0]
    return depth
