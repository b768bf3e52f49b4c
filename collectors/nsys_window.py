"""Ending what nsys records while the program goes on, for ``--duration``.

``nsys profile --duration`` returns when the time is over and leaves the program behind, and its exit code is lost.
``nsys stop`` ends the recording of a named session alone: nsys saves the report at once, and still waits for the
program. Tried with nsys 2022.4.
"""

from __future__ import annotations

import hashlib
import subprocess
from dataclasses import dataclass
from pathlib import Path

from traceviz.collectors.base import Companion, Plan, Window

SESSION = "--session-new"
"""Flag that names a session; an nsys without it records to the end."""

_STOP = (
    "nsys=$1 session=$2 seconds=$3 pid=$4; trap 'kill \"$!\" 2>/dev/null; exit' TERM; "
    'until "$nsys" sessions list | grep -q " Collection .* $session *$"; do '
    'kill -0 "$pid" || exit 1; sleep 0.1; done; '
    'sleep "$seconds" & wait "$!"; trap "" TERM; "$nsys" stop --session="$session"'
)
"""The time counts from when nsys says that it records: starting, and a --delay, may take seconds.

It is ``nsys stop`` that writes the report: once begun, it may not be ended. It handles SIGTERM whether or not that was
ignored, so only the shell is told, which does not replace itself.
"""


WHOLE_RUN = "nsys records the whole run: --steps bounds the profilers inside the program only"
"""What is said where :func:`ignores_steps`: nsys could be told the steps only by ranges, which programs may lack."""


def ignores_steps(window: Window) -> bool:
    """Whether the user named steps, which bound nsys in no way."""
    return window.delay_s is None and window != Window()


def session_of(plan: Plan) -> str:
    """Name of the session: the run folder's, in letters that every nsys takes."""
    return f"traceviz-{hashlib.sha256(str(plan.folder).encode()).hexdigest()[:12]}"


@dataclass(frozen=True, slots=True)
class Stopper(Companion):
    """Waits beside the program for the end of the time, in a session of its own."""

    process: subprocess.Popen[bytes]

    def stop(self) -> None:
        """The program has ended: do not wait for the time any more, but for a report that is being written."""
        self.process.terminate()
        self.process.wait()


def stop_after(seconds: float, nsys: Path, plan: Plan, pid: int) -> Stopper:
    """End the session of ``plan``, whose nsys has process id ``pid``, once it has recorded for ``seconds``.

    Raises:
        OSError: there is no shell.
    """
    command = ("/bin/sh", "-c", _STOP, "nsys-stop", str(nsys), session_of(plan), f"{seconds:.3f}", str(pid))
    none = subprocess.DEVNULL
    return Stopper(subprocess.Popen(command, stdin=none, stdout=none, stderr=none, start_new_session=True))
