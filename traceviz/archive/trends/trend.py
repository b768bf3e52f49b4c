"""Trend of a figure from run to run: its changes with their position, size, confidence and direction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import pairwise
from statistics import NormalDist
from typing import ClassVar

import numpy as np
import polars as pl

from traceviz.archive.population.observations import DATE, Figure, Mixture, count_mixed, figure, observations
from traceviz.archive.trends.change_points import ChangePoint, Numbers, Search, change_points
from traceviz.compare.effect import half_widths, typical
from traceviz.core.notebook_repr import Shown
from traceviz.core.units import counted
from traceviz.report import Better
from traceviz.report.verdicts import VerdictCode


class Direction(StrEnum):
    """The direction of a change, or of a series by its last change."""

    REGRESSION = "regression"
    IMPROVEMENT = "improvement"
    CHANGE = "change"
    NO_CHANGE = "no change"
    UNKNOWN = "cannot judge"

    @property
    def code(self) -> VerdictCode:
        """The code of a report on a series with this direction."""
        return VerdictCode(self.value.replace(" ", "-"))


@dataclass(frozen=True, slots=True)
class TrendOptions:
    """Options for judging a trend.

    Args:
        search: Search for changes; the groups share its level.
        min_effect: Minimum size of a change, even if it is significant: a share of the previous level; for shares, a
            difference.
        better: Direction of improvement, instead of the default of the figure.
    """

    search: Search = field(default_factory=Search)
    min_effect: float = 0.01
    better: Better = ""


@dataclass(frozen=True, slots=True)
class Shift:
    """Level of an interval of runs, compared with the interval before.

    ``change`` and its 95 % interval are shares of the previous level. For figures that are shares themselves, they are
    differences (0.05 is five percentage points). They are ``None`` if the previous level is zero.

    The interval is Welch's between runs, on logarithms if these exist (:mod:`traceviz.compare.effect`). It assumes that
    the position of the change is known.
    """

    before: float
    after: float
    change: float | None
    low: float | None
    high: float | None
    is_sure: bool


@dataclass(frozen=True, slots=True)
class Change:
    """A significant and large enough change.

    Args:
        start: Position of the first run of the new level.
        count_before: Number of runs of the previous level.
        count_after: Number of runs of the new level.
        p_value: Share of random orders of the runs that look as much like a change.
        shift: Its size.
        direction: Improvement or regression.
    """

    start: int
    count_before: int
    count_after: int
    p_value: float
    shift: Shift
    direction: Direction


@dataclass(frozen=True, slots=True)
class Trajectory:
    """A figure over the runs of one group.

    Args:
        group: The value that distinguishes the group; empty if all runs are one group.
        runs: Rows of :func:`traceviz.archive.population.observations.observations`, in order.
        levels: Start and value of each level.
        changes: The changes between the levels.
        direction: A regression if there is a loss, else the direction of the last change; ``cannot judge`` if there are
            too few runs.
        loss: The last level against the best one before it, if it is worse.
        best: Position of that best level.
        why: Reason why it cannot be judged.
        detectable: Size of a lasting change in the middle that is detected in four of five cases, in the unit of
            :attr:`Shift.change`.
    """

    group: str
    runs: pl.DataFrame
    levels: tuple[tuple[int, float], ...]
    changes: tuple[Change, ...]
    direction: Direction
    loss: Shift | None = None
    best: int | None = None
    why: str = ""
    detectable: float | None = None

    @property
    def last(self) -> Change | None:
        """The last change."""
        return self.changes[-1] if self.changes else None

    @property
    def shift(self) -> Shift | None:
        """The shift that decides the direction: the loss, else the last change."""
        return self.loss or (self.last.shift if self.last else None)

    def is_worse_by(self, limit: float) -> bool:
        """Return whether the last level is worse than the best before it by ``limit`` or more."""
        return self.loss is not None and (self.loss.change is None or abs(self.loss.change) >= limit)


@dataclass(frozen=True, slots=True, repr=False)
class Trend(Shown):
    """A figure over all runs.

    Args:
        figure: The figure.
        better: Direction of improvement.
        by: The order of the runs.
        per: Tag or column that defines groups; empty if all runs are one group.
        groups: The groups, the worst first.
        left_out: Rows of ready traces that were not measured, or have no position in the order.
        mixed: Numbers of frameworks, devices and jobs that a group mixes, if more than one.
        options: Options of the judgement.
    """

    shown_as: ClassVar[str] = "trend"
    figure: Figure
    better: Better
    by: str
    per: str
    groups: tuple[Trajectory, ...]
    left_out: int
    mixed: tuple[tuple[str, int], ...]
    options: TrendOptions

    def __repr__(self) -> str:
        return f"Trend({self.figure.name!r}, {counted(len(self.groups), 'group')})"


def trend(
    catalogue: pl.DataFrame, metric: str | Figure, by: str = DATE, per: str = "", options: TrendOptions | None = None
) -> Trend:
    """Judge the trend of a figure.

    Args:
        catalogue: Rows of :func:`traceviz.archive.catalogue.segments.read`, possibly filtered.
        metric: A figure of the catalogue, or any other with a column in ``catalogue``.
        by: ``date``, a tag, or a column that distinguishes runs.
        per: A tag or column whose values are judged separately.
        options: Options for judging.

    Raises:
        UsageError: there is no such figure or tag.
    """
    how = options or TrendOptions()
    known = figure(metric) if isinstance(metric, str) else metric
    better = how.better or known.better
    runs = observations(catalogue, known.name, by, per)
    parts = runs.partition_by("group", maintain_order=True)
    search = how.search.among(sum(not _too_few(part, how.search) for part in parts))
    mixed = count_mixed(catalogue, known.name, by, per)
    judged = (_judge(part, known, better, replace(how, search=search), mixed) for part in parts)

    def order(trajectory: Trajectory) -> tuple[int, float, str]:
        size = abs(trajectory.last.shift.change or 0.0) if trajectory.last else 0.0
        return _ORDER.index(trajectory.direction), -size, trajectory.group

    groups = tuple(sorted(judged, key=order))
    rows = int((catalogue["state"] == "ready").sum())
    left_out = max(rows - int(runs["rows"].sum()), 0)
    most: dict[str, int] = {}
    for column, count in (one for mixture in mixed.values() for one in mixture):
        most[column] = max(count, most.get(column, 0))
    return Trend(known, better, by, per, groups, left_out, tuple(most.items()), how)


_ORDER = (Direction.REGRESSION, Direction.CHANGE, Direction.UNKNOWN, Direction.IMPROVEMENT, Direction.NO_CHANGE)


_NOT_COMPARED = {"framework": "frameworks", "gpu": "kinds of devices"}
"""Columns whose values do not compare: a level that differs is another program or machine, and no change."""


def _judge(
    runs: pl.DataFrame, known: Figure, better: Better, how: TrendOptions, mixed: Mapping[str, Mixture]
) -> Trajectory:
    values, group = runs["value"].to_numpy(), str(runs["group"][0])
    kinds = [f"{count} {_NOT_COMPARED[name]}" for name, count in mixed.get(group, ()) if name in _NOT_COMPARED]
    mixture = f"its runs are of {' and '.join(kinds)}, which do not compare" if kinds else ""
    if why := _too_few(runs, how.search) or mixture:
        return Trajectory(group, runs, ((0, _level(values, known)),), (), Direction.UNKNOWN, why=why)
    is_new_place = np.r_[False, np.diff(runs["place"].to_numpy()) != 0]
    points = _that_count(values, change_points(values, is_new_place, how.search), known, how.min_effect)
    parts = _parts(values, points)
    starts = [0, *(point.start for point in points)]
    levels = tuple((start, _level(part, known)) for start, part in zip(starts, parts, strict=True))
    changes = tuple(
        Change(point.start, before.size, after.size, point.p_value, difference, _direction(difference, better))
        for point, (before, after) in zip(points, pairwise(parts), strict=True)
        for difference in [shift(before, after, known)]
    )
    best, loss = _loss(parts, known, better, how.min_effect)
    last = changes[-1].direction if changes else Direction.NO_CHANGE
    direction = Direction.REGRESSION if loss else last
    return Trajectory(
        group, runs, levels, changes, direction, loss, best, detectable=_detectable(parts, known, how.search.level)
    )


def _loss(
    parts: Sequence[Numbers], known: Figure, better: Better, least: float
) -> tuple[int, Shift] | tuple[None, None]:
    """Return the earlier level with the largest loss to the last level, and that loss.

    A figure that rose in small changes, or was partly improved again, is as bad as a sudden rise.
    """
    shifts = ((index, shift(part, parts[-1], known)) for index, part in enumerate(parts[:-1]))
    losses = [
        (index, candidate)
        for index, candidate in shifts
        if _counts(candidate, least) and _direction(candidate, better) is Direction.REGRESSION
    ]
    return max(losses, key=lambda loss: abs(loss[1].after - loss[1].before), default=(None, None))


def _too_few(runs: pl.DataFrame, search: Search) -> str:
    if runs.height < search.fewest:
        among = f" in one of {search.series} groups" if search.series > 1 else ""
        return (
            f"{counted(runs.height, 'run')} of it, and {search.fewest} are needed to tell a change from chance{among}"
        )
    if runs["place"].n_unique() < 2:
        return f"all {runs.height} runs are at {runs['key'][0]}: nothing comes before or after"
    return ""


def _parts(values: Numbers, points: Sequence[ChangePoint]) -> list[Numbers]:
    return np.split(values, [point.start for point in points])


def _that_count(
    values: Numbers, points: tuple[ChangePoint, ...], known: Figure, least: float
) -> tuple[ChangePoint, ...]:
    """Return the significant and large enough changes. Small ones are dropped singly, as the next may then count."""
    while points:
        shifts = [shift(before, after, known) for before, after in pairwise(_parts(values, points))]
        failing = [index for index, change in enumerate(shifts) if not _counts(change, least)]
        if not failing:
            break
        smallest = min(failing, key=lambda index: abs(shifts[index].after - shifts[index].before))
        points = points[:smallest] + points[smallest + 1 :]
    return points


def _counts(change: Shift, least: float) -> bool:
    return change.is_sure and (change.change is None or abs(change.change) >= least)


def _direction(change: Shift, better: Better) -> Direction:
    if not better:
        return Direction.CHANGE
    return Direction.IMPROVEMENT if (change.after > change.before) == (better == "higher") else Direction.REGRESSION


def _is_relative(known: Figure, *sides: Numbers) -> bool:
    """Return whether differences are relative to the level, as for durations, bytes and counts (not shares)."""
    return known.unit != "ratio" and all(bool((side > 0).all()) for side in sides)


def _level(values: Numbers, known: Figure) -> float:
    """Return the level of runs: the geometric mean if differences are relative to it, else the mean."""
    return typical(values) if _is_relative(known, values) else float(values.mean())


def shift(before: Numbers, after: Numbers, known: Figure) -> Shift:
    """Return how much the runs ``after`` differ from those ``before``. Together there are at least three."""
    if _is_relative(known, before, after):
        base, new = typical(before), typical(after)
        middle, half = float(np.log(new / base)), _half(np.log(before), np.log(after))
        low, high = (float(np.expm1(end)) for end in (middle - half, middle + half))
        return Shift(base, new, new / base - 1, low, high, low > 0 or high < 0)
    base, new = float(before.mean()), float(after.mean())
    half = _half(before, after)
    low, high = new - base - half, new - base + half
    is_sure = low > 0 or high < 0
    if known.unit == "ratio":
        return Shift(base, new, new - base, low, high, is_sure)
    if base <= 0:
        return Shift(base, new, None, None, None, is_sure)
    return Shift(base, new, (new - base) / base, low / base, high / base, is_sure)


def _half(before: Numbers, after: Numbers) -> float:
    return float(half_widths(before[:, None], after[:, None])[0])


_POSITIONS = 32
"""Number of independent positions of a change in the search, from simulations of series of 12 to 60 normal values."""
_SEEN = NormalDist().inv_cdf(0.8)


def _detectable(parts: Sequence[Numbers], known: Figure, level: float) -> float | None:
    """Return the size of a change in the middle of the whole series that is detected in four of five cases."""
    relative = _is_relative(known, *parts)
    logs = [np.log(part) if relative else part for part in parts]
    count = sum(part.size for part in logs)
    squares = sum(float(((part - part.mean()) ** 2).sum()) for part in logs)
    # In standard deviations of a run, times the root of the number of runs: twice the distance in standard errors that
    # is beyond chance at one of the positions, plus a margin for detection in four of five cases.
    detected = 2 * (NormalDist().inv_cdf(1 - level / (2 * _POSITIONS)) + _SEEN)
    reach = detected * float(np.sqrt(squares / max(count - len(logs), 1) / count))
    if relative:
        return float(np.expm1(reach))
    if known.unit == "ratio":
        return reach
    middle = float(np.concatenate(logs).mean())
    return reach / middle if middle > 0 else None
