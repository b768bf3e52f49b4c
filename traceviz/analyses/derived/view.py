"""One trace as analyses see it: its tables, and the intervals that several of them need, computed once.

Everything here is derived and pure; a property is computed on first use and kept. Device work is the union of
kernels, copies and fills; a *rank* is a process that owns device work.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import polars as pl

from traceviz import schema
from traceviz.analyses.derived import framework_steps
from traceviz.analyses.derived import steps as stepping
from traceviz.analyses.derived.frames import end_ns, outermost_by, unions_by
from traceviz.analyses.derived.losses import is_damaged, losses
from traceviz.analyses.derived.xla_ops import xla_roles
from traceviz.cuda_names import ApiKind, api_kind
from traceviz.intervals import IntervalSet, union_all
from traceviz.kernel_names import KernelClass, classify
from traceviz.tables import WINDOW_NOTE, TraceTables


@dataclass(frozen=True, slots=True)
class AnalysisOptions:
    """What the user may tell the analyses about the program.

    Args:
        step_marker: Regular expression of the NVTX ranges or framework annotations that are steps.
        input_range: Regular expression of the NVTX ranges or framework annotations in which input is loaded.
        basis: Whose classes break the steps down: ``traceviz``, or those of another tool that users compare with.
    """

    step_marker: str | None = None
    input_range: str | None = None
    basis: str = "traceviz"


STEP_TABLES = ("steps", "nvtx", "host_ops", "device_ops", *schema.DEVICE_WORK, "windows")
"""Tables in which steps, ranks and the time that is judged are found: what every analysis of steps may read."""

NO_THREAD = -1
"""In place of a thread id where a process has no host events."""


class TraceView:
    """A trace with derived intervals.

    Args:
        tables: The tables.
        options: What the user said about the program.
    """

    def __init__(self, tables: TraceTables, options: AnalysisOptions | None = None) -> None:
        self.tables = tables
        self.options = options or AnalysisOptions()
        self.derived: dict[str, Any] = {}
        """Results that analyses share, by name of the function that computes them."""

    @cached_property
    def span_ns(self) -> int:
        """Length of the capture; the analysed window is ``[0, span_ns)``."""
        return int(self.tables.run_facts().get("span_ns") or 0)

    @cached_property
    def device_window(self) -> tuple[int, int]:
        """Begin and end of the time in which device work was recorded, which is the time it can be found idle in.

        ::

            nsys: ranges, system calls  |--------------------------------|   the capture
            torch: device work                   |======|                    the device's window

        All of the capture, unless the trace was merged from sources that recorded at different times.
        """
        windows = self.frame("windows", "start_ns", end_ns(), "recorded")
        windows = windows.filter(pl.col("recorded").cast(pl.String).is_in(schema.DEVICE_WORK))
        if not windows.height:
            return 0, self.span_ns
        bounds = windows.select(pl.col("start_ns").min(), pl.col("end_ns").max()).row(0)
        return max(0, int(bounds[0])), min(self.span_ns, int(bounds[1]))

    def frame(self, name: str, *columns: str | pl.Expr) -> pl.DataFrame:
        """Columns of table ``name``, collected; without rows where the trace does not have the table."""
        if name in self.tables:
            return self.tables.scan(name).select(columns).collect()
        empty = pl.from_arrow(schema.table(name).empty())
        assert isinstance(empty, pl.DataFrame)
        return empty.select(columns)

    @cached_property
    def device_work(self) -> pl.DataFrame:
        """All device work: ``start_ns``, ``end_ns``, ``device_id``, ``process_id``.

        A TPU that waits for its infeed does no work.
        """
        columns = ("start_ns", "dur_ns", "device_id", "process_id")
        kernels = self.frame("kernels", *columns)
        if self.has_tpu:
            kernels = self.xla_kernels.filter(pl.col("role") != "infeed").select(columns)
        work = pl.concat([kernels, *(self.frame(name, *columns) for name in ("memcpy", "memset"))])
        return work.select("start_ns", end_ns(), "device_id", "process_id")

    @cached_property
    def has_tpu(self) -> bool:
        """Whether any device is a TPU: its kernels are XLA operations."""
        return "tpu" in self.tables.arrow("devices")["kind"].to_pylist()

    @cached_property
    def xla_kernels(self) -> pl.DataFrame:
        """Kernels of a trace with TPUs: ``start_ns, dur_ns, device_id, process_id, name, role``."""
        kernels = self.frame("kernels", "start_ns", "dur_ns", "device_id", "process_id", "name", "category")
        kernels = kernels.with_columns(pl.col("name", "category").cast(pl.String))
        roles = xla_roles(kernels)
        return kernels.join(roles, on=["name", "category"], nulls_equal=True, how="left", maintain_order="left")

    @cached_property
    def has_device_tables(self) -> bool:
        """Whether the capture could record device work at all."""
        return any(name in self.tables for name in schema.DEVICE_WORK)

    @cached_property
    def kernel_classes(self) -> dict[str, KernelClass]:
        """What the names of the trace's kernels say about them, by name."""
        names = self.frame("kernels", "name")["name"].unique().cast(pl.String).to_list()
        return dict(zip(names, classify(names), strict=True))

    @cached_property
    def device_busy(self) -> dict[int, IntervalSet]:
        """Busy time of each device that did work: the union over its streams, by ``device_id``."""
        return unions_by(self.device_work, "device_id")

    @cached_property
    def rank_busy(self) -> dict[int, IntervalSet]:
        """Time in which any device works for the process, by ``process_id`` of the ranks."""
        return unions_by(self.device_work, "process_id")

    @cached_property
    def busy(self) -> IntervalSet:
        """Time in which any device works."""
        return union_all(self.device_busy.values())

    @cached_property
    def traced(self) -> tuple[int, ...]:
        """Processes that something was recorded of, by ``process_id``: a thread or device work; all where none was.

        Of other processes there are samples only: a launcher, a loader that no profiler saw, the profiler itself.
        """
        everyone = self.frame("processes", "process_id")["process_id"]
        known = {*self.frame("threads", "process_id")["process_id"].to_list(), *self.rank_busy}
        seen = everyone.filter(everyone.is_in(list(known)))
        return tuple((seen if len(seen) else everyone).sort().to_list())

    @cached_property
    def ranks(self) -> tuple[int, ...]:
        """Processes that own device work, by ``process_id``; where none does, all that were :attr:`traced`."""
        return tuple(sorted(self.rank_busy)) or self.traced

    def idle_of(self, process_id: int) -> IntervalSet:
        """Time of :attr:`device_window` in which no device works for the process, which may own no device work."""
        return self.rank_busy.get(process_id, IntervalSet.empty()).complement(*self.device_window)

    @cached_property
    def ranges(self) -> pl.DataFrame:
        """Closed NVTX ranges with names as text, their end, and their place in the nesting; sorted by start."""
        columns = (
            "start_ns",
            "dur_ns",
            "process_id",
            "thread_id",
            "name",
            "category",
            "domain",
            "kind",
            "range_id",
            "depth",
            "parent_id",
        )
        closed = self.frame("nvtx", *columns).filter((pl.col("kind") != "mark") & pl.col("dur_ns").is_not_null())
        return closed.select(
            "start_ns",
            end_ns(),
            "process_id",
            "thread_id",
            pl.col("name", "category", "domain").cast(pl.String),
            "range_id",
            "depth",
            "parent_id",
        )

    @cached_property
    def api_names(self) -> dict[ApiKind, list[str]]:
        """The distinct CUDA API names of the trace by what they do."""
        groups: dict[ApiKind, list[str]] = {}
        for name in self.frame("cuda_api", "name")["name"].unique().cast(pl.String):
            groups.setdefault(api_kind(name), []).append(name)
        return groups

    def api_calls(self, *kinds: ApiKind) -> pl.DataFrame:
        """Calls of these kinds: ``start_ns, end_ns, process_id, thread_id, correlation_id, name``."""
        names = [name for kind in kinds for name in self.api_names.get(kind, [])]
        if "cuda_api" not in self.tables or not names:
            return self.frame("cuda_api", *_CALL_COLUMNS).head(0).select(_CALL_VIEW)
        scan = self.tables.scan("cuda_api").select(_CALL_COLUMNS)
        return scan.filter(pl.col("name").is_in(names)).select(_CALL_VIEW).collect()

    def host_ops(self, *categories: str) -> pl.DataFrame:
        """Host operations of these categories, names as they are stored; sorted by start.

        Columns ``start_ns, end_ns, process_id, thread_id, op_id, name, category, group_id``.
        """
        if "host_ops" not in self.tables:
            return self.frame("host_ops", *_OP_COLUMNS).select(_OP_VIEW)
        scan = self.tables.scan("host_ops").select(_OP_COLUMNS)
        return scan.filter(pl.col("category").is_in(categories)).select(_OP_VIEW).collect()

    @cached_property
    def host_names(self) -> pl.DataFrame:
        """The distinct ``name`` and ``category`` of host operations, as text."""
        if "host_ops" not in self.tables:
            return pl.DataFrame(schema={"name": pl.String, "category": pl.String})
        names = self.tables.scan("host_ops").select("name", "category").unique().collect()
        return names.with_columns(pl.col("name", "category").cast(pl.String)).sort("name", "category")

    def annotations(self, pattern: str) -> pl.DataFrame:
        """Host operations that last and whose name matches ``pattern``, with names as text and ``parent_id``.

        Python frames and tf.data stages are no annotations.
        """
        known = self.host_names.filter(~pl.col("category").is_in(["python", "pipeline"]))
        names = known.filter(pl.col("name").str.contains(pattern))["name"].unique().to_list()
        if names:
            scan = self.tables.scan("host_ops").filter(pl.col("name").is_in(names) & (pl.col("dur_ns") > 0))
            found = scan.select(*_OP_VIEW, "parent_id").collect()
        else:
            found = self.host_ops().with_columns(pl.lit(None, pl.Int64).alias("parent_id"))
        return found.with_columns(pl.col("name", "category").cast(pl.String)).sort("start_ns", "op_id")

    @cached_property
    def steps(self) -> stepping.Steps:
        """Training steps of the ranks: declared, else inferred, else none.

        Steps of processes without device work (a loader, a launcher) are left out: theirs is not the time that is
        judged. So are steps at the edges of a time window, which may be fragments, those of which the device work
        is missing (:attr:`lost_steps`), and those that reach out of :attr:`device_window`. First steps that compile are
        warm-up.
        """
        found = self._found_steps
        whole = pl.col("process_id").is_in(self.ranks)
        if self.is_window:
            whole &= (pl.col("start_ns") > 0) & (pl.col("end_ns") < self.span_ns)
        if self.rank_busy:
            begin, end = self.device_window
            whole &= (pl.col("start_ns") >= begin) & (pl.col("end_ns") <= end)
        frame = found.frame.filter(whole & ~self._is_lost)
        if not frame.height:
            return stepping.NO_STEPS
        compiling = framework_steps.compiling(self.host_ops("compile"))
        threads = {process: thread for process, thread in found.thread_id.items() if process in self.ranks}
        return replace(found, frame=framework_steps.without_compilation(frame, compiling), thread_id=threads)

    @cached_property
    def cut_steps(self) -> int:
        """Steps of the ranks at the edges of a time window: left out of :attr:`steps`, as they may be fragments."""
        if not self.is_window:
            return 0
        inside = (pl.col("start_ns") > 0) & (pl.col("end_ns") < self.span_ns)
        return self._found_steps.frame.filter(pl.col("process_id").is_in(self.ranks) & ~inside).height

    @cached_property
    def lost_steps(self) -> int:
        """Steps after the last recorded device work, where events were lost.

        Their devices look idle, and nobody knows whether they were. The step of the last work counts as lost, too.
        """
        return self._found_steps.frame.filter(pl.col("process_id").is_in(self.ranks) & self._is_lost).height

    @cached_property
    def _is_lost(self) -> pl.Expr:
        """Whether a step belongs to :attr:`lost_steps`.

        None does where no step would be left, unless the file is cut off: a profiler drops events here and there, while
        the rest of a file holds all that devices did later.
        """
        nothing = pl.lit(value=False)
        if not self.rank_busy or not losses(self.tables):
            return nothing
        last = {rank: int(busy.ends[-1]) for rank, busy in self.rank_busy.items() if len(busy)}
        until = pl.col("process_id").replace_strict(last, default=None, return_dtype=pl.Int64)
        lost = (pl.col("end_ns") > until).fill_null(value=False)
        frame = self._found_steps.frame.filter(pl.col("process_id").is_in(self.ranks))
        return lost if frame.filter(~lost).height or is_damaged(self.tables) else nothing

    @cached_property
    def is_window(self) -> bool:
        """Whether the trace was cut to a time window (see :mod:`traceviz.selection`)."""
        return WINDOW_NOTE in self.tables.arrow("notes")["code"].to_pylist()

    @cached_property
    def _found_steps(self) -> stepping.Steps:
        marker = self.options.step_marker
        searches = (
            (self._nvtx_named, self._annotated)
            if marker
            else (
                self._declared,
                self._nvtx_named,
                self._annotated,
                self._nvtx_cycle,
                self._module_cycle,
                self._host_cycle,
                self._kernel_cycle,
            )
        )
        found = (search() for search in searches)  # what the user named is used, or nothing
        return next((steps for steps in found if steps.source != "none"), stepping.NO_STEPS)

    def _declared(self) -> stepping.Steps:
        declared = self.tables.scan("steps").collect() if "steps" in self.tables else None
        return stepping.declared_steps(declared) if declared is not None and declared.height else stepping.NO_STEPS

    def _nvtx_named(self) -> stepping.Steps:
        return stepping.named_steps(self.ranges, self.options.step_marker) if self.ranges.height else stepping.NO_STEPS

    def _annotated(self) -> stepping.Steps:
        pattern = self.options.step_marker or STEP_ANNOTATION
        found = self.annotations(pattern)
        return (
            stepping.named_steps(found, self.options.step_marker, "annotation") if found.height else stepping.NO_STEPS
        )

    def _nvtx_cycle(self) -> stepping.Steps:
        if not self.ranges.height:
            return stepping.NO_STEPS
        return stepping.nvtx_cycle_steps(self.ranges, self._rank_extents)

    def _module_cycle(self) -> stepping.Steps:
        if "device_ops" not in self.tables:
            return stepping.NO_STEPS
        scan = self.tables.scan("device_ops").filter(pl.col("kind") == "module")
        modules = scan.select("process_id", "device_id", "start_ns", end_ns(), "name").collect()
        return framework_steps.module_cycle_steps(modules.sort("start_ns")) if modules.height else stepping.NO_STEPS

    def _host_cycle(self) -> stepping.Steps:
        if "host_ops" not in self.tables:
            return stepping.NO_STEPS
        threads = [thread for process, thread in self._active_threads.items() if process in self._rank_extents]
        scan = self.tables.scan("host_ops").filter(pl.col("thread_id").is_in(threads) & (pl.col("dur_ns") > 0))
        own = scan.filter(pl.col("category") != "python").select(_OP_VIEW).collect()
        outer = outermost(own.sort("thread_id", "start_ns", "end_ns", descending=[False, False, True]))
        if not outer.height:
            return stepping.NO_STEPS
        calls = outer.with_columns(pl.col("name").cast(pl.String)).sort("process_id", "start_ns")
        return framework_steps.host_cycle_steps(calls, self._rank_extents)

    def _kernel_cycle(self) -> stepping.Steps:
        if not self.tables.rows("kernels"):
            return stepping.NO_STEPS
        kernels = self.frame("kernels", "process_id", "start_ns", "dur_ns", "name")
        return stepping.kernel_cycle_steps(kernels.select("process_id", "start_ns", end_ns(), "name"))

    @cached_property
    def steady(self) -> dict[int, IntervalSet]:
        """Union of the steady steps of each process that has steps, by ``process_id``."""
        return unions_by(self.steps.steady, "process_id")

    def judged(self, process_id: int) -> IntervalSet:
        """The time that findings are judged on: steady steps, else from the first to the last device work.

        Where the trace has steady steps, a process without any is not judged: :attr:`judged_words` holds for all.
        """
        if self.steady:
            return self.steady.get(process_id, IntervalSet.empty())
        first, last = self._rank_extents.get(process_id, (0, 0))
        return IntervalSet.span(first, last)

    @property
    def judged_words(self) -> str:
        """What :meth:`judged` is, in words."""
        if self.steady:
            return "steady step time"
        return "time from first to last device work" if self.rank_busy else "captured time"

    @cached_property
    def _rank_extents(self) -> dict[int, tuple[int, int]]:
        if self.rank_busy:
            return {
                rank: (int(busy.starts[0]), int(busy.ends[-1])) for rank, busy in self.rank_busy.items() if len(busy)
            }
        return dict.fromkeys(self.ranks, (0, self.span_ns))

    def training_thread(self, process_id: int) -> int:
        """Thread that runs the training loop, or :data:`NO_THREAD`.

        The one that carries the step markers, else the process's first thread (tid = pid) where it has host events,
        else one named like Python's, else one that is not named like a worker of the framework, and of several the
        one with the most host events.
        """
        return self._training_threads.get(process_id, NO_THREAD)

    @cached_property
    def _training_threads(self) -> dict[int, int]:
        return {**self._active_threads, **self.steps.thread_id}

    @cached_property
    def _active_threads(self) -> dict[int, int]:
        """The likeliest training thread of each process, whatever its steps are."""
        seen = [
            self.tables.scan(name).group_by("thread_id").len().collect()
            for name in ("nvtx", "cuda_api", "os_calls", "host_ops")
            if name in self.tables
        ]
        if not seen:
            return {}
        active = pl.concat(seen).group_by("thread_id").agg(pl.col("len").sum())
        threads = active.join(self.frame("threads", "thread_id", "process_id", "tid", "name"), on="thread_id")
        threads = threads.join(self.frame("processes", "process_id", "pid"), on="process_id").with_columns(
            (pl.col("tid") == pl.col("pid")).fill_null(value=False).alias("first"),
            pl.col("name").str.contains(_PYTHON_THREAD).fill_null(value=False).alias("python"),
            pl.col("name").str.contains(_WORKER_THREAD).fill_null(value=False).alias("worker"),
        )
        descending = [True, True, False, True, False]
        best = threads.sort("first", "python", "worker", "len", "thread_id", descending=descending)
        first = best.unique("process_id", keep="first", maintain_order=True).select("process_id", "thread_id")
        return dict(first.iter_rows())


