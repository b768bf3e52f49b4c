"""Starting the program: finding its file, and explaining why it cannot be run."""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from traceviz.collectors.program.processes import ENDING, Watch
from traceviz.core.errors import CommandNotFoundError, NotExecutableError, OutputError


@dataclass(frozen=True, slots=True)
class Started:
    """The process that was started: the program, or its wrapper."""

    pid: int
    unix_ns: int
    monotonic_ns: int


def find_program(name: str, environment: Mapping[str, str]) -> Path:
    """Return the file that running ``name`` would start.

    Raises:
        CommandNotFoundError: there is none.
        NotExecutableError: there is one that may not be executed.
    """
    if "/" in name:
        candidates = [Path(name)]
    else:
        folders = environment.get("PATH", os.defpath).split(os.pathsep)
        candidates = [Path(folder or ".") / name for folder in folders] if name else []
    # This function treats a folder without access as empty, as execvp does.
    existing = [path for path in candidates if os.path.exists(path)]  # noqa: PTH110
    for path in existing:
        if path.is_file() and os.access(path, os.X_OK):
            return path
    if not existing and "/" in name:
        try:
            candidates[0].stat()
        except PermissionError:
            reason = "A folder above it may not be entered."
            raise NotExecutableError(f"{name} cannot be run.", reason) from None
        except OSError:
            pass  # there is no such file
    if not existing:
        script = Path(name)
        raise CommandNotFoundError(
            f"{name!r} was not found.",
            "It is no file." if "/" in name else "It is in no folder of PATH.",
            _way_to_run(script) if script.is_file() else "Check the spelling, or give its path.",
        )
    reason = "It is a folder." if existing[0].is_dir() else "It may not be executed."
    raise NotExecutableError(f"{existing[0]} cannot be run.", reason, _way_to_run(existing[0]))


def _way_to_run(path: Path) -> str:
    if path.suffix == ".py" and path.is_file():
        return f"Run it with Python: traceviz collect -- python {path}"
    return "" if path.is_dir() else f"If it is a program: chmod +x {path}"


def start(
    command: Sequence[str], environment: Mapping[str, str], watch: Watch, *, own_session: bool = False
) -> Started:
    """Start ``command`` with our stdin, stdout and stderr, and the signals that we inherited.

    Raises:
        CommandNotFoundError, NotExecutableError: it cannot be run.
        OutputError: the system cannot start another process.
        KeyboardInterrupt: a signal, its argument, has already asked for the end.
    """
    program = find_program(command[0], environment)
    if asked := signal.sigpending() & ENDING:  # before the program exists and can take it
        raise KeyboardInterrupt(min(asked))
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
