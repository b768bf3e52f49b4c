"""The sampler's probes, one for each kind of measurement: the program, its processes and threads, the machine.

Every probe limits its own cost: after a turn that took long, it waits longer for the next. Together they may use 0.6 %
of a core, 0.75 % with GPUs; writing and the turns themselves take about 0.25 %. So the sampler stays below one percent
of a core for any number of cores, processes and threads.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from traceviz.collectors.sampler import metrics
from traceviz.collectors.sampler.gpu import Gpus
from traceviz.collectors.sampler.machine import Cgroup
from traceviz.collectors.sampler.metrics import Reading
from traceviz.collectors.sampler.proc import (
    MACHINE_BYTES,
    MachineStat,
    Process,
    ProcessTree,
    ProcFile,
    grown,
    parse_available,
    parse_load,
    parse_machine,
)
from traceviz.collectors.sampler.threads import Clocks, Switches, ThreadClocks, growth, read_switches

SECOND_NS = 1_000_000_000
STORING_NS = 3_000
"""CPU time to store one reading: its part is written 15 times until it is full."""


class Probe(ABC):
    """Measures one kind of thing.

    Args:
        period_ns: Minimum time between two measurements.
    """

    cpu_share: ClassVar[float]
    """CPU time that it may take, as a share of one core."""
    wall_share: ClassVar[float] = float("inf")
    """Time for which it may block the other probes by waits without CPU use, as a share of wall time."""

    def __init__(self, period_ns: int) -> None:
        self.period_ns = period_ns
        self.due_ns = 0

    def turn(self, now_ns: int) -> list[Reading]:
        """Measure if it is due, and schedule the next measurement."""
        if now_ns < self.due_ns:
            return []
        cpu_ns, wall_ns = time.thread_time_ns(), time.monotonic_ns()
        readings = list(self.measure(now_ns))
        cpu_ns = time.thread_time_ns() - cpu_ns + STORING_NS * len(readings)
        wall_ns = time.monotonic_ns() - wall_ns
        pause_ns = max(self.period_ns, int(cpu_ns / self.cpu_share), int(wall_ns / self.wall_share))
        self.due_ns = now_ns + pause_ns - self.period_ns // 4  # a turn that comes a little early is not skipped
        return readings

    @abstractmethod
    def measure(self, now_ns: int) -> Iterator[Reading]:
        """Yield the current readings, on the monotonic clock; none if a rate needs a first value."""


class ProgramProbe(Probe):
    """CPU time, memory, threads and storage of the whole program."""

    cpu_share = 0.002

    def __init__(self, period_ns: int, tree: ProcessTree) -> None:
        super().__init__(period_ns)
        self._tree = tree
        self._before: tuple[int, dict[str, dict[int, tuple[int, int]]]] | None = None

    def measure(self, now_ns: int) -> Iterator[Reading]:
        """Read every process once; rates are since the previous turn."""
        self._tree.update(now_ns)
        root, program = self._tree.root, self._tree.program
        if self._tree.has_ended:
            return
        if any(process.is_alive for process in program):  # no readings of 0 while only a profiler runs
            yield Reading(metrics.PROGRAM_RSS, sum(process.stat.rss_bytes for process in self._settled(program)), root)
            yield Reading(metrics.PROGRAM_THREADS, sum(p.stat.threads for p in program if p.is_alive), root)
            yield Reading(metrics.PROGRAM_PROCESSES, sum(process.is_alive for process in program), root)
        before, self._before = self._before, (now_ns, self._counters())
        if before is None:
            return
        elapsed_ns = now_ns - before[0]
        for name, now in self._before[1].items():
            if now or before[1][name]:
                rate = grown(before[1][name], now) / elapsed_ns
                metric, factor = _RATES[name]
                yield Reading(metric, rate * factor, root)

    def _settled(self, program: list[Process]) -> list[Process]:
        """Return processes that existed in the previous turn: a new fork still shows the memory of its parent."""
        known = None if self._before is None else self._before[1]["cpu"]
        return program if known is None else [process for process in program if process.pid in known]

    def _counters(self) -> dict[str, dict[int, tuple[int, int]]]:
        """Return ``(parent, count)`` of every counter by pid."""
        counters: dict[str, dict[int, tuple[int, int]]] = {name: {} for name in _RATES}
        for pid, process in self._tree.members.items():
            stat = process.stat
            if self._tree.is_around(process):
                # only its own time, not its children's: the program is one of the children that it waits for
                counters["profiler"][pid] = (0, stat.own_cpu_ns)
                continue
            counters["cpu"][pid] = (stat.parent, stat.cpu_ns)
            if process.io is not None:
                counters["read"][pid], counters["write"][pid] = ((stat.parent, count) for count in process.io)
        return counters


_RATES = {
    "cpu": (metrics.PROGRAM_CPU, 100.0),
    "profiler": (metrics.PROFILER_CPU, 100.0),
    "read": (metrics.PROGRAM_READ, float(SECOND_NS)),
    "write": (metrics.PROGRAM_WRITE, float(SECOND_NS)),
}
"""The metric of each counter, and the factor from its growth per nanosecond."""


class ProcessesProbe(Probe):
    """CPU time and memory of each process of the program; profilers share one figure (:class:`ProgramProbe`)."""

    cpu_share = 0.0005

    def __init__(self, period_ns: int, tree: ProcessTree) -> None:
        super().__init__(period_ns)
        self._tree = tree
        self._before: tuple[int, dict[int, int]] | None = None

    def measure(self, now_ns: int) -> Iterator[Reading]:  # noqa: ARG002 (its time is that of the last reading)
        """Yield the last values of :class:`ProgramProbe`, by process; none if it has read nothing since."""
        program, read_ns = self._tree.program, self._tree.read_ns
        if self._before is not None and read_ns == self._before[0]:
            return
        before, self._before = self._before, (read_ns, {process.pid: process.stat.own_cpu_ns for process in program})
        for process in program:
            yield Reading(metrics.PROCESS_RSS, process.stat.rss_bytes, process.pid)
            if before is not None:
                used_ns = process.stat.own_cpu_ns - before[1].get(process.pid, 0)
                yield Reading(metrics.PROCESS_CPU, used_ns * 100 / (read_ns - before[0]), process.pid)


class ThreadsProbe(Probe):
    """Number of the program's threads that want a core, and how long they wait for one."""

    cpu_share = 0.001

    def __init__(self, period_ns: int, tree: ProcessTree, clocks: ThreadClocks) -> None:
        super().__init__(period_ns)
        self._tree, self._clocks = tree, clocks
        self._before: tuple[int, dict[int, Clocks]] | None = None

    def measure(self, now_ns: int) -> Iterator[Reading]:
        """Yield means since the previous turn; none if the kernel does not count."""
        now_ns = time.monotonic_ns()  # earlier probes took time, and may have lost their core
        root, now = self._tree.root, self._clocks.read(self._tree.program)
        before, self._before = self._before, (now_ns, now)
        if before is None or not now:
            return
        elapsed_ns = now_ns - before[0]
        ran, queued = (growth(before[1], now, column) for column in (0, 1))
        yield Reading(metrics.PROGRAM_RUNNABLE, (sum(ran) + sum(queued)) / elapsed_ns, root)
        yield Reading(metrics.PROGRAM_QUEUED, sum(queued) * 100 / elapsed_ns, root)
        yield Reading(metrics.PROGRAM_BUSIEST_THREAD, min(max(ran) * 100 / elapsed_ns, 100.0), root)