def outermost(operations: pl.DataFrame) -> pl.DataFrame:
    """Those of ``operations`` (sorted by thread, start, and end descending) that lie in no other of their thread."""
    return operations.filter(outermost_by(operations, "thread_id"))


_CALL_COLUMNS = ("start_ns", "dur_ns", "process_id", "thread_id", "correlation_id", "name")
_CALL_VIEW = ("start_ns", end_ns(), "process_id", "thread_id", "correlation_id", pl.col("name").cast(pl.String))
_OP_COLUMNS = ("start_ns", "dur_ns", "process_id", "thread_id", "op_id", "name", "category", "group_id")
_OP_VIEW = ("start_ns", end_ns(), "process_id", "thread_id", "op_id", "name", "category", "group_id")

STEP_ANNOTATION = r"(?i)^(?:train|step|iter|batch|global|mini|micro|profilerstep)[a-z]*[ _-]?[a-z]*[ _:#=-]*\d*$"
"""Names of annotations that may be step-like; :data:`traceviz.analyses.derived.steps.STEP_NAME` decides."""

_PYTHON_THREAD = r"(?i)^(python|ipykernel|jupyter|main)"
_WORKER_THREAD = r"(?i)^(tf_|tsl|xla|pjrt|eigen|grpc|jax)|pool|worker"
