"""The collector of resources: CPU, memory, threads, storage and GPUs, sampled by a separate process.

The sampler reads the kernel's files itself. For one process that takes 9 µs, and 75 µs with psutil. Shared memory (PSS)
is left out: the kernel would walk all pages of the program for it, and block the program (0.2 ms for a small one).
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

from traceviz.collectors.base import (
    RESOURCES,
    Availability,
    Collector,
    Companion,
    Harvest,
    Plan,
    Problem,
)
from traceviz.collectors.program.companion_process import last_words, start_recorder
from traceviz.collectors.sampler.gpu import has_gpu
from traceviz.untrusted.json_documents import read_object

DESCRIPTION = "resources.json"
LOG = "sampler.log"
_PATIENCE_S = 5.0
"""Time that the sampler may take to write its samples."""
_ONE_CORE = {"OMP_NUM_THREADS": "1", "ARROW_NUM_THREADS": "1"}
"""Settings that limit the sampler to one core."""
_FACTS = ("rate_hz", "samples", "parts", "missed", "wall_ns", "cpu_ns", "startup_cpu_ns", "memory_bytes")


class ResourcesCollector(Collector):
    """Samples of the whole process tree and of its GPUs.

    Args:
        root: The root folder of the kernel's files.
    """

    name: ClassVar[str] = RESOURCES
    title: ClassVar[str] = "resources of the machine"

    def __init__(self, root: Path = Path("/")) -> None:
        self.root = root

    def availability(self) -> Availability:
        """Return ready if there is ``/proc``; GPUs are also measured if there is NVML."""
        if not (self.root / "proc/self/stat").exists():
            return Availability("unsupported", "Sampling needs the /proc of Linux.")
        if not has_gpu(self.root):
            return Availability("ready", "CPU, memory, threads and storage; there is no NVIDIA GPU.")
        if find_spec("pynvml") is None:
            detail = "CPU, memory, threads and storage; not the GPUs, as nvidia-ml-py is not installed."
            return Availability("ready", detail, f"{sys.executable} -m pip install nvidia-ml-py")
        return Availability("ready", "CPU, memory, threads, storage, and NVIDIA GPUs through NVML.")

    def start(self, plan: Plan, pid: int) -> Companion | None:
        """Start the sampler of process ``pid``; ``None`` if that fails, which :meth:`harvest` reports."""
        folder = plan.raw(self.name)
        arguments = ("--rate", str(plan.rate_hz), "--parent", str(os.getpid()))
        return start_recorder(
            "traceviz.collectors.sampler",
            plan,
            pid,
            folder / LOG,
            arguments=arguments,
            patience_s=_PATIENCE_S,
            environment=_ONE_CORE,
        )

    def harvest(self, plan: Plan) -> Harvest:
        """Return the folder of samples, and the cost of sampling."""
        folder = plan.raw(self.name)
        description = read_object(folder / DESCRIPTION)
        if not any(folder.glob("part-*.parquet")):
            message = f"No resources were sampled. {last_words(folder / LOG)}".strip()
            return Harvest(problems=(Problem("no-samples", message),))
        facts = {key: description[key] for key in _FACTS if key in description}
        if isinstance(facts.get("wall_ns"), int) and facts["wall_ns"] > 0:
            facts["cpu_share"] = round(facts.get("cpu_ns", 0) / facts["wall_ns"], 5)
        facts["gpus"] = len(description.get("gpus", ()))
        if description.get("state") == "ended":
            return Harvest((folder,), (), facts)
        message = "The sampler of resources did not end in order: what it had not saved is missing."
        message = f"{message} {last_words(folder / LOG)}".strip()
        return Harvest((folder,), (Problem("sampler-not-ended", message),), facts)
