"""What a range of ``traceviz.record`` costs a program: beside an empty context manager, and under ``nsys``.

    python benchmarks/range_cost.py [--import torch --import tensorflow ...]

Prints a line per case: the time of one range, and its ratio to ``with contextlib.nullcontext()`` in the same process,
both the best of 30 turns of 500. A case per framework that is imported first (and installed here); with ``nsys`` on
PATH also one in which a tool takes the ranges.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = """
import contextlib, importlib, json, sys, time
for name in sys.argv[2:]:
    importlib.import_module(name)
import traceviz
def best(make):
    least = 1 << 60
    for _ in range(30):
        began = time.perf_counter_ns()
        for _ in range(500):
            with make():
                pass
        least = min(least, (time.perf_counter_ns() - began) / 500)
    return least
with open(sys.argv[1], "w") as output:
    json.dump([best(contextlib.nullcontext), best(lambda: traceviz.record("forward"))], output)
"""


def measure(imports: list[str], wrapper: list[str]) -> tuple[float, float]:
    """Nanoseconds of an empty context manager and of a range, in one new process."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "times.json"
        wrapped = [word.replace("FOLDER", folder) for word in wrapper]
        command = [*wrapped, sys.executable, "-c", PROGRAM, str(output), *imports]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        empty, ranged = json.loads(output.read_text())
    return empty, ranged


def main() -> None:
    """Measure every case that this machine has, one line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--import", dest="imports", action="append", metavar="NAME", help="a framework to import first")
    wanted = parser.parse_args().imports or ["jax", "torch", "tensorflow"]
    cases: list[tuple[str, list[str], list[str]]] = [("nothing records", [], [])]
    cases += [(f"nothing records, {name} imported", [name], []) for name in wanted if importlib.util.find_spec(name)]
    if shutil.which("nsys"):
        wrapper = ["nsys", "profile", "-t", "nvtx", "-s", "none", "--cpuctxsw=none", "-o", "FOLDER/report"]
        cases.append(("nsys records NVTX", [], wrapper))
    for name, imports, wrapper in cases:
        empty, ranged = measure(imports, wrapper)
        print(f"{name:<36} {ranged / 1000:6.2f} µs  {ranged / empty:5.1f} times an empty context manager")


if __name__ == "__main__":
    main()
