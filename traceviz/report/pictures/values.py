"""Pictures of a page in addition to the report, as values: a timeline, flame graphs, and places of findings.

A :class:`Lane` is one stream, one thread, the steps of one rank. Nested and overlapping spans lie in several rows of a
lane. The spans of one :class:`Row` never overlap, so a row is a sequence of gaps and spans. Names are indices into
:attr:`Timeline.names`; each name has one family, which gives the colour.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.int64]

LaneKind = Literal[
    "steps",  # steps of a rank, declared by the trace or detected
    "classes",  # the exclusive class of every nanosecond of a rank; idle time of the device by its cause
    "device",  # kernels, copies and fills of one stream
    "device_ops",  # modules, scopes, asynchronous operations around device work
    "collectives",  # collectives of a rank, joined across ranks by arrows
    "ranges",  # NVTX
    "ops",  # operators, modules, input stages: host_ops of one thread
    "api",  # CUDA calls of one thread
    "os",  # calls of the operating system's library
    "stacks",  # Python stacks of one thread
    "phases",  # parts of a run, recorded by hooks in the program
]


@dataclass(frozen=True, slots=True)
class Family:
    """Names that share a colour: ``key`` is stable (see :mod:`traceviz.render.palette`), ``label`` is readable."""

    key: str
    label: str


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """Spans that do not overlap, in order of time; all arrays have one value per span.

    Args:
        starts: Start, in nanoseconds on the trace's clock.
        durations: Nanoseconds, at least 0.
        names: Position of the name in :attr:`Timeline.names`.
        events: Number of the event, unique among all rows of the timeline; arrows refer to it.
    """

    starts: Array
    durations: Array
    names: Array
    events: Array


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """A zoom level of a row: equal cells from :attr:`Timeline.start_ns` on, without empty ones.

    Args:
        width_ns: Width of a cell.
        cells: Positions of the cells, ascending.
        names: The name with the most time in the cell.
        covered: Part of the cell that spans cover, from 1 to 255 for all of it; a cell with spans is never 0.
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
        label: Readable label: ``stream 7``, ``MainThread (4711)``.
        kind: Kind of its spans.
        group: Readable name of its owner: ``rank 0``, ``cuda:0``; lanes of a group are neighbours.
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
    """A figure over time: CPU, memory, device use, power. ``values`` are in base ``unit``; NaN means not measured."""

    key: str
    label: str
    group: str
    unit: str
    times: Array
    values: npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Arrows:
    """Arrows from a cause to its effect: from the span of event ``sources[i]`` to that of event ``targets[i]``.

    ``kind`` is ``launch`` (call to device work) or ``collective`` (the same collective on another rank).
    """

    kind: Literal["launch", "collective"]
    sources: Array
    targets: Array


@dataclass(frozen=True, slots=True)
class Detail:
    """An interval of time with every event, and the reason for its choice."""

    start_ns: int
    end_ns: int
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """The whole timeline.

    Args:
        start_ns: Start of the span that is shown.
        end_ns: Its end.
        names: Texts that spans refer to.
        families: Families, which give the colours.
        family_of: For each name the position of its family.
        lanes: In drawing order.
        curves: Figures over time, drawn below the lanes of their group.
        arrows: Arrows from causes to their effects.
        events: Number of spans in the trace.
        kept: Number of spans in the timeline; less than ``events`` if the budget did not allow all.
        details: Intervals in which every event is present, if not everywhere.
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


@dataclass(frozen=True, slots=True, eq=False)
class Flame:
    """One tree. Nodes are numbered depth-first: a node, then all inside it; siblings mostly by time, the largest first.

    Args:
        key: Stable key: ``operators-host``, ``modules-device``, ``ranges-host``, ``stacks-samples``.
        label: Readable label.
        measure: Source of the time: the host, the device, or sampled stacks.
        whole: The time of the root as text: ``29 steady steps``.
        parents: Node around each node; -1 for those at the top.
        names: Texts of the nodes.
        families: Keys of colours (:mod:`traceviz.render.palette`).
        classes: Key and label of each class of step time; empty if the time is not divided.
        times: Inclusive nanoseconds, one row per node, one column per class; one column if there are no classes.
        base: The same of the other side of a difference; ``None`` if this is not a difference.
        places: ``file:line`` of a node, empty if there is none.
        steps: Number of steps that the time covers; 0 if it is not time of steps.
    """

    key: str
    label: str
    measure: Literal["host", "device", "samples"]
    whole: str
    parents: Array
    names: tuple[str, ...]
    families: tuple[str, ...]
    classes: tuple[tuple[str, str], ...]
    times: Array
    base: Array | None = None
    places: tuple[str, ...] = ()
    steps: int = 0


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a finding in the timeline.

    Args:
        code: Code of the finding.
        start_ns: Start, on the trace's clock.
        end_ns: End.
        lane: Key of the lane that shows it; empty if no single lane does.
        label: Description as text: ``the longest wait for input, 4.66 ms in step 12``.
    """

    code: str
    start_ns: int
    end_ns: int
    lane: str
    label: str


@dataclass(frozen=True, slots=True)
class Pictures:
    """A timeline, flame graphs, and the places of findings in the timeline; each may be missing."""

    timeline: Timeline | None = None
    flames: tuple[Flame, ...] = ()
    places: tuple[Place, ...] = ()
