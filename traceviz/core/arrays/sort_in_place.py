"""Rows that nearly come by time, as profilers write them, put in order where they are: no column is in memory twice.

Threads hand over what they recorded in pieces, so that rows are some hundreds of places from where they belong::

    thread 1   10 14 19             in the file   10 14 19 12 15 22         in order   10 12 14 15 19 22
    thread 2            12 15 22
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from traceviz.core.arrays import nested

Array = npt.NDArray[np.int64]
FURTHEST = 1 << 20
"""Rows that are further from their places are moved in another way: a window of so many is held."""


def put_in_order(times: Array, columns: Sequence[npt.NDArray[Any]]) -> bool:
    """Sort ``columns`` of one length by ``times``, equal ones as they come, in their own memory.

    Args:
        times: Their times; not one of them, unless it is the last.
        columns: Columns of 1, 2, 4 or 8 bytes.

    Returns:
        Whether they are in order now; where not, nothing was moved: many rows are far from their places.
    """
    if nested.library is None:
        order = np.argsort(times, kind="stable")
        for column in columns:
            column[:] = column[order]
        return True
    rows = np.empty(times.size, np.int32)
    distance = nested.library.order_times(times, rows)
    if not 0 <= distance <= FURTHEST:
        return False
    for column in columns if distance else ():
        nested.library.move(rows, column.itemsize, distance, column.view(f"u{column.itemsize}"))
    return True
