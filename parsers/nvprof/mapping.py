"""Which raw table and column of an nvprof database becomes which table and column of the contract.

Everything that differs between versions is a row here and not a branch elsewhere: a column lists all names that it
has had, newest first; one that a version lacks gives nulls. The columns are the fields of CUPTI's activity records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from traceviz.parsers.nvprof import constants
from traceviz.parsers.shared.cupti import COPY_KIND, SYNC_KIND
from traceviz.parsers.shared.mapping import LAUNCH_SHAPE, Whole, Word
from traceviz.parsers.shared.raw import Keep

Owner = Literal["thread", "process", "launch"]
"""Whose event it is: that of a thread (``processId``, ``threadId``), of a process (``processId``), or of the process
that made the API call with the same ``correlationId``."""

_NONE = -1
"""CUPTI's "no such stream or context", all bits set, which nvprof stores as a signed number."""


@dataclass(frozen=True, slots=True)
class Source:
    """How rows of one raw table become rows of the contract.

    Args:
        table: Raw table, without the common beginning of all.
        owner: Whose event it is.
        columns: The columns, except times, owner, device and name.
        start: Raw column of the start, by all its names.
        end: Raw column of the end; nothing for instants.
        device: Raw column of the device number.
        name: Raw column of the id of the name.
        calls: Where names are numbers of functions: of the runtime or of the driver.
        keep: Rows that count; ``None`` for all that have a time.
    """

    table: str
    owner: Owner
    columns: tuple[Whole | Word, ...]
    start: tuple[str, ...] = ("start",)
    end: tuple[str, ...] = ("end",)
    device: str | None = None
    name: str | None = None
    calls: Literal["runtime", "driver"] | None = None
    keep: Keep | None = None

    @property
    def raw(self) -> str:
        """Full name of the raw table."""
        return constants.PREFIX + self.table


@dataclass(frozen=True, slots=True)
class EventTable:
    """One event table of the contract and the raw tables that feed it.

    Args:
        name: Table of the contract.
        sources: Raw tables.
        optional: nvprof makes all its tables always. Without rows, those that it records only on request, or only
            of some programs, show nothing; the table is then absent.
        clock: Whether its events count for the trace's zero and span.
    """

    name: str
    sources: tuple[Source, ...]
    optional: bool = False
    clock: bool = True


_CORRELATION = Whole("correlation_id", ("correlationId",))
_WORK = (Whole("stream", ("streamId",), unset=_NONE), Whole("context_id", ("contextId",), unset=_NONE))
_DEVICE_WORK = (*_WORK, _CORRELATION, Whole("graph_node_id", ("graphNodeId",), unset=0))

_LAUNCH = (*_DEVICE_WORK, *LAUNCH_SHAPE)
_BYTES = Whole("bytes", ("bytes",))
_ENDS = (
    Word("src_memory", ("srcKind",), constants.MEMORY_KIND, "unknown"),
    Word("dst_memory", ("dstKind",), constants.MEMORY_KIND, "unknown"),
    _BYTES,
)


def _kernels(table: str) -> Source:
    return Source(table, "launch", _LAUNCH, device="deviceId", name="name")


def _calls(table: str, domain: Literal["runtime", "driver"]) -> Source:
    columns = (_CORRELATION, Word("domain", (), {}, domain), Whole("status", ("returnValue",)))
    return Source(table, "thread", columns, calls=domain, name="cbid")


def _allocations(kind: str, time: str) -> Source:
    """The record of an allocation begins with it and ends when it is freed."""
    columns = (
        Word("kind", (), {}, kind),
        Word("memory", ("memoryKind",), constants.MEMORY_KIND, "unknown"),
        Whole("address", ("address",)),
        _BYTES,
    )
    return Source("MEMORY", "process", columns, start=(time,), end=(), device="deviceId")


EVENT_TABLES = (
    EventTable("kernels", (_kernels("KERNEL"), _kernels("CONCURRENT_KERNEL"), _kernels("CDP_KERNEL"))),
    EventTable(
        "memcpy",
        (
            Source(
                "MEMCPY",
                "launch",
                (*_DEVICE_WORK, Word("kind", ("copyKind",), COPY_KIND, "unknown"), *_ENDS),
                device="deviceId",
            ),
            Source(
                "MEMCPY2",  # between devices
                "launch",
                (*_DEVICE_WORK, Word("kind", (), {}, "p2p"), *_ENDS),
                device="deviceId",
            ),
            Source(
                "UNIFIED_MEMORY_COUNTER",
                "process",
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
    ),
    EventTable(
        "memset",
        (
            Source(
                "MEMSET",
                "launch",
                (*_DEVICE_WORK, Word("memory", ("memoryKind",), constants.MEMORY_KIND, "unknown"), _BYTES),
                device="deviceId",
            ),
        ),
    ),
    EventTable("cuda_api", (_calls("RUNTIME", "runtime"), _calls("DRIVER", "driver"))),
    EventTable(
        "sync",
        (
            Source(
                "SYNCHRONIZATION",
                "launch",
                (*_WORK, _CORRELATION, Word("kind", ("type",), SYNC_KIND, "unknown")),
            ),
        ),
        optional=True,
    ),
    EventTable(
        "overhead",
        (
            Source(
                "OVERHEAD",
                "thread",
                (Word("name", ("overheadKind",), constants.OVERHEAD_KIND, "Other"),),
                keep=Keep("overheadKind", tuple(constants.OVERHEAD_KIND)),
            ),
        ),
    ),
    EventTable(
        "memory_events",
        (_allocations("alloc", "start"), _allocations("free", "end")),
        optional=True,
        clock=False,
    ),
)
"""The event tables of the contract, in the order in which they are read; ``nvtx`` and ``samples`` have their own."""
