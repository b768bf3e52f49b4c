"""Sides along a numeric tag: batch sizes, threads, devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from traceviz.compare.compare import Comparison
from traceviz.compare.sides.sides import Side
from traceviz.compare.sides.units_of_work import is_batch
from traceviz.compare.tables.figures import Figure, Known, MeanStep, Values, group_sides, label_of, number_of
from traceviz.core.errors import UsageError
from traceviz.core.units import Unit, counted, format_value

_FEWEST = 2


@dataclass(frozen=True, slots=True)
class Point:
    """A side, and its number."""

    number: float
    side: Side


@dataclass(frozen=True, slots=True)
class Course:
    """Sides that differ in one tag only.

    Args:
        tag: Tag whose values are numbers.
        others: The other tags, and the values that all points have.
        points: Points, sorted by number.
        base: The side that others are compared with: the base of the comparison, or the first that has figures.
    """

    tag: str
    others: tuple[Sequence[str], Values]
    points: tuple[Point, ...]
    base: Side

    @property
    def label(self) -> str:
        """The values that all points have: ``torch, cache=on``; empty if there are none."""
        return label_of(*self.others)


@dataclass(frozen=True, slots=True)
class Courses:
    """All sides along a tag.

    Args:
        courses: Courses by the values of the other tags; each has at least two points.
        left_out: Labels of sides whose value is not a number.
    """

    courses: tuple[Course, ...]
    left_out: tuple[str, ...]


def courses(comparison: Comparison, tag: str, figure: Figure) -> Courses:
    """Return the sides along a tag.

    Raises:
        UsageError: fewer than two values of it are numbers.
    """
    others = [other for other in comparison.by if other != tag]
    left_out = [side.label for side in comparison.sides if number_of(side.groups.get(tag, "")) is None]
    found = []
    for values, sides in group_sides(comparison, others).items():
        numbers = [(number_of(side.groups.get(tag, "")), side) for side in sides]
        points = sorted(
            (Point(number, side) for number, side in numbers if number is not None), key=lambda point: point.number
        )
        if len(points) >= _FEWEST:
            found.append(Course(tag, (others, values), tuple(points), _base(comparison, points, figure)))
    if not found:
        known = ", ".join(dict.fromkeys(side.groups.get(tag, "") for side in comparison.sides))
        raise UsageError(
            f"There is no curve over {tag}: fewer than two of its values are numbers.",
            f"Its values are {known}.",
            "Name a tag whose values are numbers, or compare words with --by.",
        )
    return Courses(tuple(found), tuple(left_out))


def _base(comparison: Comparison, points: Sequence[Point], figure: Figure) -> Side:
    base = comparison.sides[0]
    measured = [point.side for point in points if figure.values(point.side)]
    return base if any(side is base for side in measured) else (measured or [points[0].side])[0]


def figures_over(comparison: Comparison, tag: str) -> tuple[Figure, ...]:
    """Return the figures of a curve: the requested ones, or the figure of the verdicts.

    Over batch sizes, whose steps do different work, that is the time per sample.

    Raises:
        UsageError: no side has a requested figure.
    """
    known, options = Known(comparison), comparison.options
    names = options.tables.measures
    if names or options.per or not (comparison.basis.is_step and is_batch(tag)):
        return known.chosen(names)
    return (MeanStep("step", "time per sample", "ns", "lower", tag),)


def left_out_sentence(tag: str, left_out: Sequence[str]) -> str:
    """Report the sides that are in no curve, and why."""
    return f"{counted(len(left_out), 'side')} left out, whose {tag} is no number: {'; '.join(left_out)}."


def shown_number(number: float) -> float:
    """Return whole numbers as such: 64, not 64.0."""
    return int(number) if number.is_integer() else number


def tag_and_number(tag: str, number: float) -> str:
    """Format ``batch=64``."""
    return f"{tag}={format_value(shown_number(number), 'number')}"


# Figures of tables as text --------------------------------------------------------------------------------------------


def interval_words(low: float | None, high: float | None, unit: Unit) -> str | None:
    """Format ``180 to 204 µs``; ``None`` if there is no interval."""
    if low is None or high is None:
        return None
    first, last = format_value(low, unit), format_value(high, unit)
    number, space, name = first.rpartition(" ")
    return f"{number if space and name == last.rpartition(' ')[2] else first} to {last}"
