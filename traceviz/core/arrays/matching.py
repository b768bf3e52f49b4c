"""Rows that belong together by a pair of integers, such as device work and the call that launched it.

Ids that a profiler counts up lie close together: a list with a place for each of them finds partners in one pass over
each side, where a join by hashes takes fifty times as long. Ids that lie far apart are ranked first.

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
"""Numbers of rows; -1 stands for none."""

_PLACES_PER_ROW = 16
"""So many places for each row take less time than to rank the ids."""
_LEAST_PLACES = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Pairs of integers, one for each row; rows without ``known`` belong to no other.

    Args:
        owners: What the ids are unique in: a process.
        ids: The ids.
        known: Which rows have an id; ``None`` where all have.
    """

    owners: npt.NDArray[np.integer]
    ids: Numbers
    known: npt.NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return int(self.ids.size)

    @property
    def columns(self) -> PairColumns:
        """Owners, ids, and which are known."""
        return self.owners, self.ids, self.known


def first_rows(sought: Pairs, among: Pairs) -> Rows:
    """For each of ``sought``, the first row of ``among`` with the same pair.

    Returns:
        Rows of ``among``, -1 where there is none.
    """
    if not len(sought) or not len(among):
        return np.full(len(sought), -1, np.int32)
    owners = _distinct(among.owners)
    least, most = int(among.ids.min()), int(among.ids.max())
    width = most - least + 1
    if owners.size * width > max(_PLACES_PER_ROW * (len(sought) + len(among)), _LEAST_PLACES):
        places, wanted, count = _ranked(sought, among)
    else:
        found = matched(sought.columns, among.columns, owners, least, width)
        if found is not None:
            return found
        count = owners.size * width
        places, wanted = _place(among, owners, least, width), _place(sought, owners, least, width)
    table = np.full(count + 1, -1, np.int32)
    backwards = slice(None, None, -1)  # of equal places the last that is written stays: the first row
    table[places[backwards]] = np.arange(len(among), dtype=np.int32)[backwards]
    table[count] = -1
    return np.asarray(table[wanted])


def is_repeated(pairs: Pairs) -> npt.NDArray[np.bool_]:
    """Whether an earlier row has the same pair; never for rows without one."""
    rows = first_rows(pairs, pairs)
    return np.asarray((rows >= 0) & (rows != np.arange(rows.size, dtype=np.int32)))


def _distinct(owners: npt.NDArray[np.integer]) -> npt.NDArray[np.integer]:
    """The distinct owners in order; there is at least one row. Most traces have one process: nothing is sorted then."""
    return owners[:1] if owners.min() == owners.max() else np.unique(owners)


def _place(pairs: Pairs, owners: npt.NDArray[np.integer], least: int, width: int) -> Numbers:
    """Places of pairs: ids one after the other, owner by owner; behind the last for rows without a pair or partner."""
    outside = (pairs.ids < least) | (pairs.ids > least + (width - 1))
    if pairs.known is not None:
        outside |= ~pairs.known
    if owners.size == 1:
        outside |= pairs.owners != owners[0]
        place = pairs.ids - least
    else:
        owner = np.minimum(np.searchsorted(owners, pairs.owners), owners.size - 1)
        outside |= owners[owner] != pairs.owners
        place = owner * width + (pairs.ids - least)
    place[outside] = owners.size * width
    return place


def _ranked(sought: Pairs, among: Pairs) -> tuple[Numbers, Numbers, int]:
    """Places of pairs whose ids lie far apart, and how many there are: by the rank of their ids, then of the pairs."""
    _, rank = np.unique(np.concatenate([among.ids, sought.ids]), return_inverse=True)
    _, owner = np.unique(np.concatenate([among.owners, sought.owners]), return_inverse=True)
    _, place = np.unique(owner * (int(rank.max()) + 1) + rank, return_inverse=True)
    count = int(place.max()) + 1
    for pairs, part in ((among, place[: len(among)]), (sought, place[len(among) :])):
        if pairs.known is not None:
            part[~pairs.known] = count
    return place[: len(among)], place[len(among) :], count
