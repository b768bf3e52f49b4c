"""Columns of an XPlane file as columns of the contract: dictionaries from codes, values of stats by event."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from traceviz.parsers.shared.arrays.arrow import Array as Arrow
from traceviz.parsers.shared.arrays.arrow import DictionaryArray
from traceviz.parsers.shared.arrays.operations import NONE, inverted, take
from traceviz.parsers.shared.events.columns import Numbers, encoded
from traceviz.parsers.xplane.decode.raw import Array, Kind, Plane, Stats

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """Stats of some events of a plane, by the position of the event among these.

    Args:
        plane: The plane.
        rows: Number of events.
        row: For each stat, the position of its event among the chosen ones (int32).
        stats: The stats.
    """

    plane: Plane
    rows: int
    row: Array
    stats: Stats

    @classmethod
    def of(cls, plane: Plane, rows: Array) -> Facts:
        """Return the stats of the events at the positions ``rows``."""
        row = take(inverted(rows, len(plane.events)), plane.stats.event)
        selected = np.flatnonzero(row >= 0)
        return cls(plane, int(rows.size), row[selected], plane.stats.of(selected))

    def texts(self, *keys: str) -> Array:
        """Return each event's position in ``plane.texts`` of its text under the first of ``keys`` that it has."""
        codes = np.full(self.rows, NONE, dtype=np.int32)
        for key in reversed(keys):
            rows, stats = self._under(key, (Kind.TEXT,))
            codes[rows] = stats.value
        return codes

    def integers(self, *keys: str) -> Numbers:
        """Return each event's whole number (int64) under the first of ``keys`` that it has; unsigned: the same bits."""
        numbers = Numbers(np.zeros(self.rows, dtype=np.int64), np.zeros(self.rows, dtype=bool))
        for key in reversed(keys):
            rows, stats = self._under(key, (Kind.SIGNED, Kind.UNSIGNED))
            numbers.value[rows], numbers.known[rows] = stats.value, True
        return numbers

    def reals(self, *keys: str) -> Numbers:
        """Return each event's number (float64) under the first of ``keys`` that it has, whole or not."""
        numbers = Numbers(np.zeros(self.rows, dtype=np.float64), np.zeros(self.rows, dtype=bool))
        for key in reversed(keys):
            rows, stats = self._under(key, (Kind.REAL, Kind.SIGNED, Kind.UNSIGNED))
            numbers.value[rows], numbers.known[rows] = as_reals(stats), True
        return numbers

    def _under(self, key: str, kinds: tuple[Kind, ...]) -> tuple[Array, Stats]:
        """Return positions of the events and values of the stats under ``key`` that are one of ``kinds``."""
        selected = np.isin(self.stats.key, self.plane.keys.get(key, [])) & np.isin(self.stats.kind, kinds)
        return self.row[selected], self.stats.of(selected)


def as_reals(stats: Stats) -> Array:
    """Return values of stats that are numbers (float64)."""
    whole = stats.value.astype(np.float64)
    unsigned = stats.value.view(np.uint64).astype(np.float64)
    return np.select(
        [stats.kind == Kind.REAL, stats.kind == Kind.UNSIGNED], [stats.value.view(np.float64), unsigned], whole
    )


def per_word(
    codes: Array, words: Sequence[str], function: Callable[[str], Answer], otherwise: Answer
) -> tuple[Array, list[Answer]]:
    """Call ``function`` once for each word that ``codes`` use.

    Returns:
        Positions in the results, one per code; and the results, the first of which is ``otherwise``, for negative
        codes.
    """
    used = np.unique(codes[codes >= 0])
    place = np.zeros(len(words) + 1, dtype=np.int32)
    place[used] = np.arange(1, used.size + 1, dtype=np.int32)
    return place[codes], [otherwise, *(function(words[position]) for position in used.tolist())]


def take_values(values: Sequence[Any], kind: pa.DataType, positions: Array) -> Arrow:
    """Return an Arrow column of the values at ``positions``."""
    indices: Any = pa.array(positions)
    return pa.array(values, kind).take(indices)


def map_words(codes: Array, words: Sequence[str], function: Callable[[str], str | None]) -> DictionaryArray:
    """Return a dictionary column of ``function`` of the words; null if it returns ``None`` and for negative codes."""
    positions, answers = per_word(codes, words, function, None)
    return encoded(positions, answers)
