"""Mapping of raw tables and columns of an Nsight Systems export to those of the contract.

All differences between producers' versions are rows here, not branches elsewhere. A column lists all its names, newest
first, and a table all raw tables that feed it. A raw column that a version lacks gives nulls. ``since`` names the first
export schema that has a column which older ones lack.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from traceviz.parsers.shared.cupti import COPY_KIND, SYNC_KIND
from traceviz.parsers.shared.events.mapping import (
    LAUNCH_SHAPE,
    VERSION_SUFFIX,
    EventTables,
    Keep,
    Name,
    Source,
    Whole,
    Word,
)

# Numbers that Nsight Systems and CUPTI write, and their words in the contract. Exports before schema 3.0.0 carry no
# ENUM_* tables, so the numbers are kept here; later exports repeat them there. Sources: NVIDIA's "SQLite Export
# Schema Reference" and the CUPTI headers (CUpti_ActivityMemcpyKind, CUpti_ActivityMemoryKind,
# CUpti_ActivitySynchronizationType, CUpti_ActivityOverheadKind).

STRINGS, STRING_ID = "StringIds", "id"
"""The table of strings, and its column of string numbers."""

MEMORY_KIND = {
    0: "pageable",
    1: "pinned",
    2: "device",
    3: "array",
    4: "managed",
    5: "device_static",
    6: "managed_static",
}

API_DOMAIN = {0: "runtime", 1: "driver"}
"""``eventClass`` of CUPTI_ACTIVITY_KIND_RUNTIME, which holds the calls of both libraries."""

MEMORY_OPERATION = {0: "alloc", 1: "free"}

NVTX_KIND = {
    59: "push_pop",
    60: "start_end",
    34: "mark",
    70: "push_pop",  # ranges of the old nvtxt text import
    71: "start_end",
}
"""``eventType`` of the rows of NVTX_EVENTS that are ranges or marks."""

NVTX_CATEGORY_NAME = 33
NVTX_DOMAIN_NAME = 75

OS_PROFILING_STARTED = 31
OS_PROFILING_FINISHED = 32
"""``eventClass`` of the two rows of OSRT_API that are not calls: the tracer's own start and finish."""

PROFILER_OVERHEAD_KINDS = (3, 4, 5)
"""``overheadType``: CUPTI flushing buffers, instrumenting, and creating resources.

The others (compiling, loading modules and functions, full command buffers) are work of CUDA itself that happens without
a profiler too.
"""

UNSET = 0xFFFFFFFF
"""CUPTI's "no such stream, context or device" in unsigned 32-bit columns."""

LOCAL_ID = 0xFFFFFF
"""``globalTid`` packs hardware and VM above bit 48, the process id in bits 24 to 47 and the thread id in bits 0 to 23;
``globalPid`` is the same number with the thread bits zero."""
PROCESS_SHIFT = 24

SEVERITY = {2: "warning", 3: "error"}
"""``severity`` of DIAGNOSTIC_EVENT; the others (unknown, info, verbose) are progress messages."""


SAMPLES, CHAINS = "COMPOSITE_EVENTS", "SAMPLING_CALLCHAINS"
"""The tables of CPU samples, and of the frames of each."""
SAMPLE_COLUMNS = ("id", "start", "globalTid")
CHAIN_COLUMNS = ("id", "stackDepth", "symbol", "module")

PAGE_FAULTS = {
    "CUDA_UM_CPU_PAGE_FAULT_EVENTS": ("nsys.page_faults.host", ""),
    "CUDA_UM_GPU_PAGE_FAULT_EVENTS": ("nsys.page_faults.device", "numberOfPageFaults"),
}
"""Tables of page faults in managed memory: the setting with their number, and the column that counts them, if any."""

SCHEDULE, SCHEDULE_COLUMNS = "SCHED_EVENTS", ("start", "isSchedIn", "globalTid")
"""The table of moments at which threads get a core (``isSchedIn`` is 1) and leave it, and its columns."""

THREAD, PROCESS = ("globalTid",), ("globalPid",)
"""Raw columns of a row's owner."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Evidence that a capture could contain a table that has no rows. Lazy exports leave empty tables out.

    Args:
        tables: Prefixes of raw tables. One table is enough.
        capture: Rows (name, value) of META_DATA_CAPTURE. One row is enough. Names of processes' options are without
            their ``PROCESS_<n>:``. Only positive answers count: some captures that trace CUDA state
            ``COLLECT_CUDA_TRACE = false``.
    """

    tables: tuple[str, ...] = ()
    capture: frozenset[tuple[str, str]] = field(default_factory=frozenset)


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
    Whole("stream", ("streamId",), unset=UNSET),
    Whole("context_id", ("contextId",), unset=UNSET),
    Whole("correlation_id", ("correlationId",)),
)
_DEVICE_WORK = (*_WORK, Whole("graph_node_id", ("graphNodeId",), since="2.0"))

GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
"""Graphs that were recorded as a whole (``--cuda-graph-trace=graph``), since schema 3.1."""


def _graph_nodes(table: str) -> Source:
    """Return the mapping of creations of graph nodes and their copies. Before graphs, the table had another name."""
    columns = (Whole("graph_node_id", ("graphNodeId",)), Whole("original_node_id", ("originalGraphNodeId",)))
    return Source(table, THREAD, None, columns, end=(), requires="graphNodeId")


