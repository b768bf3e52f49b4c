"""Preview of a sweep: its runs, their commands, and their estimated time."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from traceviz.core.units import counted, format_limit
from traceviz.sweep.orders import Order, State, Sweep
from traceviz.sweep.run import Plan
from traceviz.sweep.times import roughly, times_of


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
