"""Running the program: in front of the user, with the signals that are meant for it, until it ends.

::

    Ctrl-C in a terminal ----> the whole foreground group: the program has it already, and we wait
    a process signals us ----> we pass it on to the program, and wait
    the program signals us --> it meant its own group: nothing
    a second Ctrl-C ---------> we kill the program and its descendants

No clock decides which of these it was: the kernel says who sent a signal. It does not say whether a process signalled
us alone or our whole group, as ``timeout`` does both; the program then gets it twice, which is better than never.

The program stays in our process group: a group of its own could not read the terminal, and one made the foreground
group would put the rest of a pipeline (``traceviz collect ... | less``) into the background. What wraps it may put it
into a session of its own (nsys does): a terminal that closes does not reach it there, and we pass that on too.
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

from traceviz.errors import CommandNotFoundError, NotExecutableError, OutputError

ENDING = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
"""Signals that ask the program to end, and the recording with it."""
PASSED_ON = frozenset({signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT})
"""Signals that the program may use for itself (a scheduler's warning before it ends a job, for example)."""

_WATCHED = ENDING | PASSED_ON | {signal.SIGTSTP, signal.SIGCHLD}
_HARMLESS = frozenset({signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH})
_STOPPING = frozenset({signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU})
DEADLY = frozenset(signal.Signals) - _HARMLESS - _STOPPING
"""Signals that end a program that does not handle them."""

_SI_KERNEL = 0x80
"""``si_code`` of a signal that the terminal sent."""
_LOOK_AGAIN_S = 0.25
"""Where another thread of this process takes the notice that the program ended, it is seen this much later."""
_ROUNDS = 20


@dataclass(frozen=True, slots=True)
class Ending:
    """How the program ended.

    Args:
        status: What ``os.waitstatus_to_exitcode`` says: the exit code, or minus the signal.
        interrupted: Whether a signal asked for the end.
        killed: Whether a second one did, upon which we killed it.
        ended_unix_ns: When.
        duration_ns: Time since the start.
        usage: ``user_ns``, ``system_ns`` and ``max_rss_bytes`` of the program and the children it waited for.
    """

    status: int
    interrupted: bool
    killed: bool
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

Find = Callable[[], int | None]
"""Tells the process id of the program once it is known, where something wraps it; ``None`` until then."""


def not_wrapped() -> None:
    """A :data:`Find` for a program that was started as it is."""


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
    there = [path for path in candidates if path.exists()]
    for path in there:
        if path.is_file() and os.access(path, os.X_OK):
            return path
    if not there:
        raise _not_found(name)
    reason = "It is a folder." if there[0].is_dir() else "It may not be executed."
    raise NotExecutableError(f"{there[0]} cannot be run.", reason, _way_to_run(there[0]))


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


def start(command: Sequence[str], environment: Mapping[str, str], watch: Watch) -> Started:
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
        pid = os.posix_spawn(program, list(command), environment, setsigmask=watch.inherited, setsigdef=defaults)
    except FileNotFoundError as error:
        raise CommandNotFoundError(
            f"{program} cannot be run.", "The interpreter that its first line names is missing."
        ) from error
    except OSError as error:
        if error.errno in {errno.ENOMEM, errno.EAGAIN}:
            raise OutputError(f"{program} cannot be started.", f"{error.strerror}.") from error
        raise NotExecutableError(f"{program} cannot be run.", f"{error.strerror}.", _way_to_run(program)) from error
    return Started(pid, unix_ns, monotonic_ns)


def supervise(started: Started, watch: Watch, find: Find = not_wrapped) -> Ending:
    """Wait until the program ends, and see that signals reach it; call it inside :func:`watched_signals`.

    It ends when the program does, whatever processes that has left behind; where something wraps the program, when
    that ends.
    """
    program = _Program(started.pid, find)
    while (ended := os.wait4(started.pid, os.WNOHANG))[0] == 0:
        number, sender = _next_signal(watch.signals, started.pid)
        if number in ENDING:
            program.ask_to_end(number, sender)
        elif number == signal.SIGTSTP:
            program.pause(sender)
        elif number in PASSED_ON and sender == "other":
            program.send(number)
    _, status, used = ended
    duration_ns = time.monotonic_ns() - started.monotonic_ns
    return Ending(
        status=_told(os.waitstatus_to_exitcode(status), wrapped=find() not in {None, started.pid}),
        interrupted=program.asked,
        killed=program.killed,
        ended_unix_ns=started.unix_ns + duration_ns,
        duration_ns=duration_ns,
        usage={
            "user_ns": round(used.ru_utime * 1e9),
            "system_ns": round(used.ru_stime * 1e9),
            "max_rss_bytes": used.ru_maxrss * 1024,
        },
    )


def _told(status: int, *, wrapped: bool) -> int:
    """How the program ended: what wraps one cannot die of its signal, and says 128 + n instead."""
    return 128 - status if wrapped and status - 128 in DEADLY else status


def _next_signal(watched: frozenset[signal.Signals], started: int) -> tuple[int, Sender]:
    """The next signal within a short while (0 for none), and who sent it."""
    try:
        found = signal.sigtimedwait(watched, _LOOK_AGAIN_S)
    except KeyboardInterrupt:  # where this process has other threads, one of them may have taken the signal
        return signal.SIGINT, "terminal"
    if found is None:
        return 0, "other"
    if found.si_code == _SI_KERNEL:
        return found.si_signo, "terminal"
    return found.si_signo, "program" if _is_within(found.si_pid, started) else "other"


class _Program:
    """The program, to which signals are passed on.

    Args:
        started: Process id of what was started.
        find: Tells that of the program where something wraps it.
    """

    def __init__(self, started: int, find: Find) -> None:
        self._started = started
        self._find = find
        self._by_hand = 0
        self._unheard = 0
        self.asked = False
        self.killed = False

    def ask_to_end(self, number: int, sender: Sender) -> None:
        """Pass a request on that the program end, unless it has it already; a second Ctrl-C is no request any more.

        Nor is a second request for which there is no program: what wraps one may wait for ever for one that it lost.
        """
        if sender == "program":
            return
        self.asked = True
        self._by_hand += number == signal.SIGINT and sender == "terminal"
        self._unheard += sender == "other" and self._pid() is None
        if self._by_hand > 1 or self._unheard > 1:
            self.killed = True
            _kill_tree(self._started)
        elif sender == "other" or (number == signal.SIGHUP and self._is_spared()):
            self.send(number)

    def pause(self, sender: Sender) -> None:
        """Stop as Ctrl-Z does, and the program with us; SIGCONT goes to it when somebody continues us."""
        if self._is_apart():
            self.send(signal.SIGSTOP)  # the system lets nobody stop there otherwise: no shell could continue it
        elif sender == "other":
            self.send(signal.SIGTSTP)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTSTP})
        os.kill(os.getpid(), signal.SIGTSTP)  # rather than SIGSTOP: nothing stops where no shell could continue it
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTSTP})

    def send(self, number: int) -> None:
        """Send a signal to the program itself: what wraps it may die of what the program would handle."""
        pid = self._pid()
        if pid is None:  # it has ended, and what wraps it is writing down what it recorded
            return
        wrapped = self._find() is not None
        _send(pid, signal.SIGTERM if wrapped and number == signal.SIGHUP and _ignores(pid, number) else number)

    def _pid(self) -> int | None:
        found = self._find()
        if found is None:
            return self._started
        return found if _is_within(found, self._started) else None

    def _is_spared(self) -> bool:
        """Whether a terminal that closes says so to us and not to the program.

        It tells the leader of its session alone, and processes of the session once that has ended. (What wraps a
        program in another session passes the other signals of the terminal on.)
        """
        return os.getsid(0) == os.getpid() or self._is_apart()

    def _is_apart(self) -> bool:
        """Whether what wraps the program has put it into another session."""
        try:
            return os.getsid(self._pid() or 0) != os.getsid(0)
        except OSError:  # it has just ended
            return False


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # it has ended, or runs as somebody else (sudo)
        os.kill(pid, number)


