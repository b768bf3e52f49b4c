"""A figure over a numeric tag, with intervals, the best value, and values that are as good.

The best value is chosen from figures that scatter. So settings that its interval does not distinguish from it are named
as equally good, as far as these runs show.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from traceviz.compare.compare import Comparison
from traceviz.compare.remark import in_capital, in_words
from traceviz.compare.sides.basis import cell as how_it_ended
from traceviz.compare.tables.differences import Difference, difference
from traceviz.compare.tables.figures import Figure, Value, stopped_runs
from traceviz.compare.tables.points import (
    Course,
    Point,
    courses,
    figures_over,
    interval_words,
    left_out_sentence,
    shown_number,
    tag_and_number,
)
from traceviz.core.units import format_value
from traceviz.report import TAG, Block, Column, Grid, Prose, Row, Section

CURVE = "curve"
RESOURCES = frozenset(
    {"accelerators", "cores", "cpus", "devices", "gpus", "inter", "intra", "nodes", "omp", "processes", "ranks"}
    | {"sockets", "threads", "tpus", "workers"}
)
"""Tags that count workers or devices: twice as many might be twice as fast."""
MEASURE = "measure."
"""Prefix of the names of columns of further figures."""
_BEST, _AS_GOOD = "best", "as good"


@dataclass(frozen=True, slots=True)
class Standing:
    """A point with its value, compared with the base and the best.

    Args:
        point: The point.
        value: Its value; ``None`` if it has none.
        against_base: Difference from the base of the curve.
        words: Text on the difference from the best; if it has no value, how its runs ended.
    """

    point: Point
    value: Value | None
    against_base: Difference
    words: str


def curve_section(comparison: Comparison, tag: str) -> Section:
    """Return the curves of the first requested figure, with the others in further columns.

    Raises:
        UsageError: no side has a requested figure, or fewer than two values are numbers.
    """
    figure, *beside = figures_over(comparison, tag)
    found = courses(comparison, tag, figure)
    standings = [_standings(comparison, course, figure) for course in found.courses]
    rows = [
        _row(course, standing, figure, beside)
        for course, of_course in zip(found.courses, standings, strict=True)
        for standing in of_course
    ]
    blocks: list[Block] = [Grid(_columns(comparison, tag, figure, beside), tuple(rows), complete=True)]
    for course, of_course in zip(found.courses, standings, strict=True):
        blocks += [Prose(text) for text in _sentences(course, figure, of_course)]
    if found.left_out:
        blocks.append(Prose(left_out_sentence(tag, found.left_out)))
    return Section(CURVE, f"{in_capital(figure.label)} over {tag}", tuple(blocks))


def _columns(comparison: Comparison, tag: str, figure: Figure, beside: Sequence[Figure]) -> tuple[Column, ...]:
    repeated = any(len(side.reports) > 1 for side in comparison.sides)
    return (
        *(Column(f"{TAG}{other}", other, "text", 0) for other in comparison.by if other != tag),
        Column(f"{TAG}{tag}", tag, "number", 0),
        Column("runs", "Runs", "count", 2 if repeated else 5),
        Column("value", in_capital(figure.label), figure.unit, 0, bar=True),
        Column("interval", "95 % interval", "text", 1, shorten=False, restates=True),
        Column("low", "95 % from", figure.unit, 9),
        Column("high", "95 % to", figure.unit, 9),
        *(Column(f"{MEASURE}{one.name}", in_capital(one.label), one.unit, 1) for one in beside),
        Column("speedup", "Speed-up" if figure.is_speed else "Times as good", "factor", 0 if figure.has_factor else 9),
        Column("speedup_low", "Speed-up, 95 % from", "factor", 9),
        Column("speedup_high", "Speed-up, 95 % to", "factor", 9),
        Column("efficiency", "Efficiency", "ratio", 3 if tag.lower() in RESOURCES else 9),
        Column("verdict", "Against the best", "text", 0, shorten=False),
    )


def _standings(comparison: Comparison, course: Course, figure: Figure) -> list[Standing]:
    values = [figure.value(point.side) for point in course.points]
    best = _best(figure, course.points, values)
    found = []
    for point, value in zip(course.points, values, strict=True):
        if value is None:
            found.append(Standing(point, None, Difference(), how_it_ended(point.side) or "not measured"))
            continue
        against_base = difference(comparison, figure, course.base, point.side)
        words = "" if best is None else _BEST if point is best else _against_best(comparison, figure, best, point)
        found.append(Standing(point, value, against_base, words))
    return found


def _best(figure: Figure, points: Sequence[Point], values: Sequence[Value | None]) -> Point | None:
    """Return the point with the best value; the first of equal ones.

    Return ``None`` if no point has a value, or the figure has no better direction.
    """
    best: tuple[Point, float] | None = None
    if not figure.better:
        return None
    for point, value in zip(points, values, strict=True):
        if value is not None and (best is None or figure.is_better(value.typical, best[1])):
            best = point, value.typical
    return None if best is None else best[0]


def _against_best(comparison: Comparison, figure: Figure, best: Point, point: Point) -> str:
    """Return how much worse a point is than the best, if that is more than chance."""
    interval = figure.change(best.side, point.side)
    if interval is not None and interval[0] <= 0 <= interval[1]:
        return _AS_GOOD
    found = difference(comparison, figure, point.side, best.side)
    if found.factor is None:
        return found.why_not or "worse"
    return f"{format_value(found.factor, 'factor')} {'slower' if figure.is_speed else 'worse'}"


def _row(course: Course, standing: Standing, figure: Figure, beside: Sequence[Figure]) -> Row:
    side, value, against = standing.point.side, standing.value, standing.against_base
    ends = (value.interval if value else None) or (None, None)
    first = next(point.number for point in course.points if point.side is course.base)
    times = standing.point.number / first if first else 0.0
    others = (one.typical(side) for one in beside)
    return (
        *course.others[1],
        shown_number(standing.point.number),
        len(side.reports),
        value.typical if value else None,
        interval_words(ends[0], ends[1], figure.unit),
        *ends,
        *others,
        against.factor,
        *(against.interval or (None, None)),
        against.factor / times if against.factor and times > 0 else None,
        standing.words,
    )


def _sentences(course: Course, figure: Figure, standings: Sequence[Standing]) -> Iterator[str]:
    """Yield the best value with its gain, and the values that are as good."""
    where = f"{course.label}: " if course.label else ""
    best = next((standing for standing in standings if standing.words == _BEST), None)
    if best is not None and figure.better:
        yield f"{where}{_best_in_words(course, figure, best, standings)}"
    yield from stopped_runs(figure, (standing.point.side for standing in standings))


def _best_in_words(course: Course, figure: Figure, best: Standing, standings: Sequence[Standing]) -> str:
    assert best.value is not None
    name, tag = figure.label, course.tag
    value = format_value(best.value.typical, figure.unit)
    ends = interval_words(*best.value.interval, figure.unit) if best.value.interval else None
    sentence = f"Best is {tag_and_number(tag, best.point.number)}: {name} {value}"
    sentence += f" (95 % interval {ends})" if ends else ""
    factor = best.against_base.factor
    if factor is not None and best.point.side is not course.base:
        first = next(point.number for point in course.points if point.side is course.base)
        words = f"{format_value(factor, 'factor')} as {'fast' if figure.is_speed else 'good'} as"
        sentence += f", {words} {tag_and_number(tag, first)}"
    as_good = [standing.point.number for standing in standings if standing.words == _AS_GOOD]
    if as_good:
        listed = in_words(format_value(shown_number(number), "number") for number in as_good)
        sentence += f"; {listed} cannot be told from it"
    unclear = not as_good and len(standings) > 1 and all(one.value is None or one.value.runs < 2 for one in standings)
    return f"{sentence}.{_ONE_RUN if unclear else ''}"


_ONE_RUN = " Each is of one run: several runs of each would tell how much of the differences is chance."
