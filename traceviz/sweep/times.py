"""Preview of a sweep: its commands, and time estimates from existing runs."""

from __future__ import annotations

import shlex
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from traceviz.core.units import counted, format_limit
from traceviz.parsers.run.layout import manifest_document
from traceviz.sweep.orders import SWEEP, Order, State, Sweep
from traceviz.sweep.run import Plan


def preview(sweep: Sweep, plan: Plan, jobs: int, folder: str) -> list[str]:
    """Return the lines of ``--dry-run``: the runs that would be made, in their order, each as a shell command.

    Args:
        sweep: The sweep.
        plan: Plan of the remaining runs.
        jobs: Number of concurrent runs.
        folder: The folder of its runs, as on a command line.
    """
    settings, runs = len(sweep.settings), len(sweep.orders)
    count = (
        f"{sweep.name}: {counted(settings, 'setting')} × {counted(runs // settings, 'repeat')} = {counted(runs, 'run')}"
    )
    lines = [count, f"folder    {folder}"]
    failed = sum(state is State.FAILED for _, state in plan.kept)
    kept = f", of which {failed:,} did not finish (--retry-failed makes them again)" if failed else ""
    if plan.kept:
        lines.append(f"there     {counted(len(plan.kept), 'run')}{kept}")
    lines.append(f"to make   {counted(len(plan.todo), 'run')}{_duration(sweep, plan, jobs)}")
    return [*lines, *(line for order in plan.todo for line in ("", *_run(order)))]


def _duration(sweep: Sweep, plan: Plan, jobs: int) -> str:
    """Return the time of the runs: estimated from existing runs, and at most."""
    parts = []
    about = times_of(sweep.orders).left_s(plan.todo, jobs)
    if about and plan.todo:
        parts.append(f"about {roughly(about)}, as long as the runs that are there took")
    limits = [order.task.limit_s for order in plan.todo]
    known = [limit for limit in limits if limit is not None]
    if known and len(known) == len(limits):
        parts.append(f"at most {roughly(sum(known) / jobs)} in their programs (time-limit)")
    elif plan.todo:
        parts.append("without a time limit: one that hangs would hang the sweep")
    return f": {'; '.join(parts)}" if parts else ""


def _run(order: Order) -> Sequence[str]:
    task = order.task
    variables = " ".join(f"{name}={shlex.quote(value)}" for name, value in task.environment.items())
    limit = "" if task.limit_s is None else f", at most {format_limit(task.limit_s)}"
    command = shlex.join(task.command)
    return (
        f"# {order.label}, repeat {task.tags['repeat']}{limit}",
        f"{variables} {command}".strip(),
        *([f"  recorded with {shlex.join(task.collect)}"] if task.collect else []),
    )


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
        elapsed = _read_elapsed_ns(manifest_document(order.folder))
        if elapsed:
            times.add(order, elapsed / 1e9)
    return times


def _read_elapsed_ns(manifest: Mapping[str, object]) -> int:
    stated = manifest.get(SWEEP)
    elapsed = stated.get("elapsed_ns") if isinstance(stated, dict) else None
    return elapsed if isinstance(elapsed, int) and elapsed > 0 else 0
