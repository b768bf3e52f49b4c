"""Runner that applies one function to many traces on a Dask cluster.

A task is only the name of a function and its argument: the trace and the archive's location. Workers read the source
and write the archive themselves, and send back the function's result, a few rows. Dask schedules and balances the
tasks, and repeats those of a worker that died.

Work that needs a cluster, and work that does not:

- ``add`` reads and analyses every byte of every trace: work for a cluster.
- A query may read every row of a table. DuckDB cannot distribute a statement over machines. A statement cannot be split
  automatically, either: only its author knows whether results per part can be combined. So the author writes both
  halves, one over a part of the traces and one over the results of all parts (:mod:`traceviz.archive.query.shards`).
- The report on a population and most trends read only the catalogue, with one row per trace. Thousands of traces take
  less than a second, so there is nothing to divide. One worker near the archive may do all the work
  (:func:`traceviz.archive.runners.choose.run_one`), so that a distant client need not read the catalogue. The same
  holds for an undivided query.
- A trend of a figure that the catalogue lacks reads the saved report of every trace. Each worker reads some reports.

Workers should have one thread each (``dask worker --nworkers -1 --nthreads 1``). Reading a trace takes memory, and a
crash aborts all other tasks of the worker. Polars should have one thread, too: set ``POLARS_MAX_THREADS=1`` before the
worker loads polars. A query of a small trace takes less time than waking a thread on another core.
"""

from __future__ import annotations

import contextlib
import gc
import socket
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from distributed import Client, Future, KilledWorker, as_completed

from traceviz.archive.runners.base import Results, RunnerError, attempt
from traceviz.archive.storage.store import WORK, Store
from traceviz.core.errors import TracevizError, UsageError, WorkerError
from traceviz.version import __version__

T = TypeVar("T")
R = TypeVar("R")

PATIENCE_S = 60.0
"""Maximum seconds until the cluster answers, or starts its first worker."""
ANSWER_S = 10.0
"""Maximum seconds for connecting to the scheduler's machine."""
_ADDRESS = "Name the address that `dask scheduler` prints, tcp://HOST:PORT."
_AHEAD = 2
"""Arguments on the cluster per thread: one running and one queued."""


@dataclass(frozen=True, slots=True)
class DaskRunner:
    """Runs on the workers of a Dask cluster.

    Args:
        scheduler: Address of its scheduler (``tcp://host:8786``), or a connected client, which stays open.
        store: The archive, which all workers must be able to reach. This is checked before any work is sent.
        sources: Local files and folders that all workers must be able to see.
        patience_s: Maximum seconds until the cluster answers, or starts its first worker.
    """

    scheduler: str | Client
    store: Store | None = None
    sources: Sequence[Path] = ()
    patience_s: float = PATIENCE_S

    def map(self, function: Callable[[T], R], arguments: Iterable[T]) -> Results[T, R]:
        """See :meth:`traceviz.archive.runners.base.Runner.map`.

        Dask repeats the work of a worker that died, as often as the cluster allows (``allowed-failures``, 3 times). If
        several arguments failed together, each is run once more alone, to find which argument kills workers.

        Raises:
            UsageError: the address of the scheduler is not valid.
            WorkerError: the cluster does not answer, is lost, has no workers, has another version of traceviz, or
                its workers do not see the archive or the sources.
        """
        with self._client() as client:
            self._check(client)
            killed: list[T] = []
            for argument, result in _run(client, function, iter(arguments), None):
                if isinstance(result, RunnerError) and result.code == "worker-died":
                    killed.append(argument)
                    last_error = result
                else:
                    yield argument, result
            if len(killed) == 1:
                yield killed[0], last_error
            else:
                yield from _run(client, function, iter(killed), 1)

    @contextlib.contextmanager
    def _client(self) -> Iterator[Client]:
        if isinstance(self.scheduler, Client):
            yield self.scheduler
            return
        _check_listening(self.scheduler, min(self.patience_s, ANSWER_S))
        client, why = _connect(self.scheduler, self.patience_s)
        if client is None:
            gc.collect()  # otherwise the remains of the client delay Python's exit by two minutes
            raise _no_answer(self.scheduler, why)
        with client:
            yield client

    def _check(self, client: Client) -> None:
        """Check that there are workers with this version of traceviz, and that they see the archive and the sources.

        Raises:
            WorkerError: a check fails.
        """
        probe = client.submit(version, pure=False)  # an adaptive cluster starts a worker for this
        try:
            probe.result(timeout=self.patience_s)
        except TimeoutError:
            raise WorkerError(
                f"The Dask cluster has started no worker within {self.patience_s:.0f} s.",
                fix="Start some: dask worker ADDRESS --nworkers -1 --nthreads 1.",
            ) from None
        except ImportError as error:
            raise _not_installed(error) from error
        _check_versions(_ask_workers(client, version))
        if self.store is not None:
            # A worker that cannot read a file written here sees a different folder.
            mark = f"traceviz-{uuid.uuid4().hex}"
            self.store.write(mark.encode(), WORK, mark)
            try:
                _check_seen(self.store.called(), _ask_workers(client, can_read, self.store, mark))
            finally:
                self.store.remove(WORK, mark)
        for source in filter(Path.exists, self.sources):  # others are patterns; reading reports missing ones
            _check_seen(str(source), _ask_workers(client, path_exists, str(source)))


