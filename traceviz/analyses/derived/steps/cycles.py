"""Find the period of a sequence of names: the repeating unit of a training loop that nobody annotated.

A candidate period starts at each occurrence of one *anchor* name. Two periods are alike when they contain the same
names equally often; sums of random 64-bit numbers, one per name, tell::

    names    a b b c | a b b c | a b b c | a b d
    anchor   ^         ^         ^         ^
    sums        S1        S1        S1      (open)      3 of 3 periods alike
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
"""Fewer alike periods than this are no evidence."""
MIN_LIKENESS = 0.5
"""At least this share of the events between the first and last anchor lies in alike periods."""
MIN_COVERAGE = 0.5
"""The periods together span at least this share of all events."""


@dataclass(frozen=True, slots=True)
class Cycle:
    """A repeating unit.

    Args:
        anchors: Positions in the sequence at which a unit begins; the last one only ends the unit before it.
        likeness: Share (0 to 1) of the events between the first and the last anchor that lie in alike units.
    """

    anchors: Array
    likeness: float


def find_cycle(codes: npt.ArrayLike, pauses: npt.ArrayLike | Callable[[], Array]) -> Cycle | None:
    """The most convincing cycle of a sequence, or ``None``.

    Among anchors of equal likeness the more frequent anchor wins (one step rather than two), then the anchor after the
    longest typical pause (a step begins after the wait for its input), then the first in the sequence. The numbers that
    names have make no difference.

    Args:
        codes: Name of each event as a number, in order of time.
        pauses: Nanoseconds without activity before each event; or what gives them, where anything is a cycle at all.
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
    """Numbers that look random, by splitmix64 (Steele and others, 2014): NumPy's generators take long to import."""
    mixed = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))


def _dense(codes: npt.NDArray[np.integer]) -> tuple[Dense, Array]:
    """``codes`` renumbered from 0 without gaps, as narrow as the number of names allows, and how often each comes."""
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
    """The sum of the tokens of all names before each place, and before the end."""
    sums = np.zeros(dense.size + 1, np.uint64)
    for part in _blocks(dense.size):
        own = np.take(tokens, dense[part], mode="clip")
        own[:1] += sums[part.start : part.start + 1]  # sums wrap, as they may
        np.cumsum(own, out=sums[part.start + 1 : part.start + 1 + own.size])
    return sums


def _by_name(dense: Dense, counts: Array) -> Iterator[Array]:
    """The places of each name that is there often enough, in the order of the names."""
    if counts.size > _FEW_NAMES:
        for places in np.split(np.argsort(dense, kind="stable"), np.cumsum(counts)[:-1]):
            yield places.astype(np.int64, copy=False)
        return
    for name in np.flatnonzero(counts > MIN_PERIODS).tolist():
        yield np.flatnonzero(dense == name)


def _blocks(count: int, size: int = _BLOCK) -> Iterator[slice]:
    """Slices that together cover ``count`` events: intermediate results of each stay in the cache."""
    return (slice(begin, begin + size) for begin in range(0, count, size))


_FEW_NAMES = 64
"""To search the places of so many names one by one takes less memory than to sort all, and no more time."""


SAMPLE = 256
"""Periods looked at before all of them are."""


def _likeness(anchors: Array, sums: npt.NDArray[np.uint64], count: int) -> float:
    """Share of the events between the first and last anchor that lie in periods alike to the commonest one."""
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
