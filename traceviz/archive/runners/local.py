"""Runners that apply one function to many traces on this machine, in this process or in several.

:class:`LocalRunner` manages its own processes instead of using ``concurrent.futures``. There, one dying worker breaks
the whole pool, and its argument is unknown.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Generic, TypeVar

from traceviz.archive.runners.base import Results, RunnerError, attempt
from traceviz.core.errors import WorkerError
from traceviz.core.process import interrupts
from traceviz.core.process.cores import usable_core_numbers, usable_cores
from traceviz.core.process.interrupts import ENDING, Stopped
from traceviz.core.process.temporary import drop_all
from traceviz.core.without_pandas import skip_pandas

T = TypeVar("T")
R = TypeVar("R")

GRACE_S = 1.0
"""Seconds for a terminating worker to remove unfinished output."""
_THREAD_POOLS = ("POLARS_MAX_THREADS", "OMP_NUM_THREADS")
"""Variables from which polars and Arrow take their number of threads."""
_OBJECTS_PER_COLLECTION = 50_000
"""Threshold of the garbage collector. A small trace creates many short-lived objects, but hardly any in cycles."""


@dataclass(frozen=True, slots=True)
class SerialRunner:
    """Runs everything in this process, one argument after another. A fault in compiled code ends the process."""

    def map(self, function: Callable[[T], R], arguments: Iterable[T]) -> Results[T, R]:
        """See :meth:`traceviz.archive.runners.base.Runner.map`."""
        for argument in arguments:
            yield argument, attempt(function, argument)


@dataclass(frozen=True, slots=True)
class LocalRunner:
    """Runs in processes of this machine, each working on one argument at a time.

    Args:
        workers: Number of processes; by default one for every core that this process may use.
    """

    workers: int = field(default_factory=usable_cores)

    def map(self, function: Callable[[T], R], arguments: Iterable[T]) -> Results[T, R]:
        """See :meth:`traceviz.archive.runners.base.Runner.map`.

        An argument whose worker dies is run once more after all others, when no other work takes memory.

        Raises:
            WorkerError: processes cannot be started.
        """
        pool = _Pool[T, R](function, max(self.workers, 1))
        try:
            yield from pool.run(iter(arguments))
            pool.ask_to_end()
        finally:
            pool.end()


@dataclass(slots=True, eq=False)
class _Worker(Generic[T]):
    """A process, its connection, its current argument, and its reserved core, if any."""

    process: BaseProcess
    connection: Connection
    argument: T
    core: int | None


@dataclass(slots=True)
class _Pool(Generic[T, R]):
    """Processes with their current arguments. A worker that dies loses only its own argument.

    While every core has a busy worker, each worker is pinned to its own core. Polars hands every query to another
    thread, and waking a thread on another core takes longer than most queries of a small trace.
    """

    function: Callable[[T], R]
    size: int
    workers: dict[Connection, _Worker[T]] = field(default_factory=dict)
    has_started: bool = False

    def run(self, arguments: Iterator[T]) -> Iterator[tuple[T, R | RunnerError]]:
        """Run all arguments. Those whose worker died are run once more at the end, one at a time."""
        died: list[T] = []
        for argument, result in self._run_all(arguments, self.size):
            if isinstance(result, RunnerError) and result.code == "worker-died":
                died.append(argument)
            else:
                yield argument, result
        if died:
            self.end()  # this also frees the memory of idle workers
            yield from self._run_all(iter(died), 1)

    def ask_to_end(self) -> None:
        """Close the connections to the workers, so that idle workers exit."""
        for worker in self.workers.values():
            worker.connection.close()
        for worker in self.workers.values():
            worker.process.join(GRACE_S)

    def end(self) -> None:
        """Terminate all processes. Busy ones may first remove unfinished output."""
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
                if received is None:  # it has started
                    continue
                del busy[connection]
                done = (worker.argument, received)
                if connection in self.workers:
                    idle.append(worker)
                self._employ(arguments, size, idle, busy)  # before the caller spends time on the result
                yield done

    def _employ(
        self, arguments: Iterator[T], size: int, idle: list[_Worker[T]], busy: dict[Connection, _Worker[T]]
    ) -> None:
        """Give arguments to idle workers, and start more workers, until ``size`` are busy."""
        while len(busy) < size:
            try:
                argument = next(arguments)
            except StopIteration:
                return
            worker = idle.pop() if idle else self._start(argument)
            worker.argument = argument
            busy[worker.connection] = worker
            core = worker.core if len(busy) == self.size else None
            with contextlib.suppress(OSError):  # it died while idle; receiving from it reports that
                worker.connection.send((self.function, argument, core))

    def _start(self, argument: T) -> _Worker[T]:
        context = multiprocessing.get_context("spawn")  # a fork would inherit locks of threads, but not the threads
        ours, theirs = context.Pipe()
        process = context.Process(
            target=_work, args=(theirs, max(usable_cores() // self.size, 1)), daemon=True, name="traceviz worker"
        )
        resource_tracker.ensure_running()  # its first start unblocks signals, even if the caller blocks them
        # The process inherits the blocked signals, and accepts them once its handlers are installed. Signals are also
        # held back in this process, as another thread may receive one: a half-started worker would print an error.
        with interrupts.uninterrupted():
            before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
            try:
                process.start()
            except OSError as error:
                ours.close()
                raise WorkerError("A worker process cannot be started.", str(error)) from error
            finally:
                theirs.close()
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
            worker = self.workers[ours] = _Worker(process, ours, argument, self._free_core())
        return worker

    def _free_core(self) -> int | None:
        """Return a core that no other worker has, if there is one core per worker."""
        cores = usable_core_numbers()
        if not 1 < self.size == len(cores):
            return None
        taken = {worker.core for worker in self.workers.values()}
        return next((core for core in cores if core not in taken), None)

    def _receive(self, worker: _Worker[T]) -> R | RunnerError | None:
        """Return the result of a worker, or the reason of its death; ``None`` if it only reports its start."""
        try:
            received = worker.connection.recv()
        except (EOFError, OSError):
            return self._bury(worker)
        if received is None:
            self.has_started = True
            return None
        (result,) = received
        return result  # type: ignore[no-any-return]

    def _bury(self, worker: _Worker[T]) -> RunnerError:
        """Remove a worker that died, and return how it died.

        Raises:
            WorkerError: no worker ever started, so further ones would fail, too.
            Stopped: the first one was terminated by a signal.
        """
        del self.workers[worker.connection]
        worker.connection.close()
        worker.process.join()
        code = worker.process.exitcode or 0
        worker.process.close()
        if not self.has_started:
            interrupts.follow(code)
            raise WorkerError(
                f"Worker processes cannot be started: the first ended with {_ending(code)}.",
                fix="In a script, call this below `if __name__ == '__main__':`, since workers import the script.",
            )
        return RunnerError("worker-died", f"The process that worked on it was ended twice, by {_ending(code)}.")


def _ending(code: int) -> str:
    """Describe how a process ended."""
    if code >= 0:
        return f"exit code {code}"
    name = signal.Signals(-code).name
    return f"{name} (perhaps for want of memory)" if -code == signal.SIGKILL else name


def _work(connection: Connection, threads: int) -> None:
    """Work until the connection is closed.

    A signal ends it cleanly: unfinished output is removed, and started programs are terminated.
    """
    interrupts.install(drop_all)
    try:
        try:
            _work_until_closed(connection, threads)
        except KeyboardInterrupt as error:  # polars handles Ctrl-C itself while it computes
            raise Stopped(signal.SIGINT) from error
        except Exception:
            interrupts.check()  # an interrupted import may fail with any error
            raise
    except Stopped as stopped:
        interrupts.ignore()
        sys.exit(stopped.exit_code)
    except MemoryError:  # not even enough for the result: exit like a process killed for its memory
        sys.exit(1)


def _work_until_closed(connection: Connection, threads: int) -> None:
    """Receive functions and arguments, and send results."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    for name in _THREAD_POOLS:  # before the libraries that read these variables are imported
        os.environ.setdefault(name, str(threads))
    skip_pandas()
    anywhere = usable_core_numbers()
    gc.disable()  # until the imports of the first function are done, as they create no garbage
    gc.set_threshold(_OBJECTS_PER_COLLECTION)
    with contextlib.suppress(EOFError, OSError):  # the parent process is gone
        connection.send(None)
        while True:
            function, argument, core = connection.recv()
            gc.enable()
            _stay_on(anywhere if core is None else (core,))
            result = attempt(function, argument)
            interrupts.check()  # an interrupt may have caused the result
            connection.send((result,))


def _stay_on(cores: tuple[int, ...]) -> None:
    """Pin all threads of this process to these cores. Threads started later inherit the setting."""
    if usable_core_numbers() == cores:
        return
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # the thread has just ended, or cannot be moved (no harm)
            os.sched_setaffinity(int(thread.name), cores)


def _leave_with_parent() -> None:
    """End this process cleanly when its parent is killed, as the parent then cannot end its workers."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
