"""What a range of ``traceviz.record`` costs a program: against an empty context manager, and under ``nsys``.

    python benchmarks/range_cost.py [--python PYTHON_WITH_FRAMEWORKS]...

Prints a line per case: the time of one range, and its ratio to ``with contextlib.nullcontext()`` in the same process,
both the best of 60 alternating turns of 500. Each framework that this Python or the named Pythons have is a case, in
which it is imported first; with ``nsys`` on PATH, another case lets nsys record the ranges.
"""

from __future__ import annotations

import argparse
import json
import os
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
def once(make):
    began = time.perf_counter_ns()
    for _ in range(500):
        with make("forward"):
            pass
    return (time.perf_counter_ns() - began) / 500
turns = [(once(contextlib.nullcontext), once(traceviz.record)) for _ in range(60)]
with open(sys.argv[1], "w") as output:
    json.dump([min(times) for times in zip(*turns)], output)
"""


REPOSITORY = Path(__file__).resolve().parent.parent
FRAMEWORKS = ("jax", "torch", "tensorflow")


def measure(python: str, *imports: str, wrapper: tuple[str, ...] = ()) -> tuple[float, float]:
    """Return the nanoseconds of an empty context manager and of a range, in one new process of ``python``."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "times.json"
        wrapped = [word.replace("FOLDER", folder) for word in wrapper]
        # Another Python need not have traceviz installed: without a recording, a range needs the library alone.
        environment = os.environ if python == sys.executable else {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        command = [*wrapped, python, "-c", PROGRAM, str(output), *imports]
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        empty, ranged = json.loads(output.read_text())
    return empty, ranged


def has(python: str, package: str) -> bool:
    """Return whether ``python`` has ``package``."""
    ask = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({package!r}) is None)"
    return subprocess.run([python, "-c", ask], check=False).returncode == 0


def main() -> None:
    """Measure every case that this machine has, one line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", default=[], help="a Python that has frameworks")
    pythons = (sys.executable, *parser.parse_args().python)
    tell("nothing records", *measure(sys.executable))
    for name in FRAMEWORKS:
        python = next((python for python in pythons if has(python, name)), None)
        if python is not None:
            tell(f"nothing records, {name} imported", *measure(python, name))
    if shutil.which("nsys"):
        wrapper = ("nsys", "profile", "-t", "nvtx", "-s", "none", "--cpuctxsw=none", "-o", "FOLDER/report")
        tell("nsys records NVTX", *measure(sys.executable, wrapper=wrapper))


def tell(case: str, empty: float, ranged: float) -> None:
    """Print a line for the user."""
    print(f"{case:<36} {ranged / 1000:6.2f} µs  {ranged / empty:5.1f} times an empty context manager")


if __name__ == "__main__":
    main()
