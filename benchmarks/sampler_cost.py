"""The resource sampler's share of one core, for programs of several sizes.

    python benchmarks/sampler_cost.py [--seconds 20] [--rate 10]

Prints a line per program: processes, threads, the sampler's CPU time as a share of one core without and with its start,
turns that it missed, and its memory. Where psutil is installed, it also compares both ways to read a process.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from traceviz.collectors.base import Plan
from traceviz.collectors.sampler.collector import ResourcesCollector
from traceviz.collectors.sampler.proc import ProcFile, parse_io, parse_stat

PROGRAM = """
import subprocess, sys, threading, time
processes, threads, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
words = [sys.executable, "-S", __file__, "1", *sys.argv[2:]]
children = [subprocess.Popen(words) for _ in range(processes - 1)]
for _ in range(threads - 1):
    threading.Thread(target=time.sleep, args=(seconds,)).start()
end = time.time() + seconds
while time.time() < end:
    sum(range(1000)) if not children else time.sleep(0.01)
for child in children:
    child.wait()
"""
SIZES = ((1, 1), (1, 100), (9, 8), (33, 4))


def cost(processes: int, threads: int, seconds: float, rate_hz: float) -> dict[str, Any]:
    """Return the sampler's own figures for a program of this size."""
    with tempfile.TemporaryDirectory() as folder:
        program, plan = Path(folder) / "program.py", Plan(Path(folder), (), ("resources",), rate_hz=rate_hz)
        program.write_text(PROGRAM)
        plan.raw("resources").mkdir(parents=True)
        words = [sys.executable, "-S", str(program), *map(str, (processes, threads, seconds))]
        child = subprocess.Popen(words)
        companion = ResourcesCollector().start(plan, child.pid)
        child.wait()
        companion.stop()
        return json.loads((plan.raw("resources") / "resources.json").read_text())


def each(action: Callable[[], object], times: int = 2000) -> float:
    """Return the CPU time of one call, in microseconds."""
    began = time.process_time()
    for _ in range(times):
        action()
    return (time.process_time() - began) / times * 1e6


def reading_one_process() -> None:
    """Print the time of reading one process, here and through psutil."""
    try:
        import psutil
    except ImportError:
        return
    process, stat, io = psutil.Process(), ProcFile("/proc/self/stat"), ProcFile("/proc/self/io")

    def through_psutil() -> None:
        with process.oneshot():
            process.cpu_times(), process.memory_info(), process.num_threads(), process.io_counters(), process.ppid()

    ours = each(lambda: (parse_stat(stat.read()), parse_io(io.read())))
    print(f"reading one process: {ours:.1f} µs, through psutil {each(through_psutil):.1f} µs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rate", type=float, default=10)
    options = parser.parse_args()
    reading_one_process()
    print("processes threads  steady  with start  missed  memory")
    for processes, threads in SIZES:
        told = cost(processes, threads, options.seconds, options.rate)
        steady, start, wall = (told[key] / 1e9 for key in ("cpu_ns", "startup_cpu_ns", "wall_ns"))
        shares = f"{steady / wall:7.2%} {(steady + start) / wall:10.2%}"
        print(f"{processes:9} {threads:7} {shares} {told['missed']:7} {told['memory_bytes'] / 1e6:6.0f} MB")


if __name__ == "__main__":
    main()
