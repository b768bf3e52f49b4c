"""The stacks collector: samples the Python stacks of all threads, from inside the program."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from traceviz.collectors.base import STACKS, Availability, Harvest, Plan, read_facts
from traceviz.collectors.frameworks.event_files import harvest_events
from traceviz.collectors.frameworks.harvest import PROBLEMS, STATUS, read_problems
from traceviz.collectors.frameworks.injection import InjectedCollector

FILE = "stacks.jsonl"
_FACTS = ("ticks", "cpu_ns", "wall_ns", "late_ns", "bytes", "rate_hz", "rate_at_last_hz")


class StacksCollector(InjectedCollector):
    """Records functions, files and lines of the program and of its worker processes, and the parts of its run."""

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
        return Harvest((*folders, *events), (*problems, *unread), _facts(folders))


def _facts(folders: tuple[Path, ...]) -> dict[str, Any]:
    """Return the facts about the processes for the manifest: totals, and each process."""
    processes = list(_processes(folders))
    if not processes:
        return {}
    cpu_ns, wall_ns = (sum(int(process.get(key) or 0) for process in processes) for key in ("cpu_ns", "wall_ns"))
    share = {"cpu_share": round(cpu_ns / wall_ns, 5)} if wall_ns else {}
    return {"rate_hz": processes[0].get("rate_hz"), "cpu_ns": cpu_ns, **share, "processes": processes}


def _processes(folders: tuple[Path, ...]) -> Iterator[dict[str, Any]]:
    for folder in folders:
        stated = read_facts(folder / STATUS)
        yield {key: stated[key] for key in ("pid", "state", *_FACTS) if key in stated}
