"""Utilization of devices and host over time."""

from __future__ import annotations

from collections.abc import Iterator

from traceviz.core.units import format_ratio
from traceviz.render.figures.reading import of_trace, timelines
from traceviz.render.figures.values import Axis, CurvePoint, Curves, Figure, Line, NoFigure, Panel
from traceviz.report import Lane, Report, Timeline

_DEVICES, _HOST, _MEMORY = "device_use", "host", "memory"
_SLUGS = (_DEVICES, _HOST, _MEMORY)
"""Sections whose timelines share the trace's clock, in drawing order."""
_LEAST = 0.001
"""Smallest share that can be distinguished from zero."""
_MOST = 16
"""Limit of the lanes of a figure; more could not be distinguished."""


def utilization(report: Report) -> Figure | NoFigure:
    """Draw a panel for each device and each resource of the host."""
    found = [(slug, timeline) for slug in _SLUGS for timeline in timelines(report, slug)]
    # Return whether a curve would be a line at zero.
    if all(
        all(value is None or value < _LEAST for value in lane.values)
        for _, timeline in found
        for lane in timeline.lanes
    ):
        return NoFigure("neither devices nor the host were busy in it, or nobody sampled them")
    panels = tuple(panel for slug, timeline in found for panel in _panels(slug, timeline))
    start = min(timeline.start_ns for _, timeline in found)
    end = max(timeline.end_ns for _, timeline in found)
    left_out = len(panels) - _MOST
    return Curves(
        title=_title({slug for slug, _ in found}),
        subtitle=f"{of_trace(report)[3:]}",
        x=Axis("time", "ns", start, end),
        panels=panels[:_MOST],
        notes=(f"{left_out} more are left out.",) if left_out > 0 else (),
    )


def _title(slugs: set[str]) -> str:
    if slugs == {_MEMORY}:
        return "Use of device memory over time"
    of_devices = "devices" if slugs - {_HOST} else ""
    of_host = "the host" if _HOST in slugs else ""
    return f"Use of {' and '.join(filter(None, (of_devices, of_host)))} over time"


_KEYS = {_DEVICES: "device_compute", _HOST: "host_compute", _MEMORY: "copy"}
"""Colour keys by section."""


def _panels(slug: str, timeline: Timeline) -> Iterator[Panel]:
    for lane in timeline.lanes:
        measured = [value for value in lane.values if value is not None]
        if measured:
            mean = "" if lane.whole else f"mean {format_ratio(sum(measured) / len(measured))}"
            label = f"memory of {lane.label}" if slug == _MEMORY else lane.label
            line = Line(_KEYS[slug], label, tuple(_points(timeline, lane)), "area")
            yield Panel(Axis(label, "ratio", 0.0, 1.0), (line,), full=lane.whole, remark=mean)


def _points(timeline: Timeline, lane: Lane) -> Iterator[CurvePoint]:
    """Return one point at the start of each slice; its value holds until the next one."""
    span = timeline.end_ns - timeline.start_ns
    for number, value in enumerate(lane.values):
        yield CurvePoint(timeline.start_ns + span * number / len(lane.values), value)
    yield CurvePoint(timeline.end_ns, None)
