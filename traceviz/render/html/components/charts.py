"""Parts of a whole, series, and ratios over time as small figures."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import accumulate, groupby, pairwise

from markupsafe import Markup

from traceviz.core.units import NOT_MEASURED, Unit, format_ns, format_ratio, format_value
from traceviz.render.figures.values import spans_decades
from traceviz.render.html.components.colors import fills
from traceviz.render.html.components.element import element, joined, line, name, number, shown, term
from traceviz.render.rows import bars_heading, number_of
from traceviz.render.terminal.blocks import mean
from traceviz.report import Bar, Bars, Lane, Series, Timeline

_BAR_WIDTH = 1000
_BAR_HEIGHT = 24


def bars(block: Bars, slug: str = "") -> Markup:
    """Draw a figure: heading, the bar, and a table of its parts with their values; empty parts are only named."""
    heading = line(bars_heading(block))
    colors = fills([part.key for part in block.bars])
    parts = [(part, color) for part, color in zip(block.bars, colors, strict=True) if part.share > 0]
    heads = ("Part", False), ("Value", True), ("Share", True)
    head = joined(element("th", text, scope="col", class_="tv-number" if right else None) for text, right in heads)
    entries = element("tbody", joined(_part(part, color, block.unit, slug) for part, color in parts))
    legend = element("table", element("thead", element("tr", head)), entries, class_="tv-legend") if parts else ""
    # Parts that take no time are listed below the legend.
    empty = [part for part in block.bars if part.share <= 0]
    names = Markup(", ").join(term(part.label, part.key, slug) for part in empty)
    nothing = element("p", f"{_part_value(empty[0], block.unit)}: ", names, class_="tv-none") if empty else ""
    caption = element("figcaption", heading)
    body = element("div", _stacked(block, parts, heading), element("div", legend, nothing), class_="tv-parts")
    return element("figure", caption, body, class_="tv-bars")


def _stacked(block: Bars, parts: list[tuple[Bar, str]], heading: str) -> Markup:
    shares = [min(number_of(part.share), 1.0) for part, _ in parts]
    drawn = joined(
        element(
            "rect",
            element("title", f"{shown(part.label)}: {_part_value(part, block.unit)}, {format_ratio(part.share)}"),
            x=number(start * _BAR_WIDTH),
            y=0,
            width=number(share * _BAR_WIDTH),
            height=_BAR_HEIGHT,
            fill=color,
        )
        for (part, color), start, share in zip(parts, accumulate(shares, initial=0.0), shares, strict=False)
    )
    said = f"{heading}: {', '.join(f'{shown(part.label)} {format_ratio(part.share)}' for part, _ in parts)}"
    return element(
        "svg",
        drawn,
        class_="tv-stacked",
        viewBox=f"0 0 {_BAR_WIDTH} {_BAR_HEIGHT}",
        preserveAspectRatio="none",
        role="img",
        aria_label=said,
    )


def _part_value(part: Bar, unit: Unit) -> str:
    return shown(format_value(part.value, unit))


def _part(part: Bar, color: str, unit: Unit, slug: str) -> Markup:
    square = element("rect", width=12, height=12, rx=2, fill=color)
    swatch = element("svg", square, class_="tv-swatch", viewBox="0 0 12 12", aria_hidden="true")
    return element(
        "tr",
        element("th", swatch, term(part.label, part.key, slug), scope="row"),
        element("td", _part_value(part, unit), class_="tv-number"),
        element("td", format_ratio(part.share), class_="tv-number"),
    )


_PLOT_WIDTH, _PLOT_HEIGHT = 1000, 200


def series(block: Series) -> Markup:
    """Draw a figure: its points, its levels, the extreme values, and the labels of the first and last point."""
    values = [point.value for point in block.points if point.value is not None]
    if not values:
        return Markup()
    is_log = spans_decades(values, block.unit)
    low, high = (min(values) if is_log else min(0.0, *values)), max(values)
    title = line(f"{block.title}{'; logarithmic' * is_log}")

    def height(value: float) -> float:
        start, end, at = map(math.log, (low, high, max(value, low))) if is_log else (low, high, value)
        return _PLOT_HEIGHT - (at - start) / ((end - start) or 1.0) * (_PLOT_HEIGHT - 10) - 5

    starts = [*(level.start for level in block.levels), len(block.points)]
    levels = joined(
        element(
            "path",
            d=f"M{number(_x(block, start - 0.5))} {number(height(level.value))}H{number(_x(block, end - 0.5))}",
            class_="tv-level",
        )
        for level, (start, end) in zip(block.levels, pairwise(starts), strict=True)
    )
    drawn = element(
        "svg",
        levels,
        _lines(block, height),
        class_="tv-plot",
        viewBox=f"0 0 {_PLOT_WIDTH} {_PLOT_HEIGHT}",
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
    return _PLOT_WIDTH * (position + 0.5) / len(block.points)


def _lines(block: Series, height: Callable[[float], float]) -> Markup:
    """Join consecutive points; a line ends at a point that was not measured."""
    drawn = []
    for is_measured, run in groupby(enumerate(block.points), key=lambda item: item[1].value is not None):
        if is_measured:
            places = [(_x(block, index), height(point.value or 0.0)) for index, point in run]
            path = "L".join(f"{number(x)} {number(y)}" for x, y in places)
            drawn.append(f"M{path}{'h0.01' if len(places) == 1 else ''}")
    return element("path", d="".join(drawn), class_="tv-line")


_LANE_HEIGHT = 20


def timeline(block: Timeline) -> Markup:
    """Draw a table with a curve and a mean per lane; empty if there are no lanes."""
    if not block.lanes:
        return Markup()
    span = f"{format_ns(block.start_ns)} to {format_ns(block.end_ns)}"
    heads = joined(
        element("th", text, scope="col", class_=kind)
        for text, kind in (("Lane", None), (span, "tv-course"), ("Mean", "tv-number"))
    )
    colors = fills([""] * len(block.lanes))
    rows = joined(_lane(lane, color) for lane, color in zip(block.lanes, colors, strict=True))
    caption = element("caption", line(block.title) or "Over time", class_="tv-unseen")
    table = element("table", caption, element("thead", element("tr", heads)), element("tbody", rows), class_="tv-lanes")
    label = line(block.title) or "over time"
    region = element("div", table, class_="tv-scroll", role="group", tabindex=0, aria_label=label)
    heading = element("h3", line(block.title)) if block.title else ""
    return element("div", heading, region, class_="tv-table-of-lanes")


def _lane(lane: Lane, color: str) -> Markup:
    average = mean(lane.values)
    ratio = NOT_MEASURED if average is None else format_ratio(average)
    said = f"{ratio} of {shown(lane.whole)}" if lane.whole else ratio
    return element(
        "tr",
        element("th", name(lane.label), scope="row"),
        element("td", _curve(lane, color), class_="tv-course"),
        element("td", said, class_="tv-number"),
    )


def _curve(lane: Lane, color: str) -> Markup:
    """Draw slices as steps of an area, with gaps for slices that were not measured."""
    parts = []
    for is_measured, run in groupby(enumerate(lane.values), key=lambda item: item[1] is not None):
        slices = list(run)
        if is_measured:
            tops = (f"V{number(_LANE_HEIGHT * (1 - min(max(value or 0.0, 0.0), 1.0)))}h1" for _, value in slices)
            parts.append(f"M{slices[0][0]} {_LANE_HEIGHT}{''.join(tops)}V{_LANE_HEIGHT}z")
    drawn = element("path", d="".join(parts), fill=color)
    box = f"0 0 {max(len(lane.values), 1)} {_LANE_HEIGHT}"
    return element(
        "svg",
        drawn,
        class_="tv-curve",
        viewBox=box,
        preserveAspectRatio="none",
        role="img",
        aria_label=f"{shown(lane.label)} over time",
    )
