"""The machine's resources for a program: cores, memory, the limits of its container, and its thread settings.

Everything is read from files below ``root``, so that tests can simulate other machines.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from traceviz.collectors.sampler.proc import read_once

THREAD_VARIABLES = frozenset(
    {
        "CUDA_VISIBLE_DEVICES",
        "GOMP_CPU_AFFINITY",
        "KMP_AFFINITY",
        "KMP_BLOCKTIME",
        "MKL_NUM_THREADS",
        "NUMEXPR_NUM_THREADS",
        "OMP_NUM_THREADS",
        "OMP_PLACES",
        "OMP_PROC_BIND",
        "OMP_WAIT_POLICY",
        "OPENBLAS_NUM_THREADS",
        "TF_ENABLE_ONEDNN_OPTS",
        "TF_GPU_THREAD_COUNT",
        "TF_GPU_THREAD_MODE",
        "TF_NUM_INTEROP_THREADS",
        "TF_NUM_INTRAOP_THREADS",
    }
)
"""Environment variables that control threads and cores. No others are stored: they may hold secrets and paths."""

_UNLIMITED = 1 << 60
"""Memory limits from here on mean no limit."""


@dataclass(frozen=True, slots=True)
class Cgroup:
    """The control groups of a process, from its own up: files of the CPU and the memory controller by name."""

    cpu: tuple[Path, ...]
    memory: tuple[Path, ...]

    def cpu_limit(self) -> float | None:
        """Return the cores' worth of CPU time that the process may use; the tightest limit on the way up."""
        limits = [limit for folder in self.cpu if (limit := _quota(folder)) is not None]
        return min(limits, default=None)

    def memory_limit(self) -> int | None:
        """Return the memory that the process may use, in bytes."""
        texts = (read_once(folder / name) for folder in self.memory for name in ("memory.max", "memory.limit_in_bytes"))
        limits = [int(text) for text in texts if text and text.strip().isdigit() and int(text) < _UNLIMITED]
        return min(limits, default=None)

    def throttled_ns(self) -> int | None:
        """Return how long the limit has held threads back so far; ``None`` if this is not counted."""
        counts = [count for folder in self.cpu if (count := _throttled(folder)) is not None]
        return max(counts, default=None)


def cgroup(pid: int | Literal["self"], root: Path = Path("/")) -> Cgroup:
    """Return the control groups of process ``pid``, of either version."""
    text = (read_once(root / f"proc/{pid}/cgroup") or b"").decode("utf-8", "replace")
    groups = [line.split(":", 2) for line in text.splitlines() if line.count(":") >= 2]
    return Cgroup(_folders("cpu", groups, root), _folders("memory", groups, root))


def _folders(controller: str, groups: Iterable[list[str]], root: Path) -> tuple[Path, ...]:
    """Return folders of one controller: its own (version 1), and those that all share (version 2)."""
    mount = root / "sys/fs/cgroup"
    folders: list[Path] = []
    for _, controllers, path in groups:
        if controller in controllers.split(","):
            folders.extend(_upwards(mount / controller, path))
        elif not controllers:
            folders.extend(_upwards(mount, path))
    return tuple(folders)


def _upwards(mount: Path, path: str) -> Iterator[Path]:
    """Yield folders from ``path`` up to ``mount``; in a container, the path may be the host's, and not exist."""
    folder = mount / path.lstrip("/")
    while folder != mount and mount in folder.parents:
        yield folder
        folder = folder.parent
    yield mount


def _quota(folder: Path) -> float | None:
    text = read_once(folder / "cpu.max")
    if text is None:
        parts = (read_once(folder / "cpu.cfs_quota_us"), read_once(folder / "cpu.cfs_period_us"))
        text = b" ".join(part or b"" for part in parts)
    words = text.split()
    if len(words) != 2 or not all(word.isdigit() for word in words) or not int(words[1]):
        return None  # "max", or -1: no limit
    return int(words[0]) / int(words[1])


def _throttled(folder: Path) -> int | None:
    fields = dict(line.split(None, 1) for line in (read_once(folder / "cpu.stat") or b"").splitlines() if b" " in line)
    if b"throttled_usec" in fields:
        return int(fields[b"throttled_usec"]) * 1000
    return int(fields[b"throttled_time"]) if b"throttled_time" in fields else None


