"""Resources over time of several sides on one axis: CPU, memory, threads, storage, GPUs.

Reports draw each run on its own axis, with its own full height. Here all sides share the axis and the full height:

::

    CPU, slow      ▕▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▏   4 cores
    CPU, fast      ▕▆▆▆▆▆▆▆▆········▏   4 cores      its run was half as long
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor

from traceviz.compare.changes.figures import metric_rows
from traceviz.compare.sides.sides import Side, fact
from traceviz.core.units import Unit, Value
from traceviz.report import AMOUNTS_OF_LANES, Column, Grid, Lane, Report, Row, Timeline

SLICES = 60
"""Slices of the common axis."""
MOST_SIDES = 6
"""Most sides shown, the base first."""
_FEW_SIDES = 2
"""With more sides, only the use by the program is shown, not that of its busiest thread or core."""
_OF_PAIRS = ("busiest", "read")
"""Prefixes of the labels of the other lanes."""

_LANES: Mapping[str, str] = {
    "program memory": "memory",
    "program threads": "threads",
    "program read": "read",
    "GPU power": "power",
}
"""Labels of the lanes whose full height is the largest sample, by metric."""
DEVICES = "device_use"
"""Section with the timeline of the devices."""
_DEVICE = re.compile(r"(rank \d+ )?\S+ \d+(?= )")
"""Matches ``GPU 0`` in ``GPU 0 NVIDIA T4``."""
_OWN = ", program"
_SHARES = ("%", "core", "cores")
"""Suffixes of full heights that stand for all of a resource."""
_CPU = f"CPU{_OWN}"
"""Label of the lane whose full height is the number of usable cores."""


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A lane of one side: subject, picture, length of its run, and full height.

    ``full`` is in the unit of the samples; ``None`` if unknown. ``unit`` is the report's name of that unit; shares of
    cores, threads and devices are ratios.
    """

    about: str
    lane: Lane
    span_ns: int
    full: float | None
    unit: Unit


def over_time(sides: Sequence[Side], slug: str = "host") -> Timeline | None:
    """Return the lanes of all sides, grouped by subject; ``None`` if fewer than two sides have any.

    Args:
        sides: The base first. For a side with several runs, the run of median length is shown.
        slug: Section with the timeline of a report.
    """
    drawn = _of_sides(sides, slug)
    if len(drawn) < _FEW_SIDES:
        return None
    end_ns = max(one.span_ns for of_side in drawn.values() for one in of_side)
    lanes = tuple(lane for about in _in_order(drawn) for _, lane in _about(drawn, about, end_ns))
    several = any(len(side.reports) > 1 for side in sides)
    which = "the run of middle length of each side" if several else "each side from its start"
    height = "share of the time that a device is busy" if slug == DEVICES else "full height is the amount on the right"
    title = f"{which}; {height}, · is after its end or not sampled"
    return Timeline(title, 0, end_ns, lanes)


def amounts(sides: Sequence[Side], slug: str = "host") -> Grid | None:
    """Return the full height of each lane of :func:`over_time`, for machines: lane values are shares of it.

    Lanes with an unknown amount are left out; saved reports may not state it.
    """
    drawn = _of_sides(sides, slug)
    if len(drawn) < _FEW_SIDES:
        return None
    rows: list[Row] = []
    for about in _in_order(drawn):
        known = next(iter(_same(drawn, about)))[1]
        height = 1.0 if known.unit == "ratio" else _tallest(_same(drawn, about))
        if height is not None:
            words = f"{about.removesuffix(_OWN)}{_UNITS.get(about.rpartition(' ')[2], '')}"
            lanes = _about(drawn, about, known.span_ns)
            rows += [(lane.label, words, side, lane.whole, known.unit, height) for side, lane in lanes]
    return Grid(_AMOUNTS, tuple(rows), AMOUNTS_OF_LANES, audience="machine") if rows else None


_AMOUNTS = (
    Column("lane", "Lane"),
    Column("label", "What it shows"),
    Column("side", "Side"),
    Column("whole", "Full height"),
    Column("unit", "Unit"),
    Column("amount", "Amount", "number"),
)
_UNITS = {"power": ", W"}
"""Units of lanes for which reports have no unit; added to the lane's name."""


def _of_sides(sides: Sequence[Side], slug: str) -> dict[str, list[_Drawn]]:
    """Return the lanes of every side that has any."""
    return {side.label: of_side for side in sides[:MOST_SIDES] if (of_side := _draw_lanes(side, slug))}


def _in_order(drawn: Mapping[str, Sequence[_Drawn]]) -> list[str]:
    """Return the subjects of the lanes, each once."""
    left_out = _OF_PAIRS if len(drawn) > _FEW_SIDES else ()
    every = (one.about for of_side in drawn.values() for one in of_side)
    return list(dict.fromkeys(about for about in every if not about.startswith(left_out)))


