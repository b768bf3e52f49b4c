"""Progress of a sweep on stderr: a line for each ended run; in a terminal, below it the current runs and the rest.

::

    [ 7/24] batch=32, approach=cache, repeat 1   12.3 s  finished
    [ 8/24] batch=512, approach=cache, repeat 1   1.1 s  crashed: out of memory · MemoryError: ...
    batch=128, approach=prefetch, repeat 1: 4 s · 16 runs left, about 3.2 min
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from traceviz.cli.boundary import say
from traceviz.core.sanitize import one_line
from traceviz.core.units import format_ns
from traceviz.sweep.orders import Order, Sweep
from traceviz.sweep.record import Result
from traceviz.sweep.run import Plan
from traceviz.sweep.settings import REPEAT
from traceviz.sweep.times import roughly, times_of

if TYPE_CHECKING:
    from rich.status import Status

_DRAWN_PER_S = 2.0
"""Redraws per second: few, because drawing takes time from the runs."""


@contextmanager
def following(sweep: Sweep, plan: Plan, jobs: int | None) -> Iterator[SweepProgress]:
    """Yield the progress printer of a sweep."""
    if not sys.stderr.isatty():
        yield SweepProgress(sweep, plan, jobs)
        return
    from rich.console import Console

    console = Console(stderr=True, highlight=False)
    with console.status("", spinner="dots", refresh_per_second=_DRAWN_PER_S) as status:
        yield SweepProgress(sweep, plan, jobs, status)


class SweepProgress:
    """Follower of all runs, which prints progress: see :class:`traceviz.sweep.run.Follower`.

    Args:
        sweep: The sweep.
        plan: The runs to make.
        jobs: Number of concurrent runs; ``None`` if a cluster decides.
        status: Line of the terminal that is redrawn; ``None`` if stderr is not a terminal.
    """

    def __init__(self, sweep: Sweep, plan: Plan, jobs: int | None, status: Status | None = None) -> None:
        self._all = len(sweep.orders)
        self._done = len(plan.kept)
        self._jobs = jobs
        self._left = list(plan.todo)
        self._times = times_of(order for order, _ in plan.kept)
        self._running: dict[Order, float] = {}
        self._longest = max((len(_name(order)) for order in sweep.orders), default=0)
        self._status = status
        self._drawn_s = 0.0
        self._began_s = time.monotonic()
        self._spent_s = 0.0

    def started(self, order: Order) -> None:
        """Record that a run starts."""
        self._running[order] = time.monotonic()
        self._draw()

    def ended(self, order: Order, result: Result) -> None:
        """Record that a run ended, and print its outcome."""
        self._running.pop(order, None)
        self._left.remove(order)
        if result.is_kept:
            self._done += 1
            self._times.add(order, result.elapsed_s)
            self._spent_s += result.elapsed_s
        place = f"[{self._done:>{len(str(self._all))}}/{self._all}]"
        last = f" · {result.last_line}" if result.last_line else ""
        took = format_ns(round(result.duration_s * 1e9))
        left = "" if self._status is not None else self._time_left()
        self._say(f"{place} {_name(order):<{self._longest}} {took:>9}  {result.ended}{last}{left}")
        self._draw()

    def waiting(self) -> None:
        """Redraw the line if nothing has happened for a moment."""
        if time.monotonic() - self._drawn_s > 1 / _DRAWN_PER_S:
            self._draw()

    def _time_left(self) -> str:
        """Return ``; about 3.2 min left``; empty if there is no basis for an estimate."""
        spent = sum(time.monotonic() - began for began in self._running.values())
        at_once = self._jobs or max(self._spent_s / max(time.monotonic() - self._began_s, 1.0), 1.0)
        left_s = self._times.left_s(self._left, at_once, spent)
        return f"; about {roughly(left_s)} left" if left_s and self._left else ""

    def _say(self, line: str) -> None:
        if self._status is None:
            say(line)
            return
        from rich.text import Text

        self._status.console.print(Text(one_line(line)), soft_wrap=True)

    def _draw(self) -> None:
        if self._status is None:
            return
        from rich.text import Text

        self._drawn_s = now = time.monotonic()
        running = ", ".join(f"{_name(order)}: {now - began:.0f} s" for order, began in self._running.items())
        waiting = len(self._left) - len(self._running)
        self._status.update(Text(one_line(f"{running} · {waiting:,} more{self._time_left()}")))


def _name(order: Order) -> str:
    return f"{order.label}, repeat {order.task.tags[REPEAT]}"
