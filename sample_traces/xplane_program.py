"""A simulated TensorFlow or JAX program on a GPU: the host's calls, and a device that works through its streams.

Time is invented, causality is not: a kernel starts after its launch call and after the work before it, copies and
kernels of a step run in order, a synchronisation returns after the device has finished. The same calls give the same
events, to the nanosecond.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from xplane_space import Line, Space, Stats

US = 1_000
MS = 1_000_000

LAUNCH_CALL_NS = 5 * US
LAUNCH_LATENCY_NS = 6 * US
BACK_TO_BACK_NS = 1 * US
WAKE_UP_NS = 8 * US
JITTER = 0.03
BYTES_PER_US = 12_000

GPU: Stats = {
    "device_vendor": "Nvidia",
    "gpu_device_name": "NVIDIA A100-SXM4-40GB",
    "clock_rate": 1_410_000,
    "core_count": 108,
    "memory_bandwidth": 1_555_200_000_000,
    "memory_size": 42_314_694_656,
    "compute_cap_major": 8,
    "compute_cap_minor": 0,
}
"""Properties of the device plane."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel: its name, typical duration and launch shape, and the operation that launches it.

    Args:
        source: The device event's own words for it: ``tf_op`` and, from XLA, ``hlo_op`` and ``hlo_module``.
    """

    name: str
    dur_ns: int
    grid: int
    block: int
    registers: int
    source: Stats


class GpuProgram:
    """One host thread that launches, one GPU with a stream for kernels and one for copies in each direction."""

    def __init__(self, space: Space, seed: str) -> None:
        device = space.plane("/device:GPU:0", 0, GPU)
        self.compute = device.line(13, "Stream #13(Compute)")
        self.to_device = device.line(14, "Stream #14(MemcpyH2D)")
        self.to_host = device.line(15, "Stream #15(MemcpyD2H)")
        self.recording = True
        self.now = 0
        self._ready = 0
        self._correlation = 0
        self._random = random.Random(seed)

    def vary(self, dur_ns: int) -> int:
        """``dur_ns`` within a few percent."""
        return round(dur_ns * self._random.uniform(1 - JITTER, 1 + JITTER))

    def launch(self, thread: Line, kernel: Kernel) -> None:
        """Call ``cuLaunchKernel`` on ``thread``; the device runs the kernel when it comes to it."""
        details = f"regs:{kernel.registers} static_shared:0 dynamic_shared:0 grid:{kernel.grid},1,1 "
        shape = {"kernel_details": f"{details}block:{kernel.block},1,1 occ_pct:50", "theoretical_occupancy_pct": 50.0}
        call = self._call(thread, "cuLaunchKernel", LAUNCH_CALL_NS)
        self._run(self.compute, kernel.name, self.vary(kernel.dur_ns), call | shape | kernel.source)

    def copy_in(self, thread: Line, size: int, source: Stats) -> None:
        """Copy ``size`` bytes from pinned memory to the device."""
        details = f"kind_src:pinned kind_dst:device size:{size} dest:0 async:1"
        call = self._call(thread, "cuMemcpyHtoDAsync_v2", LAUNCH_CALL_NS)
        self._run(self.to_device, "MemcpyH2D", _copy_ns(size), call | {"memcpy_details": details} | source)

    def copy_out(self, thread: Line, size: int, source: Stats) -> None:
        """Copy ``size`` bytes from the device to pinned memory."""
        details = f"kind_src:device kind_dst:pinned size:{size} dest:0 async:1"
        call = self._call(thread, "cuMemcpyDtoHAsync_v2", LAUNCH_CALL_NS)
        self._run(self.to_host, "MemcpyD2H", _copy_ns(size), call | {"memcpy_details": details} | source)

    def synchronise(self, thread: Line) -> None:
        """Wait on ``thread`` until the device has finished."""
        self._call(thread, "cuStreamSynchronize", max(self._ready - self.now, 0) + WAKE_UP_NS)

    def _call(self, thread: Line, name: str, dur_ns: int) -> Stats:
        """A driver call on ``thread``; gives the stats that the device's event shares with it."""
        self._correlation += 1
        shared: Stats = {"correlation_id": self._correlation, "context_id": "$$1"}
        thread.add(name, self.now, self.now + dur_ns, {"device_id": 0} | shared)
        self.now += dur_ns + 1 * US
        return shared

    def _run(self, line: Line, name: str, dur_ns: int, stats: Stats) -> None:
        start = max(self.now - LAUNCH_CALL_NS + LAUNCH_LATENCY_NS, self._ready + BACK_TO_BACK_NS)
        self._ready = start + dur_ns
        if self.recording:
            line.add(name, start, self._ready, stats)


def _copy_ns(size: int) -> int:
    return 2 * US + size * US // BYTES_PER_US
