"""Routes to the same figures, measured side by side: each in its own process, in turn, with its peak memory.

It uses the standard library only: routes also run under Pythons that have other tools instead of traceviz.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

Work = Callable[[], int]
"""What is timed; it returns what it counted, which all routes should agree on."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One run of a route: its time, the peak of its memory, and what it counted."""

    seconds: float
    peak_bytes: int
    counted: int


def measure(commands: dict[str, Sequence[str | Path]], runs: int) -> dict[str, list[Measurement]]:
    """Run all routes that can run here in turn.

    Args:
        commands: The command of each route; its last line of output is that of :func:`run_here`.
        runs: How often.
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
    """One line per route; right: multiples of the first."""
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
