"""One run of a sweep as a process: ``traceviz collect`` in its own session, its output, and its end.

::

    the sweep --> traceviz collect --> the program, and what it starts
        <-- one pipe: stdout and stderr of all of them

Ctrl-C in the terminal reaches only the sweep, which then ends its runs.
"""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from traceviz.collectors.program.processes import kill_tree, send_to, with_variable
from traceviz.core.sanitize import bounded, visible

HEAD_BYTES, TAIL_BYTES = 1 << 18, 1 << 18
MOST_LINES = 20
"""Last lines of a run that are kept in its manifest."""
_LONGEST_LINE = 300
_OURS = "traceviz: "
"""Prefix of lines of ``traceviz collect``, which are not the program's."""
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Output:
    """The output of one run, bounded.

    Args:
        head: Bytes of its start that are kept.
        tail: Bytes of its end that are kept.
    """

    def __init__(self, head: int = HEAD_BYTES, tail: int = TAIL_BYTES) -> None:
        self._most_head = head
        self._most_tail = tail
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0

    def add(self, data: bytes) -> None:
        """Add output."""
        room = self._most_head - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        excess = len(self._tail) - self._most_tail
        if excess > self._most_tail:  # rarely, so that kept data is rarely moved
            self._cut(excess)

    def _cut(self, excess: int) -> None:
        del self._tail[:excess]
        self._left_out += excess

    def text(self) -> str:
        """Return all kept output; a line states how much was left out."""
        self._cut(max(len(self._tail) - self._most_tail, 0))
        parts = [bytes(self._head), bytes(self._tail)]
        if self._left_out:
            parts.insert(1, f"\n… {self._left_out:,} bytes left out …\n".encode())
        return b"".join(parts).decode("utf-8", "replace")


def program_lines(text: str) -> list[str]:
    """Return the lines of the program itself; of a line that it rewrote, such as a progress bar, the last version."""
    plain = _COLOUR.sub("", text).replace("\r\n", "\n")
    lines = (line.rstrip("\r").rpartition("\r")[2].rstrip() for line in plain.split("\n"))
    return [line for line in lines if line and not line.startswith(_OURS)]


def last_lines(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the last of these lines, each limited in length and without control characters."""
    return tuple(visible(bounded(line))[:_LONGEST_LINE] for line in [*lines][-MOST_LINES:])


MARK = "TRACEVIZ_SWEEP_RUN"
"""Environment variable with the run folder; it identifies every process of a run."""
PATIENCE_S = 120.0
"""Time that a run has after its limit to end the program and to collect the recordings."""
_READ_BYTES = 1 << 16
_DRAIN_S = 0.5
"""Time to read the remaining output at the end. A process left behind may hold the pipe open."""


class Child:
    """A run in progress.

    Args:
        command: The command of ``traceviz collect``.
        environment: All variables.
        directory: The folder in which it runs.
        folder: Its run folder.
        limit_s: Time limit of the program. ``traceviz collect`` enforces it; this class kills the run if that fails.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        directory: Path,
        folder: Path,
        limit_s: float | None,
    ) -> None:
        self.folder = folder
        self.output = Output()
        self.asked_to_end = False
        self._began_s = time.monotonic()
        self._end_s = None if limit_s is None else self._began_s + limit_s + PATIENCE_S
        self._process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=directory,
            env={**environment, MARK: str(folder)},
            start_new_session=True,
        )
        assert self._process.stdout is not None
        self._pipe: int | None = self._process.stdout.fileno()
        os.set_blocking(self._pipe, False)

    @property
    def elapsed_s(self) -> float:
        """Time since its start."""
        return time.monotonic() - self._began_s

    @property
    def pipe(self) -> int | None:
        """The pipe with its output; ``None`` once that is closed."""
        return self._pipe

    def take_output(self) -> None:
        """Read all available output."""
        while self._pipe is not None:
            try:
                data = os.read(self._pipe, _READ_BYTES)
            except BlockingIOError:
                return
            if not data:
                self._pipe = None
            self.output.add(data)

    def ended(self) -> int | None:
        """Return the exit code of ``traceviz collect``, or minus the signal that ended it; ``None`` while it runs.

        Kill the run if it exceeds its time limit and :data:`PATIENCE_S`.
        """
        if self._end_s is not None and time.monotonic() > self._end_s:
            self.kill()
        code = self._process.poll()
        if code is not None:
            # Read the remaining output; a process that was left behind may hold the pipe open.
            assert self._process.stdout is not None
            end = time.monotonic() + _DRAIN_S
            while self._pipe is not None and time.monotonic() < end and select.select([self._pipe], [], [], 0)[0]:
                self.take_output()
            self._process.stdout.close()
            self._pipe = None
        return code

    def ask_to_end(self) -> None:
        """Interrupt the program, as Ctrl-C would. Data recorded so far is collected."""
        self.asked_to_end = True
        # If this process was started to ignore Ctrl-C (`nohup`, `&` in a script), the run ignores it as well.
        ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN
        send_to(self._process.pid, signal.SIGTERM if ignored else signal.SIGINT)

    def kill(self) -> None:
        """Kill the run with all its processes."""
        end_run(self.folder, self._process.pid)


def end_run(folder: Path, *roots: int) -> bool:
    """Kill the processes of a run, if any is left.

    Args:
        folder: Its run folder, which identifies them.
        roots: Ids of processes that belong to it in any case.

    Returns:
        True if there were any.
    """
    left = with_variable(MARK, str(folder)) | set(roots)
    kill_tree(*left)
    return bool(left)


def wait_for(children: Sequence[Child], seconds: float) -> None:
    """Wait until a child writes or ends, or the time is over; read all output."""
    pipes = [child.pipe for child in children if child.pipe is not None]
    if not pipes:
        time.sleep(min(seconds, 0.05))
        return
    select.select(pipes, [], [], seconds)
    for child in children:
        child.take_output()


def collect_command(options: Sequence[str], folder: Path, command: Sequence[str]) -> tuple[str, ...]:
    """Return the command that runs ``traceviz collect`` in another process."""
    return (sys.executable, "-P", "-m", "traceviz", "collect", *options, "-o", str(folder), "--force", "--", *command)
