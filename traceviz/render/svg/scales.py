"""Conversion of values to pixels, and the round values on an axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from traceviz.core.units import MINUS, scale_of
from traceviz.render.figures.values import Axis

_STEPS = (1, 2, 2.5, 5, 10)
_FARTHEST_LOG = 1e30
_FARTHEST, _SMALLEST, _NEAREST = 1e300, 1e-290, 1e-12
"""Limits of drawable values: the largest, the smallest, and the least distance relative to their size."""
_DECADES_WITH_PARTS = 1.5
"""Number of powers of ten up to which a logarithmic axis also names 2 and 5 times each."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A value that is named on an axis."""

    value: float
    label: str


@dataclass(frozen=True, slots=True)
class Scale:
    """Positions of values: ``start`` lies at pixel 0 and ``end`` at pixel ``length``."""

    start: float
    end: float
    length: float
    ticks: tuple[Tick, ...]
    unit: str
    log: bool = False

    def shows(self, value: float | None) -> bool:
        """Return whether a value has a position on the axis."""
        return value is not None and math.isfinite(value) and not (self.log and _within(value) <= 0)

    def place(self, value: float) -> float:
        """Return pixels from the axis start; 0 for values without a position, such as zero on a logarithmic axis."""
        if not self.shows(value):
            return 0.0
        value = _within(value)
        if self.log:
            share = math.log(_on_log(value) / self.start) / (math.log(self.end / self.start) or 1)
            return self.length * share
        return self.length * (value - self.start) / ((self.end - self.start) or 1)


def scale(axis: Axis, values: Sequence[float], length: float, spacing: float, *, at_zero: bool = False) -> Scale:
    """Return the scale of an axis of ``length`` pixels that shows all of ``values``.

    Args:
        axis: Its unit, and its start and end.
        values: All values that it must show, in base units; those that are not finite are ignored.
        length: Pixels.
        spacing: Approximate least number of pixels between ticks.
        at_zero: True if it includes zero, as for bars; then it is never logarithmic.
    """
    finite = [_within(value) for value in values if math.isfinite(value)]
    is_log = axis.log and not at_zero
    if is_log:
        finite = [_on_log(value) for value in finite if value > 0] or [1.0]
    finite = finite or [0.0]
    low, high = min(finite), max(finite)
    if is_log:
        return _logarithmic(axis, low, high, length, spacing)
    if at_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    low = low if axis.start is None else _within(axis.start)
    high = high if axis.end is None else _within(axis.end)
    if high - low <= _NEAREST * max(abs(low), abs(high), _SMALLEST):
        low, high = (low, low + (abs(low) or 1)) if at_zero or low == 0 else (low - abs(low) / 2, low + abs(low) / 2)
    unit = scale_of(max(abs(low), abs(high)), axis.unit)
    step = _round_step((high - low) / unit.size / max(length / spacing, 1))
    first = (
        math.floor(low / unit.size / step + 1e-9) if axis.start is None else math.ceil(low / unit.size / step - 1e-9)
    )
    last = math.ceil(high / unit.size / step - 1e-9) if axis.end is None else math.floor(high / unit.size / step + 1e-9)
    start = first * step * unit.size if axis.start is None else low
    end = last * step * unit.size if axis.end is None else high
    decimals = next((digits for digits in range(13) if math.isclose(round(step, digits), step, rel_tol=1e-6)), 12)
    ticks = tuple(Tick(n * step * unit.size, _label(n * step, decimals)) for n in range(first, last + 1))
    return Scale(start, end, length, ticks, unit.name)


def _within(value: float) -> float:
    return 0.0 if abs(value) < _SMALLEST else min(max(value, -_FARTHEST), _FARTHEST)


def _on_log(value: float) -> float:
    return min(max(value, 1 / _FARTHEST_LOG), _FARTHEST_LOG)


def _logarithmic(axis: Axis, low: float, high: float, length: float, spacing: float) -> Scale:
    low = low if axis.start is None else _on_log(axis.start)
    high = high if axis.end is None else _on_log(axis.end)
    unit = scale_of(high, axis.unit)
    decades = math.log10(high / low) if high > low else 0
    parts = (1, 2, 5) if decades <= max(length / spacing / 3, _DECADES_WITH_PARTS) else (1,)
    exponents = range(math.floor(math.log10(low / unit.size)) - 1, math.ceil(math.log10(high / unit.size)) + 2)
    places = [part * 10.0**exponent for exponent in exponents for part in parts]
    below = max((place for place in places if place * unit.size <= low * (1 + 1e-9)), default=low / unit.size)
    above = min((place for place in places if place * unit.size >= high * (1 - 1e-9)), default=high / unit.size)
    start = below * unit.size if axis.start is None else low
    end = above * unit.size if axis.end is None else high
    if end <= start:
        start, end = start / 2, end * 2
    shown = [place for place in places if start * (1 - 1e-9) <= place * unit.size <= end * (1 + 1e-9)]
    every = max(1, math.ceil(len(shown) * spacing / max(length, 1)))
    ticks = tuple(
        Tick(place * unit.size, (f"{place:,.0f}" if place >= 1 else f"{place:.12f}".rstrip("0")))
        for place in shown[::every]
    )
    return Scale(start, end, length, ticks, unit.name, log=True)


def named_scale(names: Sequence[str], length: float) -> Scale:
    """Return the scale of categories: each has an equal part of the axis, and its position is the middle of it."""
    ticks = tuple(Tick(position, name) for position, name in enumerate(names))
    return Scale(-0.5, len(names) - 0.5, length, ticks, "")


def _round_step(least: float) -> float:
    """Return the smallest of 1, 2, 2.5 and 5 times a power of ten that is not below ``least``."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(step for step in _STEPS if step * power >= least * (1 - 1e-9)) * power


def _label(value: float, decimals: int) -> str:
    written = f"{value:,.{decimals}f}"
    return MINUS + written[1:] if written.startswith("-") and value else written.lstrip("-")