def _check_listening(address: str, seconds: float) -> None:
    """Check that a server listens at the address. Without one, Dask would retry again and again.

    Raises:
        UsageError: the address is not valid.
        WorkerError: no server listens there.
    """
    if address.startswith("inproc://"):  # a cluster within this process
        return
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or not port:
        raise UsageError(f"{address!r} is not the address of a Dask scheduler.", fix=_ADDRESS)
    try:
        socket.create_connection((host, port), seconds).close()
    except OSError as error:
        raise _no_answer(address, str(error)) from error


def _connect(address: str, seconds: float) -> tuple[Client | None, str]:
    """Return a client, or the reason for its absence."""
    try:
        return Client(address, timeout=seconds, set_as_default=False), ""
    except (OSError, ValueError, MemoryError) as error:  # a server of another protocol may cause any length to be read
        return None, str(error)


def _no_answer(address: str, why: str) -> WorkerError:
    return WorkerError(f"The Dask scheduler {address} does not answer.", why, _ADDRESS)


def version() -> str:
    """Return the version of traceviz in this process."""
    return __version__


def path_exists(path: str) -> bool:
    """Return whether a file or folder exists on the executing machine."""
    return Path(path).exists()


def can_read(store: Store, mark: str) -> bool:
    """Return whether the executing machine can read a file of the archive."""
    try:
        return store.read(WORK, mark) == mark.encode()
    except (FileNotFoundError, TracevizError):
        return False


def work(function: Callable[[T], R], argument: T, client_version: str) -> R | RunnerError:
    """Run the function on a worker. Workers may join late, so each call compares the version with the client's.

    Raises:
        WorkerError: the versions differ.
    """
    _check_versions({"A worker that joined late": version()}, client_version)
    return attempt(function, argument)


def _run(
    client: Client, function: Callable[[T], R], arguments: Iterator[T], at_once: int | None
) -> Iterator[tuple[T, R | RunnerError]]:
    """Run all arguments, keeping the cluster busy without overloading it.

    Args:
        client: A connected client.
        function: The function to run.
        arguments: Its arguments.
        at_once: Maximum number of arguments on the cluster; by default derived from its threads.
    """
    running: dict[Future[Any], T] = {}
    done = as_completed(loop=client.loop)

    def fill() -> None:
        room = (at_once or _AHEAD * max(sum(client.nthreads().values()), 1)) - len(running)
        for argument in islice(arguments, max(room, 0)):
            future = client.submit(work, function, argument, __version__, pure=False)
            running[future] = argument
            done.add(future)

    try:
        fill()
        while running:
            future = next(done)
            result = _result(future)
            argument = running.pop(future)
            future.release()
            fill()
            yield argument, result
    finally:
        # A task running on a worker cannot be stopped from here. It finishes, and its output is complete.
        client.cancel(list(running))


def _result(future: Future[Any]) -> Any:
    """Return the result of a task.

    Raises:
        WorkerError: the task failed for a reason other than its argument.
    """
    try:
        # Not `exception()`: a result stays on its worker until it is fetched. If that worker dies, the result is
        # computed again.
        return future.result()
    except KilledWorker as error:
        last = error.last_worker.address
        return RunnerError("worker-died", f"Every worker that worked on it died, the last at {last}.")
    except CancelledError as error:
        raise WorkerError(
            "The connection to the Dask scheduler is lost.", fix="Run the command again: finished work stays."
        ) from error
    except ImportError as error:
        raise _not_installed(error) from error


def _ask_workers(client: Client, function: Callable[..., R], *arguments: object) -> dict[str, R]:
    """Return the answer of every worker. A worker that dies during the call is left out.

    Raises:
        WorkerError: traceviz is not installed on a worker.
    """
    answers = client.run(function, *arguments, on_error="return")
    for answer in answers.values():
        if isinstance(answer, ImportError):
            raise _not_installed(answer)
    return {worker: answer for worker, answer in answers.items() if not isinstance(answer, BaseException)}


def _not_installed(error: ImportError) -> WorkerError:
    return WorkerError(
        "The Dask workers cannot run traceviz.",
        f"{error}.",
        f"Install it there: pip install 'traceviz-toolkit[cluster]=={__version__}'.",
    )


def _check_versions(versions: dict[str, str], expected: str | None = None) -> None:
    """Raise :class:`WorkerError` if a worker has another version than this process, as its tables could differ."""
    expected = expected or __version__
    for worker, its_version in versions.items():
        if its_version != expected:
            raise WorkerError(
                f"{worker} has traceviz {its_version}; this is {expected}.",
                "Their output could differ.",
                f"Install the same version there: pip install 'traceviz-toolkit[cluster]=={expected}'.",
            )


def _check_seen(name: str, answers: dict[str, bool]) -> None:
    """Raise :class:`WorkerError` if a worker does not see a local path."""
    for worker, is_seen in answers.items():
        if not is_seen:
            raise WorkerError(
                f"The worker {worker} does not see {name}.",
                "Workers read sources and write the archive themselves.",
                "Use a folder that all machines share, or a URL such as s3://.",
            )
