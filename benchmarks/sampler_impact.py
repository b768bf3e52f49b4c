"""How much slower the steps of a Keras program become while its resources are sampled.

    python benchmarks/sampler_impact.py --python .venv/bin/python [--program examples/cifar10_cnn.py] [--slice 1.0]
        [-- ARGUMENTS of the program]

The sampler runs along with one run of the program, stopped and continued in turn, in random order within each pair of
slices: both halves of a pair see the same machine. Prints the median over the pairs of the ratio of the times per step,
sampled against not sampled, with its 95 % interval (bootstrap over pairs), and the sampler's own CPU time while it
sampled. This excludes the sampler's start, once per run: see benchmarks/collect_overhead.py.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from traceviz.collectors.base import Plan
from traceviz.collectors.sampler.collector import ResourcesCollector, Sampling

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
STAMPED = """
import atexit, runpy, sys, time
import keras
out, program = sys.argv[1:3]
ends, callbacks = [], keras.callbacks.CallbackList
before = callbacks.on_train_batch_end
def stamped(*told, **named):
    ends.append(time.monotonic_ns())
    return before(*told, **named)
callbacks.on_train_batch_end = stamped
atexit.register(lambda: open(out, "w").write("\\n".join(map(str, ends))))
sys.argv[:] = sys.argv[2:]
sys.path.insert(0, program.rpartition("/")[0])
runpy.run_path(program, run_name="__main__")
"""


@dataclass(frozen=True, slots=True)
class Slice:
    """A time in which the sampler ran or was stopped."""

    begin_ns: int
    end_ns: int
    sampled: bool


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable, help="the Python that runs the program")
    parser.add_argument("--program", type=Path, default=EXAMPLES / "cifar10_cnn.py")
    parser.add_argument("--slice", type=float, default=1.0, help="seconds with and without, each")
    parser.add_argument("--seed", type=int, default=1, help="of the order within pairs")
    parser.add_argument("arguments", nargs="*", help="of the program, after --")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        stamps = Path(folder, "stamps")
        words = [options.python, "-c", STAMPED, str(stamps), str(options.program), *options.arguments]
        program = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        plan = Plan(Path(folder), (), ("resources",))
        plan.raw("resources").mkdir(parents=True)
        sampling = ResourcesCollector().start(plan, program.pid)
        assert isinstance(sampling, Sampling)
        slices = alternate(program, sampling, options.slice, random.Random(options.seed))
        sampling.stop()
        described = json.loads((plan.raw("resources") / "resources.json").read_text())
        ends = np.array(stamps.read_text().split(), dtype=np.int64)
    report(slices, ends, described)


def alternate(
    program: subprocess.Popen[bytes], sampling: Sampling, seconds: float, order: random.Random
) -> list[Slice]:
    """Stop and continue the sampler until the program ends."""
    slices: list[Slice] = []
    while program.poll() is None:
        first = order.random() < 0.5
        for sampled in (first, not first):
            sampling.process.send_signal(signal.SIGCONT if sampled else signal.SIGSTOP)
            began = time.monotonic_ns()
            time.sleep(seconds)
            slices.append(Slice(began, time.monotonic_ns(), sampled))
    sampling.process.send_signal(signal.SIGCONT)
    return slices


def report(slices: list[Slice], ends: np.ndarray, described: dict[str, int]) -> None:
    """Print the result of the pairs; a pair counts if both halves lie in the training."""
    ratios = []
    for pair in zip(slices[::2], slices[1::2], strict=True):
        took = {one.sampled: time_per_step(one, ends) for one in pair}
        if all(pair[0].begin_ns > ends[0] and one.end_ns < ends[-1] for one in pair):
            ratios.append(took[True] / took[False])
    if len(ratios) < 5:
        sys.exit(
            f"{len(ratios)} pairs lie in the training, 5 are needed: give the program more steps, or --slice less."
        )
    drawn = np.random.default_rng(0).choice(ratios, (10_000, len(ratios)))
    low, high = np.quantile(np.median(drawn, axis=1), [0.025, 0.975])
    sampled_ns = sum(one.end_ns - one.begin_ns for one in slices if one.sampled)
    print(f"time per step, sampled / not: {np.median(ratios):.4f} ({low:.4f} to {high:.4f}), {len(ratios)} pairs")
    print(f"sampler's CPU time while it sampled: {described['cpu_ns'] / sampled_ns:.2%} of a core")


def time_per_step(one: Slice, ends: np.ndarray) -> float:
    """Return the mean time between the ends of steps in a slice, ns."""
    within = ends[(ends >= one.begin_ns) & (ends <= one.end_ns)]
    return float((within[-1] - within[0]) / (len(within) - 1)) if len(within) > 1 else float("nan")


if __name__ == "__main__":
    main()
