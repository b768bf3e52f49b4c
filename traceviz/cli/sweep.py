"""``traceviz sweep``: record a program under many settings."""

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
import signal
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from traceviz.cli.boundary import say
from traceviz.cli.options import in_lean_process, page_width, print_lines, wants_color, write
from traceviz.core.errors import GateFailedError, TracevizError, UsageError
from traceviz.core.units import counted

if TYPE_CHECKING:
    from traceviz.sweep.orders import Sweep
    from traceviz.sweep.run import Plan

_SECTIONS = ("cross", "effect", "measures", "quality")
"""Sections of the comparison in the final table."""
_MOST_WAYS = 100
"""Most different options of ``traceviz collect``: the collectors' availability is checked for each."""
_REFUSED = {
    "output": "Leave it out of collect: the folders of runs are named by their tags. See `runs`.",
    "dry_run": "Leave it out of collect, and run: traceviz sweep FILE --dry-run",
    "force": "Leave it out of collect. --retry-failed and --retry-changed replace runs.",
    "verdict": "Leave it out of collect: a sweep ends with one table of all runs.",
    "tags": "Leave it out of collect, and write [tags].",
    "time_limit": "Leave it out of collect, and write time-limit.",
}
"""Options of ``traceviz collect`` that a sweep replaces, and what to do."""


@click.command()
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@click.option("--repeats", type=click.IntRange(min=1), help="Runs of each setting (default: what FILE says).")
@click.option("--jobs", type=click.IntRange(min=1), default=1, metavar="N", help="Runs side by side (default: 1).")
@click.option("--scheduler", metavar="ADDRESS", help="Dask scheduler whose workers run them, e.g. tcp://host:8786.")
@click.option(
    "--seed", type=int, metavar="N", help="Number that decides the order of the runs (default: another each time)."
)
@click.option("--retry-failed", is_flag=True, help="Make runs again that failed, were killed or timed out.")
@click.option("--retry-changed", is_flag=True, help="Replace runs whose command has changed in FILE since.")
@click.option("--dry-run", is_flag=True, help="Print which commands would run and how long that may take; run nothing.")
@click.option("--table/--no-table", default=True, help="Compare the settings in the end.")
@click.option("--strict", is_flag=True, help="Exit with 1 where a run did not finish.")
def sweep(
    *,
    file: Path,
    repeats: int | None,
    jobs: int,
    scheduler: str | None,
    seed: int | None,
    retry_failed: bool,
    retry_changed: bool,
    dry_run: bool,
    table: bool,
    strict: bool,
) -> None:
    """Record a program under every setting that FILE names, several times each, and compare them.

    FILE (TOML) has a command such as "python train.py --batch-size {batch}", and values for its tags; every combination
    is a setting. Rounds go through all settings, each in a random order of its own, so that a machine that slows down
    slows all alike.

    A run that fails, hangs or is killed is a result: it is kept with its reason, and the next one begins. Ctrl-C ends
    the run that is under way and keeps the others; the same command goes on from there.
    """
    from traceviz.sweep.file import read_sweep
    from traceviz.sweep.orders import plan
    from traceviz.sweep.run import alone_in, plan_runs

    seed = secrets.randbelow(10**6) if seed is None else seed
    whole = plan(read_sweep(file), file.stem, Path.cwd(), seed, repeats)
    _check_recording(whole)
    runs = plan_runs(whole.orders, retry_failed=retry_failed, retry_changed=retry_changed)
    if dry_run:
        from traceviz.sweep.times import preview

        print_lines(preview(whole, runs, jobs, _here(whole.folder)))
        return
    with alone_in(whole.folder):
        asked = _record(whole, runs, jobs, scheduler, seed)
    if asked:
        say(_explain_interrupt(whole))
        click.get_current_context().exit(128 + asked)
    _print_tables(whole, compared=table)
    from traceviz.sweep.orders import State, state_of

    states = [state_of(order) for order in whole.orders]
    failed = sum(state is State.FAILED for state in states)
    if failed and strict:
        raise GateFailedError(f"{failed} of {len(states)} runs did not finish.", "--strict requires all of them.")


def _here(folder: Path) -> str:
    """Return a folder as it can be typed here."""
    return shlex.quote(str(folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder))


