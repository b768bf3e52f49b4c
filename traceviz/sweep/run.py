"""Running the remaining runs of a sweep: one after another or several at once, on this machine or on a cluster.

::

    orders --> start --> child --> ended? --> its folder says how --> next
                 ^ a request to end: no further one starts, those under way are interrupted; a second one kills them
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from traceviz.archive.runners.base import Runner, RunnerError
from traceviz.core.errors import OutputError, UsageError, WorkerError
from traceviz.parsers.run.layout import manifest_document
from traceviz.sweep.child import Child, wait_for
from traceviz.sweep.orders import Order, State, state_in
from traceviz.sweep.record import Job, Result, finish_run, record_run, start_run

_LOCK = ".sweep.lock"
_STOP = ".sweep.stop-"
"""File name prefix of the files that stop the runs of one sweep on a cluster."""
_SEEN_S = 3600.0
_POLL_S = 0.2


class Follower(Protocol):
    """Receives the progress of every run."""

    def started(self, order: Order) -> None:
        """Handle the start of a run."""
        ...

    def ended(self, order: Order, result: Result) -> None:
        """Handle the end of a run."""
        ...

    def waiting(self) -> None:
        """Handle a moment without events."""
        ...


@dataclass(frozen=True, slots=True)
class Plan:
    """Division of a sweep's runs into those to make and those that exist.

    Args:
        todo: Runs to make, in their order.
        kept: Existing runs, with their states.
    """

    todo: tuple[Order, ...]
    kept: tuple[tuple[Order, State], ...]


def plan_runs(orders: Sequence[Order], *, retry_failed: bool = False, retry_changed: bool = False) -> Plan:
    """Return the plan of the runs that are left to make.

    Args:
        orders: All runs of the sweep.
        retry_failed: True to repeat runs that did not finish.
        retry_changed: True to repeat runs whose command has changed since.

    Raises:
        UsageError: the command of existing runs has changed, and ``retry_changed`` is not set.
    """
    states = [(order, state_in(manifest_document(order.folder), order)) for order in orders]
    changed = [order for order, state in states if state is State.CHANGED]
    if changed and not retry_changed:
        first = changed[0]
        raise UsageError(
            f"{len(changed)} runs in {first.folder.parent} are of another command than the sweep file has now, or were "
            f"recorded in another way: {first.folder.name}.",
            "Runs of both would be compared as repeats of one setting.",
            "Give the sweep another name, or replace these runs with --retry-changed.",
        )
    again = {State.MISSING, State.CHANGED, *((State.FAILED,) if retry_failed else ())}
    return Plan(
        tuple(order for order, state in states if state in again),
        tuple((order, state) for order, state in states if state not in again),
    )


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Run the block while no other sweep runs in this folder.

    Raises:
        UsageError: another sweep runs there.
        OutputError: the folder cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        why = f"{error.strerror}."
        raise OutputError(f"{folder} cannot hold runs.", why, 'Name another folder: runs = "FOLDER"') from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"A sweep is running in {folder} already.", fix="Wait until it has ended.") from None
        except OSError:
            pass  # a file system without locks
        yield
    finally:
        os.close(handle)


def run_here(orders: Sequence[Order], jobs: int, requests: Callable[[], int], follower: Follower) -> None:
    """Make runs on this machine. If one fails, that is its result, and the next starts.

    Args:
        orders: The runs, in their order.
        jobs: Most concurrent runs.
        requests: Returns the number of requests to end so far.
        follower: Receives the progress of every run.

    Raises:
        OutputError: a run folder cannot be written.
    """
    left, running = deque(orders), dict[Order, Child]()
    try:
        while (left and not requests()) or running:
            while left and len(running) < jobs and not requests():
                order = left.popleft()
                running[order] = start_run(order)
                follower.started(order)
            _pass_on(requests(), running.values())
            wait_for(tuple(running.values()), _POLL_S)
            for order, code in [(order, child.ended()) for order, child in running.items()]:
                if code is not None:
                    follower.ended(order, finish_run(order, running.pop(order), code))
            follower.waiting()
    finally:
        for child in running.values():  # an error ends the sweep and all its runs
            child.kill()


def _pass_on(requests: int, children: Iterable[Child]) -> None:
    for child in children:
        if requests and not child.asked_to_end:
            child.ask_to_end()
        elif requests > 1:
            child.kill()


def run_there(orders: Sequence[Order], runner: Runner, follower: Follower) -> None:
    """Make runs with a runner, on a cluster. If this function is left early, running ones are interrupted.

    Raises:
        WorkerError: the cluster cannot run them.
        TracevizError: a run folder cannot be written there.
    """
    folder = orders[0].folder.parent if orders else Path()
    stop = folder / f"{_STOP}{secrets.token_hex(4)}"
    _remove_old_stops(folder)
    jobs = [Job(order, stop) for order in orders]
    try:
        with contextlib.closing(runner.map(record_run, jobs)) as results:
            for job, result in results:
                follower.ended(job.order, _result(result))
    except BaseException:
        stop.touch()
        raise


def _remove_old_stops(folder: Path) -> None:
    """Remove the stop files of earlier sweeps, once all their runs have seen them."""
    for stop in folder.glob(f"{_STOP}*"):
        with contextlib.suppress(OSError):
            if time.time() - stop.stat().st_mtime > _SEEN_S:
                stop.unlink()


def _result(result: Result | RunnerError) -> Result:
    """Return a result; raise :class:`TracevizError` if there is none."""
    if isinstance(result, RunnerError):
        raise result.cause or WorkerError(result.message)
    return result
