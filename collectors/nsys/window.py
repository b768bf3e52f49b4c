"""Ending the nsys recording while the program keeps running, for ``--duration``.

``nsys profile --duration`` returns when the time is over; the program keeps running, and its exit code is lost.
``nsys stop`` ends only the recording of a named session: nsys saves the report at once and still waits for the
program. Tested with nsys 2022.4.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import threading
from pathlib import Path

from traceviz.collectors.base import Companion, Plan, Window
from traceviz.collectors.program.processes import begin

SESSION = "--session-new"
"""Flag that names a session; an nsys without it records to the end."""

_PAUSE_S = 0.1

WHOLE_RUN = "nsys records the whole run: --steps bounds the profilers inside the program only"
"""Warning for :func:`ignores_steps`: only ranges could limit nsys to steps, and programs may lack them."""


def ignores_steps(window: Window) -> bool:
    """Return whether the user named steps, which do not limit nsys."""
    return window.delay_s is None and window != Window()


def session_of(plan: Plan) -> str:
    """Return the name of the session: a hash of the run folder, in characters that every nsys accepts."""
    return f"traceviz-{hashlib.sha256(str(plan.folder).encode()).hexdigest()[:12]}"


class Stopper(Companion):
    """Companion that waits for the end of the duration in a thread: a new process would inherit our blocked signals.

    The time counts from when nsys reports that it records: starting, and a --delay, may take seconds. ``nsys stop``
    writes the report; once it has started, it is waited for.

    Args:
        seconds: Duration of the recording.
        nsys: The program.
        session: Name of the session.
        pid: Process id of the nsys that records.

    Raises:
        RuntimeError: the system cannot start another thread.
    """

    def __init__(self, seconds: float, nsys: Path, session: str, pid: int) -> None:
        self._seconds = seconds
        self._nsys = str(nsys)
        self._session = session
        self._pid = pid
        self._has_ended = threading.Event()
        self._thread = threading.Thread(target=self._stop_in_time, name="nsys stop", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop waiting for the time, because the program has ended; still wait for a report that is being written."""
        self._has_ended.set()
        self._thread.join()

    @property
    def is_waiting(self) -> bool:
        """True if the end of the time, or a report, is still to come."""
        return self._thread.is_alive()

    def _stop_in_time(self) -> None:
        while not self._is_recording():
            if self._has_ended.wait(_PAUSE_S) or not begin(self._pid):
                return
        if not self._has_ended.wait(self._seconds):
            self._ask("stop", f"--session={self._session}")

    def _is_recording(self) -> bool:
        return re.search(rf" Collection .* {self._session} *$", self._ask("sessions", "list"), re.MULTILINE) is not None

    def _ask(self, *words: str) -> str:
        """Return the output of nsys, run in a session of its own out of reach of Ctrl-C; empty if it cannot be run."""
        none = subprocess.DEVNULL
        command = [self._nsys, *words]
        try:
            done = subprocess.run(
                command, stdin=none, stdout=subprocess.PIPE, stderr=none, start_new_session=True, check=False
            )
        except OSError:  # the system cannot start another process now
            return ""
        return done.stdout.decode(errors="replace")


def stop_after(seconds: float, nsys: Path, plan: Plan, pid: int) -> Stopper:
    """End the session of ``plan``, whose nsys has process id ``pid``, once it has recorded for ``seconds``.

    Raises:
        OSError: the system cannot start another thread.
    """
    try:
        return Stopper(seconds, nsys, session_of(plan), pid)
    except RuntimeError as error:
        raise OSError(str(error)) from error
