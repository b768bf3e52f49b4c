"""Which raw table and column of an Nsight Systems export becomes which table and column of the contract.

Everything that differs between producers' versions is a row here and not a branch elsewhere: a column lists all names
that it has had, newest first, and a table all raw tables that feed it. A raw column that a version lacks gives nulls.
``since`` names the first export schema that has a column which older ones lack.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from traceviz.parsers.nsys import constants
from traceviz.parsers.shared.cupti import COPY_KIND, SYNC_KIND
from traceviz.parsers.shared.mapping import LAUNCH_SHAPE, VERSION_SUFFIX, Name, Whole, Word
from traceviz.parsers.shared.raw import Keep


@dataclass(frozen=True, slots=True)
class Source:
    """How rows of one raw table become rows of the contract.

    Args:
        table: Raw table.
        owner: Whose event it is: a thread (``globalTid``) or a process (``globalPid``).
        name: Where the column ``name`` comes from, if there is one.
        columns: The other columns, except times and owner.
        end: Raw column of the end; ``None`` for instants.
        device: Raw column of the device number that the process uses, where there is one.
        keep: Rows that count; ``None`` for all.
    """

    table: str
    owner: Literal["globalTid", "globalPid"]
    name: Name | None = None
    columns: tuple[Whole | Word, ...] = ()
    end: str | None = "end"
    device: str | None = None
    keep: Keep | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """What shows that a capture could contain a table although it has no rows: lazy exports leave empty tables out.

    Args:
        tables: Prefixes of raw tables; one that is present is enough.
        capture: Rows (name, value) of META_DATA_CAPTURE; one is enough. Names of processes' options are without
            their ``PROCESS_<n>:``. Only positive answers count: captures that trace CUDA have been seen to say
            ``COLLECT_CUDA_TRACE = false``.
    """

    tables: tuple[str, ...] = ()
    capture: frozenset[tuple[str, str]] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True)
class EventTable:
    """One event table of the contract, the raw tables that feed it, and what shows that it was recorded."""

    name: str
    sources: tuple[Source, ...]
    evidence: Evidence


CUDA = Evidence(
    ("CUPTI_ACTIVITY_KIND_", "TARGET_INFO_CUDA_CONTEXT_INFO", "TARGET_INFO_CUDA_NULL_STREAM"),
    frozenset({("CAPTURE_EVENT_TYPE", "Cuda"), ("COLLECT_CUDA_TRACE", "true")}),
)
NVTX = Evidence((), frozenset({("CAPTURE_EVENT_TYPE", "NvtxEvents"), ("COLLECT_NVTX_TRACE", "true")}))
OS_RUNTIME = Evidence(("OSRT_CALLCHAINS",), frozenset({("CAPTURE_EVENT_TYPE", "OSRuntime")}))
CUDA_MEMORY = Evidence((), frozenset({("COLLECT_GPU_MEMORY_USAGE", "true")}))
ANY = Evidence(
    (*CUDA.tables, *OS_RUNTIME.tables, "OSRT_API", "NVTX_EVENTS"), CUDA.capture | NVTX.capture | OS_RUNTIME.capture
)

_WORK = (
    Whole("stream", ("streamId",), unset=constants.UNSET),
    Whole("context_id", ("contextId",), unset=constants.UNSET),
    Whole("correlation_id", ("correlationId",)),
)
_DEVICE_WORK = (*_WORK, Whole("graph_node_id", ("graphNodeId",), since="2.0"))

EVENT_TABLES = (
    EventTable(
        "kernels",
        (
            Source(
                "CUPTI_ACTIVITY_KIND_KERNEL",
                "globalPid",
                Name(("demangledName", "shortName")),
                (
                    *_DEVICE_WORK,
                    *LAUNCH_SHAPE,
                ),
                device="deviceId",
            ),
        ),
        CUDA,
    ),
    EventTable(
        "memcpy",
        (
            Source(
                "CUPTI_ACTIVITY_KIND_MEMCPY",
                "globalPid",
                None,
                (
                    *_DEVICE_WORK,
                    Word("kind", ("copyKind",), COPY_KIND, "unknown"),
                    Word("src_memory", ("srcKind",), constants.MEMORY_KIND, "unknown"),
                    Word("dst_memory", ("dstKind",), constants.MEMORY_KIND, "unknown"),
                    Whole("bytes", ("bytes",)),
                ),
                device="deviceId",
            ),
        ),
        CUDA,
    ),
    EventTable(
        "memset",
        (
            Source(
                "CUPTI_ACTIVITY_KIND_MEMSET",
                "globalPid",
                None,
                (
                    *_DEVICE_WORK,
                    Word("memory", ("memKind",), constants.MEMORY_KIND, "unknown", since="2.0"),
                    Whole("bytes", ("bytes",)),
                ),
                device="deviceId",
            ),
        ),
        CUDA,
    ),
    EventTable(
        "cuda_api",
        (
            Source(
                "CUPTI_ACTIVITY_KIND_RUNTIME",
                "globalTid",
                Name(("nameId",), strip=VERSION_SUFFIX),
                (
                    Whole("correlation_id", ("correlationId",)),
                    Word("domain", ("eventClass",), constants.API_DOMAIN, "runtime"),
                    Whole("status", ("returnValue",)),
                ),
            ),
        ),
        CUDA,
    ),
    EventTable(
        "sync",
        (
            Source(
                "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
                "globalPid",
                None,
                (*_WORK, Word("kind", ("syncType", "deprecatedSyncType"), SYNC_KIND, "unknown")),
                device="deviceId",
            ),
        ),
        CUDA,
    ),
    EventTable(
        "overhead",
        (
            Source("PROFILER_OVERHEAD", "globalTid", Name(("nameId",))),
            Source(
                "CUPTI_ACTIVITY_KIND_OVERHEAD",  # since 3.24
                "globalTid",
                Name(("nameId",)),
                keep=Keep("overheadType", constants.PROFILER_OVERHEAD_KINDS),
            ),
        ),
        ANY,
    ),
    EventTable(
        "nvtx",
        (
            Source(
                "NVTX_EVENTS",
                "globalTid",
                Name(("textId",), text="text"),
                (
                    Word("kind", ("eventType",), constants.NVTX_KIND, "mark"),
                    Whole("domain", ("domainId",)),
                    Whole("category", ("category",)),
                ),
                keep=Keep("eventType", tuple(constants.NVTX_KIND)),
            ),
        ),
        NVTX,
    ),
    EventTable(
        "os_calls",
        (
            Source(
                "OSRT_API",
                "globalTid",
                Name(("nameId",)),
                keep=Keep(
                    "eventClass", (constants.OS_PROFILING_STARTED, constants.OS_PROFILING_FINISHED), inverted=True
                ),
            ),
        ),
        OS_RUNTIME,
    ),
    EventTable(
        "memory_events",
        (
            Source(
                "CUDA_GPU_MEMORY_USAGE_EVENTS",  # since 2.4, with --cuda-memory-usage=true
                "globalPid",
                None,
                (
                    Whole("correlation_id", ("correlationId",)),
                    Word("kind", ("memoryOperationType",), constants.MEMORY_OPERATION, "alloc"),
                    Word("memory", ("memKind",), constants.MEMORY_KIND, "unknown"),
                    Whole("address", ("address",)),
                    Whole("bytes", ("bytes",)),
                ),
                end=None,
                device="deviceId",
            ),
        ),
        CUDA_MEMORY,
    ),
)
"""The event tables of the contract, in the order in which they are read."""

CLOCK_TABLES = ("kernels", "memcpy", "memset", "cuda_api", "sync", "overhead", "nvtx", "os_calls")
"""Tables whose first event is the trace's time zero and whose last one ends its span."""
