"""Ending what nsys records while the program goes on, for ``--duration``.

``nsys profile --duration`` returns when the time is over and leaves the program behind, and its exit code is lost.
``nsys stop`` ends the recording of a named session alone: nsys saves the report at once, and still waits for the
program. Tried with nsys 2022.4.
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
"""A warning where :func:`ignores_steps`: only ranges could bound nsys to steps, and programs may lack them."""


def ignores_steps(window: Window) -> bool:
    """Whether the user named steps, which bound nsys in no way."""
    return window.delay_s is None and window != Window()


def session_of(plan: Plan) -> str:
    """Name of the session: the run folder's, in letters that every nsys takes."""
    return f"traceviz-{hashlib.sha256(str(plan.folder).encode()).hexdigest()[:12]}"


class Stopper(Companion):
    """Waits beside the program for the end of the time: a thread, as what we start now has our signals held back.

    The time counts from when nsys says that it records: starting, and a --delay, may take seconds. It is ``nsys stop``
    that writes the report: once begun, it is waited for.

    Args:
        seconds: How long to record.
        nsys: The program.
        session: Name of the session.
        pid: Process id of the nsys that records.

    Raises:
        RuntimeError: the machine has no room for another thread.
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
        """The program has ended: do not wait for the time any more, but for a report that is being written."""
        self._has_ended.set()
        self._thread.join()

    @property
    def is_waiting(self) -> bool:
        """Whether the end of the time, or a report, is still to come."""
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
        """What nsys prints, in a session of its own: no Ctrl-C reaches it there. Nothing where it cannot be run."""
        none = subprocess.DEVNULL
        command = [self._nsys, *words]
        try:
            done = subprocess.run(
                command, stdin=none, stdout=subprocess.PIPE, stderr=none, start_new_session=True, check=False
            )
        except OSError:  # no room for another process now
            return ""
        return done.stdout.decode(errors="replace")


def stop_after(seconds: float, nsys: Path, plan: Plan, pid: int) -> Stopper:
    """End the session of ``plan``, whose nsys has process id ``pid``, once it has recorded for ``seconds``.

    Raises:
        OSError: there is no room for another thread.
    """
    try:
        return Stopper(seconds, nsys, session_of(plan), pid)
    except RuntimeError as error:
        raise OSError(str(error)) from error
