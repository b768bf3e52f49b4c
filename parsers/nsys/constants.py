"""Numbers that Nsight Systems and CUPTI write, and their words in the contract.

Exports before schema 3.0.0 carry no ``ENUM_*`` tables, so the numbers are kept here; later exports repeat the same
numbers there. Sources: NVIDIA's "SQLite Export Schema Reference" and the CUPTI headers (``CUpti_ActivityMemcpyKind``,
``CUpti_ActivityMemoryKind``, ``CUpti_ActivitySynchronizationType``, ``CUpti_ActivityOverheadKind``).
"""

from __future__ import annotations

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
