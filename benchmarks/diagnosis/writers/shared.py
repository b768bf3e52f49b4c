"""Facts that several writers need."""

from __future__ import annotations

from benchmarks.diagnosis.record import DeviceSpan, Record, Span, ThreadFacts, Work

DEVICE_NAME = "NVIDIA A100-SXM4-80GB"
DEVICE_MEMORY = 84_987_740_160
MULTIPROCESSORS = 108
EPOCH_NS = 1_751_410_836_000_000_000
"""Wall clock at the start of every record."""
FIRST_PID = 4_200
"""Process of the first rank; ranks and loader processes follow."""
CALLBACKS = {
    "cudaMalloc": 20,
    "cudaFree": 22,
    "cudaMemcpyAsync": 41,
    "cudaStreamDestroy": 130,
    "cudaStreamSynchronize": 131,
    "cudaStreamCreateWithFlags": 198,
    "cudaLaunchKernel": 211,
    "cudaGraphLaunch": 311,
    "cudaStreamBeginCapture": 315,
    "cudaStreamEndCapture": 319,
    "cudaGraphInstantiate": 443,
}
"""Numbers of the calls in CUPTI's list of callbacks (cupti_runtime_cbid.h)."""


def pid_of(rank: int, process: int = 0) -> int:
    """Return the number of a process of a rank."""
    return FIRST_PID + 100 * rank + process


def tid_of(facts: ThreadFacts) -> int:
    """Return the number of a thread: the first of a process has that of its process."""
    pid = pid_of(facts.rank, facts.process)
    return pid if facts.process or facts.thread == 1 else pid + 50 + facts.thread


def thread_ids(record: Record) -> dict[tuple[int, int], tuple[int, int]]:
    """Return the process and the thread of each rank and thread of a record."""
    return {(facts.rank, facts.thread): (pid_of(facts.rank, facts.process), tid_of(facts)) for facts in record.threads}


def copy_name(span: DeviceSpan) -> str:
    """Return the name of a copy as Kineto writes it."""
    host = "Pinned" if span.pinned else "Pageable"
    return {
        Work.HOST_TO_DEVICE: f"Memcpy HtoD ({host} -> Device)",
        Work.DEVICE_TO_HOST: f"Memcpy DtoH (Device -> {host})",
        Work.DEVICE_TO_DEVICE: "Memcpy DtoD (Device -> Device)",
    }[span.work]


def nested(spans: list[Span]) -> list[Span]:
    """Return spans as a profiler lists them: by start, and enclosing ones first."""
    return sorted(spans, key=lambda span: (span.start, -span.end))