def _check_recording(whole: Sweep) -> None:
    """Refuse options of ``traceviz collect`` and commands that would fail in every run, before the first run.

    Raises:
        UsageError, MissingToolError: as ``traceviz collect``.
        CommandNotFoundError, NotExecutableError: no run could start.
    """
    from traceviz.cli.collect import read_options
    from traceviz.collectors.collect import prepare
    from traceviz.collectors.program.start import find_program

    ways = dict.fromkeys(order.task.collect for order in whole.orders)
    if len(ways) > _MOST_WAYS:
        raise UsageError(
            f"The runs are recorded in {len(ways):,} different ways, more than the {_MOST_WAYS} that a sweep may have.",
            "Their times would not compare.",
            "Leave tags out of collect.",
        )
    for words in ways:
        prepare(read_options(words, _REFUSED), ("true",))
    first: TracevizError | None = None
    for order in whole.orders:
        try:
            find_program(order.task.command[0], {**os.environ, **order.task.environment})
        except TracevizError as error:
            first = first or error
        else:
            return
    assert first is not None, "a sweep has runs"
    raise first


class _Requests:
    """Number of requests to end, and the signal of the first."""

    def __init__(self) -> None:
        self.count = 0
        self.number = 0

    def take(self, number: int, _frame: FrameType | None = None) -> None:
        self.count += 1
        self.number = self.number or number
        if self.count == 1:
            say("Ending the run that is under way; once more to kill it.")


@contextlib.contextmanager
def _count_requests() -> Iterator[_Requests]:
    """Yield a counter of signals that request the end; none of them is raised in the block."""
    from traceviz.core.process.interrupts import ENDING

    requests = _Requests()
    before = {number: signal.getsignal(number) for number in ENDING}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, requests.take)
    try:
        yield requests
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _record(whole: Sweep, runs: Plan, jobs: int, scheduler: str | None, seed: int) -> int:
    """Make the remaining runs; return the signal that requested the end, or 0.

    Raises:
        Stopped: runs on a cluster were to end.
    """
    from traceviz.cli.sweep_progress import following
    from traceviz.core.process.interrupts import Stopped
    from traceviz.sweep.run import run_here, run_there

    kept = f", {len(runs.kept):,} there already" if runs.kept else ""
    say(f"{counted(len(whole.orders), 'run')} into {_here(whole.folder)}{kept}; order: --seed {seed}")
    if jobs > 1 and scheduler is None:
        say(
            f"{jobs:,} at a time, which take processors and memory from one another: times are those of a busy machine."
        )
    if scheduler is None:
        with _count_requests() as requests, following(whole, runs, jobs) as follower:
            run_here(runs.todo, jobs, lambda: requests.count, follower)
        return requests.number
    from traceviz.archive.runners.choose import runner_for

    runner = runner_for(None, scheduler, None, (str(whole.folder), str(Path.cwd())))
    try:
        with following(whole, runs, None) as follower:
            run_there(runs.todo, runner, follower)
    except Stopped as stopped:
        stopped.message = f"Runs under way on the cluster are interrupted.\n{_explain_interrupt(whole)}"
        raise
    return 0


def _explain_interrupt(whole: Sweep) -> str:
    again = shlex.join(["traceviz", *sys.argv[1:]])
    return f"Interrupted. What was recorded stays in {_here(whole.folder)}; to go on: {again}"


@in_lean_process  # not the whole command: programs inherit its environment, which is set for reading here
def _print_tables(whole: Sweep, *, compared: bool) -> None:
    """Print the outcome of the settings, and their comparison."""
    from traceviz import api
    from traceviz.sweep.summary import busy_in_words, summary

    layout = api.RenderOptions(page_width(), wants_color(), None, None)
    write(api.to_text(summary(whole), "terminal", layout), None, force=False)
    by = whole.source.compare.by or whole.tags
    if not compared or len(whole.settings) < 2:
        return
    from traceviz.sweep.file import text_of
    from traceviz.sweep.summary import first_finished

    base, per = text_of(whole.source.compare.base) or first_finished(whole, by), whole.source.compare.per
    options = [f"--base {shlex.quote(base)}"] * bool(base) + [f"--per {shlex.quote(per)}"] * bool(per)
    typed = " ".join(["traceviz compare", _here(whole.folder), f"--by {','.join(by)}", *options])
    try:
        comparison = api.compare(whole.folder, by=by, base=base, options=api.CompareOptions(per=per))
        document = api.document(comparison)
        present = {section.slug for section in document.sections}
        shown = tuple(name for name in _SECTIONS if name in present)
        text = api.to_text(document, "terminal", api.RenderOptions(page_width(), wants_color(), None, shown))
    except TracevizError as error:
        say(f"The settings cannot be compared. {error}")
    else:
        write("\n" + text, None, force=False)
        if busy := busy_in_words(comparison.sides):
            print_lines(textwrap.wrap(busy, page_width()))
    print_lines([f"To see more: {typed}"])
