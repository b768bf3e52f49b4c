"""Save what was recorded however the program ends: at exit, at SIGTERM and SIGHUP, at ``os._exit`` and ``os.exec*``.

An uncaught exception and Ctrl-C pass through ``atexit`` like a normal end. SIGKILL and a crash in native code cannot be
caught: they lose what a profiler holds in memory, and so it saves as soon as its window is over.
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
"""Signals that end a program without a word, unless somebody handles them."""


class _Ending:
    """The callbacks of this process, and the signals that they stand for."""

    is_watching = False
    """Whether forks are watched: inherited by them."""

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

    Call this after the framework was imported: exit handlers run backwards, and ours must come before those with which
    the framework takes itself apart.
    """
    _ENDING.pid = os.getpid()  # in a fork that trains by itself, callbacks from before the fork are its own
    _ENDING.callbacks.append(callback)
    atexit.register(_ENDING.run, "exit")
    hooks.replace(os, "_exit", _saving)
    for replacing in ("execv", "execve"):  # all others end in one of these
        hooks.replace(os, replacing, _saving_before_replaced)


def cancel(callback: Callable[[str], None]) -> None:
    """Do not call ``callback`` any more: nothing is left to save."""
    if callback in _ENDING.callbacks:
        _ENDING.callbacks.remove(callback)
    if not _ENDING.callbacks:
        disarm()


def arm() -> None:
    """Handle the signals that would end the program at once, as long as something would be lost.

    A handler of the program is left alone: it ends the program through ``sys.exit``, or does not mean to end it.
    Nothing happens outside the main thread, where Python allows no handlers.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    _watch_forks()
    for number in SIGNALS:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _on_signal)
            _ENDING.armed.add(number)


def disarm() -> None:
    """Leave the signals as they were."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in tuple(_ENDING.armed):
        if signal.getsignal(number) is _on_signal:
            signal.signal(number, signal.SIG_DFL)
        _ENDING.armed.discard(number)


def _watch_forks() -> None:
    """Hold signals back while the process forks.

    Python forgets, in the child, which signals have arrived: a worker that is terminated just after it was forked would
    live on, if our handler instead of the system took the signal.
    """
    if not _ENDING.is_watching and hasattr(os, "register_at_fork"):
        _ENDING.is_watching = True
        os.register_at_fork(before=_masks.hold, after_in_parent=_masks.release, after_in_child=_masks.release)


class _Masks(threading.local):
    """The signals that each thread had blocked before it forked."""

    def __init__(self) -> None:
        self.before: list[set[int]] = []

    def hold(self) -> None:
        """Before a fork."""
        self.before.append({int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)})

    def release(self) -> None:
        """After it, in both processes."""
        if self.before:
            signal.pthread_sigmask(signal.SIG_SETMASK, self.before.pop())


_masks = _Masks()


def forget() -> None:
    """Start afresh: this is a forked child, and what is recorded belongs to the process above it."""
    disarm()
    _ENDING.__init__()  # type: ignore[misc]


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold back a signal that arrives while a profiler starts or stops: it may not be entered twice."""
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
    # Save, then let the signal do what it would have done without us: the exit status stays what it was.
    _ENDING.run(f"signal {number}")
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _saving(leave: Callable[[int], NoReturn]) -> Callable[[int], NoReturn]:
    """``os._exit`` that saves first, when the main thread calls it: a watchdog's call means that that thread hangs."""

    def _exit(status: int) -> NoReturn:
        if threading.current_thread() is threading.main_thread():
            _ENDING.run("os._exit")
        leave(status)

    return _exit


def _saving_before_replaced(execute: Callable[..., NoReturn]) -> Callable[..., NoReturn]:
    """``os.exec*`` that saves first, if something is being recorded: it may fail, and the program go on."""

    @functools.wraps(execute)
    def executed(*arguments: Any, **named: Any) -> NoReturn:
        if _ENDING.armed and threading.current_thread() is threading.main_thread():
            _ENDING.run("os.exec")
        execute(*arguments, **named)

    return executed


process.in_forked_child(forget)
