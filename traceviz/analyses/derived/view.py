"""The analyses' view of one trace: its tables, and derived intervals that are computed once.

Everything here is derived and pure. Properties are computed on first use and cached. So are results of functions that
:func:`once_per_trace` decorates. Device work is the union of kernels, copies, fills and graphs recorded as a whole. A
*rank* is a process that owns device work.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable, Iterator
from functools import cache, wraps
from typing import TypeVar, TypeVarTuple

import numpy as np
import polars as pl

from traceviz.analyses.derived.frames import (
    are_named,
    bounds,
    codes,
    distinct,
    end_ns,
    having,
    in_one_piece,
    unions_by,
)
from traceviz.analyses.derived.grouped import Groups
from traceviz.analyses.derived.memo import Kept, kept_property
from traceviz.analyses.derived.patterns import matches
from traceviz.analyses.derived.recorded.clocks import align_clocks, clock_errors, describe_clock_errors
from traceviz.analyses.derived.recorded.device_window import (
    MIN_LAUNCHES,
    DeviceWindow,
    Join,
    device_windows,
    without_edges,
    without_unsampled,
)
from traceviz.analyses.derived.recorded.frameworks import frameworks_in
from traceviz.analyses.derived.recorded.graph_capture import BEGIN, END, graph_captures, in_captures
from traceviz.analyses.derived.recorded.xla_ops import xla_roles
from traceviz.analyses.options import AnalysisOptions
from traceviz.core.arrays.intervals import IntervalSet, union_all
from traceviz.core.arrays.nested import Codes, Rows, alike
from traceviz.trace import schema
from traceviz.trace.names.cuda_names import ApiKind, api_kind
from traceviz.trace.names.kernel_names import KernelClass, classify
from traceviz.trace.tables import WINDOW_NOTE, TraceTables

_OF_RANKS = (*schema.DEVICE_WORK, "cuda_api", "device_ops", "host_ops", "nvtx", "steps")
"""Tables of events that ranks have, unlike loader workers."""

LARGE_RESULT = 16 * 10**6
"""Size in bytes from which a derived result is evicted if memory is short."""

LARGE_TRACE = 2 * 10**6
"""Number of rows from which results of a trace are evicted even if there is memory."""
LARGE_SHARE = 8
"""Bytes per row of the trace from which a result is evicted. Few results are so large, so few are computed again."""

T = TypeVar("T")
Keys = TypeVarTuple("Keys")


class TraceView:
    """A trace with derived intervals.

    Args:
        tables: The tables.
        options: The user's information about the program.
    """

    def __init__(self, tables: TraceTables, options: AnalysisOptions | None = None) -> None:
        self.clock_errors = clock_errors(tables)
        """Devices whose clock was wrong; their times in :attr:`tables` are corrected."""
        self.tables = align_clocks(tables, self.clock_errors)
        self.options = options or AnalysisOptions()
        self.kept = Kept()

    def once(self, function: Callable[[TraceView, *Keys], T], *keys: *Keys) -> T:
        """Return ``function(trace, *keys)``, computed on first use and cached."""
        return self.kept.get((function, *keys), lambda: function(self, *keys))

    def evict(self, least: int, needed: Collection[Hashable] = ()) -> None:
        """Evict derived results of at least ``least`` bytes. They are computed again on request.

        Args:
            least: Minimum size in bytes.
            needed: Keys of results to keep.
        """
        for key in self.kept.evict(least, self, needed):
            if isinstance(key, str):
                vars(self).pop(key, None)

    def free_memory(self, *needed: Callable[..., object]) -> None:
        """Evict large results except those of ``needed``, if memory is short or the trace is large.

        Busy times of devices stay as well, since nearly all analyses need them.

        Args:
            needed: Functions whose results for the trace stay.
        """
        rows = sum(map(self.tables.rows, self.tables))
        if self.tables.are_spilled or rows >= LARGE_TRACE:
            kept = ((getattr(function, "__wrapped__", function),) for function in needed)
            least = LARGE_RESULT if self.tables.are_spilled else LARGE_SHARE * rows
            self.evict(least, {"rank_busy", "device_busy", "kernel_unions", *kept})

    @kept_property
    def clock_doubt(self) -> str:
        """A sentence on the effect of corrected device clocks on idle time; empty if none was corrected."""
        return describe_clock_errors(self.tables, self.clock_errors)

    @kept_property
    def span_ns(self) -> int:
        """Length of the capture as recorded."""
        return int(self.tables.run_facts().get("span_ns") or 0)

    @kept_property
    def program_window(self) -> tuple[int, int]:
        """Start and end of the captured time, without the profiler's own start and stop at the edges.

        If only stacks were sampled, it ends with their samples.
        """
        return without_unsampled(self.tables, *without_edges(self.tables, 0, self.span_ns))

    @property
    def captured_ns(self) -> int:
        """Captured time: the length of :attr:`program_window`."""
        begin, end = self.program_window
        return end - begin

    @kept_property
    def frameworks(self) -> frozenset[str]:
        """Frameworks of the program, in lower case; empty if the trace names none."""
        return frameworks_in(self.tables.run_facts().get("framework"))

    @kept_property
    def recorded_window(self) -> tuple[int, int]:
        """Start and end of the time in which calls and device work were recorded.

        ::

            nsys: ranges, system calls  |--------------------------------|   the capture
            torch: device work                   |======|                    the devices' window

        This is :attr:`program_window`, unless the trace was merged from sources that recorded at different times.
        """
        windows = self.frame("windows", "start_ns", end_ns(), "recorded")
        windows = windows.filter(pl.col("recorded").cast(pl.String).is_in(schema.DEVICE_WORK))
        if not windows.height:
            return self.program_window
        bounds = windows.select(pl.col("start_ns").min(), pl.col("end_ns").max()).row(0)
        return without_edges(self.tables, max(0, int(bounds[0])), min(self.span_ns, int(bounds[1])))

    @kept_property
    def device_windows(self) -> dict[int, DeviceWindow]:
        """The time in which devices can be seen to idle, for each process that owns device work."""
        own = ("process_id", "device_id")
        extent = pl.col("start_ns").min(), pl.col("end_ns").max()
        if len(self.owners) == 1:
            owners = self.device_work.select(pl.col(own).first(), *extent)
        else:
            owners = self.device_work.group_by(own).agg(*extent).sort(own)
        if "cuda_api" not in self.tables:
            return {int(process): DeviceWindow(*self.recorded_window) for process in owners["process_id"]}
        columns = (*own, "stream", "correlation_id", "start_ns")
        work = [self.tables.scan(name).select(columns) for name in schema.DEVICE_WORK if name in self.tables]
        calls = self.tables.scan("cuda_api").select("process_id", "correlation_id", "start_ns", end_ns())
        launches = self._launches_at_edges, lambda: self.api_calls("launch")
        join = Join(pl.concat(work), calls, *launches, self.tables.engine) if work else None
        return device_windows(self.recorded_window, self.device_busy, owners, join) if join else {}

    @property
    def _launches_at_edges(self) -> pl.DataFrame:
        """The first and last launches with a correlation id; all launches if there are several processes."""
        columns = ("process_id", "correlation_id", "start_ns", "name")
        owner = self.frame("cuda_api", "process_id")["process_id"]
        if self.graph_captures.height or owner.min() != owner.max():
            return self.api_calls("launch")
        names, ends = self.api_names.get("launch", []), []
        for calls in self.pieces("cuda_api", *columns):
            known = calls["correlation_id"].is_not_null().to_numpy() if calls["correlation_id"].null_count() else True
            ends.append(calls[_first_and_last(np.flatnonzero(are_named(calls["name"], names).to_numpy() & known))])
        edges = pl.concat(ends)
        return edges[_first_and_last(np.arange(edges.height))]

    @kept_property
    def device_window(self) -> tuple[int, int]:
        """Start and end of the time in which any device can be seen to idle: over all :attr:`device_windows`."""
        return self._window_of(list(self.device_windows))

    def window_of(self, process_id: int) -> tuple[int, int]:
        """Return start and end of the time in which the devices of this process can be seen to idle."""
        return self._window_of([process_id])

    def window_of_device(self, device_id: int) -> tuple[int, int]:
        """Return start and end of the time in which this device can be seen to idle."""
        return self._window_of([process for process, device in self.owners if device == device_id])

    def _window_of(self, processes: list[int]) -> tuple[int, int]:
        windows = [self.device_windows[process] for process in processes if process in self.device_windows]
        if not windows:
            return self.recorded_window
        return min(window.begin_ns for window in windows), max(window.end_ns for window in windows)

    def frame(self, name: str, *columns: str | pl.Expr) -> pl.DataFrame:
        """Return columns of table ``name``, collected; without rows if the trace does not have the table."""
        return (self.tables if name in self.tables else _without_rows()).select(name, *columns)

    def pieces(self, name: str, *columns: str | pl.Expr) -> Iterator[pl.DataFrame]:
        """Return the rows of :meth:`frame` in pieces (:meth:`TraceTables.pieces`)."""
        return (self.tables if name in self.tables else _without_rows()).pieces(name, *columns)

    @kept_property
    def device_work(self) -> pl.DataFrame:
        """All device work: ``start_ns``, ``end_ns``, ``device_id``, ``process_id``.

        A TPU does no work while it waits for its infeed.
        """
        columns = ("start_ns", "end_ns", "device_id", "process_id")
        kernels = self.kernel_times.select(columns)
        if self.has_tpu:
            kernels = self.xla_kernels.filter(pl.col("role") != "infeed").select("start_ns", end_ns(), *columns[2:])
        return pl.concat([kernels, self._other_work]) if self._other_work.height else kernels

    @kept_property
    def _other_work(self) -> pl.DataFrame:
        """Device work other than kernels: columns of :attr:`device_work`."""
        columns = ("start_ns", end_ns(), "device_id", "process_id")
        return pl.concat([self.frame(name, *columns) for name in _OTHER_WORK])

    @kept_property
    def kernel_times(self) -> pl.DataFrame:
        """All kernels: ``start_ns``, ``dur_ns``, ``device_id``, ``process_id``, ``end_ns``, in table order."""
        times = self.frame("kernels", "start_ns", "dur_ns", "device_id", "process_id")
        return times.hstack([pl.Series("end_ns", bounds(times)[1])])  # a query would split all columns into chunks

    @kept_property
    def kernel_unions(self) -> dict[int, IntervalSet]:
        """Time in which kernels run on any stream, by ``device_id`` of the devices that ran one."""
        return unions_by(self.kernel_times, "device_id")

    @kept_property
    def owners(self) -> tuple[tuple[int, int], ...]:
        """Every ``(process_id, device_id)`` of a process with work on a device, sorted."""
        pairs = Groups.of(self.device_work, "process_id", "device_id").keys.sort("process_id", "device_id")
        return tuple((int(process), int(device)) for process, device in pairs.iter_rows())

    @kept_property
    def has_tpu(self) -> bool:
        """True if any device is a TPU; its kernels are XLA operations."""
        return "tpu" in self.tables.arrow("devices")["kind"].to_pylist()

    @kept_property
    def xla_kernels(self) -> pl.DataFrame:
        """Kernels of a trace with TPUs: ``start_ns, dur_ns, device_id, process_id, name, role``."""
        kernels = self.frame("kernels", "start_ns", "dur_ns", "device_id", "process_id", "name", "category")
        kernels = kernels.with_columns(pl.col("name", "category").cast(pl.String))
        roles = xla_roles(kernels)
        return kernels.join(roles, on=["name", "category"], nulls_equal=True, how="left", maintain_order="left")

    @kept_property
    def has_device_tables(self) -> bool:
        """True if the capture could record device work."""
        return any(name in self.tables for name in schema.DEVICE_WORK)

    @kept_property
    def kernel_classes(self) -> dict[str, KernelClass]:
        """Classes of the trace's kernels, by name."""
        names = distinct(self.frame("kernels", "name")["name"]).cast(pl.String).to_list()
        return dict(zip(names, classify(names), strict=True))

    @kept_property
    def device_busy(self) -> dict[int, IntervalSet]:
        """Busy time of each device with work: the union over its streams, by ``device_id``."""
        if self.has_tpu:
            return unions_by(self.device_work, "device_id")
        others, nothing = unions_by(self._other_work, "device_id"), IntervalSet.empty()
        devices = sorted({*self.kernel_unions, *others})
        return {
            device: self.kernel_unions.get(device, nothing).union(others.get(device, nothing)) for device in devices
        }

    @kept_property
    def rank_busy(self) -> dict[int, IntervalSet]:
        """Time in which any device works for the process, by ``process_id`` of the ranks."""
        devices: dict[int, list[int]] = {}
        for process, device in self.owners:
            devices.setdefault(process, []).append(device)
        if len(self.owners) > len(self.device_busy):  # processes share a device
            return unions_by(self.device_work, "process_id")
        return {process: union_all(self.device_busy[device] for device in own) for process, own in devices.items()}

    @kept_property
    def traced(self) -> tuple[int, ...]:
        """Processes with a recorded thread or device work, sorted by ``process_id``; all processes if none has any.

        Others have only samples: a launcher, a loader that no profiler recorded, the profiler itself. Processes with
        only stacks are excluded too, unless nothing but stacks was recorded.
        """
        everyone = self.frame("processes", "process_id")["process_id"]
        known = {*self._threaded, *self.rank_busy}
        seen = everyone.filter(everyone.is_in(list(known)))
        return tuple((seen if len(seen) else everyone).sort().to_list())

    @kept_property
    def _threaded(self) -> set[int]:
        """Processes with threads and more events than stacks; if there are none, all but the workers."""
        threaded = set(self.frame("threads", "process_id")["process_id"])
        if "phases" not in self.tables:
            return threaded
        owners = {
            process for name in _OF_RANKS for process in self.frame(name, pl.col("process_id").unique())["process_id"]
        }
        programs = self.frame("phases", "process_id", pl.col("kind", "name").cast(pl.String))
        workers = programs.filter((pl.col("kind") == "program") & (pl.col("name") == "worker"))["process_id"]
        return threaded & owners or threaded - set(workers) or threaded

    @kept_property
    def ranks(self) -> tuple[int, ...]:
        """Processes that own device work, sorted by ``process_id``; if there are none, :attr:`traced` processes.

        If some of these state a rank, or hooks count steps in some, only those are ranks; others are the launcher of a
        job (torchrun) or loader workers. Otherwise those that take batches from a loader are ranks, if some do: the
        others are its workers. Otherwise a process that ran within the life of another process of the program
        is its helper. The other process waits for it, and the same time must not count twice.
        """
        stated = set(self.frame("processes", "process_id", "rank").drop_nulls()["process_id"])
        phases = self.frame("phases", "process_id", pl.col("kind").cast(pl.String))
        stepping = set(having(phases, "kind", "step")["process_id"])
        operations = self.frame("host_ops", "process_id", "category").unique()
        taking = set(having(operations, "category", "input")["process_id"])
        lives = self._lives
        alone = {  # no other process ran both before and after it
            process
            for process, (start, end) in lives.items()
            if not any(other[0] < start and end < other[1] for other in lives.values())
        }
        chosen = (tuple(filter(some.__contains__, self.traced)) for some in (stated, stepping, taking, alone))
        return tuple(sorted(self.rank_busy)) or next(filter(None, chosen), self.traced)

    @kept_property
    def _lives(self) -> dict[int, tuple[int, int]]:
        """Start and end of each process's program, as hooks recorded them."""
        columns = ("process_id", "start_ns", "dur_ns", end_ns(), pl.col("kind").cast(pl.String))
        programs = having(self.frame("phases", *columns), "kind", "program").drop_nulls(["process_id", "dur_ns"])
        if not programs.height and len(self.traced) > 1:
            programs = self._short_lives
        lives = programs.group_by("process_id").agg(pl.col("start_ns").min(), pl.col("end_ns").max())
        return {process: (start, end) for process, start, end in lives.sort("process_id").iter_rows()}

    @property
    def _short_lives(self) -> pl.DataFrame:
        """First and last event of processes, if each other one lived for less than half of the longest life.

        These are child processes of one program. Processes that live as long as it are the ranks of a job.
        """
        columns = (pl.col("process_id").cast(pl.Int64), "start_ns", end_ns())
        tables = ("os_calls", "cuda_api", "nvtx", "host_ops")
        events = pl.concat([self.frame(name, *columns) for name in tables], how="vertical_relaxed").drop_nulls()
        lives = events.group_by("process_id").agg(pl.col("start_ns").min(), pl.col("end_ns").max())
        length = (lives["end_ns"] - lives["start_ns"]).sort(descending=True)
        return lives if lives.height > 1 and 2 * length[1] < length[0] else lives.clear()

    def idle_of(self, process_id: int) -> IntervalSet:
        """Return the time in which no device is seen to work for the process, which may own no device work."""
        busy = self.rank_busy.get(process_id, IntervalSet.empty())
        return busy.complement(*self.window_of(process_id))

    @kept_property
    def ranges(self) -> pl.DataFrame:
        """Closed NVTX ranges with names as text, their end, and their place in the nesting; sorted by start."""
        texts, nesting = ("name", "category", "domain"), ("range_id", "depth", "parent_id")
        ranges = self.frame("nvtx", "start_ns", "dur_ns", "process_id", "thread_id", *texts, "kind", *nesting)
        closed = ranges.filter((pl.col("kind") != "mark") & pl.col("dur_ns").is_not_null())
        return closed.select("start_ns", end_ns(), "process_id", "thread_id", pl.col(texts).cast(pl.String), *nesting)

    @kept_property
    def api_names(self) -> dict[ApiKind, list[str]]:
        """The distinct CUDA API names of the trace, by kind of call."""
        groups: dict[ApiKind, list[str]] = {}
        for name in distinct(self.frame("cuda_api", "name")["name"]).cast(pl.String):
            groups.setdefault(api_kind(name), []).append(name)
        return groups

    def api_calls(self, *kinds: ApiKind) -> pl.DataFrame:
        """Return calls of these kinds: ``start_ns, end_ns, process_id, thread_id, correlation_id, name, row``.

        Names are as they are stored; ``row`` is the row of table ``cuda_api``.

        Launches, asynchronous copies and allocations from pools that a graph captured are excluded, since they did not
        execute: :meth:`captured_calls`.
        """
        if self.graph_captures.height and not _CAPTURED.isdisjoint(kinds):
            calls = self._calls_of(*(kind for kind in kinds if kind in _CAPTURED))
            done = calls.filter(~in_captures(calls, self.graph_captures, self._work_keys()))
            others = self._calls_of(*(kind for kind in kinds if kind not in _CAPTURED))
            return pl.concat([done, others]).sort("start_ns", maintain_order=True)
        return self._calls_of(*kinds)

    def captured_calls(self, *kinds: ApiKind) -> pl.DataFrame:
        """Return calls of these kinds that only became nodes of a graph: rows as in :meth:`api_calls`."""
        if not self.graph_captures.height:
            return self._calls_of()
        calls = self._calls_of(*(kind for kind in kinds if kind in _CAPTURED))
        return calls.filter(in_captures(calls, self.graph_captures, self._work_keys()))

    @kept_property
    def graph_captures(self) -> pl.DataFrame:
        """Captures of graphs on a thread: ``start_ns, end_ns, process_id, thread_id``, by start."""
        bounds = self._calls_of("compilation")
        if not any(re.search(f"{BEGIN}|{END}", name) for name in self.api_names.get("compilation", ())):
            return bounds.head(0).select("start_ns", "end_ns", "process_id", "thread_id")
        bounds = bounds.with_columns(pl.col("name").cast(pl.String))
        bounds = bounds.filter(matches(pl.col("name"), f"{BEGIN}|{END}"))
        return graph_captures(bounds.sort("start_ns", maintain_order=True), self.span_ns)

    def _calls_of(self, *kinds: ApiKind) -> pl.DataFrame:
        return self.once(TraceView._filtered_calls, *kinds)

    def _filtered_calls(self, *kinds: ApiKind) -> pl.DataFrame:
        names = [name for kind in kinds for name in self.api_names.get(kind, [])]
        if kinds and not names:
            return self._calls_of()
        if not kinds:
            empty = self.frame("cuda_api", *CALL_COLUMNS).head(0).select(_CALL_VIEW)
            return empty.with_columns(pl.Series("row", [], dtype=pl.UInt32))
        found, before = [], 0
        for calls in self.pieces("cuda_api", *CALL_COLUMNS):
            rows = np.flatnonzero(are_named(calls["name"], names).to_numpy())
            row = pl.Series("row", rows + before, dtype=pl.UInt32)
            found.append(calls[pl.Series(rows, dtype=pl.UInt32)].select(*_CALL_VIEW, row))
            before += calls.height
        return in_one_piece(found)

    def _work_keys(self) -> pl.LazyFrame:
        """Return ``process_id, correlation_id`` of all device work."""
        keys = ("process_id", "correlation_id")
        known = [self.tables.scan(name).select(keys) for name in schema.DEVICE_WORK if name in self.tables]
        return pl.concat(known) if known else self.frame("kernels", *keys).lazy()

    def host_ops(self, *categories: str) -> pl.DataFrame:
        """Return host operations of these categories, names as they are stored; sorted by start.

        The columns are ``start_ns, end_ns, process_id, thread_id, op_id, name, category, group_id``.
        """
        if self._host_categories.isdisjoint(categories):
            return self._no_host_ops
        scan = self.tables.scan("host_ops").select(_OP_COLUMNS)
        return (
            scan.filter(pl.col("category").is_in(categories)).select(HOST_OPS_VIEW).collect(engine=self.tables.engine)
        )

    @kept_property
    def _host_categories(self) -> frozenset[str | None]:
        """Categories that host operations have."""
        return frozenset(self.host_names["category"])

    @kept_property
    def _no_host_ops(self) -> pl.DataFrame:
        return self.frame("host_ops", *_OP_COLUMNS).head(0).select(HOST_OPS_VIEW)

    @kept_property
    def host_names(self) -> pl.DataFrame:
        """The distinct ``name`` and ``category`` of host operations, as text."""
        return self._named_host_ops[1]

    @kept_property
    def host_name_rows(self) -> Codes:
        """The row of :attr:`host_names` for each host operation, in the order of their table."""
        return self._named_host_ops[0]

    @kept_property
    def _named_host_ops(self) -> tuple[Codes, pl.DataFrame]:
        if "host_ops" not in self.tables:
            return np.empty(0, np.int32), pl.DataFrame(schema={"name": pl.String, "category": pl.String})
        names = self.frame("host_ops", "name", "category")
        group, first = alike(codes(names["name"]), codes(names["category"]))  # few of millions of rows are distinct
        texts = names.select(pl.all().gather(first)).with_columns(pl.col("name", "category").cast(pl.String))
        texts = texts.with_row_index("group").sort("name", "category")
        place = np.empty(first.size, np.int32)
        place[texts["group"].to_numpy()] = np.arange(first.size, dtype=np.int32)
        return place[group], texts.drop("group")

    @kept_property
    def is_window(self) -> bool:
        """True if the trace was cut to a time window (see :mod:`traceviz.trace.slicing`)."""
        return WINDOW_NOTE in self.tables.arrow("notes")["code"].to_pylist()

    @kept_property
    def rank_extents(self) -> dict[int, tuple[int, int]]:
        """First and last moment of device work of each rank; without any device work, the captured part of its life."""
        if self.rank_busy:
            return {
                rank: (int(busy.starts[0]), int(busy.ends[-1])) for rank, busy in self.rank_busy.items() if len(busy)
            }
        begin, end = self.program_window
        lives = {rank: self._lives.get(rank, (begin, end)) for rank in self.ranks}
        clipped = {rank: (max(begin, start), min(end, stop)) for rank, (start, stop) in lives.items()}
        return {rank: life if life[0] < life[1] else (begin, end) for rank, life in clipped.items()}


