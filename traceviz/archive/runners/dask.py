"""Running one function over many traces on a Dask cluster.

What is shipped is the name of a function and its argument: which trace, and where the archive lies. Workers read the
source and write the archive themselves; what comes back is what the function returns, some rows. Dask schedules,
balances and runs again what was on a worker that died; nothing of that is done here.

What needs a cluster, and what does not:

- ``add`` reads and analyses every byte of every trace: work for a cluster.
- A query may read every row of a table. DuckDB cannot spread a statement over machines, and a statement cannot be cut
  into one per worker by looking at it: only its author knows whether what is counted per part adds up. So the author
  writes both halves, one over a part of the traces and one over the results of all parts
  (:mod:`traceviz.archive.query.shards`).
- The report on a population and most trends read the catalogue only: a row per trace, under a second for thousands.
  There is nothing to divide. A worker next to the archive may do it all
  (:func:`traceviz.archive.runners.choose.run_one`): it spares a far-away client reading the catalogue. So it may with a
  query that is not divided.
- A trend of a figure that the catalogue lacks reads a saved report of every trace: workers read some each.

Workers should have one thread each (``dask worker --nworkers -1 --nthreads 1``): reading a trace takes memory, and one
that crashes takes with it what its worker does beside.
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

import traceviz
from traceviz.archive.runners.base import Results, RunnerError, attempt
from traceviz.archive.storage.store import WORK, Store
from traceviz.errors import TracevizError, UsageError, WorkerError

T = TypeVar("T")
R = TypeVar("R")

PATIENCE_S = 60.0
"""So long may a cluster take to answer, or to start its first worker."""
ANSWER_S = 10.0
"""So long may it take to reach the machine of the scheduler."""
_ADDRESS = "Name the address that `dask scheduler` prints, tcp://HOST:PORT."
_AHEAD = 2
"""Arguments on the cluster for each of its threads: one that is worked on, and one that waits."""


@dataclass(frozen=True, slots=True)
class DaskRunner:
    """Runs on the workers of a Dask cluster.

    Args:
        scheduler: Address of its scheduler (``tcp://host:8786``), or a client that is connected; this one stays open.
        store: The archive, which all workers must be able to reach: that is tried before anything is sent.
        sources: Local files and folders that all workers must see as this machine does.
        patience_s: So long may the cluster take to answer, or to start its first worker.
    """

    scheduler: str | Client
    store: Store | None = None
    sources: Sequence[Path] = ()
    patience_s: float = PATIENCE_S

    def map(self, function: Callable[[T], R], arguments: Iterable[T]) -> Results[T, R]:
        """See :meth:`traceviz.archive.runners.base.Runner.map`.

        What was on a worker that died is run again by Dask, as often as the cluster allows (``allowed-failures``,
        3 times). Where several arguments went down together, each is run once more alone, to find who did it.

        Raises:
            UsageError: the address of its scheduler is none.
            WorkerError: the cluster does not answer, is lost, has no workers, has another version of traceviz, or
                its workers do not see the archive or the sources.
        """
        with self._client() as client:
            self._check(client)
            killed: list[T] = []
            for argument, found in _run(client, function, iter(arguments), None):
                if isinstance(found, RunnerError) and found.code == "worker-died":
                    killed.append(argument)
                    last = found
                else:
                    yield argument, found
            if len(killed) == 1:
                yield killed[0], last
            else:
                yield from _run(client, function, iter(killed), 1)

    @contextlib.contextmanager
    def _client(self) -> Iterator[Client]:
        if isinstance(self.scheduler, Client):
            yield self.scheduler
            return
        _knock(self.scheduler, min(self.patience_s, ANSWER_S))
        client, why = _connected(self.scheduler, self.patience_s)
        if client is None:
            gc.collect()  # what is left of it would be looked for when Python ends, and wait for two minutes
            raise _silent(self.scheduler, why)
        with client:
            yield client

    def _check(self, client: Client) -> None:
        """That there are workers, with this traceviz, and that they see what they must.

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
        _check_versions(_asked(client, version))
        if self.store is not None:
            _check_reach(client, self.store)
        for source in filter(Path.exists, self.sources):  # others are patterns, or said to be missing by who reads
            _check_see(str(source), _asked(client, is_there, str(source)))


def _knock(address: str, seconds: float) -> None:
    """See whether anybody listens: Dask would try again and again where nobody does.

    Raises:
        UsageError: this is no address.
        WorkerError: nobody listens there.
    """
    if address.startswith("inproc://"):  # of a cluster within this process
        return
    try:
        found = urlsplit(address)
        host, port = found.hostname, found.port
    except ValueError:
        host = port = None
    if not host or not port:
        raise UsageError(f"{address!r} is no address of a Dask scheduler.", fix=_ADDRESS)
    try:
        socket.create_connection((host, port), seconds).close()
    except OSError as error:
        raise _silent(address, str(error)) from error


def _connected(address: str, seconds: float) -> tuple[Client | None, str]:
    """A client, or why there is none."""
    try:
        return Client(address, timeout=seconds, set_as_default=False), ""
    except (OSError, ValueError, MemoryError) as error:  # of who speaks another protocol, any length may be read
        return None, str(error)


def _silent(address: str, why: str) -> WorkerError:
    return WorkerError(f"The Dask scheduler {address} does not answer.", why, _ADDRESS)


def version() -> str:
    """Version of traceviz where this runs."""
    return traceviz.__version__


def is_there(path: str) -> bool:
    """Whether there is such a file or folder where this runs."""
    return Path(path).exists()


def reads(store: Store, mark: str) -> bool:
    """Whether a file of the archive can be read where this runs."""
    try:
        return store.read(WORK, mark) == mark.encode()
    except (FileNotFoundError, TracevizError):
        return False


def work(function: Callable[[T], R], argument: T, wanted: str) -> R | RunnerError:
    """Run the function, on a worker. Workers may join late: each says whether it is of the version that is wanted.

    Raises:
        WorkerError: it is not.
    """
    _check_versions({"A worker that joined late": version()}, wanted)
    return attempt(function, argument)


def _run(
    client: Client, function: Callable[[T], R], arguments: Iterator[T], at_once: int | None
) -> Iterator[tuple[T, R | RunnerError]]:
    """Keep the cluster busy, with no more on it than it can take.

    Args:
        client: Connected.
        function: What to run.
        arguments: On what.
        at_once: How many at most; by default as the workers have threads.
    """
    flying: dict[Future[Any], T] = {}
    done = as_completed(loop=client.loop)

    def fill() -> None:
        room = (at_once or _AHEAD * max(sum(client.nthreads().values()), 1)) - len(flying)
        for argument in islice(arguments, max(room, 0)):
            future = client.submit(work, function, argument, traceviz.__version__, pure=False)
            flying[future] = argument
            done.add(future)

    try:
        fill()
        while flying:
            future = next(done)
            found = _result(future)
            argument = flying.pop(future)
            future.release()
            fill()
            yield argument, found
    finally:
        # What runs on a worker cannot be stopped from here: it ends, and what it wrote is complete.
        client.cancel(list(flying))


def _result(future: Future[Any]) -> Any:
    """What came of a task.

    Raises:
        WorkerError: it is no fault of the argument.
    """
    try:
        # Not `exception()`: what is done lies on its worker until it is fetched, and is done again where that one died.
        return future.result()
    except KilledWorker as error:
        last = error.last_worker.address
        return RunnerError("worker-died", f"Every worker that worked on it died, the last at {last}.")
    except CancelledError as error:
        raise WorkerError("The Dask scheduler is lost.", fix="Run it again: what was added stays.") from error
    except ImportError as error:
        raise _not_installed(error) from error


def _asked(client: Client, function: Callable[..., R], *arguments: object) -> dict[str, R]:
    """What every worker answers; one that dies while it is asked is left out.

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
        f"Install it there: pip install 'traceviz-toolkit[cluster]=={traceviz.__version__}'.",
    )


def _check_versions(found: dict[str, str], wanted: str | None = None) -> None:
    """Raise :class:`WorkerError` where a worker has not the version that is wanted: tables would differ."""
    wanted = wanted or traceviz.__version__
    for worker, one in found.items():
        if one != wanted:
            raise WorkerError(
                f"{worker} has traceviz {one}, and this is {wanted}.",
                "What they write could differ.",
                f"Install the same there: pip install 'traceviz-toolkit[cluster]=={wanted}'.",
            )


def _check_reach(client: Client, store: Store) -> None:
    """Raise :class:`WorkerError` where a worker cannot read what is written here: its folder is another."""
    mark = f"traceviz-{uuid.uuid4().hex}"
    store.write(mark.encode(), WORK, mark)
    try:
        _check_see(store.called(), _asked(client, reads, store, mark))
    finally:
        store.remove(WORK, mark)


def _check_see(place: str, answers: dict[str, bool]) -> None:
    """Raise :class:`WorkerError` where a worker does not see what is here."""
    for worker, found in answers.items():
        if not found:
            raise WorkerError(
                f"The worker {worker} does not see {place}.",
                "Workers read sources and write the archive themselves.",
                "Use a folder that all machines share, or a URL such as s3://.",
            )
