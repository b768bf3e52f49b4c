"""The host's activity, and the one class of every nanosecond of a rank.

Per rank, each nanosecond belongs to the first class of :data:`CLASSES` that applies, so the classes of a step add up to
the step exactly. Device classes come first: while the device computes, the host costs no time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from traceviz.analyses.derived.calls.host_calls import calls_named
from traceviz.analyses.derived.device.work import communication_names
from traceviz.analyses.derived.frames import blocks, bounds, having, intervals, of_process, partners, rows_where
from traceviz.analyses.derived.host.collectives import host_communication
from traceviz.analyses.derived.host.copy_calls import copy_calls, waiting_copies
from traceviz.analyses.derived.host.copy_purposes import Purpose, copy_purposes
from traceviz.analyses.derived.host.input_fetches import input_ops, input_ranges
from traceviz.analyses.derived.host.producers import Producer, find_producer
from traceviz.analyses.derived.judged_time import steady_time
from traceviz.analyses.derived.launch.first import first_calls
from traceviz.analyses.derived.memo import Kept, kept_property
from traceviz.analyses.derived.patterns import matches, matching
from traceviz.analyses.derived.recorded.losses import losses
from traceviz.analyses.derived.recorded.xla_ops import XlaRole
from traceviz.analyses.derived.stacks.sampled import SAMPLED, main_thread, sampled_stacks
from traceviz.analyses.derived.steps.search import training_steps, training_thread
from traceviz.analyses.derived.view import TraceView, once_per_trace
from traceviz.core.arrays.intervals import IntervalSet, exclusive, union_all
from traceviz.trace import schema


@dataclass(frozen=True, slots=True)
class StepClass:
    """A class of step time: stable key, display label, and meaning."""

    key: str
    label: str
    meaning: str


CLASSES: tuple[StepClass, ...] = (
    StepClass("device_compute", "device compute", "a kernel that is not communication runs on any stream"),
    StepClass("communication", "communication", "a collective runs and no other kernel does, or the host waits in one"),
    StepClass("parameter_transfer", "parameter transfer", "parameters are copied to or from the host, no kernel runs"),
    StepClass("copy_d2h", "copy device to host", "a copy to the host runs and no kernel does"),
    StepClass("copy_h2d", "copy host to device", "a copy to the device runs and no kernel does"),
    StepClass("other_device", "other device work", "a fill or a copy within or between devices runs alone"),
    StepClass("input_wait", "input wait", "device idle, the program waits for its next batch"),
    StepClass("synchronisation", "synchronisation", "device idle, a synchronising call runs or a copy call waits"),
    StepClass("allocation", "allocation", "device idle, memory or a stream is allocated or freed"),
    StepClass("kernel_launch", "kernel launch", "device idle, a launch call runs or launched work has not begun"),
    StepClass(
        "compilation", "compilation", "device idle, code is compiled or loaded, a context created, or a graph captured"
    ),
    StepClass("host_blocked", "host blocked", "device idle, training thread waits in a system call, no operator runs"),
    StepClass("profiler", "profiler", "device idle, the profiler itself works: it starts, stops, empties its buffers"),
    StepClass("host_compute", "other host time", "device idle, none of the above; section host_waits says what ran"),
)
"""Classes by priority, highest first."""

DEVICE_CLASSES = ("device_compute", "communication", "parameter_transfer", "copy_d2h", "copy_h2d", "other_device")
"""Keys of classes in which a device works."""
HOST_CLASSES = tuple(c for c in CLASSES if c.key not in DEVICE_CLASSES)
IDLE_CLASSES = tuple(c for c in CLASSES if c in HOST_CLASSES or c.key == "communication")
"""Classes of the time in which no device works: :attr:`HostClasses.idle`."""
LABELS = {c.key: c.label for c in CLASSES}

_ON_HOST = ("host_communication", "host_communication_beside")
"""Layers of collectives on the host: they count as ``communication``."""

TO_DEVICE = r"(?i)H2D|HToD|TransferTo|BufferFromHost|InfeedEnqueue|DevicePut"
FROM_DEVICE = r"(?i)D2H|DToH|TransferFrom|ToLiteral|OutfeedDequeue|CopyToHost"
"""Names of host operations that move data to a device, and from a device."""

FRAMEWORK_WAITS = r"^\$[\w.]+:\d+ (block_until_ready|try_to_block)$|Buffer::Await|BlockHostUntil(Ready|Done)"
"""Host operations in which the program waits for its devices without a driver call that shows it (JAX, TensorFlow)."""

LEADS = 0.1
"""Share of a process's launches from which a thread leads: a wait of a leading thread holds up the program."""
_FRAMEWORK_CALLS = ("op", "runtime", "compile")
"""Categories of host operations that consist of system calls."""
_SPAN = ("start_ns", "end_ns", "process_id", "correlation_id")
LEAST_SAMPLES = 10
"""With fewer samples in steady steps, the input is not judged by samples."""

