"""Programs with our hooks in them, run under the Python of the tests with a TensorFlow of forty lines."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from traceviz.collectors.base import Plan, Window
from traceviz.collectors.frameworks.injection import FOLDER, injection_environment, write_injection

PROFILER = """
import collections, json, os
ProfilerOptions = collections.namedtuple("ProfilerOptions", "host_tracer_level python_tracer_level device_tracer_level")
events, running = [], []

def start(logdir, options=None):
    if running:
        raise RuntimeError("Another profiler is running.")
    running.append(logdir)
    events.append({"options": options and options._asdict()})

def stop(save=True):
    folder = os.path.join(running.pop(), "plugins", "profile", "now")
    os.makedirs(folder)
    with open(os.path.join(folder, "host.xplane.pb"), "w") as file:
        json.dump(events, file)
    events.clear()
"""

TRACE = """
from tensorflow.python.profiler import profiler_v2

class Trace:
    def __init__(self, name, **stats):
        self.stats = {"name": name, **stats}
    def set_metadata(self, **stats):
        self.stats.update(stats)
    def __enter__(self):
        return self
    def __exit__(self, *raised):
        if profiler_v2.running:
            profiler_v2.events.append(self.stats)
"""

ITERATORS = """
class OwnedIterator:
    def __init__(self, batches):
        self.left = batches
    def __iter__(self):
        return self
    def __next__(self):
        if not self.left:
            raise StopIteration
        self.left -= 1
        return self.left
"""

PACKAGE = {
    "__init__.py": "__version__ = '2.99.0'\nfrom tensorflow.python.profiler import profiler_v2, trace\n"
    "from tensorflow.python.data.ops.iterator_ops import OwnedIterator\n",
    "python/__init__.py": "",
    "python/data/__init__.py": "",
    "python/data/ops/__init__.py": "",
    "python/data/ops/iterator_ops.py": ITERATORS,
    "python/profiler/__init__.py": "",
    "python/profiler/profiler_v2.py": PROFILER,
    "python/profiler/trace.py": TRACE,
}

LOOP = "import tensorflow as tf\nfor batch in tf.OwnedIterator(STEPS):\n    pass\n"
"""A training loop; STEPS is replaced by a number."""


@dataclass(frozen=True, slots=True)
class Left:
    """The results of a program.

    Args:
        code: Its exit status, as of a subprocess.
        out: Its output on stdout.
        err: Its output on stderr.
        plan: The plan of its recording.
    """

    code: int
    out: str
    err: str
    plan: Plan = field(repr=False)

    @property
    def statuses(self) -> list[dict[str, Any]]:
        """The status of each process that has one, in order of the folders' names."""
        return [json.loads(path.read_text()) for path in sorted(self.plan.raw("tensorflow").glob("*/status.json"))]

    @property
    def traces(self) -> list[list[dict[str, Any]]]:
        """The events in each trace."""
        files = sorted(self.plan.raw("tensorflow").rglob("*.xplane.pb"))
        return [json.loads(path.read_text()) for path in files]

    @property
    def steps(self) -> list[int]:
        """Numbers of the steps that are marked in the only trace."""
        (events,) = self.traces
        return [event["step_num"] for event in events if event.get("_r")]


@dataclass(frozen=True, slots=True)
class Bench:
    """Runs programs under the hooks, in a folder of its own."""

    folder: Path

    def plan(self, command: tuple[str, ...], window: Window, device_tracer: str | None) -> Plan:
        """Return a plan with the tensorflow collector, its folders made."""
        plan = Plan(self.folder / "run", command, ("tensorflow",), window, device_tracer=device_tracer)
        plan.raw("tensorflow").mkdir(parents=True)
        return plan

    def run(self, *arguments: str, window: Window, stdin: str = "", device_tracer: str | None = None) -> Left:
        """Run ``python ARGUMENTS`` to its end."""
        process, plan = self.start(*arguments, window=window, device_tracer=device_tracer)
        out, err = process.communicate(stdin, timeout=60)
        return Left(process.returncode, out, err, plan)

    def start(
        self, *arguments: str, window: Window, device_tracer: str | None = None
    ) -> tuple[subprocess.Popen[str], Plan]:
        """Start ``python ARGUMENTS``."""
        command = (sys.executable, *arguments)
        plan = self.plan(command, window, device_tracer)
        write_injection(plan)
        inherited = {"PATH": os.environ["PATH"], "PYTHONPATH": str(self.packages)}
        environment = {**inherited, **injection_environment(plan, inherited)}
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            command, env=environment, cwd=self.folder, stdin=pipe, stdout=pipe, stderr=pipe, text=True
        )
        return process, plan

    def script(self, text: str, steps: int = 0) -> str:
        """Write a program; its path."""
        path = self.folder / "train.py"
        path.write_text(text.replace("STEPS", str(steps)))
        return str(path)

    @property
    def packages(self) -> Path:
        """The folder with the small TensorFlow."""
        for name, text in PACKAGE.items():
            path = self.folder / "packages" / "tensorflow" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return self.folder / "packages"


HOOKS = str(FOLDER)
"""The folder of the hooks, for tests that import them."""
