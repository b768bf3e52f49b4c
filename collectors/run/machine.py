"""The machine that a run ran on: cores, memory, limits, system, GPUs.

Before the program starts, only files of the kernel are read, which takes a millisecond.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from traceviz.collectors.sampler.machine import cgroup, processor_name, topology, total_memory
from traceviz.core.process.cores import usable_cores

_QUERY = ("index", "uuid", "memory.total")
_PATIENCE_S = 10


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU: its number, name, identifier, and memory in bytes if known."""

    ordinal: int
    name: str
    uuid: str = ""
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine as a program on it sees it; ``None`` for unknown values.

    Args:
        cores: Logical cores of the machine.
        usable_cores: Logical cores that this process may run on.
        cpu_limit: Cores' worth of time that its control group may use.
        sockets: Processor packages.
        physical_cores: Cores, threads of one core counted once.
        threads_per_core: Logical cores per physical core.
        cpu: Name of the processor.
        memory_bytes: Memory of the machine.
        memory_limit_bytes: Memory that its control group may use.
        os: Name of the operating system.
        kernel: Its version.
        container: ``docker``, ``podman``, ``kubernetes`` and the like.
        gpus: NVIDIA GPUs.
        driver: Version of their driver.
    """

    cores: int | None
    usable_cores: int
    cpu_limit: float | None
    sockets: int | None
    physical_cores: int | None
    threads_per_core: int | None
    cpu: str
    memory_bytes: int | None
    memory_limit_bytes: int | None
    os: str
    kernel: str
    container: str | None
    gpus: tuple[Gpu, ...]
    driver: str | None

    def facts(self, *, keep_private: bool = False) -> dict[str, Any]:
        """Return the facts for the manifest; the machine's name is private."""
        return {**asdict(self), **({"host": platform.node()} if keep_private else {})}


def read_machine(root: Path = Path("/")) -> Machine:
    """Return the machine whose kernel files are under ``root``."""
    cores, group = topology(root), cgroup("self", root)
    folders = sorted((root / "proc/driver/nvidia/gpus").glob("*"))  # in order of their bus numbers
    drivers_list = [read_text(folder / "information") for folder in folders]
    return Machine(
        cores=os.cpu_count(),
        usable_cores=usable_cores(),
        cpu_limit=group.cpu_limit(),
        sockets=cores.sockets,
        physical_cores=cores.physical_cores,
        threads_per_core=cores.threads_per_core,
        cpu=processor_name(root) or platform.machine(),
        memory_bytes=total_memory(root),
        memory_limit_bytes=group.memory_limit(),
        os=(_first(r'(?m)^PRETTY_NAME="?([^"\n]+)', read_text(root / "etc/os-release"))) or platform.system(),
        kernel=platform.release(),
        container=_container(root, os.environ),
        gpus=tuple(
            Gpu(ordinal, _first(r"Model:\s*(.+)", text) or "", _first(r"GPU UUID:\s*(\S+)", text) or "")
            for ordinal, text in enumerate(drivers_list)
        ),
        driver=_first(r"Module\s+(?:for \S+\s+)?(\d+\.[\d.]+)", read_text(root / "proc/driver/nvidia/version")),
    )


def with_gpu_memory(machine: Machine) -> Machine:
    """Return ``machine`` with the memory of its GPUs. Call it after the run, because it runs a program (nvidia-smi)."""
    program = shutil.which("nvidia-smi")
    if not machine.gpus or program is None:
        return machine
    query = [program, f"--query-gpu={','.join(_QUERY)}", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(query, capture_output=True, check=False, timeout=_PATIENCE_S, text=True)
    except (OSError, subprocess.TimeoutExpired):
        return machine
    return _with_answer(machine, answer.stdout)


def _with_answer(machine: Machine, answer: str) -> Machine:
    """Return ``machine`` with the answer of nvidia-smi."""
    lines = [[part.strip() for part in line.split(",")] for line in answer.splitlines()]
    rows = [line for line in lines if len(line) == len(_QUERY)]  # number, identifier, mebibytes
    memory = {row[1]: int(row[2]) << 20 for row in rows if row[2].isdecimal()}
    numbers = {row[1]: int(row[0]) for row in rows if row[0].isdecimal()}
    gpus = [Gpu(numbers.get(gpu.uuid, gpu.ordinal), gpu.name, gpu.uuid, memory.get(gpu.uuid)) for gpu in machine.gpus]
    return replace(machine, gpus=tuple(sorted(gpus, key=lambda gpu: gpu.ordinal)))


def read_text(path: Path) -> str:
    """Return the text of a file of the kernel; empty if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _first(pattern: str, text: str) -> str | None:
    match = re.search(pattern, text)
    return match[1].strip() if match else None


def _container(root: Path, environment: Mapping[str, str]) -> str | None:
    """Return the kind of this container; ``None`` if no kind is detected."""
    if "KUBERNETES_SERVICE_HOST" in environment:
        return "kubernetes"
    if (root / ".dockerenv").exists():
        return "docker"
    if (root / "run/.containerenv").exists():
        return "podman"
    groups = read_text(root / "proc/1/cgroup")
    known = ("kubepods", "docker", "lxc", "containerd", "slurm")
    return environment.get("container") or next((kind for kind in known if kind in groups), None)
