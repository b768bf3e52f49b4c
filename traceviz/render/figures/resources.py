"""Resources over time of two or more runs on one axis: CPU, memory, threads, devices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from traceviz.core.units import UNITS, Unit
from traceviz.render.figures.reading import Row, about, number, rows, text, titled
from traceviz.render.figures.values import Axis, CurvePoint, Curves, Line, NoFigure, Panel
from traceviz.report import AMOUNTS_OF_LANES, Lane, Report, Timeline

_SECTIONS = ("resources", "device_use")
"""Sections with lanes: samples of the host and its devices, and work of the devices."""
MOST = 4
"""Limit of panels."""


def resources(report: Report) -> Curves | NoFigure:
    """Draw a panel for each resource and a line for each side; time counts from the start of each run."""
    timelines = [(slug, timeline) for slug in _SECTIONS if (timeline := _timeline(report, slug)) is not None]
    panels = [panel for slug, timeline in timelines for panel in _panels(report, slug, timeline)]
    if not panels:
        return NoFigure("resources over time are not in the reports of two sides")
    panels.sort(key=_importance)
    left = len(panels) - MOST
    end_ns = max(timeline.end_ns for _, timeline in timelines)
    return Curves(
        "Resources over time",
        f"{about(report)}: each run from its start",
        Axis("time since the start of the run", "ns", 0, end_ns),
        tuple(panels[:MOST]),
        notes=(
            *_left_out(report, panels),
            *((f"{left} more not drawn: section resources has them.",) if left > 0 else ()),
        ),
    )


def _left_out(report: Report, panels: list[Panel]) -> tuple[str, ...]:
    """Report how many sides are drawn, if not all are."""
    drawn = len({line.key for panel in panels for line in panel.lines})
    count = next((number(fact.value) for fact in report.run if fact.key == "sides"), None) or drawn
    return (f"{drawn} of {count:.0f} sides: others were not sampled, or come after them.",) if drawn < count else ()


_FIRST = ("CPU", "memory", "GPU", "threads")
"""Starts of labels, the most informative first."""


def _importance(panel: Panel) -> int:
    return next((place for place, begin in enumerate(_FIRST) if panel.axis.label.startswith(begin)), len(_FIRST))


def _timeline(report: Report, slug: str) -> Timeline | None:
    blocks = (block for block in report.blocks(slug) if isinstance(block, Timeline))
    return next((block for block in blocks if block.lanes and block.end_ns > block.start_ns), None)


def _panels(report: Report, slug: str, timeline: Timeline) -> Iterator[Panel]:
    grid = titled(report, slug, AMOUNTS_OF_LANES)
    lanes = {lane.label: lane for lane in timeline.lanes}
    table = [row for row in rows(grid) if text(row["lane"]) in lanes] if grid is not None else []
    for label in dict.fromkeys(text(row["label"]) for row in table):
        same = [row for row in table if text(row["label"]) == label]
        unit, whole = text(same[0]["unit"]), text(same[0]["whole"])
        of_devices = " busy" * (slug == "device_use")
        axis = Axis(f"{label}{of_devices}", cast("Unit", unit) if unit in UNITS else "number", 0)
        if axis.unit == "ratio":
            axis = Axis(axis.label, "ratio", 0, 1)
        lines = tuple(_line(row, lanes[text(row["lane"])], timeline) for row in same)
        yield Panel(axis, lines, full=whole if axis.unit == "ratio" and not whole.endswith("%") else "")


def _line(row: Row, lane: Lane, timeline: Timeline) -> Line:
    """Return the means of equal slices; each holds until the start of the next."""
    amount, count = number(row["amount"]) or 0.0, max(len(lane.values), 1)
    width = (timeline.end_ns - timeline.start_ns) / count
    points = (
        CurvePoint(timeline.start_ns + index * width, None if value is None else value * amount)
        for index, value in enumerate(lane.values)
    )
    side = text(row["side"])
    return Line(side, side, _until_its_end(tuple(points), width), "steps")


def _until_its_end(points: tuple[CurvePoint, ...], width: float) -> tuple[CurvePoint, ...]:
    """Return the points up to the end of the last measured slice, which is the end of the run."""
    last = max((index for index, point in enumerate(points) if point.y is not None), default=-1)
    if last < 0:
        return ()
    return (*points[: last + 1], CurvePoint(points[last].x + width, None))
