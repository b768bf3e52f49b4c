"""The processor time that recording adds to a program, and the process that it goes to.

    python benchmarks/collect_overhead.py [--torch PYTHON] [--keras PYTHON] [--programs numpy ...]
    python benchmarks/collect_overhead.py --python PYTHON --program FILE [-- ARGUMENTS of the program]

Runs each program alone, with ``--with stacks,resources``, and with all collectors, one after the other. The four
programs are: training in NumPy, a transformer in PyTorch, an LSTM in Keras, and a loop of PyTorch with 28,000 operators
per step. Prints, per program and set of collectors, user and system time of all processes in seconds:

``total``       of the program, of traceviz, and of all that they started
``more``        the difference to a run without ``collect``
``program``     of the program's own processes; the hooks and the profilers in them included
``collect``     of the process ``traceviz collect``
``sampler``     of the sampler of resources
``nsys``        of nsys while the program runs; ``report`` is the same from the program's end on
``tables``      of the process that makes the tables and the verdict
``other``       of processes that were too short to be seen
``steps``       processor time in the program's steps, as a multiple of that without ``collect``; the time in which
                profilers start and stop is not in it
``stop``        wall time in which the program waited for profilers to start and to stop

Processor time hardly depends on other load of the machine. A process is read every 20 ms: its later time, and the time
of children that it did not wait for, is ``other``.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WITHOUT, FEW, ALL = "alone", "stacks,resources", "auto"
PARTS = ("program", "collect", "sampler", "nsys", "report", "tables", "other")
TICK = os.sysconf("SC_CLK_TCK")
LOOK_S = 0.02
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER: processes whose parent ended become ours

QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""Threads of a pool spin while others wait for a core: on a busy machine, that would dominate the figures."""

CLOCK = """
import atexit, json, os, time
_ends = []
def step_ends(): _ends.append(time.process_time_ns())
def _write():
    if os.environ.get("STEPS_OUT"): json.dump(_ends, open(os.environ["STEPS_OUT"], "w"))
atexit.register(_write)
"""
"""Start of each program: it records its processor time at the end of each step."""

NUMPY = """
import numpy as np
class SGD:
    def __init__(self, weights, rate): self.weights, self.rate = weights, rate
    def step(self, gradients):
        for weight, gradient in zip(self.weights, gradients): weight -= self.rate * gradient
r = np.random.default_rng(0)
draw = lambda *shape: r.standard_normal(shape).astype("f")
x, t = draw(64 * 40, 256), draw(64 * 40, 16)
w = [draw(256, 256) * 0.05, draw(256, 256) * 0.05, draw(256, 16) * 0.05]
optimizer = SGD(w, 1e-3)
for epoch in range(36):
    for k in range(0, len(x), 64):
        a = x[k:k + 64]; b = np.maximum(a @ w[0], 0); c = np.maximum(b @ w[1], 0)
        d = 2 * (c @ w[2] - t[k:k + 64]) / 64; e = d @ w[2].T * (c > 0); f = e @ w[1].T * (b > 0)
        optimizer.step([a.T @ f, b.T @ e, c.T @ d])
        step_ends()
"""

TRANSFORMER = """
import torch
torch.manual_seed(0); torch.set_num_threads(1)
layer = torch.nn.TransformerEncoderLayer(128, 4, 256, dropout=0.0, batch_first=True)
model = torch.nn.Sequential(torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), torch.nn.Linear(128, 1))
optimizer = torch.optim.Adam(model.parameters())
data = torch.utils.data.TensorDataset(torch.randn(1024, 32, 128), torch.randn(1024, 32, 1))
for epoch in range(2):
    for a, b in torch.utils.data.DataLoader(data, batch_size=16, shuffle=True):
        optimizer.zero_grad(); torch.nn.functional.mse_loss(model(a), b).backward(); optimizer.step()
        step_ends()
"""

OPERATORS = """
import torch
torch.set_num_threads(1)
w, x = torch.ones(8, requires_grad=True), torch.ones(8)
optimizer = torch.optim.SGD([w], lr=1e-6)
for step in range(100):
    with torch.no_grad():
        y = x
        for _ in range(27950): y = y + x
    optimizer.zero_grad(); (w * y).sum().backward(); optimizer.step()
    step_ends()
"""

