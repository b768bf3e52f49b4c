"""What a page shows beside the report."""

from __future__ import annotations

from dataclasses import dataclass

from traceviz.report.pictures.flame import Flame
from traceviz.report.pictures.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the timeline a finding is to be seen.

    Args:
        code: Code of the finding.
        start_ns: Begin, on the trace's clock.
        end_ns: End.
        lane: Key of the lane that shows it; empty where none does alone.
        label: What is there, in words: ``the longest wait for input, 4.66 ms in step 12``.
    """

    code: str
    start_ns: int
    end_ns: int
    lane: str
    label: str


@dataclass(frozen=True, slots=True)
class Pictures:
    """A timeline, flame graphs, and where findings are in the timeline; each may be missing."""

    timeline: Timeline | None = None
    flames: tuple[Flame, ...] = ()
    places: tuple[Place, ...] = ()
