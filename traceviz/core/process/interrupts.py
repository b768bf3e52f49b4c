"""Signals that ask this process to end: Ctrl-C, SIGTERM, SIGHUP. Only the command line handles them, never a library.

::

    signal --> Stopped in the main thread --> blocks unwind and remove what they wrote --> exit code 128 + signal

:class:`Stopped` is not an ``Exception``, nor a ``KeyboardInterrupt``, because other libraries catch these.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that ask a process to end."""
REPEATED_S = 1.0
"""Seconds in which a signal counts as a repeat: a terminal signals all processes, and a parent its child."""
PATIENCE_S = 10.0
"""Seconds until the process is ended anyway: it is stuck, or something swallowed the request."""
_AGAIN_S = 0.01


class Stopped(BaseException):
    """A signal asked this process to end.

    Args:
        number: The signal. A library that rewords errors, ``type(error)(text)``, gives a text instead. Then the signal
            is
            the one that this process received.

    Attributes:
        number: The signal.
        message: Text that is printed when it has ended.
    """

    def __init__(self, number: int | str) -> None:
        self.number = number if isinstance(number, int) else _requests.number
        self.message = "Interrupted; nothing half-written was left behind."
        super().__init__(number)

    @property
    def exit_code(self) -> int:
        """Exit code as shells define it."""
        return 128 + self.number


class _Requests:
    """Requests to end that this process has received."""

    def __init__(self) -> None:
        self.number = 0
        self.first_s = 0.0
        self.deferring = 0
        self.is_waiting = False
        self.tidy: Callable[[], None] | None = None

    def take(self, number: int, _frame: FrameType | None = None) -> None:
        """Handle a signal: raise, unless that must wait, or the first one is being handled."""
        if self.number and time.monotonic() - self.first_s < REPEATED_S:
            return
        if not self.number:
            _thread.start_new_thread(self._end_at_last, (number,))  # interrupted code may hold locks of `threading`
        self.number, self.first_s = number, time.monotonic()
        if self.deferring:
            self.is_waiting = True
        else:
            raise Stopped(number)

    def _end_at_last(self, number: int) -> None:
        time.sleep(PATIENCE_S)
        if self.tidy is not None:
            self.tidy()
        os._exit(128 + number)

    def take_again(self) -> None:
        """Repeat the request in a moment: it was raised in a place that can only drop it."""
        time.sleep(_AGAIN_S)
        self.first_s = 0.0
        os.kill(os.getpid(), self.number)


_requests = _Requests()


def install(tidy: Callable[[], None] | None = None) -> None:
    """Raise :class:`Stopped` in the main thread on these signals. Signals that were ignored at the start stay ignored.

    Args:
        tidy: Called if the process must be ended although it does not unwind.
    """
    _requests.tidy = tidy
    for number in ENDING:
        if signal.getsignal(number) in {signal.SIG_DFL, signal.default_int_handler}:
            signal.signal(number, _requests.take)
    otherwise = sys.unraisablehook

    def take_unraisable(unraisable: Any) -> None:
        """Repeat a request to end that Python drops, as it drops exceptions in destructors."""
        if isinstance(unraisable.exc_value, Stopped):
            _thread.start_new_thread(_requests.take_again, ())
        else:
            otherwise(unraisable)

    sys.unraisablehook = take_unraisable


def ignore() -> None:
    """Ignore signals from now on: the work is done, and Python takes time to exit."""
    for number in ENDING:
        if signal.getsignal(number) == _requests.take:
            signal.signal(number, signal.SIG_IGN)


def check() -> None:
    """Raise a lost request again. An interrupted import may fail with any error, and so may compiled code.

    Raises:
        Stopped: this process was asked to end.
    """
    if _requests.number:
        raise Stopped(_requests.number)


def follow(exit_code: int) -> None:
    """Raise the request that ended a child process. It can arrive there first if all processes get it.

    Nothing happens if this process does not handle signals, or if the child ended for another reason.

    Raises:
        Stopped: the child was asked to end, and so is this process.
    """
    number = exit_code - 128
    if number in ENDING and signal.getsignal(number) == _requests.take:
        raise Stopped(number)


class uninterrupted:  # noqa: N801 (a block reads: with uninterrupted())
    """A block that is not interrupted: a request to end during it is raised when it ends."""

    def __enter__(self) -> None:
        _requests.deferring += threading.current_thread() is threading.main_thread()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        _requests.deferring -= 1
        if _requests.is_waiting and not _requests.deferring:
            _requests.is_waiting = False
            raise Stopped(_requests.number)
