"""How a figure went from run to run: where it changed, by how much, how sure that is, and for better or worse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from statistics import NormalDist

import numpy as np
import polars as pl

from traceviz.archive.population.observations import DATE, Figure, figure, mixed, observations
from traceviz.archive.trends.change_points import ChangePoint, Numbers, Search, change_points
from traceviz.compare.effect import half_widths, typical
from traceviz.report import Better
from traceviz.units import counted


class Direction(StrEnum):
    """What is said of a change, or of a series by its last one."""

    REGRESSION = "regression"
    IMPROVEMENT = "improvement"
    CHANGE = "change"
    NO_CHANGE = "no change"
    UNKNOWN = "cannot judge"


@dataclass(frozen=True, slots=True)
class TrendOptions:
    """How a trend is judged.

    Args:
        search: How changes are searched; its level is shared among the groups.
        min_effect: Smaller changes are none, however sure they are: of the level before; of shares, as a difference.
        better: Which change is a gain, in place of what is known of the figure.
    """

    search: Search = field(default_factory=Search)
    min_effect: float = 0.01
    better: Better = ""


@dataclass(frozen=True, slots=True)
class Shift:
    """The level of one stretch of runs against that of the stretch before.

    ``change`` and its 95 % interval are shares of the level before; of figures that are shares themselves, differences
    (0.05 is five percentage points). They are ``None`` where the level before is zero.

    The interval is Welch's between runs, of the logarithms where there are any (:mod:`traceviz.compare.effect`). It
    takes the place of the change as given.
    """

    before: float
    after: float
    change: float | None
    low: float | None
    high: float | None
    is_sure: bool


@dataclass(frozen=True, slots=True)
class Change:
    """A change that counts.

    Args:
        start: Position of the first run of the new level.
        count_before: Runs of the level before.
        count_after: Runs of the new level.
        p_value: Share of random orders of the runs that look as much like a change.
        shift: How much it is.
        direction: For better or worse.
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
        group: Its value of what groups are told apart by; empty where all are one.
        runs: Rows of :func:`traceviz.archive.population.observations.observations`, in order.
        levels: Where each level starts, and what it is.
        changes: Between the levels.
        direction: A regression where there is a loss, else what the last change says; ``cannot judge`` where there are
            too few runs.
        loss: The last level against the best one before it, where it is worse than that.
        best: Position among the levels of that one.
        why: Why it cannot be judged.
        detectable: A lasting change in the middle that would be found in four of five cases, as
            :attr:`Shift.change` counts.
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
        """What the direction is said of: the loss, else the last change."""
        return self.loss or (self.last.shift if self.last else None)

    def is_worse_by(self, limit: float) -> bool:
        """Whether the last level is worse than the best before it by ``limit`` or more."""
        return self.loss is not None and (self.loss.change is None or abs(self.loss.change) >= limit)


@dataclass(frozen=True, slots=True)
class Trend:
    """A figure over all runs.

    Args:
        figure: The figure.
        better: Which change is a gain.
        by: What the runs are ordered by.
        per: What groups are told apart by; empty where all are one.
        groups: The worst first.
        left_out: Rows that can be asked, and were not measured or have no place in the order.
        mixed: Of how many frameworks, devices and jobs the runs of one group are, where of several.
        options: How it was judged.
    """

    figure: Figure
    better: Better
    by: str
    per: str
    groups: tuple[Trajectory, ...]
    left_out: int
    mixed: tuple[tuple[str, int], ...]
    options: TrendOptions


def trend(
    catalogue: pl.DataFrame, metric: str | Figure, by: str = DATE, per: str = "", options: TrendOptions | None = None
) -> Trend:
    """Judge how a figure went.

    Args:
        catalogue: Rows as :func:`traceviz.archive.catalogue.segments.read` gives them; filtered as one likes.
        metric: A figure of the catalogue, or any that ``catalogue`` has a column of.
        by: ``date``, a tag, or a column by which runs can be told apart.
        per: Judges the values of this tag or column apart.
        options: How to judge.

    Raises:
        UsageError: there is no such figure or tag.
    """
    how = options or TrendOptions()
    known = figure(metric) if isinstance(metric, str) else metric
    better = how.better or known.better
    runs = observations(catalogue, known.name, by, per)
    parts = runs.partition_by("group", maintain_order=True)
    search = how.search.among(sum(not _too_few(part, how.search) for part in parts))
    judged = (_judged(part, known, better, replace(how, search=search)) for part in parts)
    groups = tuple(
        sorted(
            judged, key=lambda trajectory: (_ORDER.index(trajectory.direction), -_size(trajectory), trajectory.group)
        )
    )
    rows = int((catalogue["state"] == "ready").sum())
    left_out = max(rows - int(runs["rows"].sum()), 0)
    return Trend(known, better, by, per, groups, left_out, mixed(catalogue, known.name, by, per), how)


