"""Recorders in separate processes: those alongside the program, and those that wrap it.

A recorder alongside the program is started, asked to end, and killed if it does not. A wrapper hides the program's
process id and exit code; shells write them, independent of the wrapper::

    a wrapper (nsys), in a session of its own
      sh: waits, and writes the exit code
        sh: writes its process id, and becomes COMMAND

A profiler that has no disk space left, or is killed, passes on no exit code or a wrong one. The shell writes the right
one.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from traceviz.collectors.base import NSYS, Companion, Plan, Wrapped

_PID, _CODE, _TIMES = "program.pid", "program.code", "program.times"

_BECOME = 'echo $$ >"$0"; exec "$@"'
# Space for the code is allocated beforehand, and overwritten in place: the disk may be full by then. The shell's own
# message about a program that a signal ended stays out of the program's stderr.
_WAIT = (
    'pid=$1 code=$2 times=$3; shift 3; echo "        " >"$code"; exec 3>&2 2>/dev/null; '
    f"/bin/sh -c '{_BECOME}' "
    '"$pid" "$@" 2>&3 3>&-; status=$?; times >"$times"; echo "$status" 1<>"$code"; exit "$status"'
)


def watched_command(command: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    """Return ``command`` with shells that write files for :func:`read_wrapped`; its exit code is 128 + n for signal n.

    Args:
        command: The command that a wrapper runs.
        folder: The folder for the files; it exists when the command is run.
    """
    return (
        "/bin/sh",
        "-c",
        _WAIT,
        "program",
        str(pid_file(folder)),
        str(folder / _CODE),
        str(folder / _TIMES),
        *command,
    )


def pid_file(folder: Path) -> Path:
    """Return the path of the file that holds the process id of the program once it has started."""
    return folder / _PID


def read_wrapped(folder: Path) -> Wrapped | None:
    """Return the program of :func:`watched_command` with this ``folder``; ``None`` until it has started."""
    pid, began_ns = _written(pid_file(folder))
    code, ended_ns = _written(folder / _CODE)
    if pid is None:
        return None
    usage: dict[str, int] = {}
    with suppress(OSError, ValueError, IndexError):
        if code is not None:  # the shell's `times` printed those of its children: 0m1.230s 0m0.040s
            words = (folder / _TIMES).read_text(encoding="ascii").splitlines()[1].split()
            minutes = (word.rstrip("s").partition("m") for word in words)
            user_ns, system_ns = (round((int(whole) * 60 + float(rest)) * 1e9) for whole, _, rest in minutes)
            usage = {"user_ns": user_ns, "system_ns": system_ns}
    return Wrapped(pid, code, began_ns, ended_ns, usage)


def may_have_begun(folder: Path) -> bool:
    """Return whether the program of :func:`watched_command` with this ``folder``, or its shell, has started."""
    return pid_file(folder).exists() or (folder / _CODE).exists()


def _written(path: Path) -> tuple[int, int] | tuple[None, None]:
    """Return the number in a file, and its write time in nanoseconds since 1970; ``None`` until it is written."""
    try:
        return int(path.read_text(encoding="ascii")), path.stat().st_mtime_ns
    except (OSError, ValueError):
        return None, None


class Recorder(Companion):
    """A process that records, and saves its data when it is asked to end.

    Args:
        process: The process.
        patience_s: Time limit for saving, in seconds; then it is killed.
    """

    def __init__(self, process: subprocess.Popen[bytes], patience_s: float) -> None:
        self.process = process
        self._patience_s = patience_s

    def stop(self) -> None:
        """Ask it to save its data and to end; kill it when its time limit is over."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(self._patience_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def start_recorder(
    module: str,
    plan: Plan,
    pid: int,
    log: Path,
    *,
    arguments: Sequence[str],
    patience_s: float,
    environment: Mapping[str, str] | None = None,
) -> Recorder | None:
    """Start one of our modules alongside the program; ``None`` if the system refuses, with the reason in ``log``.

    Args:
        module: The module that Python runs; it reads its arguments with :func:`.recorder_options.read_options`.
        plan: The plan of the run.
        pid: Process id of the program, or of nsys around it.
        log: The file for its output, in the folder for its data.
        arguments: Further arguments.
        patience_s: Time limit for saving its data, in seconds.
        environment: Variables in addition to those of this process. Hooks for the program are not passed on.
    """
    where = ("--pid", str(pid), "--out", str(log.parent.resolve()))
    wrapped = ("--wrapped", str(pid_file(plan.raw(NSYS)).resolve())) if NSYS in plan.collectors else ()
    kept = {name: value for name, value in os.environ.items() if name != "TRACEVIZ_INJECT"}
    try:
        with log.open("wb") as said:
            process = subprocess.Popen(
                (sys.executable, "-P", "-m", module, *where, *wrapped, *arguments),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env=kept | dict(environment or {}),
                start_new_session=True,  # signals of the terminal are for the program
            )
    except OSError as error:
        log.write_text(f"{error}\n", encoding="utf-8")
        return None
    return Recorder(process, patience_s)


def last_words(log: Path) -> str:
    """Return the last line that a recorder wrote, as a sentence; an empty text if it wrote nothing."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    said = [line for line in lines if line.strip()]
    return f"It said: {said[-1].strip()}" if said else ""
