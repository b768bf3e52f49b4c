"""How much slower steps become while Python's stacks are sampled, within one run.

    python benchmarks/stacks_overhead.py [--python PROGRAM] [--step python|matmul|wait|torch] [--rate 100]

The sampler rides in a program that makes steps of about 5 ms. It is stopped and started in turn, in random order within
each pair of slices: both halves of a pair see the same machine. Prints the median over the pairs of the ratio of the
times per step, sampled against not sampled, with its 95 % interval (bootstrap over pairs); the same of the program's
processor time; the sampler's own processor time of a core while it sampled; and the rate that it kept.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "collectors" / "inject"
PROGRAM = """
import json, random, sys, threading, time
kind, seconds, piece, seed = sys.argv[1], float(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
from traceviz_inject import stack_recording
sampler = stack_recording._STATE.sampler

def in_python():
    total = 0
    for number in range(60_000):
        total += number * number
    return total

if kind == "python":
    step = in_python
elif kind == "wait":
    def step(): time.sleep(0.004); in_python()
elif kind == "matmul":
    import numpy
    matrix = numpy.random.rand(300, 300)
    def step():
        for _ in range(4): matrix @ matrix
else:
    import torch
    torch.set_num_threads(1)
    model = torch.nn.Sequential(*[torch.nn.Linear(128, 128) for _ in range(6)])
    optimizer = torch.optim.Adam(model.parameters())
    batch = torch.randn(64, 128)
    def step():
        for _ in range(2):
            optimizer.zero_grad(); model(batch).sum().backward(); optimizer.step()

def nested(depth):
    return nested(depth - 1) if depth else block()

def block():
    count, began, cpu = 0, time.perf_counter_ns(), time.process_time_ns()
    while not count or time.perf_counter_ns() - began < piece * 1e9:
        step(); count += 1
    return (time.perf_counter_ns() - began) / count, (time.process_time_ns() - cpu) / count

order = random.Random(seed)
for _ in range(20): step()
pairs, until = [], time.monotonic() + seconds
sampler.stop(ends=False)
while time.monotonic() < until:
    first, took = order.random() < 0.5, {}
    for sampled in (first, not first):
        ticks, cpu, began = sampler.ticks, sampler.cpu_ns, time.monotonic_ns()
        if sampled: sampler.start()
        took[sampled] = nested(20)
        if sampled:
            sampler.stop(ends=False)
            spent = (sampler.ticks - ticks, sampler.cpu_ns - cpu, time.monotonic_ns() - began)
    pairs.append((*took[True], *took[False], *spent))
json.dump(pairs, open(sys.argv[5], "w"))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable, help="the Python that runs the program")
    parser.add_argument("--step", choices=("python", "matmul", "wait", "torch"), default="python")
    parser.add_argument("--rate", default="100", help="samples per second")
    parser.add_argument("--seconds", default="60", help="how long to measure")
    parser.add_argument("--slice", default="0.5", help="seconds with and without, each")
    parser.add_argument("--seed", default="1", help="of the order within pairs")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "pairs.json")
        (Path(folder) / "raw").mkdir()
        Path(folder, "inject.json").write_text("{}", encoding="utf-8")
        given = {
            "PYTHONPATH": str(FOLDER),
            "TRACEVIZ_INJECT": f"{folder}/inject.json",
            "TRACEVIZ_INJECT_STACKS": options.rate,
        }
        words = [options.python, "-c", PROGRAM, options.step, options.seconds, options.slice, options.seed, str(out)]
        subprocess.run(words, env={**os.environ, **given}, check=True)
        pairs = json.loads(out.read_text())
    report("time per step", [pair[0] / pair[2] for pair in pairs])
    report("processor time per step", [pair[1] / pair[3] for pair in pairs])
    ticks, cpu_ns, wall_ns = (sum(pair[part] for pair in pairs) for part in (4, 5, 6))
    rate, cost_us = ticks / wall_ns * 1e9, cpu_ns / max(1, ticks) / 1e3
    step_ms = statistics.median(pair[2] for pair in pairs) / 1e6
    print(f"sampler: {cpu_ns / wall_ns:.2%} of a core, {rate:.0f} samples a second, {cost_us:.0f} µs each")
    print(f"a step takes {step_ms:.2f} ms")


def report(what: str, ratios: list[float]) -> None:
    """Print the median of the ratios with its interval."""
    order = random.Random(0)
    medians = sorted(statistics.median(order.choices(ratios, k=len(ratios))) for _ in range(2000))
    print(f"{what}, sampled / not: {statistics.median(ratios):.4f} ", end="")
    print(f"({medians[50]:.4f} to {medians[1949]:.4f}), {len(ratios)} pairs")


if __name__ == "__main__":
    main()
