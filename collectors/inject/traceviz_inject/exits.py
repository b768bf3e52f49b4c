"""Save recordings for any end of the program: at exit, at SIGTERM and SIGHUP, at ``os._exit`` and ``os.exec*``.

An uncaught exception and Ctrl-C pass through ``atexit`` like a normal end. SIGKILL and a crash in native code cannot be
caught: they lose the data that a profiler holds in memory. Therefore it saves as soon as its window is over.
"""

from __future__ import annotations

import atexit
import functools
import os
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from . import hooks, process
from .status import guarded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType
    from typing import Any, NoReturn

SIGNALS = (signal.SIGTERM, signal.SIGHUP)
"""Signals that end a program without a message, unless the program handles them."""


class _Ending:
    """The callbacks of this process, and the signals that call them."""

    is_watching = False
    """True if forks are watched; forks inherit this."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.callbacks: list[Callable[[str], None]] = []
        self.armed: set[int] = set()
        self.busy = 0
        self.waiting_signal = 0

    def run(self, reason: str) -> None:
        """Call every callback, the latest first; only in the process that registered them, or in a fork that trains."""
        if os.getpid() != self.pid and not process.claimed():
            return
        while self.callbacks:
            guarded(self.callbacks.pop())(reason)


_ENDING = _Ending()


def on_end(callback: Callable[[str], None]) -> None:
    """Have ``callback(reason)`` called once when this process ends.

    Call this after the framework was imported: exit handlers run in reverse order, and ours must come before those that
    shut the framework down.
    """
    _ENDING.pid = os.getpid()  # in a fork that trains by itself, callbacks from before the fork are its own
    _ENDING.callbacks.append(callback)
    atexit.register(_ENDING.run, "exit")
    hooks.replace(os, "_exit", _saving)
    for replacing in ("execv", "execve"):  # all others end in one of these
        hooks.replace(os, replacing, _saving_before_replaced)


def cancel(callback: Callable[[str], None]) -> None:
    """Do not call ``callback`` any more, because its data is saved."""
    if callback in _ENDING.callbacks:
        _ENDING.callbacks.remove(callback)
    if not _ENDING.callbacks:
        disarm()


def arm() -> None:
    """Handle the signals that would end the program at once, while there is unsaved data.

    A handler of the program is left alone: it ends the program through ``sys.exit``, or does not end it. Outside the
    main thread, where Python allows no handlers, this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    # Signals are blocked while the process forks: in the child, Python forgets which signals have arrived. A worker
    # that is terminated directly after its fork would survive if our handler got the signal instead of the system.
    if not _ENDING.is_watching and hasattr(os, "register_at_fork"):
        _ENDING.is_watching = True
        os.register_at_fork(before=_masks.hold, after_in_parent=_masks.release, after_in_child=_masks.release)
    for number in SIGNALS:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _on_signal)
            _ENDING.armed.add(number)


def disarm() -> None:
    """Restore the default signal handlers."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in tuple(_ENDING.armed):
        if signal.getsignal(number) is _on_signal:
            signal.signal(number, signal.SIG_DFL)
        _ENDING.armed.discard(number)


class _Masks(threading.local):
    """The signals that each thread had blocked before it forked."""

    def __init__(self) -> None:
        self.before: list[set[int]] = []

    def hold(self) -> None:
        """Block the signals before a fork."""
        self.before.append({int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)})

    def release(self) -> None:
        """Restore the mask after the fork, in both processes."""
        if self.before:
            signal.pthread_sigmask(signal.SIG_SETMASK, self.before.pop())


_masks = _Masks()


def forget() -> None:
    """Reset the state in a forked child: recordings belong to its parent."""
    disarm()
    _ENDING.__init__()  # type: ignore[misc]


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay signals while a profiler starts or stops, because these steps are not reentrant."""
    _ENDING.busy += 1
    try:
        yield
    finally:
        _ENDING.busy -= 1
        if _ENDING.waiting_signal and not _ENDING.busy:
            number, _ENDING.waiting_signal = _ENDING.waiting_signal, 0
            os.kill(os.getpid(), number)  # again, so that the main thread handles it: this may be another one


def _on_signal(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    if _ENDING.busy:
        _ENDING.waiting_signal = number
        return
    # Save, then let the signal have its normal effect: the exit status stays the same.
    _ENDING.run(f"signal {number}")
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _saving(leave: Callable[[int], NoReturn]) -> Callable[[int], NoReturn]:
    """Return ``os._exit`` that saves first in the main thread: a watchdog's call means that the main thread hangs."""

    def _exit(status: int) -> NoReturn:
        if threading.current_thread() is threading.main_thread():
            _ENDING.run("os._exit")
        leave(status)

    return _exit


def _saving_before_replaced(execute: Callable[..., NoReturn]) -> Callable[..., NoReturn]:
    """Return ``os.exec*`` that saves first if there is a recording: it may fail, and the program may continue."""

    @functools.wraps(execute)
    def executed(*arguments: Any, **named: Any) -> NoReturn:
        if _ENDING.armed and threading.current_thread() is threading.main_thread():
            _ENDING.run("os.exec")
        execute(*arguments, **named)

    return executed


process.in_forked_child(forget)
