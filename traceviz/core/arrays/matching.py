"""Rows that match by a pair of integers, such as device work and the call that launched it.

Ids that a profiler counts up lie close together. A list with one place per id finds partners in one pass over each
side; a hash join takes fifty times as long. Ids that lie far apart are ranked first.

::

    among    id    7  8  8  9                 place   7  8  9  10
    sought   id    8  9  5  8                 row     0  1  3  -1
    rows           1  3 -1  1
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from traceviz.core.arrays.nested import PairColumns, matched

Numbers = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]
"""Row numbers; -1 means none."""

_PLACES_PER_ROW = 16
"""Up to this many places per row, the list takes less time than ranking the ids."""
_LEAST_PLACES = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Pairs of integers, one for each row. Rows that are not ``known`` match no other.

    Args:
        owners: The scope in which the ids are unique: a process.
        ids: The ids.
        known: True for rows that have an id; ``None`` if all have.
    """

    owners: npt.NDArray[np.integer]
    ids: Numbers
    known: npt.NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return int(self.ids.size)

    @property
    def columns(self) -> PairColumns:
        """Owners, ids, and the mask of known rows."""
        return self.owners, self.ids, self.known


def first_rows(sought: Pairs, among: Pairs) -> Rows:
    """Return, for each of ``sought``, the first row of ``among`` with the same pair.

    Returns:
        Rows of ``among``, -1 if there is none.
    """
    if not len(sought) or not len(among):
        return np.full(len(sought), -1, np.int32)
    # Most traces have one process, which needs no sort.
    owners = among.owners[:1] if among.owners.min() == among.owners.max() else np.unique(among.owners)
    least, most = int(among.ids.min()), int(among.ids.max())
    width = most - least + 1
    if owners.size * width <= max(_PLACES_PER_ROW * (len(sought) + len(among)), _LEAST_PLACES):
        return matched(sought.columns, among.columns, owners, least, width)
    # Ids lie far apart: places are ranks, by id and then by pair. The last place is that of rows without a pair.
    _, rank = np.unique(np.concatenate([among.ids, sought.ids]), return_inverse=True)
    _, owner = np.unique(np.concatenate([among.owners, sought.owners]), return_inverse=True)
    _, places = np.unique(owner * (int(rank.max()) + 1) + rank, return_inverse=True)
    unknown = int(places.max()) + 1
    held, wanted = places[: len(among)], places[len(among) :]
    for pairs, part in ((among, held), (sought, wanted)):
        if pairs.known is not None:
            part[~pairs.known] = unknown
    table = np.full(unknown + 1, -1, np.int32)
    backwards = slice(None, None, -1)  # of equal places the last write stays: the first row
    table[held[backwards]] = np.arange(len(among), dtype=np.int32)[backwards]
    table[unknown] = -1
    return np.asarray(table[wanted])


def is_repeated(pairs: Pairs) -> npt.NDArray[np.bool_]:
    """Return whether an earlier row has the same pair; false for rows without a pair."""
    rows = first_rows(pairs, pairs)
    return np.asarray((rows >= 0) & (rows != np.arange(rows.size, dtype=np.int32)))
