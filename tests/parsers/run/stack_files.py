"""Files of stacks as the sampler in the program writes them, from literals."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

START = 1_700_000_000_000_000_000
"""Wall-clock time of moment 0 of the files' clock."""
STACKS = {"main": None, "load": "main", "decode": "load", "save": "main"}
"""Functions, and which called them."""


def process(pid: int = 12, **about: Any) -> list[Any]:
    """Return the first line."""
    stated = {"pid": pid, "ppid": 1, "role": "program", "name": "train.py", "python": "3.11.2", "rate_hz": 100, **about}
    return ["process", {"started_unix_ns": START + 1_000, **stated}]


def described(stacks: dict[str, str | None] = STACKS, tid: int = 12, name: str = "MainThread") -> list[list[Any]]:
    """Return lines that describe a thread, and frames and stacks of functions at the line of their number."""
    numbers = {function: number for number, function in enumerate(stacks)}
    frames = [["frame", number, function, "train.py", 10 + number, "program"] for function, number in numbers.items()]
    chains = [
        ["stack", numbers[inner], None if outer is None else numbers[outer], numbers[inner]]
        for inner, outer in stacks.items()
    ]
    return [["clock", 0, START], ["thread", 0, tid, name, True, 140_000_000_000_256], *frames, *chains]


def sample(start: int, dur: int, stack: int, **more: Any) -> list[Any]:
    """Return one row of a line of samples."""
    return [start, dur, more.get("thread", 0), stack, more.get("n", 1), more.get("cpu"), more.get("state")]


SAMPLES = [
    "samples",
    [sample(2_000, 100, 2, cpu=90, state="running"), sample(2_100, 500, 3, n=5, cpu=0, state="waiting")],
]
PHASE = ["phase", "saving", "torch.save", None, 2_100, 450, 12]
METRICS = [
    ["metric", "loss", 0.5, 40, 0, 2_200, "keras"],
    ["metric", "loss", None, 80, 1, 2_400, "keras"],
    ["metric", "val_accuracy", 0.75, None, None, 2_300, "program"],
]
WHOLE = [process(), *described(), SAMPLES, PHASE, ["cost", {"cpu_ns": 20, "ticks": 6, "late_ns": 0}], ["end", 3_000]]
"""A process of 2,000 ns: 100 in decode, 500 in save."""


def training(steps: int = 4) -> list[Any]:
    """Return a program of some steps of 100 ms, with loading, a model and a checkpoint; one thread waits."""
    ms = 1_000_000
    stacks = {
        "main": None,
        "load": "main",
        "decode": "load",
        "model": "main",
        "save": "main",
        "fsync": "save",
        "wait": None,
    }
    rows, phases = [], []
    for step in range(steps):
        start = step * 100 * ms
        parts = [(2, 60, "running"), (3, 20, "running"), (5, 20, "waiting")]
        for stack, length, state in parts:
            rows.append(
                sample(start, length * ms, stack, n=length // 10, cpu=(state == "running") * length * ms, state=state)
            )
            start += length * ms
        phases.append(["phase", "step", "torch_optimizer", step, step * 100 * ms, 100 * ms, 12])
        phases.append(["phase", "saving", "torch.save", None, start - 20 * ms, 20 * ms, 12])
        phases.append(["metric", "val_loss", 1 / (step + 1), step, None, start, "program"])
    waits = sample(0, steps * 100 * ms, 6, n=10 * steps, cpu=0, state="waiting", thread=1)
    whole = [process(), *described(stacks), ["thread", 1, 13, "Thread-1 (wait)", False], ["samples", [*rows, waits]]]
    return [*whole, *phases, ["cost", {"cpu_ns": ms, "ticks": 10 * steps}], ["end", steps * 100 * ms + ms]]


def write(path: Path, lines: Iterable[Any] = WHOLE) -> Path:
    """Return a file of these lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return path
