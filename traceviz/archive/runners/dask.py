"""Running one function over many traces on a Dask cluster.

What is sent is the name of a function and its argument: which trace, and where the archive lies. Workers read the
source and write the archive themselves, and send back what the function returns, some rows. Dask schedules, balances
and repeats the work of a worker that died; nothing of that is done here.

What needs a cluster, and what does not:

- ``add`` reads and analyses every byte of every trace: work for a cluster.
- A query may read every row of a table. DuckDB cannot spread a statement over machines, and a statement cannot be
  divided by looking at it: only its author knows whether counts per part add up. So the author writes both halves, one
  over a part of the traces and one over the results of all parts (:mod:`traceviz.archive.query.shards`).
- The report on a population and most trends read the catalogue only: a row per trace, under a second for thousands.
  There is nothing to divide. One worker next to the archive may do it all
  (:func:`traceviz.archive.runners.choose.run_one`), which saves a distant client reading the catalogue. The same holds
  for a query that is not divided.
- A trend of a figure that the catalogue lacks reads a saved report of every trace: each worker reads some of them.

Workers should have one thread each (``dask worker --nworkers -1 --nthreads 1``): reading a trace takes memory, and a
crash takes with it everything else that its worker is doing. So should polars (``POLARS_MAX_THREADS=1`` for the worker,
which reads it when it loads polars): a query of a small trace takes less time than to wake a thread on another core.
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
"""A cluster may take this long to answer, or to start its first worker."""
ANSWER_S = 10.0
"""Reaching the machine of the scheduler may take this long."""
_ADDRESS = "Name the address that `dask scheduler` prints, tcp://HOST:PORT."
_AHEAD = 2
"""Arguments on the cluster for each of its threads: one in work, and one that waits."""


@dataclass(frozen=True, slots=True)
class DaskRunner:
    """Runs on the workers of a Dask cluster.

    Args:
        scheduler: Address of its scheduler (``tcp://host:8786``), or a connected client, which stays open.
        store: The archive, which all workers must be able to reach: that is tried before anything is sent.
        sources: Local files and folders that all workers must see as this machine does.
        patience_s: The cluster may take this long to answer, or to start its first worker.
    """

    scheduler: str | Client
    store: Store | None = None
    sources: Sequence[Path] = ()
    patience_s: float = PATIENCE_S

    def map(self, function: Callable[[T], R], arguments: Iterable[T]) -> Results[T, R]:
        """See :meth:`traceviz.archive.runners.base.Runner.map`.

        Dask repeats the work of a worker that died, as often as the cluster allows (``allowed-failures``, 3 times).
        Where several arguments failed together, each is run once more alone, to find the one that kills workers.

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
        client, why = _connected(self.scheduler, self.patience_s)
        if client is None:
            gc.collect()  # the remains of the client would make Python wait for two minutes when it ends
            raise _no_answer(self.scheduler, why)
        with client:
            yield client

    def _check(self, client: Client) -> None:
        """Check that there are workers, with this version of traceviz, and that they see the archive and the sources.

        Raises:
            WorkerError: one of these does not hold.
        """
        probe = client.submit(version, pure=False)  # a cluster that grows on demand starts a worker for this
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
            _check_reach(client, self.store)
        for source in filter(Path.exists, self.sources):  # others are patterns; reading reports what is missing
            _check_seen(str(source), _ask_workers(client, path_exists, str(source)))


def _check_listening(address: str, seconds: float) -> None:
    """Check that a server listens at the address: where none does, Dask would try again and again.

    Raises:
        UsageError: this is no address.
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


def _connected(address: str, seconds: float) -> tuple[Client | None, str]:
    """A client, or why there is none."""
    try:
        return Client(address, timeout=seconds, set_as_default=False), ""
    except (OSError, ValueError, MemoryError) as error:  # a server of another protocol: any length may be read
        return None, str(error)


def _no_answer(address: str, why: str) -> WorkerError:
    return WorkerError(f"The Dask scheduler {address} does not answer.", why, _ADDRESS)


def version() -> str:
    """Version of traceviz where this runs."""
    return __version__


def path_exists(path: str) -> bool:
    """Whether there is such a file or folder where this runs."""
    return Path(path).exists()


def can_read(store: Store, mark: str) -> bool:
    """Whether a file of the archive can be read where this runs."""
    try:
        return store.read(WORK, mark) == mark.encode()
    except (FileNotFoundError, TracevizError):
        return False


def work(function: Callable[[T], R], argument: T, client_version: str) -> R | RunnerError:
    """Run the function, on a worker. Workers may join late, so each compares its version with that of the client.

    Raises:
        WorkerError: they differ.
    """
    _check_versions({"A worker that joined late": version()}, client_version)
    return attempt(function, argument)


def _run(
    client: Client, function: Callable[[T], R], arguments: Iterator[T], at_once: int | None
) -> Iterator[tuple[T, R | RunnerError]]:
    """Keep the cluster busy, with no more on it than it can take.

    Args:
        client: A connected client.
        function: The function to run.
        arguments: Its arguments.
        at_once: Most arguments on the cluster; by default as many as its threads can take.
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
        # What runs on a worker cannot be stopped from here: it ends, and what it wrote is complete.
        client.cancel(list(running))


def _result(future: Future[Any]) -> Any:
    """The result of a task.

    Raises:
        WorkerError: it failed for another reason than its argument.
    """
    try:
        # Not `exception()`: a result stays on its worker until it is fetched; if that worker dies, it is made again.
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
    """The answer of every worker; a worker that dies meanwhile is left out.

    Raises:
        WorkerError: traceviz is not installed on one.
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
    """Raise :class:`WorkerError` where a worker has another version than this: its tables could differ."""
    expected = expected or __version__
    for worker, its_version in versions.items():
        if its_version != expected:
            raise WorkerError(
                f"{worker} has traceviz {its_version}; this is {expected}.",
                "Their output could differ.",
                f"Install the same version there: pip install 'traceviz-toolkit[cluster]=={expected}'.",
            )


def _check_reach(client: Client, store: Store) -> None:
    """Raise :class:`WorkerError` where a worker cannot read what is written here: its folder is a different one."""
    mark = f"traceviz-{uuid.uuid4().hex}"
    store.write(mark.encode(), WORK, mark)
    try:
        _check_seen(store.called(), _ask_workers(client, can_read, store, mark))
    finally:
        store.remove(WORK, mark)


def _check_seen(name: str, answers: dict[str, bool]) -> None:
    """Raise :class:`WorkerError` where a worker does not see what is here."""
    for worker, is_seen in answers.items():
        if not is_seen:
            raise WorkerError(
                f"The worker {worker} does not see {name}.",
                "Workers read sources and write the archive themselves.",
                "Use a folder that all machines share, or a URL such as s3://.",
            )