BLOCKING_OS_CALLS = (
    r"^(p?poll|p?select|epoll_p?wait|read|pread(64)?|readv|fread|fgets|recv(from|msg|mmsg)?|accept4?|futex|sem_(timed)?wait|sem_clockwait"
    r"|pthread_cond_(timed|clock)?wait|pthread_mutex_lock|pthread_rwlock_.*lock|pthread_join|pthread_barrier_wait|nanosleep|clock_nanosleep"
    r"|usleep|sleep|wait(pid|id|3|4)?|sigwait.*|sigtimedwait|msgrcv|mq_receive|flock|fsync|open(64)?|io_getevents|connect)$"
)
"""Operating-system calls in which a thread waits."""

CHILD_WAITS = r"^(wait(pid|id|3|4)?|system|pclose)$"
"""Operating-system calls in which a thread waits for a child process."""

THREAD_CALLS = (
    r"^(futex|pthread_(cond|mutex|rwlock|barrier|spin|join|tryjoin|timedjoin|create|yield)\w*|sem_\w+|sched_yield"
    r"|p?poll|p?select|epoll_p?wait\d?)$"
)
"""Operating-system calls by which a thread waits for another one, or gives it work.

Sleep is excluded: a sleeping thread waits for time to pass. So is input and output, which is work of its own.
"""


