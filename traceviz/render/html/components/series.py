"""A figure from point to point, with its levels."""

from __future__ import annotations

from itertools import groupby, pairwise

from markupsafe import Markup

from traceviz.core.units import format_value
from traceviz.render.html.components.element import element, joined, line, number, shown
from traceviz.report import Series

_WIDTH, _HEIGHT = 1000, 200


def series(block: Series) -> Markup:
    """Draw a figure: its points, its levels, the extreme values, and the labels of the first and last point."""
    values = [point.value for point in block.points if point.value is not None]
    if not values:
        return Markup()
    low, high = min(0.0, *values), max(values)
    title = line(block.title)
    starts = [*(level.start for level in block.levels), len(block.points)]
    levels = joined(
        element(
            "path",
            d=f"M{number(_x(block, start - 0.5))} {number(_y(level.value, low, high))}H{number(_x(block, end - 0.5))}",
            class_="tv-level",
        )
        for level, (start, end) in zip(block.levels, pairwise(starts), strict=True)
    )
    drawn = element(
        "svg",
        levels,
        _lines(block, low, high),
        class_="tv-plot",
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        preserveAspectRatio="none",
        role="img",
        aria_label=f"{title}: {len(values)} values from {format_value(min(values), block.unit)} "
        f"to {format_value(high, block.unit)}",
    )
    ends = [shown(block.points[position].label) for position in (0, -1)]
    scale = element(
        "div",
        element("span", format_value(high, block.unit)),
        element("span", format_value(low, block.unit)),
        class_="tv-scale",
        aria_hidden="true",
    )
    across = element("div", element("span", ends[0]), element("span", ends[1]), class_="tv-ends")
    return element("figure", element("figcaption", title), scale, drawn, across, class_="tv-series")


def _x(block: Series, position: float) -> float:
    return _WIDTH * (position + 0.5) / len(block.points)


def _y(value: float, low: float, high: float) -> float:
    return _HEIGHT - (value - low) / ((high - low) or 1.0) * (_HEIGHT - 10) - 5


def _lines(block: Series, low: float, high: float) -> Markup:
    """Join consecutive points; a line ends at a point that was not measured."""
    drawn = []
    for is_measured, run in groupby(enumerate(block.points), key=lambda item: item[1].value is not None):
        if is_measured:
            places = [(_x(block, index), _y(point.value or 0.0, low, high)) for index, point in run]
            path = "L".join(f"{number(x)} {number(y)}" for x, y in places)
            drawn.append(f"M{path}{'h0.01' if len(places) == 1 else ''}")
    return element("path", d="".join(drawn), class_="tv-line")