def machine_settings(pid: int, root: Path = Path("/")) -> dict[str, str]:
    """Return the machine as process ``pid`` sees it: keys ``machine.*``, and ``env.*`` for its thread settings.

    ``machine.usable_cores`` counts those of ``machine.cores`` that the process may run on. ``machine.cpu_limit`` is how
    many cores' worth of time its container allows. Unknown facts are left out.
    """
    groups = cgroup(pid, root)
    limit = groups.cpu_limit()
    there = set(_of_processor("flags", root).split())
    facts = {
        "machine.cores": os.cpu_count(),
        "machine.physical_cores": topology(root).physical_cores,
        "machine.sockets": topology(root).sockets,
        "machine.usable_cores": _affinity(pid),
        "machine.cpu_limit": None if limit is None else f"{limit:g}",
        "machine.memory_bytes": total_memory(root),
        "machine.memory_limit_bytes": groups.memory_limit(),
        "machine.cpu": processor_name(root),
        "machine.cpu_features": " ".join(feature for feature in _FEATURES if feature in there),
    }
    known = {key: str(value) for key, value in facts.items() if value not in {None, 0, ""}}
    nodes = memory_nodes(root)
    if len(nodes) > 1:
        known |= {f"machine.memory_node.{number}.cores": cores for number, cores in nodes.items()}
    return known | {f"env.{key}": value for key, value in environment(pid, root).items()}


def memory_nodes(root: Path = Path("/")) -> dict[int, str]:
    """Return the cores of each memory node (NUMA), as ``0-15,32-47``; nodes without cores are left out."""
    folders = (root / "sys/devices/system/node").glob("node[0-9]*")
    listed = {int(folder.name[4:]): read_once(folder / "cpulist") for folder in folders if folder.name[4:].isdigit()}
    return {number: cores for number, text in sorted(listed.items()) if (cores := (text or b"").decode().strip())}


def _affinity(pid: int) -> int | None:
    try:
        return len(os.sched_getaffinity(pid))
    except OSError:
        return None


class Topology(NamedTuple):
    """Processor packages, physical cores, and logical cores of each; ``None`` if the kernel does not show them."""

    sockets: int | None
    physical_cores: int | None
    threads_per_core: int | None


def topology(root: Path = Path("/")) -> Topology:
    """Return the numbers of packages, cores and threads of the machine."""
    folders = list((root / "sys/devices/system/cpu").glob("cpu[0-9]*/topology"))
    siblings = [text for folder in folders if (text := read_once(folder / "thread_siblings_list"))]
    sockets = {text for folder in folders if (text := read_once(folder / "physical_package_id"))}
    cores = len(set(siblings))
    return Topology(len(sockets) or None, cores or None, max(1, round(len(siblings) / cores)) if cores else None)


def total_memory(root: Path = Path("/")) -> int | None:
    """Return the memory of the machine, in bytes."""
    match = re.search(rb"^MemTotal:\s+(\d+) kB", read_once(root / "proc/meminfo") or b"", re.MULTILINE)
    return int(match[1]) * 1024 if match else None


_FEATURES = ("amx_bf16", "avx512_bf16", "avx512f", "avx2")
"""Instructions that decide how fast a processor multiplies matrices, 16-bit ones first."""


def processor_name(root: Path = Path("/")) -> str:
    """Return the name of the processor; empty if it is unknown."""
    return _of_processor("model name", root)


def _of_processor(key: str, root: Path) -> str:
    text = (read_once(root / "proc/cpuinfo") or b"").decode("utf-8", "replace")
    match = re.search(rf"^{key}\s*:\s*(.*)$", text, re.MULTILINE)
    return match[1].strip() if match else ""


def environment(pid: int, root: Path = Path("/")) -> dict[str, str]:
    """Return those of :data:`THREAD_VARIABLES` that the process was started with."""
    text = (read_once(root / f"proc/{pid}/environ") or b"").decode("utf-8", "replace")
    pairs = (entry.partition("=") for entry in text.split("\0"))
    return {key: value for key, _, value in pairs if key in THREAD_VARIABLES}
