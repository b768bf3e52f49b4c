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

_PID, _CODE = "program.pid", "program.code"

_BECOME = 'echo $$ >"$0"; exec "$@"'
# Room for the code is taken beforehand, and written over in place: the disk may be full by then. What the shell itself
# has to say of a program that a signal ended is not for the program's stderr.
_WAIT = (
    'pid=$1 code=$2; shift 2; echo "        " >"$code"; exec 3>&2 2>/dev/null; '
    f"/bin/sh -c '{_BECOME}' "
    '"$pid" "$@" 2>&3 3>&-; status=$?; echo "$status" 1<>"$code"; exit "$status"'
)


def watched_command(command: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    """``command`` such that :func:`read_wrapped` knows of it; ends with its exit code, 128 + n for signal n.

    Args:
        command: What a wrapper runs.
        folder: Where to write; it exists when the command is run.
    """
    return ("/bin/sh", "-c", _WAIT, "program", str(folder / _PID), str(folder / _CODE), *command)


def read_wrapped(folder: Path) -> Wrapped | None:
    """The program of :func:`watched_command` with this ``folder``; ``None`` until it is started."""
    pid = _number(folder / _PID)
    return None if pid is None else Wrapped(pid, _number(folder / _CODE))


def _number(path: Path) -> int | None:
    """The first word of a file; ``None`` where it is not written yet."""
    try:
        return int(path.read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return None
