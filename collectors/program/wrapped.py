"""The program below what wraps it: its process id and exit code, whatever becomes of the wrapper.

::

    a wrapper (nsys), in a session of its own
      sh: waits, and writes down the exit code
        sh: writes down its process id, and becomes COMMAND

A profiler that has no room on the disk, or is killed, hands on no exit code, or a wrong one; the shell does.
"""

from __future__ import annotations

from pathlib import Path

from traceviz.collectors.base import Wrapped

_PID, _CODE, _TIMES = "program.pid", "program.code", "program.times"

_BECOME = 'echo $$ >"$0"; exec "$@"'
# Room for the code is taken beforehand, and written over in place: the disk may be full by then. What the shell itself
# has to say of a program that a signal ended is not for the program's stderr.
_WAIT = (
    'pid=$1 code=$2 times=$3; shift 3; echo "        " >"$code"; exec 3>&2 2>/dev/null; '
    f"/bin/sh -c '{_BECOME}' "
    '"$pid" "$@" 2>&3 3>&-; status=$?; times >"$times"; echo "$status" 1<>"$code"; exit "$status"'
)


def watched_command(command: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    """``command`` such that :func:`read_wrapped` knows of it; ends with its exit code, 128 + n for signal n.

    Args:
        command: What a wrapper runs.
        folder: Where to write; it exists when the command is run.
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
    """Where the process id of the program stands once it is started."""
    return folder / _PID


def read_wrapped(folder: Path) -> Wrapped | None:
    """The program of :func:`watched_command` with this ``folder``; ``None`` until it is started."""
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
    """Whether the program of :func:`watched_command` with this ``folder`` has been started, or its shell has."""
    return pid_file(folder).exists() or (folder / _CODE).exists()


def _written(path: Path) -> tuple[int, int] | tuple[None, None]:
    """The number in a file, and when it was written, in nanoseconds since 1970; nothing where it is not yet."""
    try:
        return int(path.read_text(encoding="ascii")), path.stat().st_mtime_ns
    except (OSError, ValueError):
        return None, None
