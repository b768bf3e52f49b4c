"""Mapping of raw tables and columns of an nvprof database to those of the contract.

All differences between versions are rows here, not branches elsewhere. A column lists all its names, newest first.
Columns that a version lacks give nulls. They are the fields of CUPTI's activity records.
"""

from __future__ import annotations

from typing import Literal

from traceviz.parsers.nvprof import constants
from traceviz.parsers.shared.cupti import COPY_KIND, MEMORY_KIND, SYNC_KIND
from traceviz.parsers.shared.events.mapping import LAUNCH_SHAPE, EventTables, Keep, Name, Source, Whole, Word

THREAD, PROCESS, LAUNCH = ("processId", "threadId"), ("processId",), ("correlationId",)
"""Raw columns of a row's owner: a thread, a process, or the process of the API call with the same id."""
LAUNCH_WITHIN = ("correlationId", "start")
"""As :data:`LAUNCH`, for events without a device: calls of several processes with one id differ in time."""
BY_LAUNCH = frozenset({LAUNCH, LAUNCH_WITHIN})

OF_PROCESSES_TOO = frozenset({constants.PREFIX + "OVERHEAD"})
"""Tables in which an event without a thread belongs to its whole process; in the others it belongs to thread 0."""

MARKERS = Source(constants.PREFIX + "MARKER", THREAD, start=("timestamp",), end=())
"""Records of NVTX, two for each range."""

OPTIONAL = frozenset({"sync", "memory_events"})
"""Tables that nvprof fills only on request, or only for some programs.

nvprof always creates all its tables. Without rows, the presence of these shows nothing, so the table of the contract is
then absent.
"""

_NONE = -1
"""CUPTI's "no such stream or context", all bits set, which nvprof stores as a signed number."""

_CORRELATION = Whole("correlation_id", ("correlationId",))
_WORK = (Whole("stream", ("streamId",), unset=_NONE), Whole("context_id", ("contextId",), unset=_NONE))
_DEVICE_WORK = (*_WORK, _CORRELATION, Whole("graph_node_id", ("graphNodeId",), unset=0))

_LAUNCH = (*_DEVICE_WORK, *LAUNCH_SHAPE)
_BYTES = Whole("bytes", ("bytes",))
_ENDS = (
    Word("src_memory", ("srcKind",), MEMORY_KIND, "unknown"),
    Word("dst_memory", ("dstKind",), MEMORY_KIND, "unknown"),
    _BYTES,
)


def _source(  # noqa: PLR0917 (in the order of Source)
    table: str,
    owner: tuple[str, ...],
    name: Name | None,
    columns: tuple[Whole | Word, ...],
    start: tuple[str, ...] = ("start",),
    device: str | None = None,
    keep: Keep | None = None,
) -> Source:
    return Source(
        constants.PREFIX + table, owner, name, columns, start, device=device, keep=keep, no_time=constants.NOT_TIMED
    )


def _kernels(table: str) -> Source:
    return _source(table, LAUNCH, Name(("name",)), _LAUNCH, device="deviceId")


def _calls(table: str, domain: Literal["runtime", "driver"]) -> Source:
    columns = (_CORRELATION, Word("domain", (), {}, domain), Whole("status", ("returnValue",)))
    return _source(table, THREAD, Name(("cbid",), calls=domain), columns)


def _allocations(kind: str, time: str) -> Source:
    """Return the mapping of allocations or releases.

    The record of an allocation starts with it and ends when it is freed; memory that was not freed is not a missing
    time.
    """
    columns = (
        Word("kind", (), {}, kind),
        Word("memory", ("memoryKind",), MEMORY_KIND, "unknown"),
        Whole("address", ("address",)),
        _BYTES,
    )
    known = Keep(time, (constants.NOT_TIMED,), inverted=True)
    return Source(constants.PREFIX + "MEMORY", PROCESS, None, columns, (time,), (), "deviceId", known)


EVENT_TABLES: EventTables = {
    "kernels": (_kernels("KERNEL"), _kernels("CONCURRENT_KERNEL"), _kernels("CDP_KERNEL")),
    "memcpy": (
        _source(
            "MEMCPY",
            LAUNCH,
            None,
            (*_DEVICE_WORK, Word("kind", ("copyKind",), COPY_KIND, "unknown"), *_ENDS),
            device="deviceId",
        ),
        # Between devices.
        _source("MEMCPY2", LAUNCH, None, (*_DEVICE_WORK, Word("kind", (), {}, "p2p"), *_ENDS), device="deviceId"),
        _source(
            "UNIFIED_MEMORY_COUNTER",
            PROCESS,
            None,
            (
                Whole("stream", ("streamId",), unset=_NONE),
                Word("kind", ("counterKind",), constants.MIGRATION_KIND, "unknown"),
                Word("src_memory", (), {}, "managed"),
                Word("dst_memory", (), {}, "managed"),
                Whole("bytes", ("value",)),
            ),
            start=("start", "timestamp"),
            device="deviceId",
            keep=Keep("counterKind", tuple(constants.MIGRATION_KIND)),
        ),
    ),
    "memset": (
        _source(
            "MEMSET",
            LAUNCH,
            None,
            (*_DEVICE_WORK, Word("memory", ("memoryKind",), MEMORY_KIND, "unknown"), _BYTES),
            device="deviceId",
        ),
    ),
    "cuda_api": (_calls("RUNTIME", "runtime"), _calls("DRIVER", "driver")),
    "sync": (
        _source(
            "SYNCHRONIZATION",
            LAUNCH_WITHIN,
            None,
            (*_WORK, _CORRELATION, Word("kind", ("type",), SYNC_KIND, "unknown")),
        ),
    ),
    "overhead": (
        _source(
            "OVERHEAD",
            THREAD,
            None,
            (Word("name", ("overheadKind",), constants.OVERHEAD_KIND, "Other"),),
            keep=Keep("overheadKind", tuple(constants.OVERHEAD_KIND)),
        ),
    ),
    "memory_events": (_allocations("alloc", "start"), _allocations("free", "end")),
}
"""The event tables of the contract; ``nvtx`` and ``samples`` are read separately."""
