"""The collectors inside the program: the profilers of TensorFlow, JAX and PyTorch around some steps, and its stacks."""

from __future__ import annotations

import gzip
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from traceviz.collectors.base import STACKS, Availability, Harvest, Plan
from traceviz.collectors.frameworks.event_files import harvest_events
from traceviz.collectors.frameworks.harvest import PROBLEMS, STATUS, harvest_files, harvest_xplane, read_problems
from traceviz.collectors.frameworks.injection import InjectedCollector
from traceviz.untrusted.json_documents import read_object

QUIET = "KINETO_LOG_LEVEL"
"""Environment variable for the torch profiler's own messages, which it writes between those of the program."""
FILE = "stacks.jsonl"
_FACTS = ("pid", "state", "ticks", "cpu_ns", "wall_ns", "late_ns", "bytes", "rate_hz", "rate_at_last_hz")


class XplaneCollector(InjectedCollector):
    """A profiler that leaves XPlane files."""

    traces_device: ClassVar[bool] = True

    def harvest(self, plan: Plan) -> Harvest:
        """Return the captures of all processes that trained."""
        return harvest_xplane(plan, self.name)


class JaxCollector(XplaneCollector):
    """``jax.profiler``: compiled functions and XLA operations; GPU kernels and copies if no other collector does."""

    name: ClassVar[str] = "jax"
    title: ClassVar[str] = "JAX profiler"
    needs: ClassVar[str] = "JAX 0.5 or later, or Keras on it"


class TensorFlowCollector(XplaneCollector):
    """``tf.profiler``: operations and input pipelines; GPU kernels and copies if no other collector does."""

    name: ClassVar[str] = "tensorflow"
    title: ClassVar[str] = "TensorFlow profiler"
    needs: ClassVar[str] = "TensorFlow 2.16 or later, or Keras on it"


class TorchCollector(InjectedCollector):
    """``torch.profiler``: operators on the CPU; GPU kernels and copies if no other collector does; in Kineto traces."""

    name: ClassVar[str] = "torch"
    title: ClassVar[str] = "PyTorch profiler"
    traces_device: ClassVar[bool] = True
    needs: ClassVar[str] = "torch 2.0 or later"

    def environment(self, plan: Plan, inherited: Mapping[str, str]) -> dict[str, str]:
        """Return the hooks, and a setting that silences the profiler unless the user set its log level."""
        quiet = {} if QUIET in inherited else {QUIET: "99"}
        return {**super().environment(plan, inherited), **quiet}

    def harvest(self, plan: Plan) -> Harvest:
        """Return the Kineto traces of all processes that trained, compressed to about a twentieth of their size."""
        for path in sorted(plan.raw(self.name).rglob("*.pt.trace.json")):
            with suppress(OSError):  # no space left: the file stays as it is
                _compress(path)
        return harvest_files(plan, self.name, ("*.pt.trace.json.gz", "*.pt.trace.json"))


def _compress(path: Path) -> None:
    compressed, unfinished = path.with_name(f"{path.name}.gz"), path.with_name(f".{path.name}.gz")
    try:
        with path.open("rb") as source, gzip.open(unfinished, "wb", compresslevel=1) as target:
            shutil.copyfileobj(source, target, 1 << 20)
        unfinished.replace(compressed)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    path.unlink()


class StacksCollector(InjectedCollector):
    """Samples functions, files and lines of the program and of its worker processes, and notes the parts of its run."""

    name: ClassVar[str] = STACKS
    title: ClassVar[str] = "Python stacks"

    def availability(self) -> Availability:
        """Return ready on Linux: the processor times of threads are read in a Linux-specific way."""
        if not sys.platform.startswith("linux"):
            return Availability("unsupported", "Sampling stacks needs Linux.")
        return Availability("ready", "samples Python's stacks from within the program (Python 3.9 or later)")

    def harvest(self, plan: Plan) -> Harvest:
        """Return the folder of each process, the cost of sampling, and the figures that it wrote for TensorBoard."""
        folders = tuple(sorted(path.parent for path in plan.raw(self.name).glob(f"*/{FILE}")))
        noted = sorted(plan.raw(self.name).glob(f"*/{PROBLEMS}"))
        problems = tuple(problem for path in noted for problem in read_problems(path))
        events, unread = harvest_events(plan, plan.raw(self.name))
        statuses = [read_object(folder / STATUS) for folder in folders]
        processes = [{key: status[key] for key in _FACTS if key in status} for status in statuses]
        facts: dict[str, Any] = {}
        if processes:
            cpu_ns, wall_ns = (sum(int(stated.get(key) or 0) for stated in processes) for key in ("cpu_ns", "wall_ns"))
            share = {"cpu_share": round(cpu_ns / wall_ns, 5)} if wall_ns else {}
            facts = {"rate_hz": processes[0].get("rate_hz"), "cpu_ns": cpu_ns, **share, "processes": processes}
        return Harvest((*folders, *events), (*problems, *unread), facts)