MPI_TABLES = ("MPI_COLLECTIVES_EVENTS", "MPI_P2P_EVENTS", "MPI_START_WAIT_EVENTS", "MPI_OTHER_EVENTS")
"""Calls of MPI (``--trace=mpi``). Other versions of nsys write them as NVTX ranges."""


MIGRATION_KINDS = (11, 12, 13)
"""``copyKind`` of migrations of unified memory. Their rows state no kind of memory."""


def _copies(*memory: Word, keep: Keep) -> Source:
    """Return the mapping of the copies that ``keep`` selects."""
    kind, size = Word("kind", ("copyKind",), COPY_KIND, "unknown"), Whole("bytes", ("bytes",))
    columns: tuple[Whole | Word, ...] = (*_DEVICE_WORK, kind, *memory, size)
    return Source("CUPTI_ACTIVITY_KIND_MEMCPY", PROCESS, None, columns, device="deviceId", keep=keep)


def _mpi(table: str) -> Source:
    """Return the mapping of MPI calls to ranges of their threads, which nest with those of the program."""
    return Source(table, THREAD, Name(("textId",)), (Word("kind", ("eventType",), {}, "push_pop"),))


EVENT_TABLES: EventTables = {
    "kernels": (
        Source(
            "CUPTI_ACTIVITY_KIND_KERNEL",
            PROCESS,
            Name(("demangledName", "shortName")),
            (
                *_DEVICE_WORK,
                *LAUNCH_SHAPE,
            ),
            device="deviceId",
        ),
    ),
    "memcpy": (
        _copies(
            Word("src_memory", ("srcKind",), MEMORY_KIND, "unknown"),
            Word("dst_memory", ("dstKind",), MEMORY_KIND, "unknown"),
            keep=Keep("copyKind", MIGRATION_KINDS, inverted=True),
        ),
        _copies(
            Word("src_memory", (), {}, "managed"),
            Word("dst_memory", (), {}, "managed"),
            keep=Keep("copyKind", MIGRATION_KINDS),
        ),
    ),
    "memset": (
        Source(
            "CUPTI_ACTIVITY_KIND_MEMSET",
            PROCESS,
            None,
            (
                *_DEVICE_WORK,
                Word("memory", ("memKind",), MEMORY_KIND, "unknown", since="2.0"),
                Whole("bytes", ("bytes",)),
            ),
            device="deviceId",
        ),
    ),
    "graphs": (
        Source(
            GRAPHS,
            PROCESS,
            None,
            (*_WORK, Whole("graph_id", ("graphId",))),
            device="deviceId",
            no_time=0,  # CUPTI did not measure the times
        ),
    ),
    "graph_nodes": (_graph_nodes("CUDA_GRAPH_NODE_EVENTS"), _graph_nodes("CUDA_GRAPH_EVENTS")),
    "cuda_api": (
        Source(
            "CUPTI_ACTIVITY_KIND_RUNTIME",
            THREAD,
            Name(("nameId",), strip=VERSION_SUFFIX),
            (
                Whole("correlation_id", ("correlationId",)),
                Word("domain", ("eventClass",), API_DOMAIN, "runtime"),
                Whole("status", ("returnValue",)),
            ),
        ),
    ),
    "sync": (
        Source(
            "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
            PROCESS,
            None,
            (*_WORK, Word("kind", ("syncType", "deprecatedSyncType"), SYNC_KIND, "unknown")),
            device="deviceId",
        ),
    ),
    "overhead": (
        Source("PROFILER_OVERHEAD", THREAD, Name(("nameId",))),
        Source(
            "CUPTI_ACTIVITY_KIND_OVERHEAD",  # since 3.24
            THREAD,
            Name(("nameId",)),
            keep=Keep("overheadType", PROFILER_OVERHEAD_KINDS),
        ),
    ),
    "nvtx": (
        Source(
            "NVTX_EVENTS",
            THREAD,
            Name(("textId",), text="text"),
            (
                Word("kind", ("eventType",), NVTX_KIND, "mark"),
                Whole("domain", ("domainId",)),
                Whole("category", ("category",)),
            ),
            keep=Keep("eventType", tuple(NVTX_KIND)),
        ),
        *map(_mpi, MPI_TABLES),
    ),
    "os_calls": (
        Source(
            "OSRT_API",
            THREAD,
            Name(("nameId",)),
            keep=Keep("eventClass", (OS_PROFILING_STARTED, OS_PROFILING_FINISHED), inverted=True),
        ),
    ),
    "memory_events": (
        Source(
            "CUDA_GPU_MEMORY_USAGE_EVENTS",  # since 2.4, with --cuda-memory-usage=true
            PROCESS,
            None,
            (
                Whole("correlation_id", ("correlationId",)),
                Word("kind", ("memoryOperationType",), MEMORY_OPERATION, "alloc"),
                Word("memory", ("memKind",), MEMORY_KIND, "unknown"),
                Whole("address", ("address",)),
                Whole("bytes", ("bytes",)),
            ),
            end=(),
            device="deviceId",
        ),
    ),
}
"""The event tables of the contract."""

EVIDENCE = {
    "kernels": CUDA,
    "memcpy": CUDA,
    "memset": CUDA,
    "graphs": Evidence(),  # captures of programs without any graph also state the option
    "graph_nodes": Evidence(),
    "cuda_api": CUDA,
    "sync": CUDA,
    "overhead": ANY,
    "nvtx": NVTX,
    "os_calls": OS_RUNTIME,
    "memory_events": CUDA_MEMORY,
}
"""Evidence that an event table could have been recorded."""
