"""What a command costs before it works: CPU time of ``traceviz --help``, of an error about a path, of a small report.

    python benchmarks/start.py [--runs 9] [--against PYTHON_WITH_ANOTHER_TRACEVIZ]

The commands take turns with ``python -c "import polars, pyarrow"``, the minimum that a report needs. Prints
for each the median and the smallest CPU time (user and system, all threads and child processes), the median wall
time, and the CPU time as a multiple of the import's. With ``--against``, another Python's traceviz takes turns too,
such as the version before a change. A first turn, in which byte code is compiled, does not count.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

SAMPLE = Path(__file__).resolve().parent.parent / "sample_traces" / "synthetic" / "input_bound.sqlite"
COMMANDS = {
    "--help": ("--help",),
    "error about a path": ("report", "there/is/no/such.nsys-rep"),
    "report --section": ("report", str(SAMPLE), "--section", "cuda_api"),
    "report": ("report", str(SAMPLE)),
}
IMPORTS = "import polars, pyarrow"
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=9, help="turns that are timed, after one that is not")
    parser.add_argument("--against", metavar="PYTHON", help="another Python that has traceviz")
    arguments = parser.parse_args()
    pythons = {"": sys.executable} | ({"before: ": arguments.against} if arguments.against else {})
    cases = {IMPORTS: (sys.executable, "-c", IMPORTS)}
    for label, python in pythons.items():
        cases |= {label + name: (python, "-m", "traceviz", *words) for name, words in COMMANDS.items()}
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in cases}
    for turn in range(arguments.runs + 1):
        for name, command in cases.items():
            measured = run(command)
            if turn:
                times[name].append(measured)
    base = statistics.median(cpu for cpu, _ in times[IMPORTS])
    print(f"{'':32} {'CPU median':>10} {'min':>8} {'wall':>8}  {'of the import':>13}")
    for name, runs in times.items():
        cpu, wall = [cpu for cpu, _ in runs], statistics.median(wall for _, wall in runs)
        median = statistics.median(cpu)
        print(f"{name:32} {median:8.3f} s {min(cpu):6.3f} s {wall:6.3f} s  {median / base:12.2f}×")


def run(command: tuple[str, ...]) -> tuple[float, float]:
    """Return CPU time and wall time of a process and its children, in seconds."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, wall


if __name__ == "__main__":
    main()
