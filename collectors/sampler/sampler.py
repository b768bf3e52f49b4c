"""The running sampler: all probes in turn, the clock, and the writer of their readings."""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from traceviz.collectors.sampler.gpu import find_gpus, gpu_facts
from traceviz.collectors.sampler.machine import Cgroup, cgroup, environment, machine_settings
from traceviz.collectors.sampler.parts import PartWriter
from traceviz.collectors.sampler.probes import (
    SECOND_NS,
    CoresProbe,
    GpuProbe,
    LoadProbe,
    MachineProbe,
    NewcomersProbe,
    Probe,
    ProcessesProbe,
    ProgramProbe,
    SwitchesProbe,
    ThreadsProbe,
    TrafficProbe,
)
from traceviz.collectors.sampler.proc import ProcessTree
from traceviz.collectors.sampler.threads import ThreadClocks

FLUSH_NS = (2 * SECOND_NS, 5 * SECOND_NS)
"""Time between two writes, at the start of a run, and in a run of 40 s and more. It is longer if writing takes more CPU
time than :data:`FLUSH_SHARE` of a core, as it does on a busy machine."""
FLUSH_SHARE = 0.0025
MAX_RATE_HZ = 100.0


class Sampler:
    """All probes, the clock and the writer.

    Args:
        pid: Process id of the program.
        folder: The folder for samples.
        rate_hz: Samples per second.
        wrapped: File that will hold the program's own process id, if ``pid`` is its wrapper.
        parent: Process id of the recording, with which it ends; ``None`` for an independent sampler.
    """

    def __init__(
        self, pid: int, folder: Path, rate_hz: float, wrapped: Path | None = None, parent: int | None = None
    ) -> None:
        self._parent = parent
        self._period_ns = round(SECOND_NS / min(rate_hz, MAX_RATE_HZ))
        self._tree = ProcessTree(pid, wrapped=wrapped)
        self._tree.discover()
        self._clocks = ThreadClocks()
        self._gpus = find_gpus(environment(pid).get("CUDA_VISIBLE_DEVICES"))
        self._writer = PartWriter(folder)
        self._settings = machine_settings(pid)
        self._began_ns = time.monotonic_ns()
        self._unix_offset_ns = time.time_ns() - self._began_ns
        self._startup_cpu_ns = time.process_time_ns()
        self._missed = 0
        self._probes = self._all_probes(cgroup(pid), max(self._period_ns, SECOND_NS))

    def _all_probes(self, groups: Cgroup, slow_ns: int) -> tuple[Probe, ...]:
        every: tuple[Probe, ...] = (
            LoadProbe(self._period_ns, self._tree),  # this and the next probe come before those that measure processes
            NewcomersProbe(self._period_ns, self._tree),
            ProgramProbe(self._period_ns, self._tree),
            ThreadsProbe(self._period_ns, self._tree, self._clocks),
            MachineProbe(slow_ns // 2),  # the kernel counts ticks of 10 ms: fewer are too coarse
            ProcessesProbe(slow_ns, self._tree),
            SwitchesProbe(slow_ns, self._tree),
            CoresProbe(slow_ns, groups),
        )
        gpus = (GpuProbe(self._period_ns, self._gpus), TrafficProbe(slow_ns, self._gpus))
        return (*every, *gpus) if self._gpus.devices else every

    def run(self) -> None:
        """Sample until SIGTERM, until all processes of the program have ended, or until the recording was killed."""
        flushed_ns, took_ns = self._began_ns, 0
        self._writer.describe(self._description("recording"))
        next_ns = self._began_ns
        while True:
            self._sample()
            if self._tree.has_ended or (self._parent is not None and os.getppid() != self._parent):
                break
            now_ns = time.monotonic_ns()
            if now_ns - flushed_ns >= flush_pause(now_ns - self._began_ns, took_ns):
                took_ns = time.thread_time_ns()
                self._writer.flush(self._description("recording"))
                flushed_ns, took_ns = now_ns, time.thread_time_ns() - took_ns
            # Turns for which the machine left no time are counted, but not repeated.
            late = max(time.monotonic_ns() - next_ns, 0) // self._period_ns
            self._missed += late
            next_ns += (late + 1) * self._period_ns
            # SIGTERM is blocked, so that it interrupts nothing else. After a stop and a continue past the time, Python
            # returns a signal that never came.
            seconds = (next_ns - time.monotonic_ns()) / SECOND_NS
            received = signal.sigtimedwait({signal.SIGTERM}, max(seconds, 0.0))
            if received is not None and received.si_signo == signal.SIGTERM:
                self._sample()
                break
        self._writer.flush(self._description("ended"))
        self._clocks.close()
        self._tree.close()
        self._gpus.close()

    def _sample(self) -> None:
        now_ns = time.monotonic_ns()
        for probe in self._probes:
            self._writer.add(now_ns + self._unix_offset_ns, probe.turn(now_ns))

    def _description(self, state: str) -> Mapping[str, Any]:
        now_ns = time.monotonic_ns()
        return {
            "state": state,
            "pid": self._tree.root,
            "rate_hz": SECOND_NS / self._period_ns,
            "began_unix_ns": self._began_ns + self._unix_offset_ns,
            "wall_ns": now_ns - self._began_ns,
            "cpu_ns": time.process_time_ns() - self._startup_cpu_ns,
            "startup_cpu_ns": self._startup_cpu_ns,
            "memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            "missed": self._missed,
            "denied": self._tree.denied,
            "clock_step_ns": time.time_ns() - now_ns - self._unix_offset_ns,
            "settings": self._settings,
            "processes": [{"pid": pid, "name": name} for pid, name in sorted(self._tree.names.items())],
            **gpu_facts(self._gpus),
        }


def flush_pause(ran_ns: int, took_ns: int) -> int:
    """Return the time until the next write, after ``ran_ns`` of sampling, if the last write took ``took_ns``."""
    return max(min(max(FLUSH_NS[0], ran_ns // 8), FLUSH_NS[1]), int(took_ns / FLUSH_SHARE))
