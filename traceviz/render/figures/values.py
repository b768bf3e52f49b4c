"""Figures as values, independent of the medium (SVG, a page, a terminal).

A figure is a frozen value of numbers in base units (:data:`traceviz.core.units.Unit`), with keys for colours
(:func:`traceviz.render.palette.color`) and readable labels. It has no pixels and no colours. The medium chooses ticks,
formats values with :mod:`traceviz.core.units`, and sanitizes labels (:func:`traceviz.core.sanitize.visible`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from traceviz.core.units import Unit
from traceviz.report import Better

Style = Literal["line", "dashed", "steps", "area", "stacked", "points"]
"""Style of a line.

``line`` connects its points. ``dashed`` is a level or a reference. ``steps`` and ``area`` hold each value until the
next point; ``area`` is filled down to zero. So is ``stacked``, which covers what is behind it: the lines of a panel are
sums, the highest first. ``points`` are drawn alone.
"""


@dataclass(frozen=True, slots=True)
class Axis:
    """One direction of a figure.

    Args:
        label: Its quantity, without the unit: ``"step time"``; empty if the title names it.
        unit: Base unit of its values.
        start: Its start; ``None`` derives it from the values. Bars always start at zero.
        end: Its end, likewise.
        log: True for equal factors between ticks. All values must be above zero.
        names: Categories in place of numbers: the values are positions in it, 0 for the first.
    """

    label: str = ""
    unit: Unit = "number"
    start: float | None = None
    end: float | None = None
    log: bool = False
    names: tuple[str, ...] = ()


_FACTOR = 50.0
"""Ratio of the largest to the smallest value from which a linear axis would put most values at its bottom."""


def spans_decades(values: Iterable[float | None], unit: Unit) -> bool:
    """Return whether an axis for these values is logarithmic: all are above zero and far apart, and no shares."""
    measured = [value for value in values if value is not None]
    low, high = min(measured, default=0.0), max(measured, default=0.0)
    return unit != "ratio" and low > 0 and high / low > _FACTOR


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a bar: ``value`` in the unit of the axis, ``share`` of the bar's whole 0 to 1.

    ``value`` is zero or more. ``key`` gives its colour: parts of one key have one colour in the whole figure.
    """

    key: str
    label: str
    value: float
    share: float | None = None


@dataclass(frozen=True, slots=True)
class StackedRow:
    """One bar of consecutive parts.

    Args:
        label: Name of the bar: a step, a side.
        parts: In drawing order, from the axis on.
        remark: Text after its name, such as ``"warm-up"``.
        most: Largest value of those that the bar is the mean of, drawn as a thin mark; ``None`` if it is not a mean.
        group: Adjacent bars of one group stand closer and share its name, such as the ranks of one step; empty for
            none.
    """

    label: str
    parts: tuple[Part, ...]
    remark: str = ""
    most: float | None = None
    group: str = ""

    @property
    def total(self) -> float:
        """Length of the bar."""
        return sum(part.value for part in self.parts)