def _draw_lanes(side: Side, slug: str) -> list[_Drawn]:
    """Return the lanes of the run of median length."""
    timelines = ((report, timeline) for report in side.reports for timeline in _timelines(report, slug))
    ordered = sorted(timelines, key=lambda run: run[1].end_ns - run[1].start_ns)
    if not ordered:
        return []
    report, timeline = ordered[(len(ordered) - 1) // 2]
    span_ns = timeline.end_ns - timeline.start_ns
    return [
        _Drawn(_name_lane(lane.label, slug), lane, span_ns, _full(report, lane), _unit(lane)) for lane in timeline.lanes
    ]


def _unit(lane: Lane) -> Unit:
    """Return the unit of the full height; for cores, threads and devices it is a share."""
    if not lane.whole or lane.whole.endswith(_SHARES):
        return "ratio"
    last = lane.label.rpartition(" ")[2]
    return "bytes" if last == "memory" else "bytes/s" if last == "read" else "count" if last == "threads" else "number"


def _name_lane(label: str, slug: str) -> str:
    """Return the subject of a lane. For devices it omits the product, which may differ between sides."""
    device = _DEVICE.match(label) if slug == DEVICES else None
    return device[0] if device else label


def _timelines(report: Report, slug: str) -> Iterator[Timeline]:
    """Yield the first timeline of a section, if it shows anything."""
    timelines = (block for block in report.blocks(slug) if isinstance(block, Timeline))
    first = next(timelines, None)
    if first is not None and first.lanes and first.end_ns > first.start_ns:
        yield first


def _full(report: Report, lane: Lane) -> float | None:
    """Return the full height of a lane of a report, in the unit of its samples; ``None`` if unknown."""
    if lane.label == _CPU:
        cores = fact(report, "host", "cores")
        return float(cores) if isinstance(cores, int | float) else None
    sampled = [row["max"] for row in metric_rows(report) if _is_drawn(row, lane.label)]
    return next((float(most) for most in sampled if isinstance(most, int | float)), None)


def _is_drawn(row: Mapping[str, Value], label: str) -> bool:
    """Return whether a lane shows this metric of the host or of a device: ``GPU 0 power`` for ``GPU 0 NVIDIA T4``."""
    metric, device = _LANES.get(str(row["metric"])), str(row["device"] or "")
    if metric is None or not device:
        return metric == label
    named = label.removesuffix(f" {metric}")
    return named != label and f"{device} ".startswith(f"{named} ")


def _same(drawn: Mapping[str, Sequence[_Drawn]], about: str) -> list[tuple[str, _Drawn]]:
    """Return the lanes of one subject, with their sides."""
    return [(label, lane) for label, lanes in drawn.items() for lane in lanes if lane.about == about]


def _tallest(same: Sequence[tuple[str, _Drawn]]) -> float | None:
    """Return the largest full height; ``None`` if that of a side is unknown."""
    heights = [lane.full or 0.0 for _, lane in same]
    return max(heights) if max(heights, default=0.0) > 0 and all(lane.full is not None for _, lane in same) else None


def _about(drawn: Mapping[str, Sequence[_Drawn]], about: str, end_ns: int) -> Iterator[tuple[str, Lane]]:
    """Yield the lanes of one subject on all sides, at one height if the heights of all are known."""
    same = _same(drawn, about)
    tallest = _tallest(same)
    is_common = tallest is not None
    words = next(lane.lane.whole for _, lane in same if lane.full == tallest or not is_common)
    for label, one in same:
        factor = (one.full or 0.0) / tallest if is_common and tallest else 1.0
        scaled = tuple(None if value is None else min(max(value * factor, 0.0), 1.0) for value in one.lane.values)
        lane = replace(one.lane, label=f"{about.removesuffix(_OWN)}, {label}")
        values = on_axis(scaled, one.span_ns, end_ns)
        yield label, replace(lane, values=values, whole=words if is_common else one.lane.whole)


def on_axis(values: Sequence[float | None], span_ns: int, end_ns: int) -> tuple[float | None, ...]:
    """Resample values of equal slices of ``span_ns`` to an axis to ``end_ns``: means of the values that each slice
    covers.

    Slices after the end of the span, and slices without a measurement, are ``None``.
    """
    if span_ns == end_ns:
        return tuple(values)
    slices: list[float | None] = []
    for index in range(SLICES):
        first, last = (place * end_ns / SLICES / span_ns * len(values) for place in (index, index + 1))
        covered = [value for value in values[floor(first) : ceil(last)] if value is not None]
        slices.append(sum(covered) / len(covered) if covered and first < len(values) else None)
    return tuple(slices)
