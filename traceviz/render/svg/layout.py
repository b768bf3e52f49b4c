"""Elements common to all figures: letter sizes, a title, a legend, axes, notes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from traceviz.render.figures.values import Axis
from traceviz.render.svg.elements import (
    BOLD,
    LINE,
    QUIET,
    TEXT,
    Element,
    Ink,
    element,
    group,
    line,
    rect,
    shortened,
    text,
    width_of,
    wrapped,
)
from traceviz.render.svg.scales import Scale, Tick

TITLE_SIZE, SUBTITLE_SIZE, LABEL_SIZE, NOTE_SIZE = 16.0, 12.5, 12.0, 11.0
MARGIN = 16.0
"""Pixels around a figure."""
_LINE_HEIGHT = 1.4
_SWATCH = 10.0
_BETWEEN = 18.0
_INTO_MARGIN = 12.0
"""Pixels of the margin that the first and the last label of an axis may take."""
TICK_GAP = 8.0
"""Pixels between an axis and its labels."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """Elements from pixel 0 downward, with their height."""

    elements: tuple[Element, ...] = ()
    height: float = 0.0


@dataclass(frozen=True, slots=True)
class Key:
    """One entry of a legend: a colour and its meaning."""

    ink: Ink
    label: str
    is_line: bool = False


def below_each_other(drawings: Iterable[Drawing], x: float, y: float, gap: float) -> Drawing:
    """Stack drawings from (x, y) downward, ``gap`` pixels apart; empty ones take no gap."""
    elements = []
    for drawing in drawings:
        if not drawing.elements:
            continue
        elements.append(group(*drawing.elements, transform=f"translate({x:g} {y:g})"))
        y += drawing.height + gap
    return Drawing(tuple(elements), y - gap)


def heading(title: str, subtitle: str, width: float) -> Drawing:
    """Draw the title and the subtitle, on as many lines as they need."""
    lines: list[Element] = []
    y = 0.0
    for line_of_title in wrapped(title, width / BOLD, TITLE_SIZE):
        y += TITLE_SIZE * (1.1 if not lines else 1.25)
        lines.append(text(0, y, line_of_title, font_size=TITLE_SIZE, font_weight="600", fill=TEXT))
    for line_of_subtitle in wrapped(subtitle, width, SUBTITLE_SIZE):
        y += SUBTITLE_SIZE * 1.5
        lines.append(text(0, y, line_of_subtitle, font_size=SUBTITLE_SIZE, fill=QUIET))
    return Drawing(tuple(lines), y + 4)


def notes(sentences: Sequence[str], width: float) -> Drawing:
    """Draw sentences below the figure."""
    lines = [part for sentence in sentences for part in wrapped(sentence, width, NOTE_SIZE)]
    height = NOTE_SIZE * _LINE_HEIGHT
    placed = (text(0, height * number + NOTE_SIZE, part) for number, part in enumerate(lines))
    return Drawing((group(*placed, font_size=NOTE_SIZE, fill=QUIET),) if lines else (), height * len(lines))


def legend(keys: Sequence[Key], width: float) -> Drawing:
    """Draw colours and their meanings side by side, on as many lines as they need."""
    if not keys:
        return Drawing()
    x, y, height = 0.0, 0.0, LABEL_SIZE * 1.6
    elements = []
    for key in keys:
        label = shortened(key.label, width - _SWATCH - 6, LABEL_SIZE)
        wide = _SWATCH + 6 + width_of(label, LABEL_SIZE)
        if x and x + wide > width:
            x, y = 0.0, y + height
        middle = y + height / 2
        if key.is_line:
            elements.append(line(x, middle, x + _SWATCH, middle, stroke=key.ink, stroke_width=3))
        else:
            elements.append(rect(x, middle - _SWATCH / 2, _SWATCH, _SWATCH, rx=2, fill=key.ink))
        elements.append(text(x + _SWATCH + 6, middle + LABEL_SIZE * 0.35, label))
        x += wide + _BETWEEN
    return Drawing((group(*elements, font_size=LABEL_SIZE, fill=TEXT),), y + height)


def axis_title(axis: Axis, scale: Scale) -> str:
    """Return the title of an axis: ``step time (ms)``."""
    unit = f"({scale.unit})" if axis.label and scale.unit else scale.unit
    return " ".join(filter(None, (axis.label, unit)))


def label_width(ticks: Iterable[Tick]) -> float:
    """Return the width of the widest label of an axis in pixels."""
    return max((width_of(tick.label, LABEL_SIZE) for tick in ticks), default=0.0)


def vertical_axis(scale: Scale, left: float, width: float, top: float) -> Element:
    """Draw the ticks of an axis whose values grow upward, each with a line through the figure."""
    lines, labels = [], []
    for tick in scale.ticks:
        y = top + scale.length - scale.place(tick.value)
        lines.append(line(left, y, left + width, y))
        labels.append(text(left - TICK_GAP, y + LABEL_SIZE * 0.35, tick.label))
    return group(
        group(*lines, stroke=LINE, stroke_width=1), group(*labels, font_size=LABEL_SIZE, fill=QUIET, text_anchor="end")
    )


def horizontal_axis(
    scale: Scale, left: float, top: float, height: float, *, width: float, grid: bool = True
) -> Element:
    """Draw ticks of an axis whose values grow to the right, ``height`` below ``top``, with labels below it.

    Labels stay within ``width`` pixels from 0 on, and a part of the margins.
    """
    lines, labels = [], []
    for tick in scale.ticks:
        x = left + scale.place(tick.value)
        lines.append(line(x, top if grid else top + height, x, top + height + (0 if grid else 4)))
        half = width_of(tick.label, LABEL_SIZE) / 2
        middle = max(min(x, width + _INTO_MARGIN - half), half - _INTO_MARGIN)
        labels.append(text(middle, top + height + TICK_GAP + LABEL_SIZE, tick.label))
    return group(
        group(*lines, stroke=LINE, stroke_width=1),
        group(*labels, font_size=LABEL_SIZE, fill=QUIET, text_anchor="middle"),
    )


def thinned(ticks: Sequence[Tick], spaces: Sequence[float], gap: float = 10.0) -> tuple[Tick, ...]:
    """Return every n-th tick, from the first on, such that no two labels touch.

    Args:
        ticks: All ticks.
        spaces: Their places in pixels, ascending.
        gap: Least number of pixels between two labels.
    """
    widths = [width_of(tick.label, LABEL_SIZE) for tick in ticks]
    for every in _round_numbers(len(ticks)):
        chosen = range(0, len(ticks), every)
        if all(spaces[b] - spaces[a] >= (widths[a] + widths[b]) / 2 + gap for a, b in pairwise(chosen)):
            return tuple(ticks[position] for position in chosen)
    return tuple(ticks[:1])


def _round_numbers(most: int) -> Iterable[int]:
    power = 1
    while power <= max(most, 1):
        yield from (part * power for part in (1, 2, 5))
        power *= 10


def said(*parts: str) -> str:
    """Join the non-empty parts of a text that is shown on hover."""
    return " · ".join(filter(None, parts))


def with_title(tag: str, told: str, **attributes: str | float | Ink | None) -> Element:
    """Create an element with text on hover."""
    return element(tag, element("title", told), **attributes) if told else element(tag, **attributes)
