"""Process id and exit code of a wrapped program, independent of the wrapper.

::

    a wrapper (nsys), in a session of its own
      sh: waits, and writes the exit code
        sh: writes its process id, and becomes COMMAND

A profiler that has no disk space left, or is killed, passes on no exit code or a wrong one. The shell writes the right
one.
"""

from __future__ import annotations

from pathlib import Path

from traceviz.collectors.base import Wrapped

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
    return (
        None if pid is None else Wrapped(pid, code, began_ns, ended_ns, {} if code is None else _used(folder / _TIMES))
    )


def _used(path: Path) -> dict[str, int]:
    """Return processor times of the shell's children, from what its ``times`` printed: ``0m1.230s 0m0.040s``."""
    try:
        words = path.read_text(encoding="ascii").splitlines()[1].split()
        user_ns, system_ns = (
            round((int(m) * 60 + float(s)) * 1e9) for m, _, s in (w.rstrip("s").partition("m") for w in words)
        )
    except (OSError, ValueError, IndexError):
        return {}
    return {"user_ns": user_ns, "system_ns": system_ns}


def may_have_begun(folder: Path) -> bool:
    """Return whether the program of :func:`watched_command` with this ``folder``, or its shell, has started."""
    return pid_file(folder).exists() or (folder / _CODE).exists()


def _written(path: Path) -> tuple[int, int] | tuple[None, None]:
    """Return the number in a file, and its write time in nanoseconds since 1970; ``None`` until it is written."""
    try:
        return int(path.read_text(encoding="ascii")), path.stat().st_mtime_ns
    except (OSError, ValueError):
        return None, None
