"""A simulated PyTorch program on a GPU: operators on two threads that call CUDA, and a device that works in streams.

Time is invented, causality is not: a kernel starts after its launch call and after the work before it in its stream,
a synchronisation returns after the device has finished, a copy from pageable memory holds the caller. The same calls
give the same events, to the nanosecond.

::

    main thread    |aten::linear |aten::addmm |cudaLaunchKernel|||
    stream 7                                      |kernel...............|
                                               ^ LAUNCH_LATENCY_NS after the call began
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from kineto_trace import Args, KinetoTrace

US = 1_000
MS = 1_000_000
GB = 1_000_000_000

COMPUTE_STREAM, COLLECTIVE_STREAM = 7, 40
LAUNCH_CALL_NS = 5 * US
LAUNCH_LATENCY_NS = 6 * US
GRAPH_CALL_NS = 60 * US
BACK_TO_BACK_NS = 1 * US
WAKE_UP_NS = 8 * US
FIRST_NODE = 12_884_901_888
"""Id of the first node of a CUDA graph; later ones follow."""
JITTER = 0.03
PINNED_BYTES_PER_US = 24_000
PAGEABLE_BYTES_PER_US = 5_000
CALLBACK_IDS = {
    "cudaMemcpyAsync": 41,
    "cudaStreamSynchronize": 131,
    "cudaEventSynchronize": 137,
    "cudaLaunchKernel": 211,
    "cudaGraphLaunch": 311,
}

DEVICE_SMS = 108
DEVICE = {
    "name": "NVIDIA A100-SXM4-40GB",
    "totalGlobalMem": 42_297_786_368,
    "computeMajor": 8,
    "computeMinor": 0,
    "maxThreadsPerBlock": 1024,
    "maxThreadsPerMultiprocessor": 2048,
    "regsPerBlock": 65536,
    "warpSize": 32,
    "sharedMemPerBlock": 49152,
    "numSms": DEVICE_SMS,
    "regsPerMultiprocessor": 65536,
    "sharedMemPerBlockOptin": 166912,
    "sharedMemPerMultiprocessor": 167936,
}


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel: its name, typical duration and launch shape."""

    name: str
    dur_ns: int
    grid: int = 4096
    block: int = 256
    registers: int = 64
    shared_bytes: int = 0


ALL_REDUCE = Kernel(
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 0, grid=24, block=544, registers=96
)


@dataclass(slots=True)
class Memory:
    """What the caching allocator of a device holds."""

    in_use: int
    reserved: int


