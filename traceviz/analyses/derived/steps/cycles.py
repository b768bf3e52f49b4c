"""Search for the period of a sequence of names: the repeating unit of a training loop without annotations.

A candidate period starts at each occurrence of one *anchor* name. Two periods match if they contain the same names
equally often. Sums of random 64-bit numbers, one per name, show this::

    names    a b b c | a b b c | a b b c | a b d
    anchor   ^         ^         ^         ^
    sums        S1        S1        S1      (open)      3 of 3 periods match
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from traceviz.core.arrays.intervals import Array

_BLOCK = 1 << 16
Dense = npt.NDArray[np.unsignedinteger[Any]]

MIN_PERIODS = 3
"""Minimum number of matching periods for a cycle."""
MIN_LIKENESS = 0.5
"""Minimum share of the events between the first and last anchor that lie in matching periods."""
MIN_COVERAGE = 0.5
"""Minimum share of all events that the periods together span."""


@dataclass(frozen=True, slots=True)
class Cycle:
    """A repeating unit.

    Args:
        anchors: Positions in the sequence at which a unit starts; the last one only ends the unit before it.
        likeness: Share (0 to 1) of the events between the first and the last anchor that lie in matching units.
    """

    anchors: Array
    likeness: float


def find_cycle(codes: npt.ArrayLike, pauses: npt.ArrayLike | Callable[[], Array]) -> Cycle | None:
    """Return the most convincing cycle of a sequence, or ``None``.

    Among anchors of equal likeness, the most frequent anchor wins (one step rather than two). Ties go to the anchor
    after the longest typical pause (a step starts after the wait for its input), then to the first in the sequence.
    The numbers of the names do not matter.

    Args:
        codes: Name of each event as a number, in order of time.
        pauses: Nanoseconds without activity before each event, or a function that returns them if they are needed.
    """
    sequence = np.ascontiguousarray(codes)
    if sequence.size <= MIN_PERIODS:
        return None
    dense, counts = _dense(sequence)
    sums = _sums(dense, _tokens(counts.size))
    rated = ((_likeness(anchors, sums, sequence.size), anchors) for anchors in _by_name(dense, counts))
    likely = [(likeness, anchors) for likeness, anchors in rated if likeness >= MIN_LIKENESS]
    if not likely:
        return None
    waits = np.asarray(pauses() if callable(pauses) else pauses)
    best: tuple[tuple[float, int, float, int], Array] | None = None
    for likeness, anchors in likely:
        merit = (round(likeness, 2), anchors.size, float(np.median(waits[anchors])), -int(anchors[0]))
        if best is None or merit > best[0]:
            best = merit, anchors
    return Cycle(best[1], best[0][0]) if best else None


def _tokens(count: int) -> npt.NDArray[np.uint64]:
    """Return pseudo-random numbers by splitmix64 (Steele and others, 2014); NumPy's generators take long to import."""
    mixed = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))


def _dense(codes: npt.NDArray[np.integer]) -> tuple[Dense, Array]:
    """Renumber ``codes`` from 0 without gaps, in the narrowest type, and count how often each occurs."""
    least, most = int(codes.min()), int(codes.max())
    if most - least > codes.size:
        names, places = np.unique(codes, return_inverse=True)
        return places.astype(np.uint32), np.bincount(places, minlength=names.size)
    counts = np.zeros(most - least + 1, np.int64)
    for part in _blocks(codes.size, max(_BLOCK, counts.size)):
        counts += np.bincount(codes[part] - least, minlength=counts.size)
    number = np.cumsum(counts > 0) - 1
    dense = np.empty(codes.size, np.min_scalar_type(int(number[-1])))
    narrow = number.astype(dense.dtype)
    for part in _blocks(codes.size):
        np.take(narrow, codes[part] - least, out=dense[part], mode="clip")
    return dense, counts[counts > 0]


def _sums(dense: Dense, tokens: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return the sum of the tokens of all names before each place, and before the end."""
    sums = np.zeros(dense.size + 1, np.uint64)
    for part in _blocks(dense.size):
        own = np.take(tokens, dense[part], mode="clip")
        own[:1] += sums[part.start : part.start + 1]  # integer overflow is intended
        np.cumsum(own, out=sums[part.start + 1 : part.start + 1 + own.size])
    return sums


def _by_name(dense: Dense, counts: Array) -> Iterator[Array]:
    """Yield the places of each name that occurs often enough, in the order of the names."""
    if counts.size > _FEW_NAMES:
        for places in np.split(np.argsort(dense, kind="stable"), np.cumsum(counts)[:-1]):
            yield places.astype(np.int64, copy=False)
        return
    for name in np.flatnonzero(counts > MIN_PERIODS).tolist():
        yield np.flatnonzero(dense == name)


def _blocks(count: int, size: int = _BLOCK) -> Iterator[slice]:
    """Return slices that together cover ``count`` events, so that intermediate results stay in the CPU's cache."""
    return (slice(begin, begin + size) for begin in range(0, count, size))


_FEW_NAMES = 64
"""Up to this number of names, searching them one by one takes less memory than sorting, and no more time."""


SAMPLE = 256
"""Number of periods that are checked before all of them are."""


def _likeness(anchors: Array, sums: npt.NDArray[np.uint64], count: int) -> float:
    """Return the share of events between the first and last anchor in periods that match the most common one."""
    extent = int(anchors[-1] - anchors[0])
    if anchors.size <= MIN_PERIODS or extent < MIN_COVERAGE * count:
        return 0.0
    every = max(1, (anchors.size - 1) // SAMPLE)
    sample = sums[anchors[1::every]] - sums[anchors[:-1:every]]
    if np.unique_counts(sample).counts.max() < MIN_LIKENESS / 2 * sample.size:
        return 0.0  # far from periodic: most names of a large trace end here
    contents = sums[anchors[1:]] - sums[anchors[:-1]]
    _, kind, sizes = np.unique(contents, return_inverse=True, return_counts=True)
    alike = kind == np.argmax(sizes)
    if alike.sum() < MIN_PERIODS:
        return 0.0
    return float(np.diff(anchors)[alike].sum() / extent)
