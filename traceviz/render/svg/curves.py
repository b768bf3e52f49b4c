"""Curves over one horizontal axis, in one panel or in several below one another."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

from traceviz.core.units import format_value
from traceviz.render.figures.values import CurvePoint, Curves, Line, Mark, Panel
from traceviz.render.svg.elements import (
    QUIET,
    TEXT,
    Element,
    Ink,
    element,
    group,
    inks,
    line,
    shortened,
    text,
    width_of,
)
from traceviz.render.svg.layout import (
    LABEL_SIZE,
    TICK_GAP,
    Drawing,
    Key,
    axis_title,
    horizontal_axis,
    label_width,
    said,
    thinned,
    vertical_axis,
    with_title,
)
from traceviz.render.svg.rows import axis_below
from traceviz.render.svg.scales import Scale, Tick, named_scale, scale

_ONE_PANEL, _PANEL, _LANE = 280.0, 150.0, 40.0
"""Height of a panel in pixels: alone, one of several, one of several with ratios over time."""
_FEW = 12
"""Limit of the numbers that the horizontal axis names all."""
_DIRECT = 6
"""Limit of the curves whose names stand at their ends."""
_MOST_OF_WIDTH = 0.28
_MOST_FULL = 110.0
"""Width in pixels for the amount at the end of an axis."""
_TOLD = 400
"""Limit of the points with text on hover."""
_WITH_DOTS, _WITH_WHISKERS = 60, 40
"""Limits of the points of a curve drawn as dots, and with whiskers; longer curves are a line and a band."""
_TICKS_APART, _TIMES_APART = 48.0, 90.0
_NAMES_APART = 26.0
"""Pixels between names below an axis; the first name may move to the right, and the last to the left."""


@dataclass(frozen=True, slots=True)
class _Frame:
    """Position of panels."""

    left: float
    width: float
    x: Scale


def keys(figure: Curves) -> tuple[Key, ...]:
    """Return the legend; empty if the names stand at the curves, or there is only one. Lanes have their names."""
    if stacked := _stacked_lines(figure):
        colours = inks(line.key for line in stacked)
        return tuple(Key(colours[line.key], line.label) for line in stacked)
    if (
        len(figure.lines) < 2
        or _is_direct(figure)
        or all(len(panel.lines) == 1 and panel.lines[0].label == panel.axis.label for panel in figure.panels)
    ):
        return ()
    colours = inks(key for key, _ in figure.lines)
    return tuple(Key(colours[key], label, is_line=True) for key, label in figure.lines)


def draw(figure: Curves, width: float, height: float | None) -> Drawing:
    """Draw the panels above the horizontal axis."""
    colours = inks(key for key, _ in figure.lines)
    each = _panel_height(figure, height)
    verticals = [_vertical(panel, each) for panel in figure.panels]
    left = max((label_width(vertical.ticks) for vertical in verticals), default=0.0) + TICK_GAP
    names = _end_names(figure, width)
    right = max((width_of(name, LABEL_SIZE) for name in names.values()), default=-4.0) + 16
    frame = _Frame(left, width - left - right, _horizontal(figure, width - left - right))
    elements: list[Element] = []
    y = LABEL_SIZE * 1.4 if figure.marks else 0.0
    begin = y
    for panel, vertical in zip(figure.panels, verticals, strict=True):
        head = LABEL_SIZE * 1.8
        elements += _head(panel, vertical, frame, y + LABEL_SIZE)
        top = y + head
        elements.append(vertical_axis(vertical, left, frame.width, top))
        drawn = [part for of in panel.lines for part in _line(figure, panel, of, colours[of.key], frame, vertical)]
        elements.append(group(*drawn, transform=f"translate({left:g} {top:g})"))
        elements += _ends(panel, names, colours, frame, vertical, top)
        y = top + each + (14 if len(figure.panels) > 1 else 0)
    bottom = y - (14 if len(figure.panels) > 1 else 0)
    elements += _marks(figure.marks, frame, begin, bottom)
    elements.append(line(left, bottom, left + frame.width, bottom, stroke=QUIET, stroke_width=1))
    elements.append(horizontal_axis(frame.x, left, bottom, 0, width=width, grid=False))
    title = axis_title(figure.x, frame.x)
    elements += axis_below(title, left, frame.width, bottom)
    return Drawing(tuple(elements), bottom + TICK_GAP + LABEL_SIZE * (2.9 if title else 1.4))


def _is_lane(panel: Panel) -> bool:
    """Return whether a panel shows ratios over time, which need little height."""
    return bool(panel.lines) and all(of.style in {"area", "stacked"} for of in panel.lines)


def _is_direct(figure: Curves) -> bool:
    return len(figure.panels) == 1 and 2 <= len(figure.lines) <= _DIRECT and not _stacked_lines(figure)


def _stacked_lines(figure: Curves) -> tuple[Line, ...]:
    """Return one line for each kind of the stacks, the lowest first."""
    lines = (line for panel in figure.panels for line in reversed(panel.lines) if line.style == "stacked")
    return tuple({line.key: line for line in lines}.values())


def _panel_height(figure: Curves, height: float | None) -> float:
    count = len(figure.panels) or 1
    lanes = all(map(_is_lane, figure.panels))
    if height is not None:
        return max((height - 30 - LABEL_SIZE * 1.8 * count) / count - 14, 24.0)
    if lanes:
        return _PANEL if count == 1 else _LANE
    return _ONE_PANEL if count == 1 else _PANEL


def _vertical(panel: Panel, height: float) -> Scale:
    values = [
        value
        for of in panel.lines
        for point in of.points
        for value in (point.y, point.low, point.high)
        if value is not None
    ]
    chosen = scale(panel.axis, values, height, _TICKS_APART if height > 60 else height, at_zero=not panel.axis.log)
    if not panel.full:
        return chosen
    full = Tick(chosen.end, shortened(panel.full, _MOST_FULL, LABEL_SIZE))
    return replace(chosen, ticks=(Tick(chosen.start, "0"), full), unit="")


def _horizontal(figure: Curves, width: float) -> Scale:
    points = (point.x for panel in figure.panels for of in panel.lines for point in of.points)
    values = [x for x in points if math.isfinite(x)]
    if figure.x.names:
        named = named_scale([shortened(name, 130.0, LABEL_SIZE) for name in figure.x.names], width)
        return _thinned(named, _NAMES_APART)
    ends = replace(
        figure.x,
        start=(min(values, default=0.0) if figure.x.start is None else figure.x.start),
        end=(max(values, default=1.0) if figure.x.end is None else figure.x.end),
    )
    chosen = scale(ends, values, width, _TIMES_APART)
    few = sorted(set(values))
    if figure.x.unit in {"number", "count", "id"} and 1 < len(few) <= _FEW:
        plain = scale(replace(ends, unit="number"), values, width, 1.0)
        of_points = replace(
            plain,
            ticks=tuple(
                Tick(value, format_value(int(value) if float(value).is_integer() else value, "number")) for value in few
            ),
        )
        if len(_thinned(of_points).ticks) == len(few):
            return of_points
    return chosen


def _thinned(horizontal: Scale, gap: float = 10.0) -> Scale:
    """Return the scale with as many of its ticks as fit."""
    places = [horizontal.place(tick.value) for tick in horizontal.ticks]
    return replace(horizontal, ticks=thinned(horizontal.ticks, places, gap))


def _head(panel: Panel, vertical: Scale, frame: _Frame, y: float) -> Iterator[Element]:
    """Draw the title of a panel above it at the left, and its remark at the right."""
    room = frame.left + frame.width
    remark = shortened(panel.remark, room / 2, LABEL_SIZE)
    title = shortened(axis_title(panel.axis, vertical), room - width_of(remark, LABEL_SIZE) - 12, LABEL_SIZE)
    yield text(0, y, title, font_size=LABEL_SIZE, fill=QUIET)
    if remark:
        yield text(room, y, remark, font_size=LABEL_SIZE, fill=QUIET, text_anchor="end")


def _line(  # noqa: PLR0917 (what is drawn, and where)
    figure: Curves, panel: Panel, of: Line, ink: Ink, frame: _Frame, vertical: Scale
) -> Iterator[Element]:
    points = [point for point in of.points if _can_be_drawn(point, frame.x, vertical)]
    runs = [
        [(frame.x.place(point.x), vertical.length - vertical.place(point.y or 0), point) for point in run]
        for is_there, run in groupby(points, lambda point: point.y is not None)
        if is_there
    ]
    if of.style in {"steps", "area", "stacked"}:
        yield from _stairs(points, of, ink, frame, vertical)
        return
    if any(point.low is not None for point in points):
        yield from _intervals(runs, len(points), ink, vertical)
    dashes = "6 4" if of.style == "dashed" else None
    if of.style != "points":
        for run in runs:
            if len(run) > 1:
                path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y, _ in _fewer(run))
                yield element(
                    "path",
                    d=path,
                    fill="none",
                    stroke=ink,
                    stroke_width=2,
                    stroke_dasharray=dashes,
                    stroke_linejoin="round",
                )
    if of.style != "dashed" and len(points) <= _TOLD:
        radius = 3.5 if len(points) <= _WITH_DOTS else 2.0
        many = of.style == "line" and len(points) > _WITH_DOTS
        for x, y, point in (place for run in runs for place in run):
            yield with_title(
                "circle",
                _told(figure, panel, of, point),
                cx=x,
                cy=y,
                r=radius,
                fill=ink,
                fill_opacity="0" if many else None,
            )
    elif of.style == "points":
        dots = "".join(f"M{x:.1f} {y:.1f}h0" for run in runs for x, y, _ in _fewer(run))
        yield element("path", d=dots, stroke=ink, stroke_width=3, stroke_linecap="round")


def _can_be_drawn(point: CurvePoint, horizontal: Scale, vertical: Scale) -> bool:
    return horizontal.shows(point.x) and (point.y is None or vertical.shows(point.y))


Place = tuple[float, float, CurvePoint]


def _fewer(run: Sequence[Place]) -> Iterator[Place]:
    """Return the lowest and the highest point of each half pixel, in order; more points would not be visible."""
    for _, places in groupby(run, lambda place: int(place[0] * 2)):
        within = list(places)
        if len(within) <= 2:
            yield from within
        else:
            ends = {
                min(range(len(within)), key=lambda n: within[n][1]),
                max(range(len(within)), key=lambda n: within[n][1]),
            }
            yield from (within[number] for number in sorted(ends))


def _intervals(runs: Sequence[Sequence[Place]], count: int, ink: Ink, vertical: Scale) -> Iterator[Element]:
    """Draw whiskers for few points, a band for many."""

    def height(value: float) -> float:
        return vertical.length - vertical.place(value)

    for run in runs:
        bounded = [(x, height(p.high), height(p.low)) for x, _, p in run if p.low is not None and p.high is not None]
        if count <= _WITH_WHISKERS:
            for x, high, low in bounded:
                ends = f"M{x - 4:.1f} {high:.1f}h8m-4 0V{low:.1f}m-4 0h8"
                yield element("path", d=ends, fill="none", stroke=ink, stroke_width=1.5)
        elif len(bounded) > 1:
            above = [f"{x:.1f} {high:.1f}" for x, high, _ in bounded]
            below = [f"{x:.1f} {low:.1f}" for x, _, low in reversed(bounded)]
            yield element("path", d=f"M{'L'.join(above + below)}Z", fill=ink, fill_opacity="0.18")


def _stairs(points: Sequence[CurvePoint], of: Line, ink: Ink, frame: _Frame, vertical: Scale) -> Iterator[Element]:
    """Hold each value until the next point, the last one to the end of the axis; leave gaps for unmeasured points."""
    zero = vertical.length - vertical.place(max(vertical.start, 0))
    begins = [*(frame.x.place(point.x) for point in points), frame.width]
    steps = [(begin, end, point.y) for (begin, end), point in zip(pairwise(begins), points, strict=True)]
    for is_there, run in groupby(steps, lambda step: step[2] is not None):
        if not is_there:
            continue
        stairs = [(begin, end, f"{vertical.length - vertical.place(y or 0):.1f}") for begin, end, y in run]
        begin, top = stairs[0][0], ""
        for height, level in groupby(stairs, lambda stair: stair[2]):
            end = list(level)[-1][1]
            top += f"V{height}H{end:.1f}" if top else f"M{begin:.1f} {height}H{end:.1f}"
        if of.style != "steps":
            opacity = "0.28" if of.style == "area" else None
            yield element("path", d=f"{top}V{zero:.1f}H{begin:.1f}Z", fill=ink, fill_opacity=opacity)
        if of.style == "stacked":
            continue
        yield element("path", d=top, fill="none", stroke=ink, stroke_width=1.5)


def _told(figure: Curves, panel: Panel, of: Line, point: CurvePoint) -> str:
    unit = panel.axis.unit
    where = point.label or (figure.x.names[round(point.x)] if figure.x.names else format_value(point.x, figure.x.unit))
    named = where if point.label or not figure.x.label else f"{figure.x.label} {where}"
    ends = (
        ""
        if point.low is None or point.high is None
        else f"{format_value(point.low, unit)} to {format_value(point.high, unit)}"
    )
    return f"{said(of.label, named)}: {said(format_value(point.y, unit), ends)}"


def _end_names(figure: Curves, width: float) -> dict[str, str]:
    """Return the names that stand at the ends of curves, by key."""
    named = figure.lines if _is_direct(figure) else ()
    return {key: shortened(label, width * _MOST_OF_WIDTH, LABEL_SIZE) for key, label in named}


def _ends(  # noqa: PLR0917 (what is drawn, and where)
    panel: Panel, names: Mapping[str, str], colours: Mapping[str, Ink], frame: _Frame, vertical: Scale, top: float
) -> Iterator[Element]:
    """Draw names at the ends of curves, moved apart if they are close together."""
    ends = []
    for of in panel.lines:
        seen = [point for point in of.points if point.y is not None and _can_be_drawn(point, frame.x, vertical)]
        if seen and of.key in names:
            ends.append((vertical.length - vertical.place(seen[-1].y or 0), frame.x.place(seen[-1].x), of))
    ends = list({end[2].key: end for end in ends}.values())
    ends.sort(key=lambda end: end[0])
    apart = LABEL_SIZE * 1.25
    heights = [end[0] for end in ends]
    for number in range(1, len(heights)):
        heights[number] = max(heights[number], heights[number - 1] + apart)
    limit = vertical.length
    for number in reversed(range(len(heights))):
        heights[number] = min(heights[number], limit)
        limit = heights[number] - apart
    x = frame.left + frame.width + 8
    for y, (_, _, of) in zip(heights, ends, strict=True):
        yield text(x, top + y + LABEL_SIZE * 0.35, names[of.key], font_size=LABEL_SIZE, fill=colours[of.key])


def _marks(marks: Sequence[Mark], frame: _Frame, begin: float, bottom: float) -> Iterator[Element]:
    """Draw a line through all panels for each mark, with its name above if it fits."""
    free = 0.0
    for mark in marks:
        x = frame.left + frame.x.place(mark.x)
        drawn = line(x, begin, x, bottom, stroke=TEXT, stroke_width=1, stroke_dasharray="2 3")
        yield group(element("title", mark.label), drawn) if mark.label else drawn
        label = shortened(mark.label, frame.width / 2, LABEL_SIZE)
        wide = width_of(label, LABEL_SIZE)
        at = min(x - 2, frame.left + frame.width - wide)
        if label and at >= free:
            yield text(at, begin - 4, label, font_size=LABEL_SIZE, fill=TEXT)
            free = at + wide + 10
