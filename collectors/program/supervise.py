"""Running the program: in front of the user, with the signals that are meant for it, until it ends.

::

    Ctrl-C in a terminal ----> the whole foreground group: the program has it already, and we wait
    a process signals us ----> we pass it on to the program, and wait
    the program signals us --> it meant its own group: nothing
    a second Ctrl-C ---------> we kill the program and its descendants

No clock decides which of these it was: the kernel says who sent a signal. It does not say whether a process signalled
us alone or our whole group, as ``timeout`` does both; the program then gets it twice, which is better than never.

The program stays in our process group: a group of its own could not read the terminal, and one made the foreground
group would put the rest of a pipeline (``traceviz collect ... | less``) into the background. What wraps it may need a
session of its own (nsys does): no signal of the terminal reaches it there, and we pass them on to the program.

The run is over when the program is, and what wraps it has written down what it recorded: either may be late.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from traceviz.collectors.base import Wrapped
from traceviz.collectors.program.processes import (
    begin,
    cpu_ticks,
    descendants,
    foreground,
    is_within,
    kill_tree,
    send_to,
)
from traceviz.errors import CommandNotFoundError, NotExecutableError, OutputError

ENDING = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
"""Signals that ask the program to end, and the recording with it."""
PASSED_ON = frozenset({signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT, signal.SIGWINCH})
"""Signals that the program may use for itself (a scheduler's warning before it ends a job, for example)."""
_OF_JOBS = frozenset({signal.SIGHUP, signal.SIGCONT, signal.SIGSTOP})
"""Signals that a shell sends to all processes of a job."""

_WATCHED = ENDING | PASSED_ON | {signal.SIGTSTP, signal.SIGCHLD}
_HARMLESS = frozenset({signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH})
_STOPPING = frozenset({signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU})
DEADLY = frozenset(signal.Signals) - _HARMLESS - _STOPPING
"""Signals that end a program that does not handle them."""

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_SI_KERNEL = 0x80
"""``si_code`` of a signal that the terminal sent."""
_LOOK_AGAIN_S = 0.25
"""Where another thread of this process takes the notice that the program ended, it is seen this much later."""
STALLED_S = 60.0
"""What wraps a program that has ended may work for as long as it likes, but not do nothing for so long."""
_ASLEEP = 0.05
"""Share of a core that what waits may use: nsys's agent looks several times a second whether there is news."""
_WHILE_S = 5.0
"""The least time over which that is a share."""
_TRICKLE_B_PER_S = 1 << 14
"""What it may write all the same: the agent writes down its own life."""
_FILE_TIME_NS = 20_000_000
"""Times of files are those of the kernel's last tick: they are this much too early at the most."""
_CODE_S = 2.0
"""The exit code of a program that has vanished is written down so much later, if at all."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How the program ended.

    Args:
        status: What ``os.waitstatus_to_exitcode`` says: the exit code, or minus the signal.
        interrupted: Whether a signal asked for the end.
        killed: Whether a second one did, upon which we killed it.
        stalled: Whether what wraps the program did nothing any more once that had ended, upon which we ended it.
        lost: The signal that ended what wraps the program while that went on, if one did.
        started_unix_ns: When it was started.
        ended_unix_ns: When it ended; what wraps it may have gone on.
        duration_ns: Time in between.
        usage: ``user_ns``, ``system_ns`` and ``max_rss_bytes`` of the program and the children it waited for.
    """

    status: int
    interrupted: bool
    killed: bool
    stalled: bool
    lost: int | None
    started_unix_ns: int
    ended_unix_ns: int
    duration_ns: int
    usage: Mapping[str, int]

    @property
    def code(self) -> int:
        """The exit code as a shell reports it: 128 + n for signal n."""
        return self.status if self.status >= 0 else 128 - self.status


@dataclass(frozen=True, slots=True)
class Watch:
    """The signals that we wait for, and those that were held back before: the program inherits the latter."""

    signals: frozenset[signal.Signals]
    inherited: frozenset[int]


@dataclass(frozen=True, slots=True)
class Started:
    """What was started: the program, or what wraps it."""

    pid: int
    unix_ns: int
    monotonic_ns: int


Sender = Literal["terminal", "program", "other"]
"""Who sent a signal: the terminal, to its whole foreground group; the program or a descendant; somebody else."""


def _no_program() -> None:
    """Nothing wraps the program."""


@dataclass(frozen=True, slots=True)
class Wrapper:
    """What is known of the wrapper that was started in the place of the program, if any was.

    Args:
        program: Tells what it has started, once it has.
        written: Tells how many bytes it has written so far.
        own_session: Whether it is started in a session of its own.
    """

    program: Callable[[], Wrapped | None] = _no_program
    written: Callable[[], int] = int
    own_session: bool = False


def find_program(name: str, environment: Mapping[str, str]) -> Path:
    """The file that running ``name`` would start.

    Raises:
        CommandNotFoundError: there is none.
        NotExecutableError: there is one that may not be executed.
    """
    if "/" in name:
        candidates = [Path(name)]
    else:
        folders = environment.get("PATH", os.defpath).split(os.pathsep)
        candidates = [Path(folder or ".") / name for folder in folders] if name else []
    # asked like this, a folder that may not be entered has nothing in it; execvp takes it so, too
    there = [path for path in candidates if os.path.exists(path)]  # noqa: PTH110
    for path in there:
        if path.is_file() and os.access(path, os.X_OK):
            return path
    if not there and "/" in name and _is_closed(candidates[0]):
        raise NotExecutableError(f"{name} cannot be run.", "A folder above it may not be entered.")
    if not there:
        raise _not_found(name)
    reason = "It is a folder." if there[0].is_dir() else "It may not be executed."
    raise NotExecutableError(f"{there[0]} cannot be run.", reason, _way_to_run(there[0]))


def _is_closed(path: Path) -> bool:
    """Whether we may not even know if there is such a file."""
    try:
        path.stat()
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def _not_found(name: str) -> CommandNotFoundError:
    script = Path(name)
    return CommandNotFoundError(
        f"{name!r} was not found.",
        "It is no file." if "/" in name else "It is in no folder of PATH.",
        _way_to_run(script) if script.is_file() else "Check the spelling, or give its path.",
    )


def _way_to_run(path: Path) -> str:
    if path.suffix == ".py" and path.is_file():
        return f"Run it with Python: traceviz collect -- python {path}"
    return "" if path.is_dir() else f"If it is a program: chmod +x {path}"


@contextlib.contextmanager
def watched_signals() -> Iterator[Watch]:
    """Hold back the signals that :func:`supervise` waits for, until the run is complete.

    ``nohup`` and shells ignore signals for what they start: the program inherits that, and we pass nothing on.
    """
    watched = frozenset(number for number in _WATCHED if signal.getsignal(number) != signal.SIG_IGN)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    try:
        yield Watch(watched, frozenset(before))
    finally:
        while signal.sigtimedwait(watched, 0) is not None:
            pass  # what came while the run ended was meant for it
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def ending_by_request(watch: Watch) -> Iterator[None]:
    """What takes time after the program ends with KeyboardInterrupt upon :data:`ENDING`; all else is completed."""
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


def start(
    command: Sequence[str], environment: Mapping[str, str], watch: Watch, *, own_session: bool = False
) -> Started:
    """Start ``command`` with our stdin, stdout and stderr, and the signals that we inherited.

    Raises:
        CommandNotFoundError, NotExecutableError: it cannot be run.
        OutputError: the machine has no room for another process.
        KeyboardInterrupt: a signal has asked for the end already.
    """
    program = find_program(command[0], environment)
    if signal.sigpending() & ENDING:  # before the program is there to take it
        raise KeyboardInterrupt
    # Python ignores SIGPIPE and SIGXFSZ for itself; a program must not inherit that.
    defaults = [signal.SIGPIPE, signal.SIGXFSZ]
    unix_ns, monotonic_ns = time.time_ns(), time.monotonic_ns()
    try:
        pid = os.posix_spawn(
            *(program, list(command), environment),
            setsid=own_session,
            setsigmask=watch.inherited,
            setsigdef=defaults,
        )
    except FileNotFoundError as error:
        raise CommandNotFoundError(
            f"{program} cannot be run.", "The interpreter that its first line names is missing."
        ) from error
    except OSError as error:
        if error.errno in {errno.ENOMEM, errno.EAGAIN}:
            raise OutputError(f"{program} cannot be started.", f"{error.strerror}.") from error
        raise NotExecutableError(f"{program} cannot be run.", f"{error.strerror}.", _way_to_run(program)) from error
    return Started(pid, unix_ns, monotonic_ns)


def supervise(started: Started, watch: Watch, wrapper: Wrapper | None = None) -> Ending:
    """Wait until the program ends, and see that signals reach it; call it inside :func:`watched_signals`.

    It ends when the program does, whatever processes that has left behind; where something wraps the program, when
    both have ended.
    """
    program = _Program(started.pid, wrapper or Wrapper())
    while not program.has_ended():
        number, sender = _next_signal(watch.signals, started.pid)
        if number in ENDING:
            program.ask_to_end(number, sender)
        elif number == signal.SIGTSTP:
            program.pause(sender)
        elif number in PASSED_ON and (sender == "other" or program.is_apart):
            program.send(number, sender)
    began_unix_ns, duration_ns = program.ran(started)
    return Ending(
        status=program.status,
        interrupted=program.asked,
        killed=program.killed,
        stalled=program.stalled,
        lost=program.lost,
        started_unix_ns=began_unix_ns,
        ended_unix_ns=began_unix_ns + duration_ns,
        duration_ns=duration_ns,
        usage=program.usage,
    )


def _next_signal(watched: frozenset[signal.Signals], started: int) -> tuple[int, Sender]:
    """The next signal within a short while (0 for none), and who sent it."""
    try:
        found = signal.sigtimedwait(watched, _LOOK_AGAIN_S)
    except KeyboardInterrupt:  # where this process has other threads, one of them may have taken the signal
        return signal.SIGINT, "terminal"
    if found is None or found.si_signo not in watched:  # stopped and continued past the time, Python returns nonsense
        return 0, "other"
    if found.si_code == _SI_KERNEL:
        return found.si_signo, "terminal"
    return found.si_signo, "program" if is_within(found.si_pid, started) else "other"


@dataclass(frozen=True, slots=True)
class _Work:
    """What wraps the program had, at one time, used of processors and written."""

    at_s: float
    ticks: int
    written: int

    def is_more_than(self, before: _Work) -> bool:
        seconds = max(self.at_s - before.at_s, _WHILE_S)
        has_computed = self.ticks - before.ticks > _ASLEEP * seconds * _TICKS_PER_S
        return has_computed or self.written - before.written > _TRICKLE_B_PER_S * seconds


class _Program:
    """The program, and what wraps it: whether they have ended, and how signals get to it.

    Args:
        started: Process id of what was started.
        wrapper: What is known of it, if that is not the program.
    """

    def __init__(self, started: int, wrapper: Wrapper) -> None:
        self._started = started
        self._wrapper = wrapper
        self._known: tuple[int, int] | None = None
        self._returned: int | None = None
        self._by_hand = 0
        self._vanished_s: float | None = None
        self._worked: _Work | None = None
        self.is_apart = wrapper.own_session
        self.asked = False
        self.killed = False
        self.stalled = False
        self.lost: int | None = None
        self.usage: Mapping[str, int] = {}

    @property
    def status(self) -> int:
        """How the program ended: its exit code, or minus the signal."""
        wrapped, returned = self._wrapper.program(), self._returned
        assert returned is not None
        if wrapped is None or self.killed:
            return returned
        code = returned if wrapped.code is None else wrapped.code
        return 128 - code if code - 128 in DEADLY else code

    def ran(self, started: Started) -> tuple[int, int]:
        """When the program, which has ended, began, and how long it ran; of what wraps it where that is not known.

        Nor is it where somebody set the clock in between, or the files are on a server whose clock is another one.
        """
        whole_ns, wrapped = time.monotonic_ns() - started.monotonic_ns, self._wrapper.program()
        if wrapped is not None and wrapped.began_unix_ns is not None and wrapped.ended_unix_ns is not None:
            began_ns, ended_ns = (told - started.unix_ns for told in (wrapped.began_unix_ns, wrapped.ended_unix_ns))
            if -_FILE_TIME_NS <= began_ns <= ended_ns <= whole_ns:
                return wrapped.began_unix_ns, ended_ns - began_ns
        return started.unix_ns, whole_ns

    def has_ended(self) -> bool:
        """Whether the run is over; to be asked again and again."""
        wrapped = self._look_at_program()
        if self._returned is None:
            self._look_at_started()
        if wrapped is None or self.killed:
            return self._returned is not None
        gone = wrapped.code is not None or not self._is_there()
        if self._returned is None:
            if gone and self._is_idle():
                self._end_wrapper()
            return False
        return wrapped.code is not None or (gone and self._is_code_lost())

    def _end_wrapper(self) -> None:
        """End what does nothing any more: asked to, nsys still writes its report."""
        if self.stalled:
            kill_tree(self._started)
        else:
            send_to(self._started, signal.SIGTERM)
        self.stalled, self._worked = True, None

    def _look_at_program(self) -> Wrapped | None:
        wrapped = self._wrapper.program()
        if wrapped is not None and self._known is None:
            self._known = wrapped.pid, begin(wrapped.pid)
        return wrapped

    def _look_at_started(self) -> None:
        pid, status, used = os.wait4(self._started, os.WNOHANG)
        if pid:
            self._returned = os.waitstatus_to_exitcode(status)
            if self._returned < 0 and not self.killed and self._is_there():
                self.lost = -self._returned
            self.usage = {
                "user_ns": round(used.ru_utime * 1e9),
                "system_ns": round(used.ru_stime * 1e9),
                "max_rss_bytes": used.ru_maxrss * 1024,
            }

    def _is_idle(self) -> bool:
        """Whether what wraps the program has hardly written or computed anything for :data:`STALLED_S`."""
        ticks = sum(cpu_ticks(pid) for pid in (self._started, *descendants(self._started)))
        now = _Work(time.monotonic(), ticks, self._wrapper.written())
        if self._worked is None or now.is_more_than(self._worked):
            self._worked = now
        return now.at_s - self._worked.at_s > STALLED_S

    def _is_code_lost(self) -> bool:
        """Whether the program has been gone for so long that its exit code will not be written down any more."""
        now = time.monotonic()
        if self._vanished_s is None:
            self._vanished_s = now
        return now - self._vanished_s > _CODE_S

    def ask_to_end(self, number: int, sender: Sender) -> None:
        """Pass a request on that the program end, unless it has it already; a second Ctrl-C is no request any more.

        Nor is a second request of any kind once the program has ended and only what wraps it is there.
        """
        if sender == "program":
            return
        again, self.asked = self.asked, True
        self._by_hand += number == signal.SIGINT and sender == "terminal"
        # a terminal that closes tells the leader of its session alone, and the others only once that has ended
        alone = sender == "other" or self.is_apart or (number == signal.SIGHUP and os.getsid(0) == os.getpid())
        if self._by_hand > 1 or (again and not self._pid()):
            self.killed = True
            kill_tree(*self._all())
        elif alone:
            self.send(number, sender)

    def pause(self, sender: Sender) -> None:
        """Stop as Ctrl-Z does, and the program with us; SIGCONT goes to it when somebody continues us."""
        if self.is_apart:
            self.send(signal.SIGSTOP, sender)  # the system lets nobody stop there otherwise: no shell could continue it
        elif sender == "other":
            self.send(signal.SIGTSTP, sender)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTSTP})
        os.kill(os.getpid(), signal.SIGTSTP)  # rather than SIGSTOP: nothing stops where no shell could continue it
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTSTP})

    def send(self, number: int, sender: Sender) -> None:
        """Send a signal to the program itself: what wraps it may end upon what the program would handle.

        Where the terminal does not reach the program's group, all of that gets what all of it would have got: a shell
        that is told to end alone waits for the program that it runs.
        """
        to_all = self.is_apart and (sender == "terminal" or number in _OF_JOBS)
        for pid in self._pid():
            for told in foreground(pid) if to_all else (pid,):
                send_to(told, number)

    def _all(self) -> tuple[int, ...]:
        """What was started, and the program, which that may have left behind."""
        return (*self._pid(), *((self._started,) if self._returned is None else ()))

    def _pid(self) -> tuple[int, ...]:
        """The program's process id; none once it has ended and what wraps it is writing down what it recorded."""
        self._look_at_program()  # which may have come up since
        if self._known is None:
            return (self._started,) if self._returned is None else ()
        return (self._known[0],) if self._is_there() else ()

    def _is_there(self) -> bool:
        """Whether the wrapped program is there: not another process that has got its number since."""
        return self._known is not None and self._known[1] > 0 and begin(self._known[0]) == self._known[1]
