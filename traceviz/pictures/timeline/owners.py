"""Labels of processes, devices and threads in lanes."""

from __future__ import annotations

from functools import cached_property

from traceviz.analyses.derived.device.names import stated_ranks
from traceviz.analyses.derived.steps.search import training_thread
from traceviz.analyses.derived.view import TraceView

MACHINE = "machine"
"""Group of lanes that belong to no process."""
NOBODY = -1


class Owners:
    """Readable labels of the owners of lanes, and the order in which these are drawn.

    Args:
        trace: The trace.
    """

    def __init__(self, trace: TraceView) -> None:
        self._trace = trace

    @cached_property
    def groups(self) -> dict[int, str]:
        """The group of each process, in drawing order: ranks first."""
        rows = {row["process_id"]: row for row in self._trace.tables.arrow("processes").to_pylist()}
        ranks = [process for process in self._trace.ranks if process in rows]
        has_ranks = bool(stated_ranks(self._trace))
        groups = {}
        for process in (*ranks, *(process for process in rows if process not in set(ranks))):
            row = rows[process]
            name = row["name"] or "process"
            pid = f" ({row['pid']})" if row["pid"] is not None else "" if row["name"] else f" {process}"
            groups[process] = f"rank {row['rank']}" if has_ranks and row["rank"] is not None else f"{name}{pid}"
        taken: set[str] = set()
        for process, group in groups.items():
            groups[process] = f"{group} #{process}" if group in taken else group
            taken.add(groups[process])
        return groups

    def group(self, process_id: int) -> str:
        """Return the group of a process, or the machine's for no process."""
        return self.groups.get(process_id, MACHINE)

    def place(self, process_id: int) -> int:
        """Return the position of the process's group; the machine's comes last."""
        return self._places.get(process_id, len(self._places))

    @cached_property
    def _places(self) -> dict[int, int]:
        return {process: place for place, process in enumerate(self.groups)}

    @cached_property
    def devices(self) -> dict[int, str]:
        """Kind and number of each device: ``GPU 0``."""
        rows = self._trace.tables.arrow("devices").to_pylist()
        return {
            int(row["device_id"]): f"{str(row['kind']).upper()} "
            f"{row['device_id'] if row['ordinal'] is None else row['ordinal']}"
            for row in rows
        }

    def device(self, device_id: int) -> str:
        """Return kind and number of a device."""
        return self.devices.get(device_id, f"device {device_id}")

    @cached_property
    def threads(self) -> dict[int, str]:
        """Name and number of each thread."""
        rows = self._trace.tables.arrow("threads").to_pylist()
        return {
            row["thread_id"]: f"{row['name']} ({row['tid']})" if row["name"] else f"thread {row['tid']}" for row in rows
        }

    def thread(self, thread_id: int) -> str:
        """Return name and number of a thread."""
        return self.threads.get(thread_id, f"thread {thread_id}")

    @cached_property
    def training(self) -> frozenset[int]:
        """Threads that run the training loop of a rank."""
        return frozenset(training_thread(self._trace, process) for process in self._trace.ranks)
