"""Work that begins before anybody waits for it: compiled functions let Python import modules meanwhile."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")

MOST_THREADS = 8


class Ahead:
    """Does pieces of work in the order in which they are given. Whoever waits for one of them helps.

    One processor is left to the caller, who has other things to do until then.
    """

    def __init__(self) -> None:
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._threads: list[Thread] = []
        self._of_threads: set[Future[Any]] = set()

    def give(self, work: Callable[[int], T], pieces: int) -> Sequence[Future[T]]:
        """The results of ``work`` for the numbers below ``pieces``, as soon as they are there."""
        futures: list[Future[T]] = [Future() for _ in range(pieces)]
        self._waiting.extend((future, _piece(work, number)) for number, future in enumerate(futures))
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        missing = min(len(os.sched_getaffinity(0)) - 1, MOST_THREADS) - len(self._threads)
        # Who ends early does not wait for them.
        started = [Thread(target=self._work, name="traceviz-ahead", daemon=True) for _ in range(min(missing, pieces))]
        for thread in started:
            thread.start()
        self._threads += started
        return futures

    def results(self, futures: Sequence[Future[T]]) -> Iterator[T]:
        """The results in their order. Whoever waits does what nobody has begun."""
        for future in futures:
            while not future.done() and self._do_next(set()):
                pass
            yield future.result()

    def forget(self, futures: Sequence[Future[Any]]) -> None:
        """Begin none of these any more, and wait for those that threads are at.

        What the caller did himself, and a request to end interrupted, nobody finishes.
        """
        begun = [future for future in futures if not future.cancel()]  # all of them first: threads go on
        for future in begun:
            if future in self._of_threads:
                future.exception()

    def close(self) -> None:
        """Begin nothing more, and wait for what was begun."""
        self._waiting.clear()
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while self._do_next(self._of_threads):
            pass

    def _do_next(self, mine: set[Future[Any]]) -> bool:
        """Whether there was something to do, which is among ``mine`` meanwhile."""
        try:
            future, work = self._waiting.popleft()
        except IndexError:
            return False
        mine.add(future)
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(work())
            except BaseException as error:
                if not future.done():  # a request to end comes at any place
                    future.set_exception(error)  # whoever asks for the result gets it
                if not isinstance(error, Exception):  # a request to end concerns whoever helps, too
                    raise
        mine.discard(future)
        return True


def _piece(work: Callable[[int], T], number: int) -> Callable[[], T]:
    return lambda: work(number)
