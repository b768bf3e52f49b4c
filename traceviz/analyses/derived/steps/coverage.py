"""Share of a capture that inferred steps cover: repetition in a small part does not represent the whole."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from traceviz.analyses.derived.frames import unions_by
from traceviz.analyses.derived.statistics import ratio
from traceviz.analyses.derived.view import TraceView
from traceviz.core.arrays.intervals import IntervalSet

ENOUGH = 0.5
"""Inferred steps that cover less than this share of device work, or of its time, are listed but not judged."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """Shares (0 to 1) that steps cover, over all ranks.

    Args:
        work: Share of the time in which devices work; ``None`` if no device work was recorded.
        time: Share of the time from each rank's first to its last device work; without device work, of the capture.
    """

    work: float | None
    time: float

    @property
    def is_enough(self) -> bool:
        """True if the capture can be judged by these steps."""
        return min(self.time, 1.0 if self.work is None else self.work) >= ENOUGH


def coverage(trace: TraceView, steps: pl.DataFrame) -> Coverage:
    """Return the shares that ``steps`` (``process_id, start_ns, end_ns``) cover."""
    inside = unions_by(steps, "process_id")
    extents = {rank: IntervalSet.span(*extent) for rank, extent in trace.rank_extents.items()}
    work, time = (
        ratio(
            sum(all_of[rank].intersect(own).total for rank, own in inside.items() if rank in all_of),
            sum(own.total for own in all_of.values()),
        )
        for all_of in (trace.rank_busy, extents)
    )
    return Coverage(work, time or 0.0)
