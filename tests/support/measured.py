"""Commands as processes of their own: how much memory they took at most, and what they do where there is little."""

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Measured:
    """How a command ended.

    Args:
        code: Its exit code; below zero the signal that ended it.
        out: What it wrote to stdout.
        err: What it wrote to stderr.
        peak_bytes: Most memory that it took.
    """

    code: int
    out: str
    err: str
    peak_bytes: int


def measured(*arguments, address_space=None, env=None):
    """``traceviz ARGUMENTS`` as a process, which may use ``address_space`` bytes of it (``None``: no limit)."""
    return _measured([sys.executable, "-m", "traceviz", *map(str, arguments)], address_space, env)


def measured_code(code, *arguments, address_space=None, env=None):
    """The same of a Python program."""
    return _measured([sys.executable, "-c", code, *map(str, arguments)], address_space, env)


def _measured(command, address_space, env):
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
