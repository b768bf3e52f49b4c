"""Bars of parts: upright from left to right, or as rows one below another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from traceviz.core.units import format_ratio, format_value
from traceviz.render.figures.values import StackedBars, StackedRow
from traceviz.render.svg.elements import (
    BACKGROUND,
    QUIET,
    TEXT,
    Element,
    Ink,
    element,
    group,
    inks,
    line,
    number,
    rect,
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
    label_width,
    said,
    thinned,
    vertical_axis,
)
from traceviz.render.svg.rows import ROW_HEIGHT, axis_below, base_line, lay_rows, named, room_right, row_top
from traceviz.render.svg.scales import Tick, scale

_HEIGHT = 250.0
_GROUP_GAP = 0.7
"""Space between two groups of bars, in widths of a bar."""
_WIDEST = 56.0
_FEW = 14
"""Limit of the bars with their sums above them."""
_PARTS_TOLD = 40
"""Limit of bars with hover text per part; with more, each bar has one text, which keeps the file small."""
_TICKS_APART = 38.0


def keys(figure: StackedBars) -> tuple[Key, ...]:
    """Return the legend: each kind of part, with its share of all bars if that is known."""
    colours = inks(key for key, _ in figure.classes)
    shares = {part.key: part.share for part in figure.whole}
    return tuple(
        Key(colours[key], label if (share := shares.get(key)) is None else f"{label} {format_ratio(share)}")
        for key, label in figure.classes
    )


def draw(figure: StackedBars, width: float, height: float | None) -> Drawing:
    """Draw the bars with their axes, ``width`` pixels wide and, if upright, ``height`` pixels high."""
    colours = inks(key for key, _ in figure.classes)
    if figure.upright:
        return _upright(figure, colours, width, height or _HEIGHT)
    return _lying(figure, colours, width)


def _upright(figure: StackedBars, colours: Mapping[str, Ink], width: float, height: float) -> Drawing:
    top = LABEL_SIZE * 2
    below = TICK_GAP + LABEL_SIZE * (2.9 if figure.rows_label else 1.4)
    length = max(height - top - below, 60.0)
    values = [max(row.total, row.most or 0) for row in figure.rows]
    vertical = scale(figure.axis, values, length, _TICKS_APART, at_zero=True)
    left = label_width(vertical.ticks) + TICK_GAP
    room = width - left
    places, slot = _places(figure.rows, room)
    bar = min(slot * (0.8 if slot > 6 else 0.9), _WIDEST)
    bottom = top + length
    columns: dict[str, list[Element]] = {key: [] for key in colours}
    paths: dict[str, str] = dict.fromkeys(colours, "")
    sums, most, covers = [], [], []
    has_sums, each_told = len(figure.rows) <= _FEW, len(figure.rows) <= _PARTS_TOLD
    for row, place in zip(figure.rows, places, strict=True):
        x, y = left + place - bar / 2, bottom
        for part, told in _told(figure, row):
            tall = vertical.place(part[1]) - vertical.place(0)
            y -= tall
            if each_told:
                columns[part[0]].append(rect(x, y, bar, tall, told))
            else:
                paths[part[0]] += f"M{number(x)} {number(y)}h{number(bar)}v{number(tall)}H{number(x)}z"
        if not each_told:
            covers.append(rect(x, top, bar, length, _told_together(figure, row)))
        if has_sums and row.parts:
            total = format_value(row.total, figure.axis.unit)
            if width_of(total, LABEL_SIZE) <= slot - 2:
                sums.append(text(x + bar / 2, y - 5, total))
        if row.most is not None and row.most > row.total:
            high = bottom - vertical.place(row.most)
            most.append(line(x, high, x + bar, high))
    groups = _named_groups(figure.rows, places)
    ticks = thinned([tick for tick, _ in groups], [place for _, place in groups])
    shown = {tick.value for tick in ticks}
    labels = [
        text(left + place, bottom + TICK_GAP + LABEL_SIZE, shortened(tick.label, room, LABEL_SIZE))
        for tick, place in groups
        if tick.value in shown
    ]
    elements = [
        text(
            0,
            LABEL_SIZE,
            shortened(axis_title(figure.axis, vertical), width, LABEL_SIZE),
            font_size=LABEL_SIZE,
            fill=QUIET,
        ),
        vertical_axis(vertical, left, room, top),
        *(group(*rects, fill=colours[key]) for key, rects in columns.items() if rects),
        *(element("path", d=path, fill=colours[key]) for key, path in paths.items() if path),
        *((group(*most, stroke=QUIET, stroke_width=1),) if most else ()),
        *((group(*sums, font_size=LABEL_SIZE - 1, fill=TEXT, text_anchor="middle"),) if sums else ()),
        line(left, bottom, left + room, bottom, stroke=QUIET, stroke_width=1),
        *((group(*covers, fill="none", pointer_events="all"),) if covers else ()),
        group(*labels, font_size=LABEL_SIZE, fill=QUIET, text_anchor="middle"),
    ]
    elements += axis_below(figure.rows_label, left, room, bottom)
    return Drawing(tuple(elements), top + length + below)


def _told(figure: StackedBars, row: StackedRow) -> list[tuple[tuple[str, float], str]]:
    """Return key, length and hover text of each visible part."""
    of = _name(figure, row)
    return [
        (
            (part.key, part.value),
            f"{of}: {part.label} {format_value(part.value, figure.axis.unit)}"
            + ("" if part.share is None or figure.axis.unit == "ratio" else f" ({format_ratio(part.share)})"),
        )
        for part in row.parts
        if part.value > 0
    ]


def _name(figure: StackedBars, row: StackedRow) -> str:
    """Return ``step 3``, ``steps 40 to 49`` or ``slow (4 runs)``."""
    if figure.upright:
        return " ".join(filter(None, (figure.rows_label, row.label, row.remark)))
    return named(row.label, row.remark)


def _told_together(figure: StackedBars, row: StackedRow) -> str:
    """Return one hover text for all parts of a bar."""
    parts = ", ".join(f"{part.label} {format_value(part.value, figure.axis.unit)}" for part in row.parts if part.value)
    most = "" if row.most is None else f"the longest {format_value(row.most, figure.axis.unit)}"
    return f"{_name(figure, row)}: {said(format_value(row.total, figure.axis.unit), most, parts)}"


def _places(rows: Sequence[StackedRow], room: float) -> tuple[list[float], float]:
    """Return the middle of each bar, and the width available to it."""
    units, at = [], 0.0
    for position, row in enumerate(rows):
        if position and (row.group or rows[position - 1].group) and row.group != rows[position - 1].group:
            at += _GROUP_GAP
        units.append(at + 0.5)
        at += 1
    slot = room / max(at, 1)
    return [unit * slot for unit in units], slot


def _named_groups(rows: Sequence[StackedRow], places: Sequence[float]) -> list[tuple[Tick, float]]:
    """Return a name and its position below each bar; one for all bars of a group."""
    found: list[tuple[Tick, float]] = []
    begin = 0
    for position, row in enumerate(rows):
        if position + 1 == len(rows) or not row.group or rows[position + 1].group != row.group:
            tick = Tick(len(found), shortened(row.group or row.label, 120.0, LABEL_SIZE))
            found.append((tick, (places[begin] + places[position]) / 2))
            begin = position + 1
    return found


def _lying(figure: StackedBars, colours: Mapping[str, Ink], width: float) -> Drawing:
    names = [named(row.label, row.remark) for row in figure.rows]
    sums = [format_value(row.total, figure.axis.unit) for row in figure.rows]
    has_sums = figure.axis.unit != "ratio"  # shares of a whole always sum to it
    right = room_right(sums, 10.0) if has_sums and sums else 12.0
    rows = lay_rows(names, figure.axis, [row.total for row in figure.rows], width, right, at_zero=True)
    bars: dict[str, list[Element]] = {key: [] for key in colours}
    inside, totals = [], []
    for position, row in enumerate(figure.rows):
        x, y, middle = rows.left, row_top(position), base_line(position)
        for part, (_, told) in zip((part for part in row.parts if part.value > 0), _told(figure, row), strict=True):
            long = rows.scale.place(part.value) - rows.scale.place(0)
            bars[part.key].append(rect(x, y, long, ROW_HEIGHT, told))
            share = format_value(part.value, "ratio") if figure.axis.unit == "ratio" else None
            label = share or (format_ratio(part.share) if part.share is not None else "")
            if label and width_of(label, LABEL_SIZE) + 8 <= long:
                inside.append(text(x + long / 2, middle, label))
            x += long
        if has_sums:
            totals.append(text(x + 6, middle, sums[position]))
    return rows.drawing(
        *(group(*rects, fill=colours[key]) for key, rects in bars.items() if rects),
        *((group(*inside, font_size=LABEL_SIZE - 1, fill=BACKGROUND, text_anchor="middle"),) if inside else ()),
        *((group(*totals, font_size=LABEL_SIZE, fill=TEXT),) if totals else ()),
        line(rows.left, 0, rows.left, rows.height, stroke=QUIET, stroke_width=1),
    )
