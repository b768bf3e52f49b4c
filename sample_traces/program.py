"""A simulated training program: a host thread that calls CUDA, and a device that works through its streams.

Time is invented, causality is not: a kernel starts after its launch call and after the work before it in its
stream, a synchronisation returns after the device has finished, a copy from pageable memory holds the caller.
The same calls give the same trace, to the nanosecond.

::

    host    |launch|launch|  |cudaStreamSynchronize........|
    device     |kernel......|kernel.................|
                ^ LAUNCH_LATENCY_NS after the call began    ^ WAKE_UP_NS after the device finished
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from nsys_database import (
    COPY_KINDS,
    DRIVER_CLASS,
    MEMORY_KINDS,
    OS_CLASS,
    PUSH_POP_RANGE,
    REGULAR_LAUNCH,
    RUNTIME_CLASS,
    SYNC_CONTEXT,
    SYNC_EVENT,
    SYNC_STREAM,
    NsysDatabase,
    global_pid,
)

US = 1_000
MS = 1_000_000

COMPUTE_STREAM, COPY_STREAM, COLLECTIVE_STREAM = 7, 13, 20
NO_STREAM = 2**32 - 1

LAUNCH_CALL_NS = 5 * US
LAUNCH_LATENCY_NS = 6 * US
BACK_TO_BACK_NS = 1 * US
WAKE_UP_NS = 8 * US
JITTER = 0.03
PINNED_BYTES_PER_US = 24_000
PAGEABLE_BYTES_PER_US = 5_000


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel as the device executes it: names, typical duration and launch shape."""

    name: str
    short: str
    dur_ns: int
    grid: int
    block: int
    registers: int = 32
    shared_bytes: int = 0


