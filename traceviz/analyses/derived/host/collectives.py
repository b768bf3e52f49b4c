"""Collectives that run on the host: PyTorch's gloo, MPI and UCC, and calls of MPI.

An MPI call blocks its own thread. PyTorch runs a collective on a separate thread, and the program waits for it once it
has nothing else to do::

    training thread   |--backward--|..............|--optimizer--|
    gloo's thread          |--gloo:all_reduce-----|
    waits                          |--------------|
"""

from __future__ import annotations

import polars as pl

from traceviz.analyses.derived.calls.host_calls import calls_named
from traceviz.analyses.derived.frames import having, intervals
from traceviz.analyses.derived.patterns import matches
from traceviz.analyses.derived.steps.search import training_thread
from traceviz.analyses.derived.view import TraceView, once_per_trace
from traceviz.core.arrays.intervals import IntervalSet

BY_TORCH = r"^(gloo|mpi|ucc):"
"""Operations in which PyTorch runs a collective on the host; those of NCCL only launch it."""

BY_MPI = (
    r"^P?MPI_(Barrier|Bcast|All(gather|reduce|toall)|Reduce|Gather|Scatter|Scan|Exscan|Wait|Recv|Sendrecv"
    r"|[BRS]?[Ss]end|M?[Pp]robe)"
)
"""Calls in which MPI waits for other ranks or exchanges data with them."""

BETWEEN_TWO = r"^P?MPI_(Recv|Sendrecv|[BRS]?[Ss]end|M?[Pp]robe|Wait)|^(gloo|mpi|ucc):(send|recv)"
"""Calls in which two ranks exchange data, or wait for such an exchange."""
_COLLECTIVE = f"{BY_TORCH}|{BY_MPI}"
_JOINT = f"{BY_TORCH}|^P?MPI_(Barrier|All(gather|reduce|toall))"
"""Collectives that end on all ranks together, since no rank has the result before the last one arrives."""

COLUMNS = ("start_ns", "end_ns", "process_id", "thread_id", "name")
"""Columns of calls of collectives."""

_AROUND_COLLECTIVES = r"^(c10d::|record_param_comms$|(Distributed)?DataParallel\.forward$)"
"""Operations that only start a collective, wait for it, or contain a whole forward pass."""
_OF_PYTORCH = r"^(aten|autograd|torch\w*)::"
"""NVTX ranges of PyTorch's operators."""


@once_per_trace
def host_collectives(trace: TraceView) -> pl.DataFrame:
    """Return collectives and MPI calls on the host, with names as text: :data:`COLUMNS`, by start.

    Python frames are excluded, since collectives of the devices have the same names.
    """
    known = trace.host_names.filter((pl.col("category") != "python") & matches(pl.col("name"), _COLLECTIVE))
    ranges = _ranges_named(trace, _COLLECTIVE).select(COLUMNS)
    if not known.height:
        return ranges
    end = (pl.col("start_ns") + pl.col("dur_ns")).alias("end_ns")
    return pl.concat([calls_named(trace, known).with_columns(end).select(COLUMNS), ranges]).sort("start_ns", "end_ns")


def joint_collectives(trace: TraceView) -> pl.DataFrame:
    """Return host collectives that end on all ranks together: :data:`COLUMNS`; empty if there are devices."""
    calls = host_collectives(trace)
    return calls.head(0) if trace.rank_busy else calls.filter(matches(pl.col("name"), _JOINT))


def host_communication(trace: TraceView, process_id: int) -> tuple[IntervalSet, IntervalSet]:
    """Return the time in which the host of a process exchanges data with other ranks, or waits for them.

    Returns:
        First, the time on the leading thread, which can do nothing else then. Second, the time on other threads while
        no operation of the framework runs.
    """
    calls = having(host_collectives(trace), "process_id", process_id)
    if not calls.height:
        return IntervalSet.empty(), IntervalSet.empty()
    leads = pl.col("thread_id") == training_thread(trace, process_id)
    # Memory that MPI allocates or registers with the device, and code that it loads, is work of this rank, no wait
    prepares = trace.api_calls("allocation", "pool_allocation", "stream", "compilation")
    own = intervals(prepares.filter((pl.col("process_id") == process_id) & leads))
    beside = intervals(calls.filter(~leads))
    return intervals(calls.filter(leads)).subtract(own), beside.subtract(_time_of_operations(trace, process_id)) if len(
        beside
    ) else beside


def _time_of_operations(trace: TraceView, process_id: int) -> IntervalSet:
    """Return the time in computing operations of the framework, on any thread of a process."""
    own = pl.col("process_id") == process_id
    operations = trace.host_ops("op").filter(own)
    names = operations["name"].cast(pl.String)
    waits = names.str.contains(f"{_COLLECTIVE}|{_AROUND_COLLECTIVES}")
    return intervals(operations.filter(~waits)).union(intervals(_ranges_named(trace, _OF_PYTORCH).filter(own)))


def _ranges_named(trace: TraceView, pattern: str) -> pl.DataFrame:
    """Return rows of :attr:`TraceView.ranges` whose names match ``pattern``; if there are none, nothing is read."""
    distinct = trace.frame("nvtx", pl.col("name").unique())["name"].cast(pl.String)
    names = distinct.filter(distinct.str.contains(pattern).fill_null(value=False)).to_list()
    return trace.ranges.filter(pl.col("name").is_in(names)) if names else trace.ranges.head(0)
