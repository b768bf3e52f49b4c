"""Time estimates for the runs of a sweep, from existing runs."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from traceviz.parsers.run.layout import manifest_document
from traceviz.sweep.orders import SWEEP, Order


@dataclass(slots=True)
class Times:
    """Times of runs so far, by setting.

    Args:
        seconds: Times from start to end of the recording, by the label of the setting.
    """

    seconds: dict[str, list[float]] = field(default_factory=dict)

    def add(self, order: Order, seconds: float) -> None:
        """Add the time of a run."""
        self.seconds.setdefault(order.label, []).append(seconds)

    def expected_s(self, order: Order) -> float | None:
        """Return the expected time of a run: the mean of its setting, else of all runs; ``None`` before any."""
        of_setting = self.seconds.get(order.label) or [value for known in self.seconds.values() for value in known]
        return statistics.fmean(of_setting) if of_setting else None

    def left_s(self, orders: Iterable[Order], jobs: float, spent_s: float = 0.0) -> float | None:
        """Return the time to make these runs; ``None`` if that of any is unknown.

        Args:
            orders: The runs that have not ended.
            jobs: Number of concurrent runs.
            spent_s: Time that the running ones have taken so far, summed.
        """
        expected = [self.expected_s(order) for order in orders]
        known = [seconds for seconds in expected if seconds is not None]
        return max(sum(known) - spent_s, 0.0) / jobs if len(known) == len(expected) else None


def roughly(seconds: float) -> str:
    """Format an estimate with its precision: ``40 s``, ``12 min``, ``3 h 20 min``."""
    if seconds < 99.5:
        return f"{max(round(seconds), 1)} s"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} min"
    hours, minutes = divmod(round(minutes, -1), 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def times_of(orders: Iterable[Order]) -> Times:
    """Return the times of existing runs."""
    times = Times()
    for order in orders:
        elapsed = _elapsed_ns(manifest_document(order.folder))
        if elapsed:
            times.add(order, elapsed / 1e9)
    return times


def _elapsed_ns(manifest: Mapping[str, object]) -> int:
    stated = manifest.get(SWEEP)
    elapsed = stated.get("elapsed_ns") if isinstance(stated, dict) else None
    return elapsed if isinstance(elapsed, int) and elapsed > 0 else 0
