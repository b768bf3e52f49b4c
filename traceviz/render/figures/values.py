"""Figures: what is drawn, whatever draws it (SVG, a page, a terminal).

A figure is a frozen value of numbers in base units (:data:`traceviz.core.units.Unit`), with keys for colours
(:func:`traceviz.render.palette.color`) and labels for people. It knows no pixels and no colours. What draws it chooses
ticks, formats values with :mod:`traceviz.core.units`, makes labels harmless (:func:`traceviz.core.sanitize.visible`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from traceviz.core.units import Unit
from traceviz.report import Better

Style = Literal["line", "dashed", "steps", "area", "points"]
"""How a line is drawn: through its points; dashed (a level, a reference); each value until the next one; filled down to
zero, each value until the next one; points alone."""


@dataclass(frozen=True, slots=True)
class Axis:
    """What one direction of a figure measures.

    Args:
        label: In words, without the unit: ``"step time"``; empty where the title says it.
        unit: Base unit of its values.
        start: Where it begins; ``None`` lets the drawing choose from the values. Bars always begin at zero.
        end: Where it ends, likewise.
        log: Each tick is a factor of the one before. All values have to be above zero.
        names: Categories in place of numbers: the values are positions in it, 0 for the first.
    """

    label: str = ""
    unit: Unit = "number"
    start: float | None = None
    end: float | None = None
    log: bool = False
    names: tuple[str, ...] = ()


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
    """One bar of parts that follow one another.

    Args:
        label: Name of the bar: a step, a side.
        parts: In the order in which they are drawn, from the axis on.
        remark: A few words beside its name, such as ``"warm-up"``.
        most: Largest of what the bar is the mean of, drawn as a thin mark; ``None`` where it is no mean.
        group: Neighbours of one group stand closer and share its name, such as the ranks of one step; empty for none.
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
    """Bars beside one another, each the sum of its parts.

    Args:
        title: What is shown, in a few words.
        subtitle: Of what: ``"10 steady steps of slow.pt.trace.json.gz"``.
        axis: What the length of a bar measures.
        rows: The bars, in order.
        rows_label: What a bar is: ``"step"``.
        upright: Bars stand on the axis, from left to right, for many bars with short names; else they lie below one
            another, for few with long names.
        whole: The parts of all bars together, whose shares stand in the legend; empty for a legend without them.
        notes: Sentences below the figure: what it leaves out or cannot say.
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
        """Key and label of each kind of part, in the order in which they are drawn: the legend."""
        return tuple({part.key: (part.key, part.label) for row in self.rows for part in row.parts}.values())


@dataclass(frozen=True, slots=True)
class RankedBar:
    """One bar: ``low`` to ``high`` is the interval of its ``value``, ``share`` that of a whole where there is one.

    ``value`` is ``None`` where nothing was measured. ``detail`` is more about it, for who asks: ``"1,204 calls"``.
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
    """Bars below one another, each with its value: the largest first, or sides in their order.

    Fields are those of :class:`StackedBars`. ``one_color`` draws all bars in the first colour: they differ by name.
    """

    title: str
    subtitle: str
    axis: Axis
    bars: tuple[RankedBar, ...]
    one_color: bool = True
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Interval:
    """A value and how exact it is: ``low`` to ``high``; ``None`` where that was not measured.

    ``beside`` are a few words at the end of its row: ``"2.78× faster"``.
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
    """Values below one another with their intervals, and a line at ``reference`` (no change, the baseline).

    ``interval`` says what an interval is: ``"95 % interval of the median"``. Other fields as in :class:`StackedBars`.
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
    """One change: a bar to the right of zero where ``value`` is above it, to the left where it is below.

    ``beside`` are a few words at the end of its row (``"1.20 → 0.80 ms"``), ``remark`` one after its name (``"gone"``).
    """

    key: str
    label: str
    value: float | None
    beside: str = ""
    remark: str = ""


@dataclass(frozen=True, slots=True)
class SignedBars:
    """Changes below one another, the largest first.

    ``better`` says which direction is a gain, and so the colours; empty where neither is. Other fields as in
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
    """One point of a curve: ``y`` is ``None`` where nothing was measured, which interrupts the line.

    ``low`` to ``high`` is the interval of ``y``; ``label`` names the point for who asks.
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
    """Curves that share a vertical axis. The axis begins at zero unless it says otherwise.

    ``full`` is the amount that the end of an axis of ratios stands for, with its unit, ``"16 cores"``; ``remark`` is a
    few words above its right end.
    """

    axis: Axis
    lines: tuple[Line, ...]
    full: str = ""
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """A place on the horizontal axis that is pointed at: a change, a step that took long."""

    x: float
    label: str


@dataclass(frozen=True, slots=True)
class Curves:
    """Curves over one horizontal axis, in one panel or in several below one another, such as of different units.

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
        """Key and label of each curve, each once, in the order of the panels: the legend."""
        return tuple({line.key: (line.key, line.label) for panel in self.panels for line in panel.lines}.values())


Figure = StackedBars | RankedBars | Intervals | SignedBars | Curves


@dataclass(frozen=True, slots=True)
class NoFigure:
    """Why a report has no figure of a name: a clause for people, such as ``"no step was found"``."""

    reason: str