class HostClasses:
    """Exclusive classes of one process over the whole capture.

    Args:
        trace: The trace.
        process_id: The rank.
    """

    def __init__(self, trace: TraceView, process_id: int) -> None:
        self.kept = Kept()
        self._trace = trace
        self.process_id = process_id

    @kept_property
    def sets(self) -> dict[str, IntervalSet]:
        """Every class of :data:`CLASSES`, by key. Classes are disjoint and cover the whole capture."""
        layers = self._layers
        joined = {"communication": layers["communication"].union(self.host_communication)}
        return {key: joined.get(key, owned) for key, owned in layers.items() if key not in _ON_HOST}

    @kept_property
    def idle(self) -> dict[str, IntervalSet]:
        """Every class of :data:`IDLE_CLASSES`, by key: the host's activity while no device works for the process."""
        return {c.key: self.host_communication if c.key == "communication" else self.sets[c.key] for c in IDLE_CLASSES}

    @property
    def host_communication(self) -> IntervalSet:
        """The part of class ``communication`` in which the host waits and no device works."""
        return IntervalSet.empty().union(*(self._layers[key] for key in _ON_HOST))

    @kept_property
    def _layers(self) -> dict[str, IntervalSet]:
        """:attr:`sets`, with the two kinds of collectives on the host separate.

        Within an MPI call, the leading thread can do nothing else, so anything inside it is part of the transfer. While
        another thread communicates, the leading thread's own activity takes precedence.
        """
        leading, beside = host_communication(self._trace, self.process_id)
        self._trace.free_memory(host_classes)
        layers = [(c.key, getattr(self, c.key)) for c in CLASSES[:-1]]
        self._trace.free_memory(host_classes)
        for key, time, before in zip(_ON_HOST, (leading, beside), ("synchronisation", "host_blocked"), strict=True):
            layers.insert([name for name, _ in layers].index(before), (key, time))
        return exclusive(layers, 0, self._trace.span_ns, CLASSES[-1].key)

    @kept_property
    def _roles(self) -> dict[XlaRole, IntervalSet]:
        """Time in which kernels of each role run (:data:`traceviz.analyses.derived.recorded.xla_ops.XlaRole`).

        A graph that was recorded as a whole counts as computing, since its contents are not known.
        """
        if self._trace.has_tpu:
            own = having(self._trace.xla_kernels, "process_id", self.process_id)
            return {role: intervals(part) for (role,), part in own.partition_by("role", as_dict=True).items()}
        kernels, names = self._own("kernels", "start_ns", "dur_ns", "name"), communication_names(self._trace)
        graphs = intervals(self._own("graphs", "start_ns", "dur_ns"))
        if not names:
            return {"compute": intervals(kernels).union(graphs)}
        communicates = pl.col("name").is_in(names)
        computing = intervals(kernels.filter(~communicates)).union(graphs)
        return {"compute": computing, "communication": intervals(kernels.filter(communicates))}

    def _role(self, role: XlaRole) -> IntervalSet:
        return self._roles.get(role, IntervalSet.empty())

    @property
    def device_compute(self) -> IntervalSet:
        """Computing kernels, and graphs recorded as a whole."""
        return self._role("compute")

    @property
    def communication(self) -> IntervalSet:
        """Collectives and point-to-point transfers between devices."""
        return self._role("communication")

    @property
    def parameter_transfer(self) -> IntervalSet:
        """Copies of parameters, and of other data that a program offloads to the host."""
        return self._copies_of("parameters")

    @property
    def copy_d2h(self) -> IntervalSet:
        """Copies to the host."""
        return self._copies("d2h").union(self._role("outfeed"), self._transfers(FROM_DEVICE))

    @property
    def copy_h2d(self) -> IntervalSet:
        """Copies to a device."""
        return self._copies("h2d").union(self._transfers(TO_DEVICE))

    @property
    def other_device(self) -> IntervalSet:
        """All other device work."""
        return self._trace.rank_busy.get(self.process_id, IntervalSet.empty())

    @kept_property
    def input_copies(self) -> IntervalSet:
        """Copies recognized as batches that move to a device; also while kernels run."""
        return self._copies_of("input").union(self._transfers(TO_DEVICE))

    @kept_property
    def input_ranges(self) -> pl.DataFrame:
        """Data-loading ranges on the training thread: rows of :attr:`TraceView.ranges`."""
        return input_ranges(self._trace, self.process_id, self.input_ops)

    @kept_property
    def input_ops(self) -> pl.DataFrame:
        """Operations in which the program takes its next batch: rows of :meth:`TraceView.host_ops`."""
        return input_ops(self._trace, self.process_id)

    @kept_property
    def sampled_input(self) -> pl.DataFrame:
        """Samples of the main thread's stack in which it takes its next batch: rows of ``sampled_stacks``.

        Empty if ranges, operations, the infeed or the user show when it does, or if there are few samples.
        """
        if not self._trace.tables.rows("stacks") or self._trace.options.input_range is not None:
            return pl.DataFrame(schema=SAMPLED)
        rows = sampled_stacks(self._trace)
        if self.input_ops.height or self.input_ranges.height or len(self.infeed):
            return rows.clear()
        thread = main_thread(self._trace, self.process_id)
        own = rows.filter((pl.col("process_id") == self.process_id) & (pl.col("thread_id") == thread))
        own = own.filter((pl.col("kind") == "input") & pl.col("samples").is_not_null())
        steady = steady_time(self._trace).get(self.process_id, IntervalSet.empty())
        in_steps = own.filter(pl.Series(steady.overlap(*bounds(own)) > 0, dtype=pl.Boolean))
        return own if in_steps["samples"].sum() >= LEAST_SAMPLES else own.clear()

    @kept_property
    def producer(self) -> Producer | None:
        """A loader on another thread that never rests; ``None`` if the training thread shows when it takes a batch."""
        shown = self.input_ranges.height or self.input_ops.height or len(self.infeed)
        return None if shown else find_producer(self._trace, self.process_id)

    @property
    def infeed(self) -> IntervalSet:
        """Time in which a device of the process waits for its infeed; only TPUs have one."""
        return self._role("infeed") if self._trace.has_tpu else IntervalSet.empty()

    @property
    def input_wait(self) -> IntervalSet:
        """Time in which the program takes its next batch, or a device waits for its infeed."""
        sampled = intervals(self.sampled_input)
        produced = self.producer.waits if self.producer is not None else IntervalSet.empty()
        return intervals(self.input_ranges).union(intervals(self.input_ops), self.infeed, sampled, produced)

    @property
    def synchronisation(self) -> IntervalSet:
        """Synchronising calls and blocking copies on any thread, and framework waits while nothing is launched."""
        calls = intervals(self._calls("synchronisation")).union(self._copy_waits)
        waits = self._framework_waits
        return calls.union(waits.subtract(self.kernel_launch)) if len(waits) else calls

    @property
    def _copy_waits(self) -> IntervalSet:
        """Time in blocking copies. On threads that launch nothing, it counts only while launching threads are idle.

        A thread that saves results or fetches the next batch holds up the program only if the program waits for it.
        """
        waits = pl.col("wait_ns").alias("start_ns"), "end_ns", "thread_id"
        copies = of_process(waiting_copies(self._trace), self.process_id).select(waits)
        if copies["thread_id"].n_unique() == 0:
            return IntervalSet.empty()
        launches = self._calls("launch")["thread_id"].value_counts()
        leading = launches.filter(pl.col("count") >= LEADS * pl.col("count").sum())["thread_id"]
        leads = copies["thread_id"].is_in(leading.implode())
        if not len(leading) or leads.all():
            return intervals(copies)
        is_leading = pl.col("thread_id").is_in(leading.implode())
        calls = self._own("cuda_api", "start_ns", "dur_ns", "thread_id").filter(is_leading)
        at_work = intervals(calls).union(intervals(self._trace.host_ops("op").filter(is_leading)))
        return intervals(copies.filter(leads)).union(intervals(copies.filter(~leads)).subtract(at_work))

    @kept_property
    def _framework_waits(self) -> IntervalSet:
        """Time in :data:`FRAMEWORK_WAITS`; empty without device work, since the host then computes in such waits."""
        if self.process_id not in self._trace.rank_busy:
            return IntervalSet.empty()
        names = self._trace.host_names.filter(matches(pl.col("name"), FRAMEWORK_WAITS))
        own = pl.col("process_id") == self.process_id
        return intervals(calls_named(self._trace, names).filter(own)) if names.height else IntervalSet.empty()

    @property
    def allocation(self) -> IntervalSet:
        """Allocation and release of memory and streams, on any thread."""
        return intervals(self._ordinary("allocation", "pool_allocation", "stream"))

    @kept_property
    def kernel_launch(self) -> IntervalSet:
        """Launches, copy calls until they wait, and the time in the queue between a launch call and its work."""
        launches = self._ordinary("launch").select(_SPAN)
        copies = of_process(copy_calls(self._trace), self.process_id).select(*_SPAN, "wait_ns")
        blocking = (copies["wait_ns"] <= copies["start_ns"]).fill_null(value=False)
        queued = self._queued(launches, rows_where(copies.select(_SPAN), ~blocking))
        until_wait = pl.coalesce("wait_ns", "end_ns").alias("end_ns")
        return intervals(launches).union(intervals(copies.select("start_ns", until_wait)), queued)

    @property
    def compilation(self) -> IntervalSet:
        """Tracing and compiling by the framework, loading and compiling of device code, and graph captures.

        Calls that take long because they are the first are included: they create a context or load code.
        """
        own = having(self._trace.host_ops("compile"), "process_id", self.process_id)
        captures = having(self._trace.graph_captures, "process_id", self.process_id)
        return intervals(self._calls("compilation")).union(intervals(own), intervals(captures), intervals(self._firsts))

    @kept_property
    def blocking_calls(self) -> pl.DataFrame:
        """Operating-system calls in which the training thread waits: ``start_ns, dur_ns, name``."""
        thread = training_thread(self._trace, self.process_id)
        frame = having(self._own("os_calls", "start_ns", "dur_ns", "thread_id", "name"), "thread_id", thread)
        return frame.with_columns(pl.col("name").cast(pl.String)).filter(matches(pl.col("name"), BLOCKING_OS_CALLS))

    @property
    def host_blocked(self) -> IntervalSet:
        """Time in :attr:`blocking_calls` outside calls of the framework and of the device's API.

        ::

            training thread   |--futex---------|  |--fsync--|  |--aten::mm: futex--|
            other thread        |--operator--|
            blocked           |-|            |-|  |---------|

        A wait for a thread is interrupted while other threads run operators, since the program works there.
        """
        calls = self.blocking_calls
        if not calls.height:  # return early, since there may be millions of calls of the device's API
            return IntervalSet.empty()
        thread = training_thread(self._trace, self.process_id)
        operations = having(self._trace.host_ops(*_FRAMEWORK_CALLS), "process_id", self.process_id)
        is_own, is_wait = operations["thread_id"] == thread, matching(calls["name"], THREAD_CALLS)
        others = intervals(operations.filter(~is_own & (operations["category"] == "op").fill_null(value=False)))
        waits = intervals(calls.filter(is_wait)).subtract(others)
        device_calls = having(self._own("cuda_api", "start_ns", "dur_ns", "thread_id"), "thread_id", thread)
        blocked = waits.union(intervals(calls.filter(~is_wait)))
        return blocked.subtract(intervals(operations.filter(is_own)).union(intervals(device_calls)))

    @property
    def profiler(self) -> IntervalSet:
        """Profiler overhead on the training thread, or on all threads if the record names none."""
        thread = training_thread(self._trace, self.process_id)
        frame = self._trace.frame("overhead", "start_ns", "dur_ns", "process_id", "thread_id")
        of_process, of_thread = pl.col("process_id") == self.process_id, pl.col("thread_id") == thread
        everyone = pl.col("process_id").is_null() | (of_process & pl.col("thread_id").is_null())
        return intervals(frame.filter(everyone | (of_process & of_thread)))

    def _queued(self, *calls: pl.DataFrame) -> IntervalSet:
        """Return the time from the end of a launch call to the start of its work; earlier frames of ``calls`` win."""
        every = []
        for name in filter(self._trace.tables.rows, schema.DEVICE_WORK):
            work = self._own(name, "start_ns", "process_id", "correlation_id")
            begins, is_open = work["start_ns"].to_numpy(), np.ones(work.height, np.bool_)
            for among in calls:
                call, ends = partners(work, among), among["end_ns"].to_numpy()
                for part in blocks(call.size):
                    known = is_open[part] & (call[part] >= 0)
                    is_open[part] &= ~known
                    every.append(IntervalSet.of(ends[call[part][known]], begins[part][known]))
        return union_all(every)

    @kept_property
    def _firsts(self) -> pl.DataFrame:
        """Calls that create a context or load code."""
        return having(first_calls(self._trace), "process_id", self.process_id)

    def _ordinary(self, *kinds: str) -> pl.DataFrame:
        """Return calls of these kinds that are not first calls."""
        calls = self._calls(*kinds)
        if not self._firsts.height:
            return calls
        # There may be millions of calls, so only those that start with a first call are compared
        edges = (calls["start_ns"].search_sorted(self._firsts["start_ns"], side) for side in ("left", "right"))
        first, last = (places.to_numpy() for places in edges)
        near = np.unique(np.concatenate([np.arange(*stretch) for stretch in zip(first, last, strict=True)]))
        key = ["thread_id", "start_ns", "end_ns"]
        alike = calls[near].select(*key, pl.Series("at", near)).join(self._firsts, on=key, how="semi")["at"]
        others = np.ones(calls.height, np.bool_)
        others[alike.to_numpy()] = False
        return calls.filter(pl.Series(others))

    def _calls(self, *kinds: str) -> pl.DataFrame:
        return of_process(self._trace.api_calls(*kinds), self.process_id)  # type: ignore[arg-type]

    def _copies(self, kind: str) -> IntervalSet:
        frame = self._own("memcpy", "start_ns", "dur_ns", "kind")
        return intervals(having(frame, "kind", kind))

    def _copies_of(self, purpose: Purpose) -> IntervalSet:
        copies = copy_purposes(self._trace)
        return intervals(copies.filter((pl.col("process_id") == self.process_id) & (pl.col("purpose") == purpose)))

    def _transfers(self, pattern: str) -> IntervalSet:
        """Return transfers that only the host recorded, because no device work of the process was."""
        if self.process_id in self._trace.rank_busy:
            return IntervalSet.empty()
        own = having(self._trace.host_ops("transfer"), "process_id", self.process_id)
        return intervals(own.filter(pl.col("name").cast(pl.String).str.contains(pattern)))

    def _own(self, table: str, *columns: str) -> pl.DataFrame:
        frame = self._trace.frame(table, *dict.fromkeys(("process_id", *columns)))
        return of_process(frame, self.process_id)[list(columns)]


