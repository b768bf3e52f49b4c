"""Mapping of columns of a profiler's own tables to columns of the contract, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from traceviz.parsers.shared.arrays.arrow import pc


@dataclass(frozen=True, slots=True)
class Keep:
    """A filter of the rows of a raw table that count.

    Args:
        column: An integer column; if the table does not have it, all rows count.
        values: Its values in rows that count.
        inverted: If true, rows with these values do not count, and all others do, including nulls.
    """

    column: str
    values: tuple[int, ...]
    inverted: bool = False

    def of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of ``batch`` that count; ``batch`` has the column."""
        inside = pc.is_in(batch[self.column], value_set=pa.array(self.values, pa.int64()))
        return batch.filter(pc.invert(inside) if self.inverted else inside)


@dataclass(frozen=True, slots=True)
class Whole:
    """An integer that is used unchanged. ``unset`` is the number that stands for "none"."""

    name: str
    raw: tuple[str, ...]
    unset: int | None = None
    since: str = ""


@dataclass(frozen=True, slots=True)
class Word:
    """An integer that stands for a word; ``other`` is the word for null and for numbers that are not listed."""

    name: str
    raw: tuple[str, ...]
    words: Mapping[int, str]
    other: str
    since: str = ""


@dataclass(frozen=True, slots=True)
class Name:
    """A name: the text itself or, if that is null, the id of a string. ``strip`` is removed from its end.

    ``calls`` means that the ids are numbers of functions of CUDA's runtime or driver, instead of ids of strings.
    """

    ids: tuple[str, ...]
    text: str | None = None
    strip: str = ""
    calls: Literal["runtime", "driver"] | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """Mapping of rows of one raw table to rows of the contract. Columns have all their names, newest first.

    Args:
        table: Raw table.
        owner: Raw columns that identify the owner of the event.
        name: Origin of the column ``name``, if there is one.
        columns: The other columns, except times, owner and device.
        start: Raw column of the start.
        end: Raw column of the end; empty for instants.
        device: Raw column of the device number, if there is one.
        keep: Rows that count; ``None`` for all.
        no_time: The start that means "time not measured": such rows do not count.
        requires: A raw column that distinguishes this raw table from others of its name; ``None`` if not needed.
    """

    table: str
    owner: tuple[str, ...]
    name: Name | None = None
    columns: tuple[Whole | Word, ...] = ()
    start: tuple[str, ...] = ("start",)
    end: tuple[str, ...] = ("end",)
    device: str | None = None
    keep: Keep | None = None
    no_time: int | None = None
    requires: str | None = None


EventTables = Mapping[str, tuple[Source, ...]]
"""The raw tables that feed each event table of the contract, in the order in which they are read."""

OFF_CLOCK = frozenset({"memory_events", "graph_nodes"})
"""Event tables that do not affect the trace's time zero and span."""

LAUNCH_SHAPE = (
    Whole("grid_x", ("gridX",)),
    Whole("grid_y", ("gridY",)),
    Whole("grid_z", ("gridZ",)),
    Whole("block_x", ("blockX",)),
    Whole("block_y", ("blockY",)),
    Whole("block_z", ("blockZ",)),
    Whole("registers_per_thread", ("registersPerThread",)),
    Whole("static_shared_bytes", ("staticSharedMemory",)),
    Whole("dynamic_shared_bytes", ("dynamicSharedMemory",)),
)
"""Columns of a kernel's launch, named after the fields of CUPTI's records."""

VERSION_SUFFIX = r"_v\d{4,5}$"
"""``cudaLaunchKernel_v7000`` is that function of CUDA 7.0; ``_v2`` in ``cuMemAlloc_v2`` is part of its name."""
