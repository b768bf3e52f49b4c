"""The signals of a recording: blocking them, and finding the sender of the next one."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from traceviz.collectors.program.processes import is_within

ENDING = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
"""Signals that ask the program, and with it the recording, to end."""
PASSED_ON = frozenset({signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT, signal.SIGWINCH})
"""Signals that the program may use for itself, such as a scheduler's warning before it ends a job."""
OF_JOBS = frozenset({signal.SIGHUP, signal.SIGCONT, signal.SIGSTOP})
"""Signals that a shell sends to all processes of a job."""

_WATCHED = ENDING | PASSED_ON | {signal.SIGTSTP, signal.SIGCHLD}
_HARMLESS = frozenset({signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH})
_STOPPING = frozenset({signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU})
DEADLY = frozenset(signal.Signals) - _HARMLESS - _STOPPING
"""Signals that end a program that does not handle them."""

_SI_KERNEL = 0x80
"""``si_code`` of a signal that the terminal sent."""
_LOOK_AGAIN_S = 0.25
"""Delay until the end of the program is noticed if another thread of this process takes the signal."""

Sender = Literal["terminal", "program", "other"]
"""The sender of a signal: the terminal, to its whole foreground group; the program or a descendant; another process."""


@dataclass(frozen=True, slots=True)
class Watch:
    """The signals that we wait for, and those that were blocked before: the program inherits the latter."""

    signals: frozenset[signal.Signals]
    inherited: frozenset[int]


@contextlib.contextmanager
def watched_signals() -> Iterator[Watch]:
    """Block the signals that :func:`supervise` waits for, until the run is complete.

    ``nohup`` and shells ignore signals for the programs that they start. The program inherits that, and we pass on
    none.
    """
    watched = frozenset(number for number in _WATCHED if signal.getsignal(number) != signal.SIG_IGN)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    try:
        yield Watch(watched, frozenset(before))
    finally:
        while signal.sigtimedwait(watched, 0) is not None:
            pass  # signals that came while the run ended were meant for it
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def ending_by_request(watch: Watch) -> Iterator[None]:
    """Let signals of :data:`ENDING` interrupt a long block after the program's end with KeyboardInterrupt."""
    numbers = ENDING if threading.current_thread() is threading.main_thread() else frozenset[signal.Signals]()
    before = {number: signal.getsignal(number) for number in numbers}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, watch.signals - watch.inherited)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, watch.signals)
        for number, handler in before.items():
            signal.signal(number, handler)


def next_signal(watched: frozenset[signal.Signals], started: int) -> tuple[int, Sender]:
    """Return the next signal within a short time (0 for none), and its sender."""
    try:
        received = signal.sigtimedwait(watched, _LOOK_AGAIN_S)
    except KeyboardInterrupt:  # if this process has other threads, one of them may have taken the signal
        return signal.SIGINT, "terminal"
    if received is None or received.si_signo not in watched:  # after stop and continue, Python may return nonsense
        return 0, "other"
    if received.si_code == _SI_KERNEL:
        return received.si_signo, "terminal"
    return received.si_signo, "program" if is_within(received.si_pid, started) else "other"
