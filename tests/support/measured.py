"""Commands as separate processes: their peak memory, and their behavior if memory is scarce."""

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Measured:
    """The end of a command.

    Args:
        code: Its exit code; below zero the signal that ended it.
        out: Its output on stdout.
        err: Its output on stderr.
        peak_bytes: Its peak memory.
    """

    code: int
    out: str
    err: str
    peak_bytes: int


def measured(*arguments, address_space=None, env=None):
    """Return ``traceviz ARGUMENTS`` as a process, which may use ``address_space`` bytes of it (``None``: no limit)."""
    command = [sys.executable, "-m", "traceviz", *map(str, arguments)]
    if address_space is not None:
        command = ["sh", "-c", f'ulimit -v {address_space // 1024}; exec "$@"', "sh", *command]
    with tempfile.TemporaryDirectory() as folder:
        out, err, end = (Path(folder, name) for name in ("out", "err", "end"))
        with out.open("wb") as stdout, err.open("wb") as stderr:
            watched = [sys.executable, "-S", "-c", _WATCHER, str(end), *command]
            subprocess.run(watched, check=True, stdout=stdout, stderr=stderr, env={**os.environ, **(env or {})})
        code, peak = map(int, end.read_text().split())
        return Measured(code, out.read_text(errors="replace"), err.read_text(errors="replace"), peak * 1024)


_WATCHER = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[2:])
_, status, usage = os.wait4(process.pid, 0)
process.returncode = os.waitstatus_to_exitcode(status)
open(sys.argv[1], "w").write(f"{process.returncode} {usage.ru_maxrss}")
"""
"""A small process in between: what a process took before it became another program counts as the peak of that."""