class Program:
    """One process with one training thread and one device.

    Args:
        database: Receives the rows.
        pid: Process id; the training thread's id is the same.
        device: Ordinal of the device.
        driver_api: Launch and copy through the driver API, as TensorFlow does, instead of the runtime API.
    """

    def __init__(self, database: NsysDatabase, pid: int = 1001, device: int = 0, *, driver_api: bool = False) -> None:
        self.database = database
        self.device = device
        self.driver_api = driver_api
        self.now = 0
        self._pid = global_pid(pid)
        self._tid = self._pid | pid
        self._stream_ends: dict[int, int] = {}
        self._correlation = 0
        self._random = random.Random(pid)
        database.add_process(pid, "python3")
        database.add_device(device)

    # --- the host ---------------------------------------------------------------------------------------------

    def compute(self, dur_ns: int) -> None:
        """The host computes: Python, framework, decoding."""
        self.now += self._vary(dur_ns)

    def os_call(self, name: str, dur_ns: int) -> None:
        """The host is inside a call of the operating system's runtime library."""
        start = self.now
        self.now += self._vary(dur_ns)
        self.database.add(
            "OSRT_API",
            start=start,
            end=self.now,
            eventClass=OS_CLASS,
            globalTid=self._tid,
            nameId=self.database.string(name),
            returnValue=0,
            nestingLevel=0,
            callchainId=0,
        )

    @contextmanager
    def range(self, text: str) -> Iterator[None]:
        """An NVTX push/pop range around what the host does inside the block."""
        start = self.now
        yield
        self.add_range(text, start)

    def add_range(self, text: str, start: int) -> None:
        """An NVTX range from ``start`` until now."""
        self.database.add(
            "NVTX_EVENTS",
            start=start,
            end=self.now,
            eventType=PUSH_POP_RANGE,
            text=text,
            globalTid=self._tid,
            domainId=0,
        )

    def call(self, name: str, dur_ns: int, *, until: int = 0, driver: bool = False) -> int:
        """A CUDA API call of at least ``dur_ns`` that does not return before ``until``; gives its correlation id."""
        self._correlation += 1
        start = self.now
        self.now = max(start + self._vary(dur_ns), until)
        self.database.add(
            "CUPTI_ACTIVITY_KIND_RUNTIME",
            start=start,
            end=self.now,
            eventClass=DRIVER_CLASS if driver else RUNTIME_CLASS,
            globalTid=self._tid,
            correlationId=self._correlation,
            nameId=self.database.string(name),
            returnValue=0,
        )
        return self._correlation

    def malloc(self, dur_ns: int = 180 * US) -> None:
        """Allocate device memory."""
        self.call("cudaMalloc_v3020", dur_ns)

    def free(self, dur_ns: int = 260 * US) -> None:
        """Release device memory: waits until the device has finished, and then takes its time."""
        self.call("cudaFree_v3020", dur_ns, until=self.device_end + dur_ns)

    # --- the device -------------------------------------------------------------------------------------------

    @property
    def device_end(self) -> int:
        """When the device will have finished everything launched so far."""
        return max(self._stream_ends.values(), default=0)

    def launch(self, kernel: Kernel, stream: int = COMPUTE_STREAM, *, not_before: int = 0) -> int:
        """Launch a kernel and return when it will end."""
        start = max(self._device_start(stream), not_before)
        end = start + self._vary(kernel.dur_ns)
        name = "cuLaunchKernel" if self.driver_api else "cudaLaunchKernel_v7000"
        self._run(kernel, stream, self.call(name, LAUNCH_CALL_NS, driver=self.driver_api), start, end)
        return end

    def launch_until(self, kernel: Kernel, stream: int, start: int, end: int) -> None:
        """Launch a kernel whose interval is decided elsewhere: a collective ends on all ranks at once."""
        self._run(kernel, stream, self.call("cudaLaunchKernelExC_v11060", LAUNCH_CALL_NS), start, end)

    def ready(self, stream: int, *, after: int = 0) -> int:
        """Earliest start of work launched now on ``stream`` that also waits for the time ``after``."""
        return max(self._device_start(stream), after)

    def copy(self, kind: str, size: int, *, pinned: bool = True, stream: int = COPY_STREAM) -> int:
        """Copy ``size`` bytes asynchronously and return when the copy will end.

        From or to pageable memory the call is asynchronous in name only: it returns when the copy has ended.
        """
        speed = PINNED_BYTES_PER_US if pinned else PAGEABLE_BYTES_PER_US
        start = self._device_start(stream)
        end = start + self._vary(max(size * US // speed, 2 * US))
        name = {"h2d": "cuMemcpyHtoDAsync_v2", "d2h": "cuMemcpyDtoHAsync_v2"}[kind]
        correlation = self.call(
            name if self.driver_api else "cudaMemcpyAsync_v3020",
            8 * US,
            until=0 if pinned else end,
            driver=self.driver_api,
        )
        host = MEMORY_KINDS["pinned" if pinned else "pageable"]
        device = MEMORY_KINDS["device"]
        self._device_row(
            "CUPTI_ACTIVITY_KIND_MEMCPY",
            stream,
            correlation,
            start,
            end,
            bytes=size,
            copyKind=COPY_KINDS[kind],
            srcKind=host if kind == "h2d" else device,
            dstKind=device if kind == "h2d" else host,
        )
        return end

    def fill(self, size: int, stream: int = COMPUTE_STREAM) -> None:
        """Set ``size`` bytes of device memory to zero."""
        start = self._device_start(stream)
        correlation = self.call("cudaMemsetAsync_v3020", LAUNCH_CALL_NS)
        self._device_row(
            "CUPTI_ACTIVITY_KIND_MEMSET",
            stream,
            correlation,
            start,
            start + 2 * US,
            value=0,
            bytes=size,
            memKind=MEMORY_KINDS["device"],
        )

    def wait_until(self, time: int) -> None:
        """Wait for an event that the device reaches at ``time``."""
        self._synchronize("cudaEventSynchronize_v3020", SYNC_EVENT, COMPUTE_STREAM, time + WAKE_UP_NS)

    def synchronize_stream(self, stream: int = COMPUTE_STREAM) -> None:
        """Wait for one stream."""
        until = self._stream_ends.get(stream, 0) + WAKE_UP_NS
        self._synchronize("cudaStreamSynchronize_v3020", SYNC_STREAM, stream, until)

    def synchronize_device(self, wake_up_ns: int = WAKE_UP_NS) -> None:
        """Wait for the whole device; a blocking wait wakes up ``wake_up_ns`` after the device has finished."""
        self._synchronize("cudaDeviceSynchronize_v3020", SYNC_CONTEXT, NO_STREAM, self.device_end + wake_up_ns)

    # --- rows -------------------------------------------------------------------------------------------------

    def _synchronize(self, name: str, kind: int, stream: int, until: int) -> None:
        start = self.now
        correlation = self.call(name, 3 * US, until=until)
        self.database.add(
            "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
            start=start + 1 * US,
            end=self.now - 1 * US,
            deviceId=self.device,
            contextId=1,
            streamId=stream,
            correlationId=correlation,
            globalPid=self._pid,
            syncType=kind,
            eventId=NO_STREAM,
        )

    def _device_start(self, stream: int) -> int:
        return max(self.now + LAUNCH_LATENCY_NS, self._stream_ends.get(stream, 0) + BACK_TO_BACK_NS)

    def _run(self, kernel: Kernel, stream: int, correlation: int, start: int, end: int) -> None:
        self._device_row(
            "CUPTI_ACTIVITY_KIND_KERNEL",
            stream,
            correlation,
            start,
            end,
            demangledName=self.database.string(kernel.name),
            shortName=self.database.string(kernel.short),
            launchType=REGULAR_LAUNCH,
            registersPerThread=kernel.registers,
            gridX=kernel.grid,
            gridY=1,
            gridZ=1,
            blockX=kernel.block,
            blockY=1,
            blockZ=1,
            staticSharedMemory=0,
            dynamicSharedMemory=kernel.shared_bytes,
            localMemoryPerThread=0,
            localMemoryTotal=0,
            gridId=correlation,
        )

    def _device_row(self, table: str, stream: int, correlation: int, start: int, end: int, **values: object) -> None:
        self._stream_ends[stream] = end
        self.database.add(
            table,
            start=start,
            end=end,
            deviceId=self.device,
            contextId=1,
            streamId=stream,
            correlationId=correlation,
            globalPid=self._pid,
            **values,
        )

    def _vary(self, dur_ns: int) -> int:
        return int(dur_ns * (1 - JITTER + 2 * JITTER * self._random.random()))