@dataclass(frozen=True, slots=True)
class StackedBars:
    """Several bars, each the sum of its parts.

    Args:
        title: Title of the figure.
        subtitle: Subject of the figure: ``"10 steady steps of slow.pt.trace.json.gz"``.
        axis: Quantity of the length of a bar.
        rows: The bars, in order.
        rows_label: Name of what a bar stands for: ``"step"``.
        upright: True for bars that stand on the axis, from left to right: many bars with short names. False for rows
            one below another: few bars with long names.
        whole: The parts of all bars together, with shares for the legend; empty for a legend without shares.
        notes: Sentences below the figure: omissions and limitations.
    """

    title: str
    subtitle: str
    axis: Axis
    rows: tuple[StackedRow, ...]
    rows_label: str = ""
    upright: bool = False
    whole: tuple[Part, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def classes(self) -> tuple[tuple[str, str], ...]:
        """Key and label of each kind of part, in drawing order, for the legend."""
        return tuple({part.key: (part.key, part.label) for row in self.rows for part in row.parts}.values())


@dataclass(frozen=True, slots=True)
class RankedBar:
    """One bar: ``low`` to ``high`` is the interval of its ``value``; ``share`` is its share of a whole, if any.

    ``value`` is ``None`` if it was not measured. ``detail`` is shown on hover: ``"1,204 calls"``.
    """

    key: str
    label: str
    value: float | None
    share: float | None = None
    low: float | None = None
    high: float | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class RankedBars:
    """Bars one below another, each with its value: the largest first, or sides in their order.

    Fields are those of :class:`StackedBars`. ``one_color`` draws all bars in the first colour: their names distinguish
    them.
    """

    title: str
    subtitle: str
    axis: Axis
    bars: tuple[RankedBar, ...]
    one_color: bool = True
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Interval:
    """A value and its interval, ``low`` to ``high``; ``None`` for values that were not measured.

    The text of ``beside`` ends its row: ``"2.78× faster"``.
    """

    key: str
    label: str
    value: float | None
    low: float | None = None
    high: float | None = None
    detail: str = ""
    beside: str = ""


@dataclass(frozen=True, slots=True)
class Intervals:
    """Values one below another with their intervals, and a line at ``reference`` (no change, the baseline).

    ``interval`` describes the intervals: ``"95 % interval of the median"``. Other fields as in :class:`StackedBars`.
    """

    title: str
    subtitle: str
    axis: Axis
    rows: tuple[Interval, ...]
    interval: str = ""
    reference: float | None = None
    reference_label: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SignedBar:
    """One change: a bar to the right of zero for a positive ``value``, to the left for a negative one.

    ``beside`` is text at the end of its row (``"1.20 → 0.80 ms"``), ``remark`` text after its name (``"gone"``).
    """

    key: str
    label: str
    value: float | None
    beside: str = ""
    remark: str = ""


@dataclass(frozen=True, slots=True)
class SignedBars:
    """Changes one below another, the largest first.

    ``better`` is the direction of a gain, which sets the colours; empty if neither direction is. Other fields as in
    :class:`StackedBars`.
    """

    title: str
    subtitle: str
    axis: Axis
    bars: tuple[SignedBar, ...]
    better: Better = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """One point of a curve: ``y`` is ``None`` if it was not measured, which interrupts the line.

    ``low`` to ``high`` is the interval of ``y``; ``label`` names the point on hover.
    """

    x: float
    y: float | None
    low: float | None = None
    high: float | None = None
    label: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """One curve: its points in the order of ``x``. Lines of one key have one colour in all panels."""

    key: str
    label: str
    points: tuple[CurvePoint, ...]
    style: Style = "line"


@dataclass(frozen=True, slots=True)
class Panel:
    """Curves that share a vertical axis. The axis starts at zero by default.

    ``full`` is the amount at the end of an axis of ratios, with its unit, ``"16 cores"``. ``remark`` is text above the
    right end of the panel.
    """

    axis: Axis
    lines: tuple[Line, ...]
    full: str = ""
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """A marked position on the horizontal axis: a change, a slow step."""

    x: float
    label: str


@dataclass(frozen=True, slots=True)
class Curves:
    """Curves over one horizontal axis, in one or several panels one below another, for example for different units.

    ``marks`` are drawn through all panels. Other fields as in :class:`StackedBars`.
    """

    title: str
    subtitle: str
    x: Axis
    panels: tuple[Panel, ...]
    marks: tuple[Mark, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[tuple[str, str], ...]:
        """Key and label of each distinct curve, in the order of the panels, for the legend."""
        return tuple({line.key: (line.key, line.label) for panel in self.panels for line in panel.lines}.values())


Figure = StackedBars | RankedBars | Intervals | SignedBars | Curves


@dataclass(frozen=True, slots=True)
class NoFigure:
    """The reason why a report lacks a figure: a readable clause, such as ``"no step was found"``."""

    reason: str