class SwitchesProbe(Probe):
    """Rates at which threads of the program yield or lose their core; rare, as the kernel writes a page for each."""

    cpu_share = 0.0004

    def __init__(self, period_ns: int, tree: ProcessTree) -> None:
        super().__init__(period_ns)
        self._tree = tree
        self._before: tuple[int, dict[int, Switches]] | None = None
        self._has_clocks = Path("/proc/self/schedstat").exists()

    def measure(self, now_ns: int) -> Iterator[Reading]:
        """Yield rates since the previous turn; if the kernel counts no waits, also the threads that want a core now."""
        root, now = self._tree.root, read_switches(self._tree.program)
        if not self._has_clocks:
            yield Reading(metrics.PROGRAM_RUNNABLE, sum(thread.runnable for thread in now.values()), root)
        before, self._before = self._before, (now_ns, now)
        if before is None:
            return
        per_second = SECOND_NS / (now_ns - before[0])
        yield Reading(metrics.PROGRAM_VOLUNTARY, sum(growth(before[1], now, 1)) * per_second, root)
        yield Reading(metrics.PROGRAM_INVOLUNTARY, sum(growth(before[1], now, 2)) * per_second, root)


class MachineProbe(Probe):
    """Utilisation of the cores by all processes."""

    cpu_share = 0.0006

    def __init__(self, period_ns: int) -> None:
        super().__init__(period_ns)
        self._file = ProcFile("/proc/stat", MACHINE_BYTES)
        self._before: MachineStat | None = None

    def measure(self, now_ns: int) -> Iterator[Reading]:  # noqa: ARG002 (ticks of the cores are their clock)
        """Yield the utilisation since the previous turn."""
        now = parse_machine(self._file.read())
        before, self._before = self._before, now
        shares = core_shares(before, now) if before is not None else {}
        if shares:
            yield Reading(metrics.MACHINE_CPU, sum(shares.values()) * 100)
            yield Reading(metrics.MACHINE_BUSIEST_CORE, max(shares.values()) * 100)


