"""Recordings by the real nsys, without a collector of ours."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from traceviz.collectors.program.processes import with_variable

TRIES = 3


def recorded(
    command: Sequence[str | Path], folder: Path, *flags: str, env: Mapping[str, str] | None = None
) -> tuple[Path | None, str]:
    """Return nsys's result for ``command`` in ``folder``, ``None`` if nothing; and its output.

    On a busy machine, nsys 2022.4 sometimes fails to start, and is tried again. The agent that it leaves behind would
    wait
    forever.
    """
    variables = {**os.environ, **(env or {}), "RECORDED_IN": str(folder)}
    for _ in range(TRIES):
        nsys = ["nsys", "profile", "--sample=none", "--cpuctxsw=none", *flags, "--output=report", *command]
        try:
            done = subprocess.run(
                nsys, check=False, capture_output=True, text=True, cwd=folder, env=variables, timeout=120
            )
        finally:
            for pid in with_variable("RECORDED_IN", str(folder)):
                os.kill(pid, signal.SIGKILL)
        left = sorted([*folder.glob("report.nsys-rep"), *folder.glob("report.qd*")])
        if left:
            break
    return (left[0] if left else None), done.stdout + done.stderr
