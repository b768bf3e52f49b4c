"""Lets py-spy sample a program, and converts its samples: ``python -m traceviz.collectors.pyspy``.

It ends with the program, or upon SIGTERM.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from traceviz.collectors.program.processes import begin
from traceviz.collectors.program.recorder_options import read_options
from traceviz.collectors.pyspy.convert import Clock, write_stacks

_RAW = "py-spy.json"
_AGAIN_S = 0.1
"""Time to wait before py-spy is started again for a program in which Python does not run yet."""
_YOUNG_S = 20.0
"""A program in which py-spy finds no Python for this long has none."""


def main() -> None:
    """Run py-spy as the command line requests."""
    program = {"required": True, "help": "path of py-spy"}
    options = read_options("traceviz.collectors.pyspy", __doc__, 100.0, {"--program": program})
    raw = options.out / _RAW
    clock, is_early, lost = _sample(options, raw)
    if clock is not None and raw.is_file():
        rate = max(1.0, round(options.rate))
        processes = write_stacks(raw, options.out, clock, rate, ended=not is_early)
        facts = {"rate_hz": rate, "processes": processes, "format": "chrometrace", "lost": lost}
        (options.out / "status.json").write_text(json.dumps(facts), encoding="utf-8")
    raw.unlink(missing_ok=True)  # it names folders of the machine


def _sample(options: argparse.Namespace, raw: Path) -> tuple[Clock | None, bool, int]:
    """Run py-spy until the program ends.

    Returns:
        The time at which py-spy started, ``None`` if it recorded nothing; whether it ended before the program; and how
        often it was killed before and lost its samples.
    """
    began, ended, lost = time.monotonic(), False, 0
    while not ended and time.monotonic() - began < _YOUNG_S:
        pid: int | None = options.pid
        if options.wrapped is not None:
            pid = None
            with suppress(OSError, ValueError):  # it has not started yet
                pid = int(options.wrapped.read_text(encoding="ascii"))
        if pid is not None and not begin(pid):
            return None, False, lost
        if pid is not None:
            clock = Clock(time.monotonic_ns(), time.time_ns())
            rate = str(max(1, round(options.rate)))
            flags = ("--format", "chrometrace", "--idle", "--native", "--subprocesses", "--full-filenames")
            command = (options.program, "record", *flags, "--rate", rate, "--output", str(raw), "--pid", str(pid))
            # The signal that is blocked here must not be blocked there.
            with subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=_unblock) as process:  # noqa: PLW1509
                while process.poll() is None:
                    if _is_asked_to_end(_AGAIN_S) and not ended:
                        ended = True
                        process.send_signal(signal.SIGINT)  # upon which py-spy writes its samples
            if raw.is_file():
                return clock, not ended and begin(pid) > 0, lost
            lost += process.returncode < 0
        ended = ended or _is_asked_to_end(_AGAIN_S)
    return None, False, lost


def _unblock() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def _is_asked_to_end(seconds: float) -> bool:
    return signal.sigtimedwait({signal.SIGTERM}, seconds) is not None


if __name__ == "__main__":
    main()
