"""In-place sorting of rows that nearly come by time, as profilers write them. No column is in memory twice.

Threads deliver their records in pieces, so rows are some hundreds of places from where they belong::

    thread 1   10 14 19             in the file   10 14 19 12 15 22         in order   10 12 14 15 19 22
    thread 2            12 15 22
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from traceviz.core.arrays.library import library

Array = npt.NDArray[np.int64]
FURTHEST = 1 << 20
"""Largest distance of a row from its place, in rows. The sort holds a window of this many; others sort another way."""


def put_in_order(times: Array, columns: Sequence[npt.NDArray[Any]]) -> bool:
    """Sort ``columns`` of one length by ``times``, in their own memory. Equal times keep their order.

    Args:
        times: Their times; not one of the columns, unless it is the last.
        columns: Columns of 1, 2, 4 or 8 bytes.

    Returns:
        True if they are in order now. False if a row is too far from its place; then nothing was moved.
    """
    rows = np.empty(times.size, np.int32)
    distance = library.order_times(times, rows)
    if not 0 <= distance <= FURTHEST:
        return False
    for column in columns if distance else ():
        library.move(rows, column.itemsize, distance, column.view(f"u{column.itemsize}"))
    return True
