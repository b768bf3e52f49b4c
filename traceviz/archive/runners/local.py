"""Running one function over many traces: here, in processes of this machine, or on a cluster.

A runner is given a function and its arguments, and yields every argument with what came of it, in the order in which
they are done. Arguments are taken from their iterator when there is a worker for them, so that a million of them need
no memory. All runners give the same results: the function writes what is large, and returns what is small.

:class:`LocalRunner` has processes of its own kind rather than those of ``concurrent.futures``: there one worker that
dies takes the whole pool with it, and nothing says on which argument it worked.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

from traceviz.archive.storage.store import Store
from traceviz.errors import TracevizError, UsageError, WorkerError

T = TypeVar("T")
R = TypeVar("R")

GRACE_S = 1.0
"""So long a worker that is told to end may take to remove what it was writing."""
_TO_LEAVE = (signal.SIGINT, signal.SIGTERM)
"""What a worker ends by."""
_THREAD_POOLS = ("POLARS_MAX_THREADS", "OMP_NUM_THREADS")
"""Polars and Arrow take their number of threads from these."""


@dataclass(frozen=True, slots=True)
class RunnerError:
    """Why there is no result for an argument.

    Args:
        code: ``worker-died``: whoever works on it is ended, by a fault in compiled code or for want of memory, twice.
            ``failed``: the function raised an error.
        message: What happened, for people.
        cause: The error that was raised, if it was one of ours.
    """

    code: Literal["worker-died", "failed"]
    message: str
    cause: TracevizError | None = None


Results: TypeAlias = Generator[tuple[T, R | RunnerError], None, None]
"""Arguments with what came of them; closing it ends what is still running."""


class Runner(Protocol):
    """Runs a function over arguments."""

    def map(self, function: Callable[[T], R], arguments: Iterable[T]) -> Results[T, R]:
        """Every argument with its result, in any order.

        What becomes of one argument does not touch the others.

        Args:
            function: Of a module, so that other processes find it.
            arguments: Small values that can be pickled; taken one by one, as workers become free.
        """
        ...


def usable_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class SerialRunner:
    """Runs everything in this process, one after another; a fault in compiled code ends it."""

    def map(self, function: Callable[[T], R], arguments: Iterable[T]) -> Results[T, R]:
        """See :meth:`Runner.map`."""
        for argument in arguments:
            yield argument, outcome(function, argument)


@dataclass(frozen=True, slots=True)
class LocalRunner:
    """Runs in processes of this machine, each on one argument at a time.

    Args:
        workers: How many; by default one for every core that this process may use.
    """

    workers: int = field(default_factory=usable_cores)

    def map(self, function: Callable[[T], R], arguments: Iterable[T]) -> Results[T, R]:
        """See :meth:`Runner.map`.

        An argument whose worker dies is run once more after all others, when nothing else takes memory.

        Raises:
            WorkerError: processes cannot be started.
        """
        pool = _Pool[T, R](function, max(self.workers, 1))
        try:
            yield from pool.run(iter(arguments))
            pool.ask_to_end()
        finally:
            pool.end()


def runner_for(
    workers: int | None = None, scheduler: str | None = None, store: Store | None = None, sources: Sequence[str] = ()
) -> Runner:
    """The runner that a command line asks for.

    Args:
        workers: Processes on this machine; by default one for every core.
        scheduler: Address of a Dask scheduler, instead.
        store: The archive that is worked on, which a cluster must reach.
        sources: Paths and URLs that are read; a cluster must see the paths.

    Raises:
        UsageError: both are given, there are no workers, or Dask is not installed.
    """
    if scheduler is None:
        if workers is not None and workers < 1:
            raise UsageError(f"{workers} workers cannot work.", fix="Give --workers 1 or more.")
        return LocalRunner() if workers is None else LocalRunner(workers)
    if workers is not None:
        raise UsageError("Workers of a cluster are started by it.", fix="Leave out either --workers or --scheduler.")
    try:
        from traceviz.archive.runners.dask import DaskRunner  # noqa: PLC0415 (Dask is an extra, and slow to load)
    except ImportError as error:
        raise UsageError(
            "Dask is not installed.", str(error), "Install it: pip install 'traceviz-toolkit[cluster]'."
        ) from None
    # Workers run in folders of their own: what this one calls `runs` is another there.
    return DaskRunner(scheduler, store, tuple(Path(source).absolute() for source in sources if "://" not in source))


def run_one(runner: Runner, function: Callable[[T], R], argument: T) -> R:
    """The result of one argument.

    Raises:
        TracevizError: the function raised it.
        WorkerError: there is no result for another reason.
    """
    with contextlib.closing(runner.map(function, [argument])) as results:
        _, found = next(results)
    if isinstance(found, RunnerError):
        raise found.cause or WorkerError(found.message)
    return found


def outcome(function: Callable[[T], R], argument: T) -> R | RunnerError:
    """What the function returns, or why it does not: nothing is raised across the border of a process."""
    try:
        return function(argument)
    except TracevizError as error:
        return RunnerError("failed", str(error), error)
    except Exception as error:  # noqa: BLE001 (whatever it is, it must reach the process that asked)
        return RunnerError("failed", _told(error))


def _told(error: Exception) -> str:
    """An error of others, and where it was raised: file and line without the folders of this machine."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(frame.filename).name}, line {frame.lineno})"


@dataclass(slots=True, eq=False)
class _Worker(Generic[T]):
    """A process, the way to it, and the argument that it works on."""

    process: BaseProcess
    connection: Connection
    argument: T