class LoadProbe(Probe):
    """Number of the machine's threads that want a core; also finds new processes of the program."""

    cpu_share = 0.0005

    def __init__(self, period_ns: int, tree: ProcessTree) -> None:
        super().__init__(period_ns)
        self._tree, self._load = tree, _LoadFile(tree.proc)

    def measure(self, now_ns: int) -> Iterator[Reading]:  # noqa: ARG002 (a number of the moment)
        """Yield the threads that want a core; read the children of the program if the machine has new processes."""
        runnable, has_new = self._load.read()
        if has_new:
            self._tree.follow()
        yield Reading(metrics.MACHINE_RUNNABLE, runnable)


class NewcomersProbe(Probe):
    """Finds the processes that the program has started among all of the machine; measures nothing.

    On a machine that starts many processes, it runs rarely.
    """

    cpu_share = 0.0005

    def __init__(self, period_ns: int, tree: ProcessTree) -> None:
        super().__init__(period_ns)
        self._tree, self._load = tree, _LoadFile(tree.proc)

    def measure(self, now_ns: int) -> Iterator[Reading]:  # noqa: ARG002 (nothing is measured)
        """Search if the machine has new processes."""
        if self._load.read()[1]:
            self._tree.discover()
        return iter(())


class _LoadFile:
    """The load of the machine, and whether there are new processes since the last read; true if that is unknown."""

    def __init__(self, proc: Path) -> None:
        self._file = ProcFile(proc / "loadavg")
        self._newest = 0

    def read(self) -> tuple[int, bool]:
        """Return the number of threads that want a core, and whether there are new processes."""
        load = parse_load(self._file.read())
        before, self._newest = self._newest, load.newest
        return load.runnable, load.newest != before or not load.newest


class CoresProbe(Probe):
    """Utilisation of each core, and available memory; rare, as there can be hundreds of cores."""

    cpu_share = 0.0005

    def __init__(self, period_ns: int, groups: Cgroup) -> None:
        super().__init__(period_ns)
        self._stat, self._memory = ProcFile("/proc/stat", MACHINE_BYTES), ProcFile("/proc/meminfo", MACHINE_BYTES)
        self._groups = groups
        self._before: MachineStat | None = None
        self._throttled: tuple[int, int] | None = None

    def measure(self, now_ns: int) -> Iterator[Reading]:
        """Yield the utilisation since the previous turn."""
        now = parse_machine(self._stat.read())
        before, self._before = self._before, now
        for number, share in (core_shares(before, now) if before is not None else {}).items():
            yield Reading(metrics.core(number), share * 100)
        available = parse_available(self._memory.read())
        if available is not None:
            yield Reading(metrics.MACHINE_AVAILABLE, available)
        throttled = self._groups.throttled_ns()
        if throttled is not None:
            if self._throttled is not None:
                then, count = self._throttled
                yield Reading(metrics.MACHINE_THROTTLED, max(throttled - count, 0) * 100 / (now_ns - then))
            self._throttled = (now_ns, throttled)


def core_shares(before: MachineStat, now: MachineStat) -> dict[int, float]:
    """Return the busy share of the time between two readings, by core; cores without ticks are left out."""
    pairs = ((core, now.total[core] - before.total.get(core, total)) for core, total in now.total.items())
    return {core: min(max(now.busy[core] - before.busy[core], 0) / ticks, 1.0) for core, ticks in pairs if ticks > 0}


class GpuProbe(Probe):
    """GPUs: measurements that are cheap."""

    cpu_share = 0.001
    wall_share = 0.2

    def __init__(self, period_ns: int, gpus: Gpus) -> None:
        super().__init__(period_ns)
        self._gpus = gpus

    def measure(self, now_ns: int) -> Iterator[Reading]:  # noqa: ARG002 (the driver measures, not we)
        """Return the driver's current values."""
        return self._gpus.readings()


class TrafficProbe(GpuProbe):
    """GPUs: transfers, which the driver measures while we wait."""

    cpu_share = 0.0005

    def measure(self, now_ns: int) -> Iterator[Reading]:  # noqa: ARG002
        """Return transfer rates that the driver measures in the next milliseconds."""
        return self._gpus.traffic()