def once_per_trace(function: Callable[[TraceView, *Keys], T]) -> Callable[[TraceView, *Keys], T]:
    """Decorate ``function`` to compute its result once per trace and further arguments: :meth:`TraceView.once`."""

    @wraps(function)
    def kept(trace: TraceView, *keys: *Keys) -> T:
        return trace.once(function, *keys)

    return kept


def _first_and_last(rows: Rows) -> Rows:
    """Return the first and the last :data:`MIN_LAUNCHES` of ``rows``, each once."""
    return np.concatenate([rows[:MIN_LAUNCHES], rows[MIN_LAUNCHES:][-MIN_LAUNCHES:]])


@cache
def _without_rows() -> TraceTables:
    """Return every table, without rows."""
    return TraceTables({name: schema.table(name).empty() for name in schema.TABLES})


_OTHER_WORK = tuple(name for name in schema.DEVICE_WORK if name != "kernels")
CALL_COLUMNS = ("start_ns", "dur_ns", "process_id", "thread_id", "correlation_id", "name")
_CALL_VIEW = ("start_ns", end_ns(), "process_id", "thread_id", "correlation_id", "name")
_CAPTURED: frozenset[ApiKind] = frozenset({"launch", "async_copy", "pool_allocation"})
"""Kinds of calls that become nodes of a graph while it is captured."""
_OP_COLUMNS = ("start_ns", "dur_ns", "process_id", "thread_id", "op_id", "name", "category", "group_id")
HOST_OPS_VIEW = ("start_ns", end_ns(), "process_id", "thread_id", "op_id", "name", "category", "group_id")
