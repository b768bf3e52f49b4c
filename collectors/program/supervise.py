"""Running the program in the foreground, passing signals on to it, until it ends.

::

    Ctrl-C in a terminal ----> the whole foreground group: the program has it already, and we wait
    a process signals us ----> we pass it on to the program, and wait
    the program signals us --> it meant its own group: nothing
    a second Ctrl-C ---------> we kill the program and its descendants

No timing decides between these cases: the kernel reports the sender of a signal. It does not report whether a process
signalled us alone or our whole group; ``timeout`` does both. The program then gets the signal twice, which is better
than never.

The program stays in our process group: a group of its own could not read the terminal. If it were made the foreground
group, the rest of a pipeline (``traceviz collect ... | less``) would be in the background. Its wrapper may need a
session of its own (nsys does). No signal of the terminal reaches that session, so we pass them on to the program.

The run is over when both the program has ended and its wrapper has written its recording.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from traceviz.collectors.base import Wrapped
from traceviz.collectors.program.processes import (
    DEADLY,
    ENDING,
    OF_JOBS,
    PASSED_ON,
    Sender,
    Watch,
    begin,
    cpu_ticks,
    descendants,
    foreground,
    kill_tree,
    name_of,
    next_signal,
    send_to,
)
from traceviz.collectors.program.start import Started

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
STALLED_S = 10.0
"""Limit of inactivity of the wrapper after the program's end; active work may take any time. Then the wrapper is asked
to end, and killed if it stays inactive for half as long again."""
_ASLEEP = 0.05
"""Share of a core that a waiting wrapper may use: nsys's agent polls several times a second."""
_WHILE_S = 5.0
"""Shortest time over which that share is computed."""
_LOOKS = 10
"""Number of checks before the wrapper counts as idle: each check reads all its processes."""
_TRICKLE_B_PER_S = 1 << 14
"""Write rate of an idle wrapper: the agent keeps a log of itself."""
_FILE_TIME_NS = 20_000_000
"""File times are those of the kernel's last tick: at most this much too early."""
KILL_AFTER_S = 10.0
"""Time that a program has to end by itself after its time limit."""
_CODE_S = 2.0
"""Time within which the exit code of a program that has vanished is written, if at all."""


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of the program.

    Args:
        status: As of ``os.waitstatus_to_exitcode``: the exit code, or minus the signal.
        interrupted: True if a signal asked for the end.
        killed: True if a second signal did, and we killed the program.
        timed_out: True if we ended it because its time was over.
        hurried: True if a second request ended the wrapper before it had written its recording.
        stalled: Names of the wrapper's processes that were idle after the program had ended, and were ended.
        lost: The signal that ended the wrapper while the program kept running, if any.
        started_unix_ns: When it was started.
        ended_unix_ns: When it ended; the wrapper may have run on.
        duration_ns: Time in between.
        usage: ``user_ns``, ``system_ns`` and ``max_rss_bytes`` of the program and the children it waited for.
    """

    status: int
    interrupted: bool
    killed: bool
    timed_out: bool
    hurried: bool
    stalled: tuple[str, ...]
    lost: int | None
    started_unix_ns: int
    ended_unix_ns: int
    duration_ns: int
    usage: Mapping[str, int]

    @property
    def code(self) -> int:
        """The exit code as a shell reports it: 128 + n for signal n."""
        return self.status if self.status >= 0 else 128 - self.status


def _no_program() -> None:
    """Return nothing, because there is no wrapper."""


@dataclass(frozen=True, slots=True)
class Wrapper:
    """The wrapper that was started instead of the program, if any.

    Args:
        program: Returns the program once the wrapper has started it.
        written: Returns how many bytes the wrapper has written so far.
        own_session: True if it is started in a session of its own.
    """

    program: Callable[[], Wrapped | None] = _no_program
    written: Callable[[], int] = int
    own_session: bool = False


def supervise(
    started: Started,
    watch: Watch,
    wrapper: Wrapper | None = None,
    limit_s: float | None = None,
    program_ended: Callable[[], None] = _no_program,
) -> Ending:
    """Wait until the program ends, and pass signals on to it; call it inside :func:`watched_signals`.

    It returns once the program has ended, even if processes of the program still run. With a wrapper, it returns once
    both have ended.

    Args:
        started: The process that was started.
        watch: The signals that are blocked.
        wrapper: The wrapper that was started instead of the program, if any.
        limit_s: Time limit of the program. Then it is asked to end; later it is killed with its descendants.
        program_ended: Called once the program has ended, if its wrapper still runs.
    """
    program = _Program(started.pid, wrapper or Wrapper())
    limit = _TimeLimit(program, started.monotonic_ns, limit_s)
    is_waiting = False
    while not program.has_ended():
        limit.enforce()
        if program.has_left_code and not is_waiting:
            is_waiting = True
            program_ended()
        number, sender = next_signal(watch.signals, started.pid)
        if number in ENDING:
            program.ask_to_end(number, sender)
        elif number == signal.SIGTSTP:
            program.pause(sender)
        elif number in PASSED_ON and (sender == "other" or program.is_apart):
            program.send(number, sender)
    limit.end_what_is_left()
    began_unix_ns, duration_ns = program.ran(started)
    return Ending(
        status=program.status,
        interrupted=program.interrupted,
        killed=program.killed and not program.has_left_code,
        hurried=program.killed,
        timed_out=limit.is_over,
        stalled=program.stalled,
        lost=program.lost,
        started_unix_ns=began_unix_ns,
        ended_unix_ns=began_unix_ns + duration_ns,
        duration_ns=duration_ns,
        usage=program.usage,
    )


class _TimeLimit:
    """Time limit of the program, and its processes at that time, which are killed after its end.

    ::

        limit ----> SIGTERM to its foreground group, as from ``timeout``: profilers in it save their data
        10 s later, or once it has ended ----> SIGKILL to all that still run
    """

    def __init__(self, program: _Program, began_ns: int, limit_s: float | None) -> None:
        self._program = program
        self._end_ns = None if limit_s is None else began_ns + round(limit_s * 1e9)
        self._left: dict[int, int] = {}
        self.is_over = False

    def enforce(self) -> None:
        """Ask the program to end, or kill it, if it is time to; called repeatedly."""
        if self._end_ns is None or time.monotonic_ns() < self._end_ns:
            return
        if self.is_over:
            self._program.kill()
            return
        self._left = {pid: begin(pid) for pid in self._program.tree()}
        self.is_over = bool(self._left)  # else it has ended, and only its wrapper runs
        self._end_ns += round(KILL_AFTER_S * 1e9)
        self._program.send_to_foreground(signal.SIGTERM)

    def end_what_is_left(self) -> None:
        """Kill the remaining processes of a program whose time was over."""
        kill_tree(*(pid for pid, began in self._left.items() if began and begin(pid) == began))


@dataclass(frozen=True, slots=True)
class _Work:
    """Processor time that the wrapper had used, and bytes that it had written, at one time."""

    at_s: float
    ticks: int
    written: int

    def is_more_than(self, before: _Work) -> bool:
        seconds = max(self.at_s - before.at_s, _WHILE_S)
        has_computed = self.ticks - before.ticks > _ASLEEP * seconds * _TICKS_PER_S
        return has_computed or self.written - before.written > _TRICKLE_B_PER_S * seconds


class _Program:
    """State of the program and its wrapper: whether they have ended, and how signals reach the program.

    Args:
        started: Process id of the process that was started.
        wrapper: Its wrapper, if it is not the program itself.
    """

    def __init__(self, started: int, wrapper: Wrapper) -> None:
        self._started = started
        self._wrapper = wrapper
        self._known: tuple[int, int] | None = None
        self._returned: int | None = None
        self._by_hand = 0
        self._vanished_s: float | None = None
        self._worked: _Work | None = None
        self._next_look_s = 0.0
        self.is_apart = wrapper.own_session
        self.interrupted = False
        self.killed = False
        self.stalled: tuple[str, ...] = ()
        self.lost: int | None = None
        self._used: Mapping[str, int] = {}

    @property
    def usage(self) -> Mapping[str, int]:
        """Resources that the program and its children used; without a wrapped program, those of the started process."""
        wrapped = self._wrapper.program()
        return self._used if wrapped is None else wrapped.usage

    @property
    def has_left_code(self) -> bool:
        """True if the wrapped program has ended, and its exit code is known."""
        wrapped = self._wrapper.program()
        return wrapped is not None and wrapped.code is not None

    @property
    def status(self) -> int:
        """The program's exit code, or minus the signal that ended it."""
        wrapped, returned = self._wrapper.program(), self._returned
        assert returned is not None
        if wrapped is None or (self.killed and wrapped.code is None):
            return returned
        code = returned if wrapped.code is None else wrapped.code
        return 128 - code if code - 128 in DEADLY else code

    def ran(self, started: Started) -> tuple[int, int]:
        """Return the start and the duration of the ended program; those of the wrapper if they are unknown.

        They are unknown if the clock was set during the run, or if the files are on a server with another clock.
        """
        whole_ns, wrapped = time.monotonic_ns() - started.monotonic_ns, self._wrapper.program()
        if wrapped is not None and wrapped.began_unix_ns is not None and wrapped.ended_unix_ns is not None:
            began_ns, ended_ns = (moment - started.unix_ns for moment in (wrapped.began_unix_ns, wrapped.ended_unix_ns))
            if -_FILE_TIME_NS <= began_ns <= ended_ns <= whole_ns:
                return wrapped.began_unix_ns, ended_ns - began_ns
        return started.unix_ns, whole_ns

    def has_ended(self) -> bool:
        """Return whether the run is over; called repeatedly."""
        wrapped = self._look_at_program()
        if self._returned is None:
            pid, status, used = os.wait4(self._started, os.WNOHANG)
            if pid:
                self._returned = os.waitstatus_to_exitcode(status)
                if self._returned < 0 and not self.killed and self._is_there():
                    self.lost = -self._returned
                self._used = {
                    "user_ns": round(used.ru_utime * 1e9),
                    "system_ns": round(used.ru_stime * 1e9),
                    "max_rss_bytes": used.ru_maxrss * 1024,
                }
        if wrapped is None or self.killed:
            return self._returned is not None
        gone = wrapped.code is not None or not self._is_there()
        if self._returned is None:
            if gone and self._is_idle(STALLED_S / 2 if self.stalled else STALLED_S):
                # The wrapper is idle. nsys still writes its report when it is asked to end.
                if self.stalled:
                    kill_tree(self._started)
                else:
                    left = (self._started, *sorted(descendants(self._started)))
                    self.stalled = tuple(name for process in left if (name := name_of(process))) or ("unknown",)
                    send_to(self._started, signal.SIGTERM)
                self._worked = None
            return False
        if gone and self._vanished_s is None:
            self._vanished_s = time.monotonic()
        is_code_lost = self._vanished_s is not None and time.monotonic() - self._vanished_s > _CODE_S
        return wrapped.code is not None or (gone and is_code_lost)

    def _look_at_program(self) -> Wrapped | None:
        wrapped = self._wrapper.program()
        if wrapped is not None and self._known is None:
            self._known = wrapped.pid, begin(wrapped.pid)
        return wrapped

    def _is_idle(self, for_s: float) -> bool:
        """Return whether the wrapper has hardly written or computed anything for so long."""
        now_s = time.monotonic()
        if now_s < self._next_look_s:
            return False
        self._next_look_s = now_s + for_s / _LOOKS
        ticks = sum(cpu_ticks(pid) for pid in (self._started, *descendants(self._started)))
        now = _Work(now_s, ticks, self._wrapper.written())
        if self._worked is None or now.is_more_than(self._worked):
            self._worked = now
        return now.at_s - self._worked.at_s > for_s

    def ask_to_end(self, number: int, sender: Sender) -> None:
        """Pass on a request to end, unless the program has it already; a second Ctrl-C kills.

        A second request of any kind also kills once the program has ended and only the wrapper is left.
        """
        if sender == "program":
            return
        again, self.interrupted = self.interrupted, True
        self._by_hand += number == signal.SIGINT and sender == "terminal"
        # A terminal that closes signals only the leader of its session, and the others once the leader has ended.
        alone = sender == "other" or self.is_apart or (number == signal.SIGHUP and os.getsid(0) == os.getpid())
        if self._by_hand > 1 or (again and not self._pid()):
            self.killed = True
            kill_tree(*self._pid(), *((self._started,) if self._returned is None else ()))
        elif alone:
            self.send(number, sender)

    def pause(self, sender: Sender) -> None:
        """Stop ourselves and the program, as Ctrl-Z does; SIGCONT goes to the program when we are continued."""
        if self.is_apart:
            self.send(signal.SIGSTOP, sender)  # the system allows no other stop there: no shell could continue it
        elif sender == "other":
            self.send(signal.SIGTSTP, sender)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTSTP})
        os.kill(os.getpid(), signal.SIGTSTP)  # unlike SIGSTOP, it stops nothing that no shell could continue
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTSTP})

    def send(self, number: int, sender: Sender) -> None:
        """Send a signal to the program itself: its wrapper may end upon signals that the program would handle.

        If the terminal does not reach the program's group, the whole group gets the signal, as it would have from the
        terminal:
        a shell that alone is asked to end waits for the program that it runs.
        """
        to_all = self.is_apart and (sender == "terminal" or number in OF_JOBS)
        for pid in self._pid():
            for receiver in foreground(pid) if to_all else (pid,):
                send_to(receiver, number)

    def send_to_foreground(self, number: int) -> None:
        """Send a signal to the program and its descendants in its process group."""
        for pid in self._pid():
            for receiver in foreground(pid):
                send_to(receiver, number)

    def kill(self) -> None:
        """Kill the program and its descendants; its wrapper may still write its recording."""
        kill_tree(*self._pid())

    def tree(self) -> set[int]:
        """Return process ids of the program and its descendants; none once it has ended."""
        roots = self._pid()
        return {*roots, *descendants(*roots)}

    def _pid(self) -> tuple[int, ...]:
        """Return the program's process id; none once it has ended, even if the wrapper still writes."""
        self._look_at_program()  # it may have started since
        if self._known is None:
            return (self._started,) if self._returned is None else ()
        return (self._known[0],) if self._is_there() else ()

    def _is_there(self) -> bool:
        """Return whether the wrapped program runs, and its process id has not been reused."""
        return self._known is not None and self._known[1] > 0 and begin(self._known[0]) == self._known[1]
