"""Bounds of a profiler's window of steps: how many events it may hold, and how long it may last.

A profiler keeps its events in memory, and the program waits while it saves them: 5 to 50 µs of processor time each.
No profiler reports how many it holds. So it is tried for one step before the window, and these events are counted::

    step   8        9 (trial)       10       11       12
                    start .. stop   start ............. stop: 3 steps of 70,000 events
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..config import Window

EVENTS = 200_000
"""Number of events after which a window of steps ends with the step in progress."""
MOST_EVENTS = 3 * EVENTS
"""Number of events at which it ends at once, within a step."""
TRIAL_S = 0.25
"""A trial ends within its step after this time, in seconds: the first step of some programs lasts for hours."""
WINDOW_S = 60.0
"""Time after which a window of steps ends with the step in progress, in seconds."""
LEAST_STEPS = 2
"""Complete steps that are recorded even with more than :data:`EVENTS` events: one step alone shows no variation."""

STEPS, TIME, TOO_MANY = "window", "time", "events"
"""Causes of the end of a window: its number of steps, :data:`WINDOW_S`, or its events."""


class Load:
    """The events of a trial, and the processor time in which they were recorded.

    Args:
        events: Number of events.
        cpu_ns: Processor time of the process during the trial.
        is_step: True if it was one complete step, false for a part of one.
    """

    __slots__ = ("cpu_ns", "events", "is_step")

    def __init__(self, events: int, cpu_ns: int, *, is_step: bool) -> None:
        self.events = events
        self.cpu_ns = max(cpu_ns, 1)
        self.is_step = is_step

    @property
    def is_heavy(self) -> bool:
        """True if a window may reach :data:`MOST_EVENTS` before its first steps end."""
        return not self.is_step or LEAST_STEPS * self.events > EVENTS

    def after(self, steps: int, cpu_ns: int) -> int:
        """Return the probable number of events after complete ``steps``, and this processor time in all.

        Steps count if the trial was a complete step: a step may compute for long without any event.
        """
        by_time = round(self.events * cpu_ns / self.cpu_ns)
        return min(by_time, self.events * (steps + 1)) if self.is_step else by_time


class Bounds:
    """The bounds of one window; made when the profiler has started.

    Args:
        load: The result of a trial; ``None`` without a trial: then events do not bound the window.
        window: The steps to record. Time bounds them only if the user named none.
    """

    __slots__ = ("_began_cpu_ns", "_began_s", "_most_s", "_steps", "load")

    def __init__(self, load: Load | None, window: Window) -> None:
        self.load = load
        self._steps = window.steps
        self._most_s = WINDOW_S if window.is_default else float("inf")
        self._began_s, self._began_cpu_ns = time.monotonic(), time.process_time_ns()

    def reached_after(self, recorded: int) -> str | None:
        """Return what ends the window after ``recorded`` complete steps; ``None`` if it continues."""
        if self._steps is not None and recorded >= self._steps:
            return STEPS
        if self.load is not None and recorded:
            used_ns = time.process_time_ns() - self._began_cpu_ns
            events = self.load.events * recorded if self.load.is_step else self.load.after(recorded, used_ns)
            fits = events + events // (2 * recorded) <= EVENTS
            if not fits and (recorded >= LEAST_STEPS or events >= MOST_EVENTS):
                return TOO_MANY
        return TIME if time.monotonic() - self._began_s > self._most_s else None

    def reached_within(self, recorded: int) -> str | None:
        """Return what ends the window within a step; ``None`` if it continues."""
        if self.load is not None:
            used_ns = time.process_time_ns() - self._began_cpu_ns
            if self.load.after(recorded, used_ns) > MOST_EVENTS:
                return TOO_MANY
        return None