@once_per_trace
def host_classes(trace: TraceView) -> dict[int, HostClasses]:
    """Return the classes of every rank."""
    return {rank: HostClasses(trace, rank) for rank in trace.ranks}


def sort_out_classes(trace: TraceView) -> None:
    """Compute the classes of every rank now, so that later callers share them."""
    for classes in host_classes(trace).values():
        _ = classes.sets


def class_times(trace: TraceView, windows: dict[int, IntervalSet]) -> dict[str, int]:
    """Return nanoseconds of each class within ``windows`` (by process), summed over ranks."""
    totals = dict.fromkeys(LABELS, 0)
    for rank, window in windows.items():
        for key, owned in host_classes(trace)[rank].sets.items():
            totals[key] += int(owned.overlap(window.starts, window.ends).sum())
    return totals


def step_classes(trace: TraceView) -> pl.DataFrame:
    """Return the classes of every steady step: ``step``, ``process``, ``dur_ns`` and nanoseconds by class key.

    The classes of a row add up to ``dur_ns``. Rows are in the order of the steps.
    """
    steps = training_steps(trace).steady.select("step", pl.col("process_id").alias("process"), "start_ns", "end_ns")
    parts = []
    for (rank,), part in steps.partition_by("process", as_dict=True).items():
        starts, ends = bounds(part)
        sets = host_classes(trace)[rank].sets
        parts.append(part.with_columns(pl.Series(key, owned.overlap(starts, ends)) for key, owned in sets.items()))
    frame = pl.concat(parts).sort("start_ns", "process")
    return frame.with_columns((pl.col("end_ns") - pl.col("start_ns")).alias("dur_ns")).drop("start_ns", "end_ns")


