"""Routes to the same figures, measured in turn: each in its own process, with its peak memory.

It uses the standard library only: routes also run under Pythons that have other tools instead of traceviz. Callers of
:func:`run_alone` should load no more, either: a child starts with the memory of the process that forked it, and
Linux counts that as its peak.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

Work = Callable[[], int]
"""Timed work; it returns a count, which should be equal for all routes."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One run of a route: its time, the peak of its memory, and its count."""

    seconds: float
    peak_bytes: int
    counted: int


@dataclass(frozen=True, slots=True)
class Usage:
    """Resources of one run of a whole command, from its start to its end.

    Args:
        seconds: Wall time.
        cpu_seconds: User and system time of the process and of the children that it waited for.
        peak_bytes: Largest resident set of one of these.
        code: Its exit code.
        output: Its output on stdout.
        errors: Its output on stderr.
    """

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    code: int
    output: str
    errors: str

    @property
    def work_seconds(self) -> float | None:
        """Wall time of the work without imports, if the command ends with a line of :func:`run_here`."""
        lines = self.output.splitlines()
        try:
            return float(json.loads(lines[-1])["seconds"]) if lines else None
        except (ValueError, KeyError, TypeError):
            return None


def run_alone(
    command: Sequence[str | Path], folder: Path | None = None, environment: Mapping[str, str] | None = None
) -> Usage:
    """Run a command to its end, in ``folder``, with these variables in addition to those of this process."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        begin = time.perf_counter()
        process = subprocess.Popen(
            [*map(str, command)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            cwd=folder,
            env={**os.environ, **(environment or {})},
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        texts = []
        for stream in (output, errors):
            stream.seek(0)
            texts.append(stream.read().decode(errors="replace"))
    cpu_seconds = usage.ru_utime + usage.ru_stime
    return Usage(seconds, cpu_seconds, usage.ru_maxrss * 1024, process.returncode, texts[0], texts[1])


def measure(commands: dict[str, Sequence[str | Path]], runs: int) -> dict[str, list[Measurement]]:
    """Run all routes that can run here in turn.

    Args:
        commands: The command of each route; its last line of output is that of :func:`run_here`.
        runs: Number of runs of each.
    """
    found: dict[str, list[Measurement]] = {}
    missing: set[str] = set()
    for _ in range(runs):
        for route, command in commands.items():
            if route in missing:
                continue
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                found.setdefault(route, []).append(Measurement(**json.loads(done.stdout.splitlines()[-1])))
            elif "ModuleNotFoundError" in done.stderr:
                print(f"{route} is not measured: {done.stderr.splitlines()[-1]}")
                missing.add(route)
            else:
                sys.exit(f"{route} failed:\n{done.stderr[-2000:]}")
    return found


def run_here(work: Work) -> None:
    """Do the work in this process and print the measurement as JSON."""
    begin = time.perf_counter()
    counted = work()
    seconds = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds, "peak_bytes": peak, "counted": counted}))


def print_table(found: dict[str, list[Measurement]]) -> None:
    """Print one line per route; the right columns are multiples of the first."""
    print(f"{'route':18} {'median':>9} {'min':>9} {'max':>9} {'peak':>9}  {'time':>7} {'memory':>7}   counted")
    first = next(iter(found.values()))
    base_seconds, base_peak = statistics.median(one.seconds for one in first), max(one.peak_bytes for one in first)
    for route, runs in found.items():
        seconds = [one.seconds for one in runs]
        median, peak = statistics.median(seconds), max(one.peak_bytes for one in runs)
        print(
            f"{route:18} {median:7.2f} s {min(seconds):7.2f} s {max(seconds):7.2f} s {peak / 1e6:6.0f} MB  "
            f"{median / base_seconds:6.2f}× {peak / base_peak:6.2f}×   {runs[0].counted:,}"
        )
