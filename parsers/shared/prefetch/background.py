"""A result that another thread computes while its user does something else: what is compiled lets both run.

::

    this thread     |-- lay out --|      |-- all the rest --|
    the other       |-- form groups ----|
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import Generic, TypeVar

Result = TypeVar("Result")


class Meanwhile(Generic[Result]):
    """What ``compute`` gives, once.

    Args:
        compute: Called in another thread at once; in that of the first user where there is no other, or no core for it.
        beside: Whether another thread is worth it. It is not where little is computed, or where memory is short: two
            computations hold more than one.
    """

    def __init__(self, compute: Callable[[], Result], *, beside: bool) -> None:
        self._compute = compute
        self._future: Future[Result] = Future()
        self._is_left = not (beside and _cores() > 1 and self._started())

    def result(self) -> Result:
        """The result, as soon as it is there. Raises what ``compute`` raises. For one thread only."""
        if self._is_left:
            self._is_left = False
            self._run()
        return self._future.result()

    def _started(self) -> bool:
        try:
            Thread(target=self._run, name="traceviz-meanwhile", daemon=True).start()
        except RuntimeError:  # under a limit of threads or of addresses
            return False
        return True

    def _run(self) -> None:
        try:
            self._future.set_result(self._compute())
        except BaseException as error:  # noqa: BLE001 (it is raised in the thread that asks for the result)
            self._future.set_exception(error)
        finally:
            del self._compute  # and what it refers to


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
