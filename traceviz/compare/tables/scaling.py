"""Scaling over devices, cores or threads: efficiency, and Amdahl's serial share."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traceviz.compare.compare import Comparison
from traceviz.compare.remark import in_capital
from traceviz.compare.sides.basis import cell as how_it_ended
from traceviz.compare.tables.differences import difference
from traceviz.compare.tables.figures import Figure, Known, stopped_runs
from traceviz.compare.tables.points import (
    Course,
    Point,
    courses,
    interval_words,
    left_out_sentence,
    shown_number,
    tag_and_number,
)
from traceviz.core.errors import UsageError
from traceviz.core.resampling import student
from traceviz.core.units import format_ratio, format_value
from traceviz.report import TAG, Block, Column, Fact, Facts, Grid, Prose, Row, Section

SCALING = "scaling"
_FAR = 0.1
"""Largest error, as share of a measured time, at which a law is reported to fit."""
_BOUNDLESS = 0.001
"""A serial share below this is no practical limit."""


def scaling_section(comparison: Comparison, tag: str) -> Section:
    """Return the efficiency along a tag that counts workers or devices, and the serial share.

    Raises:
        UsageError: the figure is not a speed; fewer than two values of the tag are numbers, or one is not above 0.
    """
    figure = _figure(comparison)
    found = courses(comparison, tag, figure)
    rows: list[Row] = []
    blocks: list[Block] = []
    for course in found.courses:
        first = course.points[0]
        if first.number <= 0:
            raise UsageError(
                f"--scaling {course.tag}: {first.side.label} has {tag_and_number(course.tag, first.number)}.",
                "What shares the work is counted from 1.",
            )
        law = fit(*_observations(course, figure))
        rows += [_row(comparison, course, point, figure, law) for point in course.points]
        if law is not None:
            blocks.append(
                Facts(
                    (
                        Fact("course", "course", course.label or None),
                        Fact("serial_share", "serial share", law.share, "ratio"),
                        Fact("serial_share_low", "serial share, 95 % from", law.low, "ratio"),
                        Fact("serial_share_high", "serial share, 95 % to", law.high, "ratio"),
                        Fact("most_speedup", "most speed-up", law.most, "factor"),
                    ),
                    audience="machine",
                )
            )
        blocks += [Prose(text) for text in _sentences(course, figure, law)]
    if found.left_out:
        blocks.append(Prose(left_out_sentence(tag, found.left_out)))
    grid = Grid(_columns(comparison, tag, figure), tuple(rows), complete=True)
    return Section(SCALING, f"Scaling over {tag}, by {figure.label}", (grid, *blocks))


def _figure(comparison: Comparison) -> Figure:
    """Return the requested figure; else samples per second; else the figure of the comparison.

    Samples per second come first because steps on more devices may do more work.
    """
    known, options = Known(comparison), comparison.options
    by_throughput = comparison.basis.is_step and not options.tables.measures and not options.per
    figure = (known.throughput if by_throughput else None) or known.chosen(options.tables.measures)[0]
    if not figure.is_speed:
        raise UsageError(
            f"--scaling: {figure.label} is no measure of speed.",
            "Efficiency is speed-up over the number of devices.",
            "Choose a time or samples-per-second with --measure.",
        )
    return figure


def _observations(course: Course, figure: Figure) -> tuple[list[float], list[float]]:
    """Return number and time of every run; rates become times per unit."""
    numbers, times = [], []
    for point in course.points:
        for value in figure.values(point.side):
            if value > 0:
                numbers.append(point.number)
                times.append(1 / value if figure.better == "higher" else value)
    return numbers, times


def _columns(comparison: Comparison, tag: str, figure: Figure) -> tuple[Column, ...]:
    repeated = any(len(side.reports) > 1 for side in comparison.sides)
    return (
        *(Column(f"{TAG}{other}", other, "text", 0) for other in comparison.by if other != tag),
        Column(f"{TAG}{tag}", tag, "number", 0),
        Column("runs", "Runs", "count", 3 if repeated else 5),
        Column("value", in_capital(figure.label), figure.unit, 0),
        Column("interval", "95 % interval", "text", 4, shorten=False, restates=True),
        Column("speedup", "Speed-up", "factor", 0),
        Column("speedup_low", "Speed-up, 95 % from", "factor", 9),
        Column("speedup_high", "Speed-up, 95 % to", "factor", 9),
        Column("ideal", "Ideal", "factor", 2),
        Column("efficiency", "Efficiency", "ratio", 0, bar=True),
        Column("serial_share", "Serial share", "ratio", 2),
        Column("amdahl", "By Amdahl", "factor", 3),
        Column("ended", "Remark", "text", 1),
    )


def _row(comparison: Comparison, course: Course, point: Point, figure: Figure, law: SerialShare | None) -> Row:
    value = figure.value(point.side)
    against = difference(comparison, figure, course.base, point.side)
    first = next(point.number for point in course.points if point.side is course.base)
    ideal = point.number / first
    factor, (low, high) = against.factor, (value.interval if value else None) or (None, None)
    is_base = point.side is course.base
    return (
        *course.others[1],
        shown_number(point.number),
        len(point.side.reports),
        value.typical if value else None,
        interval_words(low, high, figure.unit),
        factor,
        *(against.interval or (None, None)),
        ideal,
        None if factor is None else factor / ideal,
        None if factor is None or is_base or first != 1 else karp_flatt(factor, ideal),
        law.speedup(point.number, first) if law else None,
        against.why_not or (None if value else how_it_ended(point.side) or "not measured"),
    )


def _sentences(course: Course, figure: Figure, law: SerialShare | None) -> Iterator[str]:
    where = f"{course.label}: " if course.label else ""
    if law is None:
        numbers = {point.number for point in course.points if figure.values(point.side)}
        yield f"{where}{in_capital(_too_few(course.tag, len(numbers)))}"
    else:
        yield f"{where}{_law_in_words(course.tag, law)}"
    yield from stopped_runs(figure, (point.side for point in course.points))


def _too_few(tag: str, count: int) -> str:
    return f"a serial share by Amdahl's law takes three numbers of {tag}; {count} have figures."


def _law_in_words(tag: str, law: SerialShare) -> str:
    if law.largest_error > _FAR:
        far = format_ratio(law.largest_error)
        return (
            f"Amdahl's law does not fit: it misses a measured time by {far}. The column of serial shares tells where."
        )
    ends = interval_words(law.low, law.high, "ratio")
    within = f" (95 % interval {ends})" if ends else ""
    if law.most is None or law.share < _BOUNDLESS:
        return f"No serial share is seen{within}: as far as measured, {tag} share all of the work."
    most = format_value(law.most, "factor")
    return (
        f"By Amdahl's law {format_ratio(law.share)} of the work is serial{within}: however many {tag}, "
        f"it gets at most {most} as fast as with one."
    )


# The part of a program that more devices do not speed up --------------------------------------------------------------
#
# Amdahl (1967): n devices share the divisible work, and one device does the rest. A run takes
# ``a + b / n``, and the serial share is ``a / (a + b)``. The speed-up never exceeds ``1 / share``.
# Karp and Flatt (1990) give the share that a single measured speed-up implies. If it grows with n, the cost of
# dividing the work grows, and Amdahl's law is too optimistic.


_FEWEST = 3
"""Fewer device counts fit any two parameters."""


@dataclass(frozen=True, slots=True)
class SerialShare:
    """The fitted law.

    Args:
        share: Serial share of the time of one device, from 0 to 1.
        low: Lower end of its 95 % interval; ``None`` if observations are too few.
        high: Its upper end.
        largest_error: Largest error of the law, as a share of the measured time.
    """

    share: float
    low: float | None
    high: float | None
    largest_error: float

    @property
    def most(self) -> float | None:
        """Largest speed-up for any number of devices; ``None`` if there is no bound."""
        return 1 / self.share if self.share > 0 else None

    def speedup(self, devices: float, base: float) -> float:
        """Return the speed-up of a number of devices over that of the base."""
        return self._time(base) / self._time(devices)

    def _time(self, devices: float) -> float:
        return self.share + (1 - self.share) / devices


def fit(devices: Sequence[float], times: Sequence[float]) -> SerialShare | None:
    """Fit Amdahl's law by least squares of relative errors.

    Args:
        devices: Number of devices of every run, above zero.
        times: Its time, above zero, in any unit.

    Returns:
        The share; ``None`` for fewer than three distinct device counts.
    """
    if len(set(devices)) < _FEWEST:
        return None
    numbers, measured = np.array(devices, float), np.array(times, float)
    table = np.stack([np.ones_like(numbers), 1 / numbers], axis=1) / measured[:, None]
    (serial, divided), *_ = np.linalg.lstsq(table, np.ones_like(measured), rcond=None)
    total = serial + divided
    if total <= 0:
        return None
    share = _share(float(serial / total))
    fitted = (total * share + total * (1 - share) / numbers) / measured - 1
    low, high = _interval(table, fitted, float(serial), float(divided))
    return SerialShare(share, low, high, float(np.abs(fitted).max()))


def _interval(
    table: np.ndarray, errors: np.ndarray, serial: float, divided: float
) -> tuple[float | None, float | None]:
    """Return the 95 % interval of ``serial / (serial + divided)``, by the delta method."""
    freedom = len(errors) - 2
    if freedom < 1:
        return None, None
    covariance = np.linalg.pinv(table.T @ table) * float(errors @ errors) / freedom
    total = serial + divided
    slope = np.array([divided, -serial]) / total**2
    half = student(freedom) * math.sqrt(max(float(slope @ covariance @ slope), 0.0))
    share = serial / total
    if not math.isfinite(half):  # times that differ by more than floats can resolve
        return None, None
    return _share(share - half), _share(share + half)


def _share(value: float) -> float:
    """Limit a share to 0 to 1; round, so that rounding errors near zero become zero."""
    return round(min(max(value, 0.0), 1.0), 9)


def karp_flatt(speedup: float, times_devices: float) -> float | None:
    """Return the serial share that a speed-up with ``times_devices`` as many devices implies; below 0 beyond ideal."""
    if times_devices <= 1 or speedup <= 0:
        return None
    return (1 / speedup - 1 / times_devices) / (1 - 1 / times_devices)
