"""Lasting changes of a series: change points, by permutation tests.

The search follows E-divisive (Matteson and James 2014, "A nonparametric approach for multiple change point analysis of
multivariate data", JASA 109), as used in continuous integration (Daly et al. 2020, ICPE). The position that best
separates the values before and after it is tested against the same values in random orders. If random orders seldom
score as well, the series is cut there, and each part is searched again. The values before and after come from an
interval that may be shorter than the part, so that temporary levels are detected. The intervals are those of seeded
binary segmentation (Kovács et al. 2023, Biometrika 110): some of every length, n log n in total. Finally every cut
moves to the best position between its neighbours.

The exponent is 2, which detects changes of the mean, but not of the spread alone. The mean is taken over the ranks of
the values within a part (Pettitt 1979, Applied Statistics 28). So an outlier, such as a run on a busy machine, has no
more weight than other runs.

At most a share :attr:`Search.level` of the series without a change gets one. This holds for any distribution if the
values are independent. Slow drift of a machine violates this assumption.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Positions = npt.NDArray[np.intp]

_CELLS = 4_000_000
"""Maximum count of numbers in memory during permutations."""
_ORDERS = 20
"""Expected number of random orders beyond the threshold. It limits the influence of a single order."""
_SHRINK = math.sqrt(0.5)
"""Length of an interval, relative to the next longer ones."""
_PASSES = 3
"""Number of passes in which cuts move to their best positions. Each move may enable another."""
_CLOSE = 1e-9
"""Tolerance for equal scores, as sums round differently."""


@dataclass(frozen=True, slots=True)
class Search:
    """Options of the search for change points.

    Args:
        least: Minimum number of values on each side of a change. Fewer may be a temporary disturbance.
        level: Maximum share of series without a change in which one is found.
        permutations: Number of random orders for each test.
        seed: Seed of the random orders; the same seed gives the same changes.
        series: Number of searched series. Each gets its share of the level (Bonferroni).
    """

    least: int = 3
    level: float = 0.05
    permutations: int = 999
    seed: int = 0
    series: int = 1

    @property
    def fewest(self) -> int:
        """Minimum number of values in a series. With fewer (as 7 at 5 %), no order is rare enough to be a change."""
        count = 2 * self.least
        while 2 / math.comb(count, count // 2) > self.level:
            count += 1
        return count

    def among(self, series: int) -> Search:
        """Return the search for each of several series, so that the level holds for all of them together."""
        level = self.level / max(series, 1)
        orders = max(self.permutations, math.ceil(_ORDERS / level) - 1)
        return replace(self, level=level, permutations=orders, series=max(series, 1))


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """The first value of a new level, and the share of random orders that look as much like a change."""

    start: int
    p_value: float


def change_points(
    values: Numbers, allowed: npt.NDArray[np.bool_] | None = None, search: Search | None = None
) -> tuple[ChangePoint, ...]:
    """Return the change points of the values, in order.

    Args:
        values: The values in order of time, without NaN.
        allowed: True where a change may start; ``None`` for everywhere. Runs of one version have no order among
            themselves.
        search: Options of the search.
    """
    how = search or Search()
    free = np.ones(values.size, dtype=np.bool_) if allowed is None else allowed
    if values.size < how.fewest:
        return ()
    parts = [_part(values, free, 0, values.size, how)]
    points: list[ChangePoint] = []
    while True:
        best = max(parts, key=lambda part: part.score)
        p_value = _p_value(best.score, parts)
        if best.score == -math.inf or p_value > how.level:
            ordered = tuple(sorted(points, key=lambda change: change.start))
            for _ in range(_PASSES):
                ordered = _refine(values, free, ordered, how)
            return ordered
        points.append(ChangePoint(best.position, p_value))
        parts.remove(best)
        halves = ((best.start, best.position), (best.position, best.end))
        parts += [_part(values, free, start, end, how) for start, end in halves]


def _refine(
    values: Numbers, allowed: npt.NDArray[np.bool_], points: tuple[ChangePoint, ...], how: Search
) -> tuple[ChangePoint, ...]:
    """Move each change to the best position between its neighbours, as its interval may have held other changes."""
    for index, change in enumerate(points):
        start = points[index - 1].start if index else 0
        end = points[index + 1].start if index + 1 < len(points) else values.size
        cuts = _cuts(allowed[start:end], [(0, end - start)], how.least)
        best = int(_scores(_ranks(values[start:end])[None, :], cuts)[0].argmax())
        points = (*points[:index], replace(change, start=start + int(cuts.at[best])), *points[index + 1 :])
    return points


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """A part without a known change, its best position, and the scores of its random orders."""

    start: int
    end: int
    position: int
    score: float
    by_chance: Numbers = field(repr=False)


def _part(values: Numbers, allowed: npt.NDArray[np.bool_], start: int, end: int, how: Search) -> _Part:
    cuts = _cuts(allowed[start:end], _intervals(end - start, 2 * how.least), how.least)
    if not cuts.at.size:
        return _Part(start, end, start, -math.inf, np.full(how.permutations, -math.inf))
    ranks = _ranks(values[start:end])
    scores = _scores(ranks[None, :], cuts)[0]
    best = int(scores.argmax())
    generator = np.random.default_rng((how.seed, start, end))
    by_chance = _by_chance(ranks, cuts, generator, how)
    return _Part(start, end, start + int(cuts.at[best]), float(scores[best]), by_chance)


@dataclass(frozen=True, slots=True, eq=False)
class _Cuts:
    """Cuts at ``at`` of the intervals from ``start`` to ``end``, as columns."""

    start: Positions
    at: Positions
    end: Positions


def _cuts(allowed: npt.NDArray[np.bool_], stretches: Sequence[tuple[int, int]], least: int) -> _Cuts:
    """Return every allowed position in every interval with at least ``least`` values on each side."""
    columns: list[Positions] = []
    for start, end in stretches:
        positions = np.arange(start + least, end - least + 1)
        positions = positions[allowed[positions]]
        columns.append(np.stack([np.full_like(positions, start), positions, np.full_like(positions, end)]))
    return _Cuts(*np.concatenate([np.empty((3, 0), np.intp), *columns], axis=1))


def _intervals(count: int, shortest: int) -> list[tuple[int, int]]:
    """Return seeded intervals of ``count`` values: all, then shorter and shorter ones that overlap by half or more."""
    stretches: dict[tuple[int, int], None] = {}
    length, number = float(count), 1
    while math.ceil(length) >= shortest:
        shift = (count - length) / (number - 1) if number > 1 else 0.0
        for index in range(number):
            start = math.floor(index * shift)
            stretches[start, min(math.ceil(index * shift + length), count)] = None
        length *= _SHRINK
        number = 2 * math.ceil(count / length) - 1
    return list(stretches)


def _p_value(score: float, parts: list[_Part]) -> float:
    """Return the share of random orders of the parts whose best score is as good. The observed order is one of them."""
    by_chance = np.max([part.by_chance for part in parts], axis=0)
    return float((1 + (by_chance >= score - _CLOSE).sum()) / (1 + by_chance.size))


def _by_chance(ranks: Numbers, cuts: _Cuts, generator: np.random.Generator, how: Search) -> Numbers:
    """Return the best score of each random order."""
    rows = max(_CELLS // max(cuts.at.size, ranks.size), 1)
    best = []
    for begin in range(0, how.permutations, rows):
        orders = np.tile(ranks, (min(rows, how.permutations - begin), 1))
        best.append(_scores(generator.permuted(orders, axis=1), cuts).max(axis=1))
    return np.concatenate(best)


def _scores(rows: Numbers, cuts: _Cuts) -> Numbers:
    """Score how well each cut separates the two sides of each row: difference of means, in standard deviations.

    There are many short intervals and few long ones, so high random scores are more likely in a short one. This
    advantage is subtracted (Frick et al. 2014, "Multiscale change point inference", JRSS B 76, section 1.2).
    """
    variance = float(rows[0].var())
    if not variance:
        return np.full((len(rows), cuts.at.size), -math.inf)
    sums = np.concatenate([np.zeros((len(rows), 1)), rows.cumsum(axis=1)], axis=1)
    before, after = cuts.at - cuts.start, cuts.end - cuts.at
    at = sums[:, cuts.at]
    difference = (at - sums[:, cuts.start]) / before - (sums[:, cuts.end] - at) / after
    by_chance = np.sqrt(2 * np.log(math.e * rows.shape[1] / (before + after)))
    scores: Numbers = np.abs(difference) * np.sqrt(before * after / (before + after) / variance) - by_chance
    return scores


def _ranks(values: Numbers) -> Numbers:
    """Return ranks, starting at 0. Equal values get the mean of their ranks."""
    _, position, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Numbers = (np.cumsum(counts) - (counts + 1) / 2)[position]
    return ranks