@dataclass(slots=True)
class _Pool(Generic[T, R]):
    """Processes, and what each works on. A worker that dies takes with it the argument that it had, no other."""

    function: Callable[[T], R]
    size: int
    workers: dict[Connection, _Worker[T]] = field(default_factory=dict)
    has_come_up: bool = False

    def run(self, arguments: Iterator[T]) -> Iterator[tuple[T, R | RunnerError]]:
        """All arguments, those whose worker died once more at the end, alone."""
        again: list[T] = []
        for argument, found in self._run_all(arguments, self.size):
            if _is_death(found):
                again.append(argument)
            else:
                yield argument, found
        if again:
            self.end()  # also what idle workers keep in memory
            yield from self._run_all(iter(again), 1)

    def ask_to_end(self) -> None:
        """Close the ways to the workers: they end by themselves, having nothing to do."""
        for worker in self.workers.values():
            worker.connection.close()
        for worker in self.workers.values():
            worker.process.join(GRACE_S)

    def end(self) -> None:
        """End all processes: those that are at work may remove what they were writing."""
        alive = [worker.process for worker in self.workers.values()]
        for process in alive:
            process.terminate()
        deadline = time.monotonic() + GRACE_S
        for process in alive:
            process.join(max(deadline - time.monotonic(), 0))
            process.kill()
            process.join()
            process.close()
        for worker in self.workers.values():
            worker.connection.close()
        self.workers.clear()

    def _run_all(self, arguments: Iterator[T], size: int) -> Iterator[tuple[T, R | RunnerError]]:
        busy: dict[Connection, _Worker[T]] = {}
        idle = list(self.workers.values())
        self._employ(arguments, size, idle, busy)
        while busy:
            for connection in wait(list(busy)):
                assert isinstance(connection, Connection)
                worker = busy[connection]
                received = self._receive(worker)
                if received is None:  # it has come up
                    continue
                del busy[connection]
                done = (worker.argument, received)
                if connection in self.workers:
                    idle.append(worker)
                self._employ(arguments, size, idle, busy)  # first, so that nobody waits for who takes the result
                yield done

    def _employ(
        self, arguments: Iterator[T], size: int, idle: list[_Worker[T]], busy: dict[Connection, _Worker[T]]
    ) -> None:
        """Give arguments to workers that are free, and start others, until ``size`` are busy."""
        while len(busy) < size:
            try:
                argument = next(arguments)
            except StopIteration:
                return
            worker = idle.pop() if idle else self._start(argument)
            worker.argument = argument
            with contextlib.suppress(OSError):  # it died while it was idle: receiving from it will say so
                worker.connection.send((self.function, argument))
            busy[worker.connection] = worker

    def _start(self, argument: T) -> _Worker[T]:
        context = multiprocessing.get_context("spawn")  # a fork would inherit the threads' locks, but not the threads
        ours, theirs = context.Pipe()
        process = context.Process(
            target=_work, args=(theirs, max(usable_cores() // self.size, 1)), daemon=True, name="traceviz worker"
        )
        try:
            process.start()
        except OSError as error:
            ours.close()
            raise WorkerError("A worker process cannot be started.", str(error)) from error
        finally:
            theirs.close()
        worker = _Worker(process, ours, argument)
        self.workers[ours] = worker
        return worker

    def _receive(self, worker: _Worker[T]) -> R | RunnerError | None:
        """What a worker says: nothing yet but that it has come up, the result, or nothing any more."""
        try:
            received = worker.connection.recv()
        except (EOFError, OSError):
            return self._bury(worker)
        if received is None:
            self.has_come_up = True
            return None
        (result,) = received
        return result  # type: ignore[no-any-return]

    def _bury(self, worker: _Worker[T]) -> RunnerError:
        """How a worker died.

        Raises:
            WorkerError: none ever came up, and others would not, either.
        """
        del self.workers[worker.connection]
        worker.connection.close()
        worker.process.join()
        code = worker.process.exitcode or 0
        worker.process.close()
        if not self.has_come_up:
            raise WorkerError(
                f"Worker processes cannot be started: the first ended with {_ending(code)}.",
                fix="In a script, call this below `if __name__ == '__main__':`, since workers import the script.",
            )
        return RunnerError("worker-died", f"The process that worked on it was ended twice, by {_ending(code)}.")


def _is_death(found: object) -> bool:
    return isinstance(found, RunnerError) and found.code == "worker-died"


def _ending(code: int) -> str:
    """How a process ended, as people say it."""
    if code >= 0:
        return f"exit code {code}"
    name = signal.Signals(-code).name
    return f"{name} (perhaps for want of memory)" if -code == signal.SIGKILL else name


def _work(connection: Connection, threads: int) -> None:
    """Receive functions and arguments and answer with results, until nobody asks any more."""
    for number in _TO_LEAVE:
        signal.signal(number, _leave)
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    for name in _THREAD_POOLS:  # before the libraries are imported that read them
        os.environ.setdefault(name, str(threads))
    with contextlib.suppress(EOFError, OSError):  # who asked is gone
        connection.send(None)
        while True:
            function, argument = connection.recv()
            connection.send((outcome(function, argument),))


def _leave_with_parent() -> None:
    """End this process, in an orderly way, when the one that asked is killed: it cannot tell its workers."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


def _leave(*_: Any) -> None:
    """End in an orderly way: what was being written is removed, and programs that were started are ended."""
    for number in _TO_LEAVE:  # Ctrl-C comes twice, from the terminal and from who asked: not into the tidying up
        signal.signal(number, _stay)
    sys.exit(1)


def _stay(*_: Any) -> None:
    """Heed no signal. Python complains of one that came before it was told to ignore it."""
