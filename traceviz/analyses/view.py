"""One trace as analyses see it: its tables, and the intervals that several of them need, computed once.

Everything here is derived and pure; a property is computed on first use and kept. Device work is the union of
kernels, copies and fills (DEFINITIONS: "Device use"); a *rank* is a process that owns device work.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from traceviz import schema
from traceviz.intervals import Array, IntervalSet, union_all
from traceviz.tables import TraceTables


@dataclass(frozen=True, slots=True)
class AnalysisOptions:
    """What the user may tell the analyses about the program.

    Args:
        step_marker: Regular expression of the NVTX ranges that are steps.
        input_range: Regular expression of the NVTX ranges in which input is loaded.
    """

    step_marker: str | None = None
    input_range: str | None = None


class TraceView:
    """A trace with derived intervals.

    Args:
        tables: The tables.
        options: What the user said about the program.
    """

    def __init__(self, tables: TraceTables, options: AnalysisOptions | None = None) -> None:
        self.tables = tables
        self.options = options or AnalysisOptions()

    @cached_property
    def span_ns(self) -> int:
        """Length of the capture; the analysed window is ``[0, span_ns)``."""
        return int(self.tables.run_facts().get("span_ns") or 0)

    def frame(self, name: str, *columns: str) -> pl.DataFrame:
        """Columns of table ``name``, collected; without rows where the trace does not have the table."""
        if name in self.tables:
            return self.tables.scan(name).select(columns).collect()
        empty = pl.from_arrow(schema.table(name).empty())
        assert isinstance(empty, pl.DataFrame)
        return empty.select(columns)

    @cached_property
    def device_work(self) -> pl.DataFrame:
        """Start, end, device and process of all device work: ``start_ns``, ``end_ns``, ``device_id``, ``process_id``."""
        columns = ("start_ns", "dur_ns", "device_id", "process_id")
        work = pl.concat([self.frame(name, *columns) for name in schema.DEVICE_WORK])
        return work.select(
            "start_ns", (pl.col("start_ns") + pl.col("dur_ns").fill_null(0)).alias("end_ns"), "device_id", "process_id"
        )

    @cached_property
    def has_device_tables(self) -> bool:
        """Whether the capture could record device work at all."""
        return any(name in self.tables for name in schema.DEVICE_WORK)

    @cached_property
    def device_busy(self) -> dict[int, IntervalSet]:
        """Busy time of each device that did work: the union over its streams, by ``device_id``."""
        return self._busy_by("device_id")

    @cached_property
    def rank_busy(self) -> dict[int, IntervalSet]:
        """Time in which any device works for the process, by ``process_id`` of the ranks."""
        return self._busy_by("process_id")

    @cached_property
    def busy(self) -> IntervalSet:
        """Time in which any device works."""
        return union_all(self.device_busy.values())

    @cached_property
    def ranks(self) -> tuple[int, ...]:
        """Processes that own device work, by ``process_id``; all processes where none does."""
        if self.rank_busy:
            return tuple(sorted(self.rank_busy))
        return tuple(self.frame("processes", "process_id")["process_id"].sort().to_list())

    def idle_of(self, process_id: int) -> IntervalSet:
        """Time of the capture in which no device works for the process; all of it where it owns no device work."""
        return self.rank_busy.get(process_id, IntervalSet.empty()).complement(0, self.span_ns)

    def _busy_by(self, key: str) -> dict[int, IntervalSet]:
        work = self.device_work.sort("start_ns")
        parts = work.partition_by(key, as_dict=True)
        return {int(k[0]): IntervalSet.of(*bounds(part)) for k, part in sorted(parts.items())}


def bounds(frame: pl.DataFrame) -> tuple[Array, Array]:
    """``(starts, ends)`` of a frame with ``start_ns`` and either ``end_ns`` or ``dur_ns`` (null counts as 0)."""
    starts = frame["start_ns"].to_numpy().astype(np.int64, copy=False)
    if "end_ns" in frame.columns:
        return starts, frame["end_ns"].to_numpy().astype(np.int64, copy=False)
    return starts, starts + frame["dur_ns"].fill_null(0).to_numpy().astype(np.int64, copy=False)


def intervals(frame: pl.DataFrame) -> IntervalSet:
    """Union of the rows of ``frame`` (see :func:`bounds`)."""
    return IntervalSet.of(*bounds(frame))
