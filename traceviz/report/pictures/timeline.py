"""A timeline: lanes of spans, curves, and arrows between spans, as values.

A :class:`Lane` is one stream, one thread, the steps of one rank. Spans that nest or overlap lie in several rows of it:
the spans of one :class:`Row` never overlap, so that a row is a sequence of gaps and spans. Names are numbers into
:attr:`Timeline.names`; each name has one family, which gives the colour.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.int64]

LaneKind = Literal[
    "steps",  # steps of a rank, as the trace declares them or as they were found
    "classes",  # the one class that every nanosecond of a rank belongs to; idle time of the device by its cause
    "device",  # kernels, copies and fills of one stream
    "device_ops",  # modules, scopes, asynchronous operations around device work
    "collectives",  # collectives of a rank, joined across ranks by arrows
    "ranges",  # NVTX
    "ops",  # operators, modules, input stages: host_ops of one thread
    "api",  # CUDA calls of one thread
    "os",  # calls of the operating system's library
    "stacks",  # Python stacks of one thread
    "phases",  # parts of a run as hooks in the program saw them
]


@dataclass(frozen=True, slots=True)
class Family:
    """Names that share a colour: ``key`` is stable (see :mod:`traceviz.render.palette`), ``label`` is for people."""

    key: str
    label: str


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """Spans that do not overlap, in order of time; all arrays have one value per span.

    Args:
        starts: Begin, in nanoseconds on the trace's clock.
        durations: Nanoseconds, 0 and more.
        names: Position of the name in :attr:`Timeline.names`.
        events: Number of the event, unique among all rows of the timeline; arrows refer to it.
    """

    starts: Array
    durations: Array
    names: Array
    events: Array


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """A row seen from afar: equal cells from :attr:`Timeline.start_ns` on, only those that hold something.

    Args:
        width_ns: Width of a cell.
        cells: Positions of the cells, ascending.
        names: The name that takes most of the cell.
        covered: How much of the cell spans cover, 1 to 255 for all of it: what is there is never nothing.
    """

    width_ns: int
    cells: Array
    names: Array
    covered: Array


@dataclass(frozen=True, slots=True, eq=False)
class Lane:
    """One stream, one thread, the steps of one rank.

    Args:
        key: Stable key, unique in the timeline.
        label: For people: ``stream 7``, ``MainThread (4711)``.
        kind: What it shows.
        group: What it belongs to, for people: ``rank 0``, ``cuda:0``; lanes of a group are neighbours.
        rows: From the outermost to the innermost, or as overlapping spans need them.
        levels: For each row its levels of detail, the finest first; none for a row of few spans.
    """

    key: str
    label: str
    kind: LaneKind
    group: str
    rows: tuple[Row, ...]
    levels: tuple[tuple[Level, ...], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A figure over time: CPU, memory, use of a device, power. ``values`` are in base ``unit``; NaN is not measured."""

    key: str
    label: str
    group: str
    unit: str
    times: Array
    values: npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Arrows:
    """What set off what: from the span of event ``sources[i]`` to that of event ``targets[i]``.

    ``kind`` is ``launch`` (call to device work) or ``collective`` (the same collective on another rank).
    """

    kind: Literal["launch", "collective"]
    sources: Array
    targets: Array


@dataclass(frozen=True, slots=True)
class Detail:
    """A stretch of time in which every event is there, and why it was chosen."""

    start_ns: int
    end_ns: int
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """All of it.

    Args:
        start_ns: Begin of the span that is shown.
        end_ns: Its end.
        names: Texts that spans refer to.
        families: What gives the colours.
        family_of: For each name the position of its family.
        lanes: In the order in which they are drawn.
        curves: Figures over time, drawn below the lanes of their group.
        arrows: What set off what.
        events: Spans that the trace has.
        kept: Spans that are here; fewer than ``events`` where the budget did not allow for all.
        details: Where every event is here, if not everywhere.
    """

    start_ns: int
    end_ns: int
    names: tuple[str, ...]
    families: tuple[Family, ...]
    family_of: Array
    lanes: tuple[Lane, ...]
    curves: tuple[Curve, ...] = ()
    arrows: tuple[Arrows, ...] = ()
    events: int = 0
    kept: int = 0
    details: tuple[Detail, ...] = ()
