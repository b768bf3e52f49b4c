"""Numbers in CUPTI's activity records, and their words in the contract.

Sources: ``cupti_activity.h`` and the reference of CUPTI's activity API. Nsight Systems numbers kinds of memory
differently, so :mod:`traceviz.parsers.nsys.mapping` is used only where both agree.
"""

from __future__ import annotations

STRINGS, STRING_ID = "StringTable", "_id_"
PREFIX = "CUPTI_ACTIVITY_KIND_"
"""Prefix of the tables of activity records."""

HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE = 1, 2, 8
"""``CUpti_ActivityUnifiedMemoryCounterKind``: migrations of managed memory by direction."""
MIGRATION_KIND = {HOST_TO_DEVICE: "h2d", DEVICE_TO_HOST: "d2h", DEVICE_TO_DEVICE: "d2d"}
FAULTS = {3: "page faults of the CPU", 4: "groups of page faults of the GPU", 5: "pages thrashed", 6: "throttlings"}
"""Other counters of unified memory, which are not copies."""

OBJECT_PROCESS, OBJECT_THREAD = 1, 2
"""``CUpti_ActivityObjectKind``: the kind of object in ``objectId``."""

OVERHEAD_KIND = {1 << 16: "Buffer flush", 2 << 16: "Instrumentation", 3 << 16: "Resource"}
"""``CUpti_ActivityOverheadKind``: CUPTI's own overhead.

The others (compiling, loading modules and functions) are work of CUDA that happens without a profiler too.
"""

MARKER_INSTANT, MARKER_START, MARKER_END = 1, 2, 4
"""Bits of ``flags`` of a marker."""

SPEED, TEMPERATURE, POWER, COOLING = 1, 2, 3, 4
"""``CUpti_ActivityEnvironmentKind``."""

NO_NAME = 0
"""Id of the string that stands for "no string" (``-- null --``)."""

NOT_TIMED = 0
"""A start of 0 means that CUPTI did not measure the time."""

KNOWN_VERSIONS = range(1, 17)
"""Values of table ``Version`` whose tables are known; nvprof ended with the CUDA 12 toolkits."""

THREAD_BITS = 0xFFFFFFFF
"""Thread ids are the low 32 bits of a ``pthread_t``, stored as signed numbers; nvprof shows them unsigned."""

FIRST_UNIX_NS, LAST_UNIX_NS = 1_167_609_600 * 10**9, 4_102_444_800 * 10**9
"""2007, the year of CUDA, to 2100: times in between count as wall-clock time, which CUPTI's usually are."""
