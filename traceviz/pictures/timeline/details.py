"""Intervals in which a timeline shows every event, if there are more events than a page holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.derived.view import TraceView
from traceviz.core.arrays.intervals import IntervalSet
from traceviz.report.pictures.values import Array, Detail, Place

SHARE_OF_ONE = 4
"""One step or place may take at most one in this many events, which leaves room for others."""
MOST_PLACES = 40
"""Limit of the places of findings that are considered; there are fewer rules."""
MARGIN = 10
"""The margin before and after a place is its length divided by this."""
MOST_REASONS = 3
"""Limit of the reasons given for one interval."""


@dataclass
class Chosen:
    """Intervals of time as they are chosen.

    Args:
        starts: Start of the events of each source, ascending.
        budget: Events that may be shown.
    """

    starts: Sequence[Array]
    budget: int
    windows: list[Detail] = field(default_factory=list)
    covered: IntervalSet = field(default_factory=IntervalSet.empty)
    spent: int = 0

    def counts(self, begins: Array, ends: Array) -> Array:
        """Count the events that start in each of these intervals."""
        found = np.zeros(begins.size, np.int64)
        for own in self.starts:
            found += np.searchsorted(own, ends) - np.searchsorted(own, begins)
        return found

    def cost(self, start: int, end: int) -> int:
        """Count the events of an interval that are not shown yet."""
        new = IntervalSet.span(start, end).subtract(self.covered)
        return int(self.counts(new.starts, new.ends).sum())

    @property
    def left(self) -> int:
        """Events that may still be shown."""
        return self.budget - self.spent

    def add(self, start: int, end: int, reason: str) -> None:
        """Show all events of an interval."""
        if end > start:
            self.spent += self.cost(start, end)
            self.covered = self.covered.union(IntervalSet.span(start, end))
            self.windows.append(Detail(start, end, reason))

    def add_begin(self, start: int, end: int, reason: str, most: int) -> None:
        """Show an interval, or only its start if it holds more than ``most`` events."""
        most = min(most, self.left)
        if self.cost(start, end) > most:
            end = _largest(start, end, lambda at: self.cost(start, at) <= most)
        self.add(start, end, reason)

    def add_around(self, middle: int, half: int, reason: str, most: int) -> None:
        """Show up to ``half`` before and after a moment; less if that holds more than ``most`` events."""
        most = min(most, self.left)
        if self.cost(middle - half, middle + half) > most:
            half = _largest(0, half, lambda size: self.cost(middle - size, middle + size) <= most)
        self.add(middle - half, middle + half, reason)


def _largest(low: int, high: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number that fits, at least ``low``, which fits, and below ``high``, which does not."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def details(trace: TraceView, starts: Iterable[Array], budget: int, places: Sequence[Place]) -> tuple[Detail, ...]:
    """Choose the intervals whose events are all shown: notable steps, places of findings, then as much as fits.

    Args:
        trace: The trace.
        starts: Start of the events of each source.
        budget: Events that may be shown.
        places: Places of findings.
    """
    chosen = Chosen([(own if np.all(own[1:] >= own[:-1]) else np.sort(own)) for own in starts], budget)
    most = budget // SHARE_OF_ONE
    steps = training_steps(trace).steady.sort("start_ns")
    begins, ends = steps["start_ns"].to_numpy(), steps["end_ns"].to_numpy()
    if steps.height:  # the most informative steps
        order = np.argsort(ends - begins, kind="stable")
        notable = {"slowest": int(order[-1]), "median": int(order[order.size // 2]), "first steady": 0}
        for words, row in notable.items():
            reason = f"the {words} step, {steps['step'][row]}"
            chosen.add_begin(steps["start_ns"][row], steps["end_ns"][row], reason, most)
    for place in places[:MOST_PLACES]:
        middle = (place.start_ns + place.end_ns) // 2
        half = (place.end_ns - place.start_ns) * (MARGIN + 2) // (2 * MARGIN) + 1
        chosen.add_around(middle, half, f"{place.code}: {place.label}", most)
    if steps.height:  # further steps from the first steady one on, as many as fit
        known = chosen.covered.overlap(begins, ends) == ends - begins
        cost = np.where(known, 0, chosen.counts(begins, ends))
        fitting = np.flatnonzero((np.cumsum(cost) <= chosen.left) & ~known)
        if fitting.size:
            last = int(ends[: int(fitting[-1]) + 1].max())
            chosen.add_begin(int(begins[0]), last, "steps from the first steady one on", chosen.left)
    begin, end = trace.device_window if trace.rank_busy else trace.program_window
    chosen.add_around(
        (begin + end) // 2, (end - begin) // 2 + 1, "as much around the middle as there is room for", chosen.left
    )
    return joined(chosen.windows)


def joined(windows: Sequence[Detail]) -> tuple[Detail, ...]:
    """Sort intervals and merge those that overlap or touch, with the reasons of each."""
    found: list[tuple[int, int, list[str]]] = []
    for window in sorted(windows, key=lambda one: (one.start_ns, one.end_ns)):
        if found and window.start_ns <= found[-1][1]:
            start, end, reasons = found[-1]
            found[-1] = (start, max(end, window.end_ns), [*reasons, window.reason])
        else:
            found.append((window.start_ns, window.end_ns, [window.reason]))
    details = []
    for start, end, reasons in found:
        distinct = list(dict.fromkeys(reasons))
        more = [f"{len(distinct) - MOST_REASONS} more"] if len(distinct) > MOST_REASONS else []
        details.append(Detail(start, end, "; ".join([*distinct[:MOST_REASONS], *more])))
    return tuple(details)
