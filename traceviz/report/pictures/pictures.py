"""Pictures of a page in addition to the report."""

from __future__ import annotations

from dataclasses import dataclass

from traceviz.report.pictures.flame import Flame
from traceviz.report.pictures.timeline import Timeline


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
