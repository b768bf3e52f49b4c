"""Running the program: in front of the user, with the signals that are meant for it, until it ends.

::

    Ctrl-C in a terminal -> the whole foreground group: the program has it already, and we wait
    kill PID -------------> us alone: we pass it on to the program, and wait
    a second Ctrl-C ------> we kill the program and its descendants

The program stays in our process group: a group of its own could not read the terminal, and one made the foreground
group would put the rest of a pipeline (``traceviz collect ... | less``) into the background.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from traceviz.errors import CommandNotFoundError, NotExecutableError, OutputError

ENDING = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
"""Signals that ask the program to end, and the recording with it."""
PASSED_ON = frozenset({signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT})
"""Signals that the program may use for itself (a scheduler's warning before it ends a job, for example)."""

_WATCHED = ENDING | PASSED_ON | {signal.SIGTSTP, signal.SIGCHLD}
_SI_KERNEL = 0x80
"""``si_code`` of a signal that the terminal sent: to the whole foreground group, so to the program as well."""
_ONE_BLOW_S = 0.4
"""Equal signals that are this close are one request: `timeout` and schedulers signal a process and then its group."""
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
    """The program, just started."""

    pid: int
    unix_ns: int
    monotonic_ns: int


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
    """Hold back the signals that :func:`supervise` waits for.

    ``nohup`` and shells ignore signals for what they start: the program inherits that, and we pass nothing on.
    """
    watched = frozenset(number for number in _WATCHED if signal.getsignal(number) != signal.SIG_IGN)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    try:
        yield Watch(watched, frozenset(before))
    finally:
        while signal.sigtimedwait(watched, 0) is not None:
            pass  # what came while the program ended was meant for it
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def ending_by_request() -> Iterator[None]:
    """What comes after the program ends with KeyboardInterrupt upon any of :data:`ENDING`, so that it is tidied up."""
    numbers = ENDING if threading.current_thread() is threading.main_thread() else frozenset[signal.Signals]()
    before = {number: signal.getsignal(number) for number in numbers}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
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


def supervise(started: Started, watch: Watch) -> Ending:
    """Wait until the program ends, and see that signals reach it; call it inside :func:`watched_signals`.

    It ends when the program does, whatever processes that has left behind.
    """
    requests = _Requests(started.pid)
    while (ended := os.wait4(started.pid, os.WNOHANG))[0] == 0:
        number, alone = _next_signal(watch.signals)
        if number in ENDING:
            requests.add(number, alone=alone)
        elif number == signal.SIGTSTP:
            _pause(started.pid, alone=alone)
        elif number in PASSED_ON and alone:
            _send(started.pid, number)
    _, status, used = ended
    duration_ns = time.monotonic_ns() - started.monotonic_ns
    return Ending(
        status=os.waitstatus_to_exitcode(status),
        interrupted=requests.any,
        killed=requests.killed,
        ended_unix_ns=started.unix_ns + duration_ns,
        duration_ns=duration_ns,
        usage={
            "user_ns": round(used.ru_utime * 1e9),
            "system_ns": round(used.ru_stime * 1e9),
            "max_rss_bytes": used.ru_maxrss * 1024,
        },
    )


def _next_signal(watched: frozenset[signal.Signals]) -> tuple[int, bool]:
    """The next signal within a short while (0 for none), and whether it was sent to us alone."""
    try:
        found = signal.sigtimedwait(watched, _LOOK_AGAIN_S)
    except KeyboardInterrupt:  # where this process has other threads, one of them may have taken the signal
        return signal.SIGINT, False
    return (0, False) if found is None else (found.si_signo, found.si_code != _SI_KERNEL)


class _Requests:
    """Requests that the program end, as they come."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._last: dict[int, float] = {}
        self.killed = False

    @property
    def any(self) -> bool:
        """Whether there was one."""
        return bool(self._last)

    def add(self, number: int, *, alone: bool) -> None:
        """Pass the request on, unless the program has it already; a second Ctrl-C is no request any more."""
        now = time.monotonic()
        last = self._last.get(number)
        if last is not None and now - last < _ONE_BLOW_S:
            return
        self._last[number] = now
        if number == signal.SIGINT and last is not None:
            self.killed = True
            _kill_tree(self._pid)
        elif alone:
            _send(self._pid, number)


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # it has ended, or runs as somebody else (sudo)
        os.kill(pid, number)


def _pause(pid: int, *, alone: bool) -> None:
    """Stop as Ctrl-Z does, and the program with us; SIGCONT goes to it when somebody continues us."""
    if alone:
        _send(pid, signal.SIGTSTP)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTSTP})
    os.kill(os.getpid(), signal.SIGTSTP)  # rather than SIGSTOP: nothing stops where no shell could continue it
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTSTP})


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
        with contextlib.suppress(OSError, ValueError, IndexError):  # it has just ended
            after_name = (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2]
            yield int(folder.name), int(after_name.split()[1])