_ORDER = (Direction.REGRESSION, Direction.CHANGE, Direction.UNKNOWN, Direction.IMPROVEMENT, Direction.NO_CHANGE)


def _size(trajectory: Trajectory) -> float:
    return abs(trajectory.last.shift.change or 0.0) if trajectory.last else 0.0


def _judged(runs: pl.DataFrame, known: Figure, better: Better, how: TrendOptions) -> Trajectory:
    values, group = runs["value"].to_numpy(), str(runs["group"][0])
    if why := _too_few(runs, how.search):
        return Trajectory(group, runs, ((0, _level(values, known)),), (), Direction.UNKNOWN, why=why)
    is_new_place = np.r_[False, np.diff(runs["place"].to_numpy()) != 0]
    points = _that_count(values, change_points(values, is_new_place, how.search), known, how.min_effect)
    parts = _parts(values, points)
    starts = [0, *(point.start for point in points)]
    levels = tuple((start, _level(part, known)) for start, part in zip(starts, parts, strict=True))
    changes = tuple(_changes(values, points, known, better))
    best, loss = _loss(parts, known, better, how.min_effect)
    last = changes[-1].direction if changes else Direction.NO_CHANGE
    direction = Direction.REGRESSION if loss else last
    return Trajectory(
        group, runs, levels, changes, direction, loss, best, detectable=_detectable(parts, known, how.search.level)
    )


def _loss(
    parts: Sequence[Numbers], known: Figure, better: Better, least: float
) -> tuple[int, Shift] | tuple[None, None]:
    """The level before the last that the last is worse than by most, and by how much.

    What crept up in small changes, or was taken back in part, is as slow as what rose at once.
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
    """Changes that are sure and large enough; the smallest of the others goes first, as the next may then count."""
    while points:
        parts = _parts(values, points)
        shifts = [shift(parts[index], parts[index + 1], known) for index in range(len(points))]
        failing = [index for index, change in enumerate(shifts) if not _counts(change, least)]
        if not failing:
            break
        smallest = min(failing, key=lambda index: abs(shifts[index].after - shifts[index].before))
        points = points[:smallest] + points[smallest + 1 :]
    return points


def _counts(change: Shift, least: float) -> bool:
    return change.is_sure and (change.change is None or abs(change.change) >= least)


def _changes(values: Numbers, points: Sequence[ChangePoint], known: Figure, better: Better) -> Iterator[Change]:
    parts = _parts(values, points)
    for index, point in enumerate(points):
        before, after = parts[index : index + 2]
        difference = shift(before, after, known)
        yield Change(point.start, before.size, after.size, point.p_value, difference, _direction(difference, better))


def _direction(change: Shift, better: Better) -> Direction:
    if not better:
        return Direction.CHANGE
    return Direction.IMPROVEMENT if (change.after > change.before) == (better == "higher") else Direction.REGRESSION


def _is_relative(known: Figure, *sides: Numbers) -> bool:
    """Whether differences are shares of the level: of durations, bytes and counts; shares differ by points."""
    return known.unit != "ratio" and all(bool((side > 0).all()) for side in sides)


def _level(values: Numbers, known: Figure) -> float:
    """What the runs are about: the geometric mean where differences are shares of it, else the mean."""
    return typical(values) if _is_relative(known, values) else float(values.mean())


def shift(before: Numbers, after: Numbers, known: Figure) -> Shift:
    """How much the runs ``after`` differ from those ``before``; of both together there are three or more."""
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
"""Independent places at which the search looks for a change: by simulation, series of 12 to 60 normal values."""
_SEEN = NormalDist().inv_cdf(0.8)


def _detected(level: float) -> float:
    """A change in the middle of a series that is found in four of five cases.

    In standard deviations of a run, times the root of the number of runs: twice the distance in standard errors that
    is beyond chance at one of the places, and a little more.
    """
    return 2 * (NormalDist().inv_cdf(1 - level / (2 * _POSITIONS)) + _SEEN)


def _detectable(parts: Sequence[Numbers], known: Figure, level: float) -> float | None:
    """A change in the middle of the whole series that would be found in four of five cases."""
    relative = _is_relative(known, *parts)
    logs = [np.log(part) if relative else part for part in parts]
    count = sum(part.size for part in logs)
    squares = sum(float(((part - part.mean()) ** 2).sum()) for part in logs)
    reach = _detected(level) * float(np.sqrt(squares / max(count - len(logs), 1) / count))
    if relative:
        return float(np.expm1(reach))
    if known.unit == "ratio":
        return reach
    middle = float(np.concatenate(logs).mean())
    return reach / middle if middle > 0 else None
