"""A recorder that runs beside the program, as a process of its own: started, ended in order, and what it said."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from traceviz.collectors.base import Companion


class Recorder(Companion):
    """A process that records, and saves what it has when it is asked to end.

    Args:
        process: The process.
        patience_s: How long saving may take, in seconds; then it is killed.
    """

    def __init__(self, process: subprocess.Popen[bytes], patience_s: float) -> None:
        self.process = process
        self._patience_s = patience_s

    def stop(self) -> None:
        """Ask it to save what it has and to end; one that outlives its patience is killed."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(self._patience_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def start_recorder(
    module: str, arguments: Sequence[str], log: Path, patience_s: float, environment: Mapping[str, str] | None = None
) -> Recorder | None:
    """Start a module of ours beside the program; ``None`` where the system refuses, which ``log`` then says.

    Args:
        module: What Python runs.
        arguments: What it is told.
        log: The file for what it says.
        patience_s: How long it may take to save what it has, in seconds.
        environment: Variables beside those of this process. Hooks for the program are not put into it.
    """
    kept = {name: value for name, value in os.environ.items() if name != "TRACEVIZ_INJECT"}
    try:
        with log.open("wb") as said:
            process = subprocess.Popen(
                (sys.executable, "-P", "-m", module, *arguments),
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
    """The last line that a recorder said, as a sentence; an empty text where it said nothing."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    said = [line for line in lines if line.strip()]
    return f"It said: {said[-1].strip()}" if said else ""