LSTM = """
import numpy as np
from tensorflow import keras
L = keras.layers
i = L.Input((32, 32)); x = L.LSTM(64, return_sequences=True)(i); x = L.LSTM(64)(x); o = L.Dense(1)(x)
m = keras.Model(i, o); m.compile("adam", "mse")
x = np.random.default_rng(0).standard_normal((800, 32, 32)).astype("f"); y = x.sum((1, 2))
ends = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: step_ends())
m.fit(x, y, epochs=3, batch_size=32, verbose=0, validation_data=(x[:160], y[:160]), callbacks=[ends])
"""

PROGRAMS = {
    "numpy": ("torch", NUMPY),
    "transformer": ("torch", TRANSFORMER),
    "lstm": ("keras", LSTM),
    "operators": ("torch", OPERATORS),
}
"""Map from name to the option with the Python that runs it, and its source."""


@dataclass(slots=True)
class Run:
    """Processor time of one run in seconds, by part, and that of its steps in nanoseconds."""

    total: float = 0.0
    parts: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    steps: list[int] = field(default_factory=list)
    waited: float = 0.0
    recorded: tuple[int, int] = (0, 0)
    """First step that a profiler recorded, and number of these steps."""


def measure(command: list[str], environment: Mapping[str, str], ended: Path | None = None) -> Run:
    """Run ``command`` and attribute the processor time of its processes.

    Args:
        command: The command.
        environment: Variables to add.
        ended: The run's manifest: once it states an exit, the program has ended.
    """
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    before = os.times()
    seen: dict[int, tuple[str, float, float]] = {}  # pid -> its part, and its time until the program's end and now
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **environment}
    )
    over = False
    while process.poll() is None:
        over = over or (ended is not None and has_ended(ended))
        look(seen, process.pid, over=over)
        time.sleep(LOOK_S)
    while True:  # a daemon of nsys may outlive it
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            break
    after = os.times()
    run = Run(after.children_user - before.children_user + after.children_system - before.children_system)
    for part, during, now in seen.values():
        run.parts[part] += during
        run.parts["report" if part == "nsys" else part] += now - during
    if process.returncode:
        print(f"{command[-1]} ended with {process.returncode}", file=sys.stderr)
    run.parts["other"] = run.total - sum(run.parts.values())
    return run


def has_ended(manifest: Path) -> bool:
    """Return whether the manifest states how the program ended."""
    try:
        return json.loads(manifest.read_text())["status"] != "running"
    except (OSError, ValueError):
        return False


def look(seen: dict[int, tuple[str, float, float]], root: int, *, over: bool) -> None:
    """Read the processor time of all processes that descend from this one."""
    stats = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has just ended
            words = (folder / "stat").read_text(errors="replace").rpartition(") ")[2].split()
            stats[int(folder.name)] = (int(words[1]), (int(words[11]) + int(words[12])) / TICK)
    family = {os.getpid()}
    while more := {pid for pid, (parent, _) in stats.items() if parent in family} - family:
        family |= more
    for pid in family - {os.getpid()}:
        used = stats[pid][1]
        part = part_of(pid, root)
        if pid in seen and (not part or part == "other"):
            part = seen[pid][0]
        during = seen[pid][1] if over and pid in seen else (0.0 if over else used)
        seen[pid] = (part or "other", during, used)


