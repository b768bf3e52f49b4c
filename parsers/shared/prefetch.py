"""Prefetch: compiled work runs in background threads while the caller does something else.

Compiled functions let other Python threads run. So a large file is decoded while the caller imports modules, and the
next block is read while the caller scans the one before it::

    caller        |-- import ---|-- decode 4 --|          caller        |- scan 1 -|- scan 2 -|
    a worker      |- decode 1 -|- 2 -|- 3 -|- 5 -|        a worker      |- read 2 -|- read 3 -|

A caller that waits for a result runs queued work itself. So all work is done, in the order in which it was submitted,
even if no thread can be started.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing
from functools import partial
from threading import Lock, Thread
from typing import Any, TypeVar

from traceviz.core.process.cores import usable_cores

S = TypeVar("S")
T = TypeVar("T")

MOST_WORKERS = 8
"""Maximum number of threads: more would find no work, because the caller that takes the results is slower."""


class Prefetch:
    """A queue of work for background threads, which end when it is empty.

    Args:
        workers: Maximum number of threads; ``None`` for one on each core except the caller's.
    """

    def __init__(self, workers: int | None = None) -> None:
        self._workers = min(usable_cores() - 1, MOST_WORKERS) if workers is None else workers
        self._lock = Lock()
        self._queue: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._active = 0
        self._threads: list[Thread] = []
        self._in_threads: set[Future[Any]] = set()

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Queue ``work``, and return its future result, for :meth:`result`."""
        future: Future[T] = Future()
        with self._lock:
            self._queue.append((future, work))
            starts = self._active < self._workers
            self._active += starts
        if starts:
            # The threads of an executor would keep a process alive that was asked to end.
            thread = Thread(target=self._run_queue, name="traceviz-prefetch", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # under a limit of threads or of addresses: the caller does the work
                self._workers = 0
            else:
                self._threads = [*filter(Thread.is_alive, self._threads), thread]
        return future

    def result(self, future: Future[T]) -> T:
        """Return a result of this queue, or raise the error of its work. Runs queued work until the result is there."""
        while not future.done() and (queued := self._take()):
            error = _run(*queued)
            if error is not None and not isinstance(error, Exception):  # an interrupt of this thread
                raise error
        return future.result()

    def cancel(self, futures: Sequence[Future[Any]]) -> None:
        """Start none of these, and wait for those that run in threads.

        Work that an interrupt stopped in the calling thread stays unfinished.
        """
        started = [future for future in futures if not future.cancel()]  # cancel all first: threads continue
        for future in started:
            if future in self._in_threads:
                future.exception()

    def close(self) -> None:
        """Start no more work, and wait for running work."""
        with self._lock:
            self._queue.clear()
        for thread in self._threads:
            thread.join()

    def _take(self, *, ends: bool = False) -> tuple[Future[Any], Callable[[], Any]] | None:
        """Remove and return the first work of the queue. If there is none, a thread with ``ends`` is counted out."""
        with self._lock:
            if self._queue:
                return self._queue.popleft()
            self._active -= ends
            return None

    def _run_queue(self) -> None:
        while queued := self._take(ends=True):
            self._in_threads.add(queued[0])
            _run(*queued)
            self._in_threads.discard(queued[0])
            del queued  # release its references, too


def _run(future: Future[Any], work: Callable[[], Any]) -> BaseException | None:
    """Set the result of ``work``, unless it was cancelled. Return what it raised."""
    if not future.set_running_or_notify_cancel():
        return None
    try:
        future.set_result(work())
    except BaseException as error:  # noqa: BLE001 (it is raised in the thread that asks for the result)
        if not future.done():  # an interrupt comes at any place
            future.set_exception(error)
        return error
    return None


def run_early(compute: Callable[[], T], *, in_background: bool) -> Callable[[], T]:
    """Compute a result in a background thread, and return a function that waits for it.

    Args:
        compute: Called once: in the thread, or by the first caller that waits if there is no thread or second core.
        in_background: Start now, in a thread. Leave false if little is computed, or if memory is short: two
            computations hold more than one.
    """
    prefetch = Prefetch(int(in_background and usable_cores() > 1))
    return partial(prefetch.result, prefetch.submit(compute))


def read_early(blocks: Iterator[bytes], size: int) -> Iterator[bytes]:
    """Yield ``blocks``. Each is read while the caller works on the one before it; errors are raised in their turn.

    Args:
        blocks: The text, in blocks that are not empty.
        size: Length of a full block. A text of one block is read without another thread.
    """
    block = next(blocks, b"")
    with closing(Prefetch(int(len(block) >= size))) as prefetch:
        while block:
            # One block at a time: more would take memory, and save no time.
            following = prefetch.submit(partial(next, blocks, b""))
            yield block
            block = prefetch.result(following)


def map_early(function: Callable[[S], T], items: Sequence[S]) -> Iterator[T]:
    """Yield ``function(item)`` in the order of ``items``, computed by threads. Few results are in memory at a time."""
    workers = min(usable_cores(), MOST_WORKERS, len(items)) - 1
    pending: deque[Future[T]] = deque()
    with closing(Prefetch(workers)) as prefetch:
        for item in items:
            pending.append(prefetch.submit(partial(function, item)))
            if len(pending) > workers + 1:
                yield prefetch.result(pending.popleft())
        while pending:
            yield prefetch.result(pending.popleft())
