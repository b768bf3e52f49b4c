"""A recorder that runs alongside the program as a separate process: starting it, stopping it, and its messages."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from traceviz.collectors.base import Companion


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
    module: str, arguments: Sequence[str], log: Path, patience_s: float, environment: Mapping[str, str] | None = None
) -> Recorder | None:
    """Start one of our modules alongside the program; ``None`` if the system refuses, with the reason in ``log``.

    Args:
        module: The module that Python runs.
        arguments: Its arguments.
        log: The file for its output.
        patience_s: Time limit for saving its data, in seconds.
        environment: Variables in addition to those of this process. Hooks for the program are not passed on.
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
    """Return the last line that a recorder wrote, as a sentence; an empty text if it wrote nothing."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    said = [line for line in lines if line.strip()]
    return f"It said: {said[-1].strip()}" if said else ""
