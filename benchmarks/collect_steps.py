"""What recording with every default costs a training loop: alternating runs without and with ``traceviz collect``.

    python benchmarks/collect_steps.py --python .venv-torch/bin/python [--pairs 5] [--seconds 30] [-- OPTIONS]

The program trains a small network of PyTorch on one core, for as many steps as take ``--seconds`` of processor time.
Prints, as medians with their ranges: processor time in steps, with against without, for all steps and for those in
which no profiler records; and the time outside of steps. ``collect`` lengthens the latter by its work before and after
the program, and by the profilers' start and end. OPTIONS are for ``collect``. Processor time hardly depends on other
load of the machine; wall time does.
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
from pathlib import Path

WINDOW = (10, 30)
"""Steps in which profilers record by default."""
AROUND = 2
"""Steps next to them that are left out, too: a profiler starts in the step before its first."""

PROGRAM = """
import json, sys, time
import torch
torch.set_num_threads(1)
steps, out = int(sys.argv[1]), sys.argv[2]
model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(6)])
optimizer = torch.optim.Adam(model.parameters())
data = torch.utils.data.TensorDataset(torch.randn(4096, 512), torch.randn(4096, 512))
loader = torch.utils.data.DataLoader(data, batch_size=64, shuffle=True)
taken, began = [], time.monotonic_ns()
while len(taken) < steps:
    for inputs, targets in loader:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()
        taken.append(time.process_time_ns())
        if len(taken) == steps: break
json.dump([time.monotonic_ns() - began, [after - before for before, after in zip(taken, taken[1:])]], open(out, "w"))
"""


def run(python: str, steps: int, prefix: list[str], folder: str) -> tuple[float, list[int]]:
    """Return the seconds outside of the loop, and each step's processor time in nanoseconds."""
    script, out = Path(folder, "train.py"), Path(folder, "out.json")
    script.write_text(PROGRAM)
    # The end of the heap decides how often memory goes back to the system and is taken again: do not leave it to
    # chance.
    memory = {"MALLOC_MMAP_THRESHOLD_": str(4 << 30), "MALLOC_TRIM_THRESHOLD_": str(16 << 30)}
    began = time.monotonic_ns()
    command = [*prefix, python, str(script), str(steps), str(out)]
    subprocess.run(
        command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder, env=os.environ | memory
    )
    wall_ns = time.monotonic_ns() - began
    loop_ns, taken = json.loads(out.read_text())
    return (wall_ns - loop_ns) / 1e9, taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--python", type=os.path.abspath, default=sys.executable, help="the Python that runs the program"
    )
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=30.0, help="processor time of the steps")
    parser.add_argument("options", nargs="*", help="of collect, after --")
    options = parser.parse_args()
    all_steps, other_steps, outside = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        _, first = run(options.python, 60, [], folder)
        steps = int(options.seconds * 1e9 / statistics.median(first))
        for number in range(options.pairs):
            recording = [sys.executable, "-m", "traceviz", "collect", "--force", "-o", f"{folder}/run"]
            runs = {}
            for collects in (number % 2 == 0, number % 2 == 1):
                prefix = [*recording, *options.options, "--"] if collects else []
                runs[collects] = run(options.python, steps, prefix, folder)
            (more, recorded), (less, alone) = runs[True], runs[False]
            all_steps.append(sum(recorded) / sum(alone))
            kept = [place for place in range(len(alone)) if not WINDOW[0] - AROUND <= place < WINDOW[1] + AROUND]
            other_steps.append(sum(recorded[place] for place in kept) / sum(alone[place] for place in kept))
            outside.append(more - less)
            print(f"pair {number}: {all_steps[-1]:.4f} {other_steps[-1]:.4f} {more:.1f} s {less:.1f} s", flush=True)
    print(f"{steps} steps; processor time in all steps, with / without collect: {spread(all_steps)}")
    print(f"in those outside of the profilers' window: {spread(other_steps)}")
    print(f"time outside of the loop, with less without, in seconds: {spread(outside)}")


def spread(values: list[float]) -> str:
    """Return the median, with the least and the most."""
    return f"{statistics.median(values):.4f} ({min(values):.4f} to {max(values):.4f})"


if __name__ == "__main__":
    main()