class TorchProgram:
    """One process with a main thread, a thread for the backward pass, and one GPU.

    Args:
        seed: Of the small variations of all durations.
        rank: Of the process and its GPU, one of ``world_size``.
        memory: What is allocated before the capture.
    """

    def __init__(self, seed: str, memory: Memory, rank: int = 0, world_size: int = 1) -> None:
        devices = [{"id": place, **DEVICE} for place in range(world_size)]
        header: Args = {"schemaVersion": 1, "deviceProperties": devices}
        header |= {"cuda_runtime_version": 12080, "cuda_driver_version": 12080, "profile_memory": 1}
        if world_size > 1:
            group = {"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "pg_size": world_size}
            group["ranks"] = list(range(world_size))
            facts = {"backend": "nccl", "rank": rank, "world_size": world_size, "pg_count": 1, "pg_config": [group]}
            header["distributedInfo"] = facts
        self.trace = KinetoTrace(header, pid=4100 + rank)
        self.rank = rank
        self.world_size = world_size
        self.memory = memory
        self.now = 0
        self.main: Args = {"pid": self.trace.pid, "tid": self.trace.pid}
        self.backward: Args = {"pid": self.trace.pid, "tid": self.trace.pid + 40}
        self.thread = self.main
        self._ready: dict[int, int] = {}
        self._open: list[int] = []
        self._worked: list[tuple[int, int, int]] = []
        self._ids = 0
        self._correlation = 9000
        self._random = random.Random(f"{seed} {rank}")
        self._label()

    def vary(self, dur_ns: int) -> int:
        """``dur_ns`` within a few percent."""
        return round(dur_ns * self._random.uniform(1 - JITTER, 1 + JITTER))

    def work(self, dur_ns: int) -> None:
        """Compute on the host."""
        self.now += self.vary(dur_ns)

    @contextmanager
    def on_thread(self, thread: Args) -> Iterator[None]:
        """What happens inside is done by another thread, while this one waits."""
        waiting, self.thread = self.thread, thread
        yield
        self.thread = waiting

    @contextmanager
    def annotation(self, name: str) -> Iterator[None]:
        """A range that the program or PyTorch marks; the device's share of it is written as well."""
        before = len(self._worked)
        with self._range("user_annotation", name) as number:
            yield
        for stream in (COMPUTE_STREAM, COLLECTIVE_STREAM):
            spans = [(start, end) for used, start, end in self._worked[before:] if used == stream]
            if spans:
                start, dur_ns = spans[0][0], spans[-1][1] - spans[0][0]
                args = {"External id": number}
                self.trace.complete("gpu_user_annotation", name, self._stream(stream), (start, dur_ns), args)

    @contextmanager
    def op(self, *names: str, overhead_ns: int = 4 * US) -> Iterator[None]:
        """An operator that calls others: ``names`` from the outermost; each takes ``overhead_ns`` for itself."""
        if not names:
            yield
            return
        with self._range("cpu_op", names[0]):
            self.work(overhead_ns)
            with self.op(*names[1:], overhead_ns=overhead_ns):
                yield
            self.now += 1 * US

    def launch(self, kernel: Kernel) -> None:
        """Call ``cudaLaunchKernel``; the device runs the kernel when it comes to it."""
        earliest = self.now + LAUNCH_LATENCY_NS
        correlation = self._start("cudaLaunchKernel", LAUNCH_CALL_NS)
        self._run(kernel, earliest, correlation, {})

    def replay(self, kernels: tuple[Kernel, ...]) -> None:
        """Launch a CUDA graph that holds ``kernels``: they share the call, and follow each other closely."""
        earliest = self.now + GRAPH_CALL_NS
        correlation = self._start("cudaGraphLaunch", GRAPH_CALL_NS)
        for node, kernel in enumerate(kernels):
            self._run(kernel, earliest, correlation, {"graph id": 3, "graph node id": FIRST_NODE + node})

    def copy_in(self, size: int, *, pinned: bool = True) -> None:
        """Copy ``size`` bytes to the device; from pageable memory the caller waits for it."""
        dur_ns = 2 * US + size * US // (PINNED_BYTES_PER_US if pinned else PAGEABLE_BYTES_PER_US)
        begun = self._earliest(self.now + LAUNCH_LATENCY_NS)
        held = LAUNCH_CALL_NS if pinned else begun + dur_ns - self.now
        correlation = self._start("cudaMemcpyAsync", held)
        kind = "Pinned" if pinned else "Pageable"
        self._copy(f"Memcpy HtoD ({kind} -> Device)", begun, dur_ns, size, correlation)
        if not pinned:
            self.synchronise()

    def copy_out(self, size: int) -> None:
        """Copy ``size`` bytes to pinned memory of the host."""
        begun = self._earliest(self.now + LAUNCH_LATENCY_NS)
        correlation = self._start("cudaMemcpyAsync", LAUNCH_CALL_NS)
        self._copy("Memcpy DtoH (Device -> Pinned)", begun, 2 * US, size, correlation)

    def synchronise(self, wake_up_ns: int = WAKE_UP_NS) -> None:
        """Wait until the stream of the kernels has finished, and wake up a little later."""
        start = self.now
        waited = max(self.finished_by() - start, 0) + wake_up_ns
        correlation = self._call("cudaStreamSynchronize", waited)
        args = self._device_args(COMPUTE_STREAM, correlation) | {"cuda_sync_kind": "Stream Sync"}
        self.trace.complete("cuda_sync", "Stream Sync", self._stream(COMPUTE_STREAM), (start, waited - 4 * US), args)

    def finished_by(self, stream: int = COMPUTE_STREAM) -> int:
        """When the device will have done all that it was given."""
        return self._ready.get(stream, 0)

    def wait_until(self, time_ns: int) -> None:
        """Wait for an event that the device reaches at ``time_ns``: it bounds how far the host runs ahead."""
        self._call("cudaEventSynchronize", max(time_ns - self.now, 0) + WAKE_UP_NS)

    def allocate(self, size: int) -> None:
        """Take ``size`` bytes from what the allocator of the device has reserved; give back where it is negative."""
        self.memory.in_use += size
        args = {"Total Reserved": self.memory.reserved, "Total Allocated": self.memory.in_use, "Bytes": size}
        args |= {"Addr": 139_637_976_727_552, "Device Id": self.rank, "Device Type": 1}
        self.trace.memory(self.thread, self.now, args)

    def arrive(self) -> int:
        """When a collective would begin on this device, were it called now."""
        return max(self._earliest(self.now + LAUNCH_LATENCY_NS), self.finished_by(COLLECTIVE_STREAM) + BACK_TO_BACK_NS)

    def all_reduce(self, elements: int, end_ns: int) -> None:
        """Call an all-reduce that all ranks end at ``end_ns``; kernels launched later wait for it."""
        more: Args = {"Collective name": "allreduce", "In msg nelems": elements, "Out msg nelems": elements}
        more |= {"Group size": self.world_size, "dtype": "Float", "In split size": "[]", "Out split size": "[]"}
        more |= {"Process Group Name": "0", "Process Group Description": "default_pg"}
        more["Process Group Ranks"] = str(list(range(self.world_size)))
        begun = self.arrive()
        with self._range("user_annotation", "nccl:all_reduce"):
            correlation = self._start("cudaLaunchKernel", LAUNCH_CALL_NS)
            self._kernel(ALL_REDUCE, COLLECTIVE_STREAM, (begun, end_ns - begun), correlation, more)
        self._ready[COMPUTE_STREAM] = end_ns

    @contextmanager
    def _range(self, category: str, name: str) -> Iterator[int]:
        start, thread = self.now, self.thread
        self._ids += 1
        number = self._ids
        self._open.append(number)
        yield number
        self._open.pop()
        args = {"External id": number, "Record function id": 0, "Ev Idx": number - 1}
        self.trace.complete(category, name, thread, (start, self.now - start), args)

    def _call(self, name: str, dur_ns: int) -> int:
        """A runtime call on the present thread; gives its correlation id."""
        self._correlation += 1
        args = {"External id": self._open[-1], "cbid": CALLBACK_IDS[name], "correlation": self._correlation}
        self.trace.complete("cuda_runtime", name, self.thread, (self.now, dur_ns), args)
        self.now += dur_ns + 1 * US
        return self._correlation

    def _start(self, name: str, dur_ns: int) -> int:
        """A runtime call that starts work on the device: an arrow leaves it."""
        start = self.now
        correlation = self._call(name, dur_ns)
        self.trace.arrow("s", correlation, self.thread, start)
        return correlation

    def _earliest(self, time_ns: int) -> int:
        """When the stream of the kernels can begin what reaches the device at ``time_ns``."""
        return max(time_ns, self.finished_by() + BACK_TO_BACK_NS)

    def _run(self, kernel: Kernel, time_ns: int, correlation: int, more: Args) -> None:
        span = self._earliest(time_ns), self.vary(kernel.dur_ns)
        self._kernel(kernel, COMPUTE_STREAM, span, correlation, more)

    def _kernel(self, kernel: Kernel, stream: int, span: tuple[int, int], correlation: int, more: Args) -> None:
        blocks = kernel.grid / DEVICE_SMS
        warps = round(blocks * kernel.block / 32, 6)
        args = self._device_args(stream, correlation)
        args |= {"registers per thread": kernel.registers, "shared memory": kernel.shared_bytes}
        args |= {"blocks per SM": round(blocks, 6), "warps per SM": warps}
        args |= {"grid": [kernel.grid, 1, 1], "block": [kernel.block, 1, 1]}
        args["est. achieved occupancy %"] = min(50, round(warps / 64 * 100))
        self._work("kernel", kernel.name, span, args | more)

    def _copy(self, name: str, start: int, dur_ns: int, size: int, correlation: int) -> None:
        args = self._device_args(COMPUTE_STREAM, correlation)
        args |= {"bytes": size, "memory bandwidth (GB/s)": round(size / dur_ns, 3)}
        self._work("gpu_memcpy", name, (start, dur_ns), args)

    def _work(self, category: str, name: str, span: tuple[int, int], args: Args) -> None:
        """Work of the device, at the end of the arrow from its call."""
        stream, end = args["stream"], sum(span)
        self.trace.complete(category, name, self._stream(stream), span, args)
        self.trace.arrow("f", args["correlation"], self._stream(stream), span[0])
        self._worked.append((stream, span[0], end))
        self._ready[stream] = end

    def _device_args(self, stream: int, correlation: int) -> Args:
        place = {"device": self.rank, "context": 1, "stream": stream, "correlation": correlation}
        return {"External id": self._open[-1], **place}

    def _stream(self, stream: int) -> Args:
        return {"pid": self.rank, "tid": stream}

    def _label(self) -> None:
        self.trace.label("process_name", {"pid": self.trace.pid, "tid": 0}, {"name": "python3"})
        self.trace.label("process_labels", {"pid": self.trace.pid, "tid": 0}, {"labels": "CPU"})
        for thread, name in ((self.main, "python3"), (self.backward, "pt_autograd_0")):
            self.trace.label("thread_name", thread, {"name": f"thread {thread['tid']} ({name})"})
        device = {"pid": self.rank, "tid": 0}
        self.trace.label("process_name", device, {"name": "python3"})
        self.trace.label("process_labels", device, {"labels": f"GPU {self.rank}"})
        self.trace.label("thread_name", self._stream(COMPUTE_STREAM), {"name": f"stream {COMPUTE_STREAM} "})
