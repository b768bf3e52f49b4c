"""Same timing of steps on all sides: as the host marked them, or as devices ran the work that it launched.

If the host runs ahead of the devices, a report uses their steps. Two programs may differ in that, and then different
steps would be compared::

    one side    host    |---0---|---1---|---2---|        the host waits for input, and steps are as it marked them
    the other   host    |0|1|2|
                device    |---0---|---1---|---2---|      the host runs ahead, and steps are those of the device

Both sides then get the steps of their devices. If one has none, both get those of the host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from traceviz.analyses.options import StepTime
from traceviz.compare.sides.load_sides import Read, Sides
from traceviz.report import EVERY_STEP, Grid, Report

_OF_HOST = "host_dur_ns"
"""Column of device steps with the host's time for each."""


def step_time(report: Report) -> StepTime | None:
    """Return whether a report's steps are timed by host or device; ``None`` if it has none."""
    blocks = (block for section in report.sections if section.slug == "steps" for block in section.blocks)
    grid = next((block for block in blocks if isinstance(block, Grid) and block.title == EVERY_STEP), None)
    if grid is None or not grid.rows:
        return None
    return "device" if _OF_HOST in {column.name for column in grid.columns} else "host"


def are_mixed(reports: Iterable[Report]) -> bool:
    """Return whether some reports have steps of the host, and others steps of devices."""
    return {"host", "device"} <= {step_time(report) for report in reports}


def align_step_time(sided: Callable[[Read], Sides], read: Callable[[Path, StepTime], Report]) -> Sides:
    """Return the sides that ``sided`` makes of the reports of ``read``, with steps that are timed in the same way.

    Saved reports stay as they are. If no choice gives the same timing, the sides with host steps are returned.
    """
    known: dict[Path, Report] = {}

    def analysed(wanted: StepTime) -> Read:
        def analyse(path: Path) -> Report:
            if path not in known or (wanted != "auto" and step_time(known[path]) not in {wanted, None}):
                known[path] = read(path, wanted)
            return known[path]

        return analyse

    wants: tuple[StepTime, ...] = ("auto", "device", "host")
    for wanted in wants:
        sides, left_out = sided(analysed(wanted))
        if not are_mixed(report for side in sides for report in side.reports):
            break
    return sides, left_out