def _ignores(pid: int, number: int) -> bool:
    """Whether a process ignores a signal, as what wraps it may have made it do."""
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").splitlines()
        ignored = next(line for line in lines if line.startswith("SigIgn:"))
        return bool(int(ignored.split()[1], 16) >> (number - 1) & 1)
    return False


def _is_within(pid: int, ancestor: int) -> bool:
    """Whether process ``pid`` is ``ancestor`` or descends from it."""
    while pid > 1 and pid != ancestor:
        pid = _parent(pid)
    return pid == ancestor


def _kill_tree(pid: int) -> None:
    """Kill the program and its descendants: first stop all, so that none has children while we look."""
    stopped: set[int] = set()
    for _ in range(_ROUNDS):
        found = {pid, *_descendants(pid)} - stopped
        if not found:
            break
        for process in found:
            _send(process, signal.SIGSTOP)
        stopped |= found
    for process in stopped:
        _send(process, signal.SIGKILL)


def _descendants(pid: int) -> set[int]:
    """Children of ``pid``, their children, and so on."""
    parents = dict(_parents())
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def _parents() -> Iterator[tuple[int, int]]:
    """Every process and its parent."""
    for folder in Path("/proc").glob("[0-9]*"):
        yield int(folder.name), _parent(int(folder.name))


def _parent(pid: int) -> int:
    """The parent of a process; 0 where it has just ended."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return int(stat.rpartition(")")[2].split()[1])
    return 0
