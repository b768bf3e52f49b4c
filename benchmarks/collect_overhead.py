"""What recording costs the program: paired runs without and with each collector.

    python benchmarks/collect_overhead.py --python .venv/bin/python [--program examples/cifar10_cnn.py] [--pairs 5]
        [--collectors resources tensorflow nsys,nvtx] [-- ARGUMENTS of the program]

The runs of a pair follow each other, in an order that changes from pair to pair, so that a machine that warms up or
gets busy affects both. Prints, per collector, the median ratio of the wall times and of the program's own CPU times,
with their ranges. It also prints figures of the manifest: the time before and after the program, the resource sampler's
share of one core without and with its start, and how long profilers held the program up to stop and save. On a machine
that does other work, the ratios vary by more than the sampler takes; the sampler's own CPU time does not.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


@dataclass(frozen=True, slots=True)
class Run:
    """What one run of the program took, in seconds; the rest is what recording took.

    ``around`` is the time before and after the program, ``sampler`` and ``sampler_start`` are CPU time of the sampler,
    and ``saving`` is the time in which profilers held the program up at their end.
    """

    wall: float
    cpu: float
    around: float = 0.0
    sampler: float = 0.0
    sampler_start: float = 0.0
    saving: float = 0.0


def plain(command: list[str]) -> Run:
    """The program by itself."""
    before, began = os.times(), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wall, after = time.perf_counter() - began, os.times()
    return Run(wall, after.children_user - before.children_user + after.children_system - before.children_system)


def collected(command: list[str], collectors: str) -> Run:
    """The program under ``traceviz collect``; its times are those of the manifest."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder, "run")
        words = [sys.executable, "-m", "traceviz", "collect", "--with", collectors, "--no-report", "-o", str(run)]
        subprocess.run([*words, "--", *command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        told = json.loads((run / "manifest.json").read_text())
    usage, around = told["usage"], sum(value or 0 for value in told["overhead"].values())
    facts = {entry["name"]: entry["facts"] for entry in told["collectors"]}
    sampler, start = (facts["resources"].get(name, 0) for name in ("cpu_ns", "startup_cpu_ns"))
    saving = sum(one.get("stop_cost_ns") or 0 for one in facts.values())
    seconds = (told["duration_ns"], usage["user_ns"] + usage["system_ns"], around, sampler, start, saving)
    return Run(*(value / 1e9 for value in seconds))


def pairs(command: list[str], collectors: str, count: int) -> list[tuple[Run, Run]]:
    """Runs without and with ``collectors``, side by side."""
    taken = []
    for number in range(count):
        if number % 2:
            recorded = collected(command, collectors)
            taken.append((plain(command), recorded))
        else:
            taken.append((plain(command), collected(command, collectors)))
    return taken


def spread(values: list[float]) -> str:
    """The median, with the least and the most."""
    return f"{statistics.median(values):6.3f} ({min(values):.3f} to {max(values):.3f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable, help="the Python that runs the program")
    parser.add_argument("--program", type=Path, default=EXAMPLES / "cifar10_cnn.py")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--collectors", nargs="+", default=["resources", "tensorflow", "tensorflow,resources"])
    parser.add_argument("arguments", nargs="*", help="of the program, after --")
    options = parser.parse_args()
    command = [options.python, str(options.program), *options.arguments]
    plain(command)  # files come into the page cache
    heads = ("wall with/without", "CPU with/without")
    print(
        f"{'collectors':<24} {heads[0]:<26} {heads[1]:<26} {'around':>8} {'sampler':>8} {'and start':>9} {'saving':>8}"
    )
    for collectors in options.collectors:
        taken = pairs(command, collectors, options.pairs)
        wall = spread([recorded.wall / alone.wall for alone, recorded in taken])
        cpu = spread([recorded.cpu / alone.cpu for alone, recorded in taken])
        runs = [recorded for _, recorded in taken]
        around, saving = (statistics.median(getattr(run, name) for run in runs) for name in ("around", "saving"))
        steady = statistics.median(run.sampler / run.wall for run in runs)
        whole = statistics.median((run.sampler + run.sampler_start) / run.wall for run in runs)
        sampler = f"{steady:8.2%} {whole:9.2%}"
        print(f"{collectors:<24} {wall:<26} {cpu:<26} {around:6.2f} s {sampler} {saving:6.3f} s")


if __name__ == "__main__":
    main()