def measured(trace: TraceView) -> frozenset[str]:
    """Return the keys of the classes that this capture could show."""
    keys = {"host_compute"}
    categories = set(trace.host_names["category"].to_list())
    if trace.rank_busy:
        kinds = trace.frame("memcpy", "kind")["kind"].unique().cast(pl.String).to_list()
        keys |= {"other_device"} if kinds == ["unknown"] else {"copy_d2h", "copy_h2d", "other_device"}
        lost = bool(losses(trace.tables)) and not trace.frame("kernels", "start_ns").height
        keys |= set() if lost else {"device_compute", "communication"}
    keys |= _measured_calls(trace)
    if "os_calls" in trace.tables:
        keys.add("host_blocked")
    if categories:
        keys.add("compilation")
    if "transfer" in categories:
        keys |= {"copy_d2h", "copy_h2d"}
    if sees_input(trace):
        keys.add("input_wait")
    return frozenset(keys)


def _measured_calls(trace: TraceView) -> set[str]:
    """Return the classes of device API calls that this capture could show.

    XLA's profiler passes on only ROCm calls that launch and copy. Other classes count only if such calls were recorded.
    """
    keys = {"synchronisation", "allocation", "kernel_launch", "compilation"}
    if "cuda_api" not in trace.tables or not trace.tables.rows("cuda_api"):
        return set()
    names = [name for kind in trace.api_names.values() for name in kind]
    if trace.tables.run_facts().get("format") != "xplane" or not any(name.startswith("hip") for name in names):
        return keys
    kinds = {"synchronisation": "synchronisation", "stream": "allocation", "allocation": "allocation"}
    return {"kernel_launch"} | {kinds[kind] for kind in trace.api_names if kind in kinds}


def sees_host(trace: TraceView) -> bool:
    """Return whether the capture has host events; without them, idle moments of a device cannot be distinguished."""
    return any(name in trace.tables for name in ("cuda_api", "nvtx", "host_ops", "os_calls"))


def sees_input(trace: TraceView) -> bool:
    """Return whether a wait for input would be visible in this capture."""
    if trace.options.input_range is None and {"input", "pipeline"} & set(trace.host_names["category"].to_list()):
        return True
    return any(len(classes.input_wait) for classes in host_classes(trace).values())
