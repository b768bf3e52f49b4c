"""Find the period of a sequence of names: the repeating unit of a training loop that nobody annotated.

A candidate period starts at each occurrence of one *anchor* name. Two periods are alike when they contain the same
names equally often; sums of random 64-bit numbers, one per name, tell::

    names    a b b c | a b b c | a b b c | a b d
    anchor   ^         ^         ^         ^
    sums        S1        S1        S1      (open)      3 of 3 periods alike
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from traceviz.intervals import Array

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
    dense = _dense(sequence)
    names = int(dense.max()) + 1
    tokens = _tokens(names)
    sums = np.zeros(sequence.size + 1, np.uint64)
    np.cumsum(np.take(tokens, dense, out=sums[1:], mode="clip"), out=sums[1:])
    by_name = np.split(np.argsort(dense, kind="stable"), np.cumsum(np.bincount(dense))[:-1])
    likely = [(_likeness(anchors, sums, sequence.size), anchors) for anchors in by_name]  # once per distinct name
    likely = [(likeness, anchors) for likeness, anchors in likely if likeness >= MIN_LIKENESS]
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


def _dense(codes: Array) -> npt.NDArray[np.unsignedinteger[Any]]:
    """``codes`` renumbered from 0 without gaps, in a type as narrow as the number of names allows (sorts faster)."""
    names = np.unique(codes) if codes.max() - codes.min() > codes.size else None
    if names is not None:
        return np.searchsorted(names, codes).astype(np.uint32)
    places = codes - codes.min()
    used = np.zeros(int(places.max()) + 1, dtype=bool)
    used[places] = True
    return np.asarray((np.cumsum(used) - 1).astype(np.min_scalar_type(used.sum()))[places])


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
