"""Processes as the kernel lists them: descendants, start times, processor time; sending signals and killing."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

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


_ROUNDS = 20
_HAS_CHILDREN = Path(f"/proc/self/task/{os.getpid()}/children").exists()
"""True if the kernel lists the children of threads (CONFIG_PROC_CHILDREN)."""


def send_to(pid: int, number: int) -> None:
    """Send a signal to a process, if it is still there."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # it has ended, or runs as another user (sudo)
        os.kill(pid, number)


def is_within(pid: int, ancestor: int) -> bool:
    """Return whether process ``pid`` is ``ancestor`` or descends from it."""
    while pid > 1 and pid != ancestor:
        pid = _parent(pid)
    return pid == ancestor


def kill_tree(*roots: int) -> None:
    """Kill processes and their descendants. All are stopped first, so that none starts children during the search."""
    stopped: set[int] = set()
    for _ in range(_ROUNDS):
        running = {*roots, *descendants(*roots)} - stopped
        if not running:
            break
        for process in running:
            send_to(process, signal.SIGSTOP)
        stopped |= running
    for process in stopped:
        send_to(process, signal.SIGKILL)


def descendants(*roots: int) -> set[int]:
    """Return the children of ``roots``, their children, and so on, without the roots.

    The kernel lists the children of each thread. A kernel without these lists has no such file for our own process
    either. Then the parents of all processes on the machine are read, once for all roots.
    """
    if not _HAS_CHILDREN:
        return _descendants_by_parent(*roots)
    found, fresh = set(roots), set(roots)
    while fresh:
        fresh = {child for process in fresh for child in _children(process)} - found
        found |= fresh
    return found - set(roots)


def _children(pid: int) -> set[int]:
    """Return the living children of all threads of a process; none if it has just ended."""
    children: set[int] = set()
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 (five times as fast)
            with contextlib.suppress(OSError):
                children.update(map(int, Path(f"/proc/{pid}/task/{thread}/children").read_bytes().split()))
    return children


def _descendants_by_parent(*roots: int) -> set[int]:
    parents = {process: _parent(process) for process in _all()}
    family = set(roots)
    while children := {child for child, parent in parents.items() if parent in family} - family:
        family |= children
    return family - set(roots)


def foreground(pid: int) -> set[int]:
    """Return a process and its descendants in its process group: a terminal signals them together."""
    group = _group(pid)
    return {pid, *(below for below in descendants(pid) if _group(below) == group)}


def with_variable(name: str, value: str) -> set[int]:
    """Return the processes that were started with this variable in their environment, if it is readable."""
    variable = os.fsencode(f"{name}={value}")
    processes = set()
    for pid in _all():
        with contextlib.suppress(OSError):  # it has just ended, or belongs to another user
            if variable in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                processes.add(pid)
    return processes


def _all() -> Iterator[int]:
    """Return the ids of all processes."""
    return (int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208 (five times as fast)


def _parent(pid: int) -> int:
    """Return the parent of a process; 0 if it has just ended."""
    return int(_stat(pid)[1])


def _group(pid: int) -> int:
    """Return the process group of a process; 0 if it has just ended."""
    return int(_stat(pid)[2])


def begin(pid: int) -> int:
    """Return the start time of a process in ticks since the machine started; 0 if the process has ended."""
    state, begin = _stat(pid)[0], _stat(pid)[19]
    return 0 if state in {"Z", "X"} else int(begin)


def name_of(pid: int) -> str:
    """Return the name that the kernel has for a process; an empty text if it has just ended."""
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def cpu_ticks(pid: int) -> int:
    """Return the processor time of a process and the children that it has waited for."""
    return sum(int(ticks) for ticks in _stat(pid)[11:15])


def _stat(pid: int) -> list[str]:
    """Return the kernel's fields of a process from its state on (proc(5), ``stat``); all 0 if it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    return text.rpartition(") ")[2].split() or ["0"] * 50