def part_of(pid: int, root: int) -> str:
    """Return the part that a process belongs to, by its command line; empty if it has just ended."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        name = Path(f"/proc/{pid}/exe").readlink().name
    except OSError:
        return ""
    if b"traceviz.collectors.sampler" in words:
        return "sampler"
    if any(b"traceviz.runs.run_tables" in word for word in words):
        return "tables"
    if name.startswith(("nsys", "QdstrmImporter")):
        return "nsys"
    if pid == root and b"collect" in words:
        return "collect"
    return "program" if name.startswith("python") else "other"


def measure_recorded(command: list[str], collectors: str, environment: Mapping[str, str], folder: Path) -> Run:
    """Run ``command`` under ``traceviz collect``."""
    run = folder / "run"
    words = [sys.executable, "-m", "traceviz", "collect", "--with", collectors, "--force", "-o", str(run), "--"]
    measured = measure([*words, *command], environment, run / "manifest.json")
    manifest = json.loads((run / "manifest.json").read_text())
    facts = [entry["facts"] for entry in manifest["collectors"]]
    processes = [process for entry in facts for process in entry.get("processes", ()) if isinstance(process, dict)]
    measured.waited = sum(
        (process.get(key) or 0) / 1e9
        for process in processes
        for key in ("start_cost_ns", "trial_cost_ns", "stop_cost_ns")
    )
    windows = [
        (one["first_step"], one.get("steps_recorded") or 0) for one in processes if one.get("first_step") is not None
    ]
    measured.recorded = max(windows, key=lambda window: window[1], default=(0, 0))
    return measured


def step_ratio(alone: Run, recorded: Run) -> str:
    """Return processor time in steps, relative to that without ``collect``, and the same outside the profilers' window.

    The steps in which a profiler starts or stops are left out: these waits are a separate figure.
    """
    if len(alone.steps) != len(recorded.steps) or len(alone.steps) < 3:
        return ""
    first, count = recorded.recorded
    edges = {first - 2, first - 1, first, first + count - 1, first + count} if count else set()
    window = set(range(first, first + count))
    lengths = [[after - before for before, after in pairwise(run.steps)] for run in (alone, recorded)]
    kept = [place for place in range(1, len(lengths[0])) if place + 1 not in edges]
    others = [place for place in kept if place + 1 not in window]
    ratios = [
        sum(lengths[1][place] for place in some) / sum(lengths[0][place] for place in some)
        for some in (kept, others)
        if some
    ]
    return " / ".join(f"{ratio:.3f}" for ratio in ratios)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--torch", default=os.environ.get("TRACEVIZ_TORCH", sys.executable), help="Python with PyTorch")
    parser.add_argument("--keras", default=os.environ.get("TRACEVIZ_ORACLE", sys.executable), help="Python with Keras")
    parser.add_argument("--programs", nargs="*", default=list(PROGRAMS), choices=list(PROGRAMS))
    parser.add_argument("--sets", nargs="*", default=[WITHOUT, FEW, ALL], help="collectors, as --with takes them")
    parser.add_argument("--python", default=sys.executable, help="Python for --program")
    parser.add_argument("--program", type=Path, help="another program, instead of the four")
    parser.add_argument("arguments", nargs="*", help="of the program, after --")
    options = parser.parse_args()
    print(
        f"{'program':<12} {'collectors':<17} {'total':>6} {'more':>6} "
        + " ".join(f"{part:>8}" for part in PARTS)
        + "   stop  steps"
    )
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        programs: dict[str, list[str]] = {}
        if options.program:
            programs[options.program.stem] = [options.python, str(options.program.absolute()), *options.arguments]
        else:
            for name in options.programs:
                python, source = PROGRAMS[name]
                (folder / f"train_{name}.py").write_text(CLOCK + source)
                programs[name] = [getattr(options, python), str(folder / f"train_{name}.py")]
        for name, command in programs.items():
            alone: Run | None = None
            for collectors in options.sets:
                environment = {**QUIET, "STEPS_OUT": str(folder / "steps.json")}
                (folder / "steps.json").unlink(missing_ok=True)
                if collectors == WITHOUT:
                    run = alone = measure(command, environment)
                else:
                    run = measure_recorded(command, collectors, environment, folder)
                if (folder / "steps.json").exists():
                    run.steps = json.loads((folder / "steps.json").read_text())
                more = "" if alone in (None, run) else f"{run.total - alone.total:6.2f}"
                parts = " ".join(f"{run.parts.get(part, 0.0):8.2f}" for part in PARTS)
                ratio = "" if alone in (None, run) else step_ratio(alone, run)
                print(
                    f"{name:<12} {collectors:<17} {run.total:6.2f} {more:>6} {parts} {run.waited:6.2f}  {ratio}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
