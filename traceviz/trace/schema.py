"""The data contract: every table that a reader may produce, declared once.

Documentation (``docs/tables.md``), validation (:mod:`traceviz.trace.tables`) and empty tables derive from
:data:`TABLES`. These conventions hold for all tables:

* Times are ``int64`` nanoseconds on one clock per trace, zero at the first event; samples, stacks, phases and metrics
  may lie before it. Intervals are half-open, ``[start_ns, start_ns + dur_ns)``. An event that never ended has a null
  duration, never -1.
* ``process_id``, ``thread_id``, ``device_id`` are surrogate ids, numbered from 0 in sorted order; the raw pid, tid
  and device ordinal are columns of their tables.
* ``correlation_id`` is unique only within a process: join on (``process_id``, ``correlation_id``).
* Event tables are sorted by ``start_ns``.
* A table is absent if the capture could not contain it, and empty if it could but has no rows.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import pyarrow as pa

from traceviz.core.errors import UsageError

SCHEMA_VERSION = 8
"""Version of this contract, written into every ``manifest.json``.

Versions only add tables and nullable columns. Columns that an older folder lacks are null, that is, not known. Since
version 7 a table without rows has no file: the manifest lists it as empty.
"""

_pa: Any = pa
"""Untyped: the stubs of pyarrow know neither nulls of any type nor buffers of NumPy arrays."""

TEXT = pa.string()
NAME = pa.dictionary(pa.int32(), pa.string())
I16 = pa.int16()
I32 = pa.int32()
I64 = pa.int64()
F64 = pa.float64()


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Args:
        name: Column name.
        type: Arrow type; :data:`NAME` is a dictionary-encoded string.
        meaning: Meaning of a value, in one sentence.
        unit: Unit of the values; empty for names and ids.
        nullable: True if a value may be missing, which always means *not known*.
        joins: ``table.column`` that the values refer to.
        values: All texts that the column may hold, if these are a closed set; empty for others.
        otherwise: Replacement for a text that ``values`` lacks. ``None`` for a null; in a column without nulls, the row
            is left out.
    """

    name: str
    type: pa.DataType
    meaning: str
    unit: str = ""
    nullable: bool = False
    joins: str = ""
    values: tuple[str, ...] = ()
    otherwise: str | None = None


@dataclass(frozen=True)
class Table:
    """One table: the meaning of a row, its columns, and whether its rows are events in time."""

    name: str
    row: str
    columns: tuple[Column, ...]

    @cached_property
    def arrow(self) -> pa.Schema:
        """The Arrow schema of this table."""
        return pa.schema([pa.field(c.name, c.type, nullable=c.nullable) for c in self.columns])

    @cached_property
    def closed(self) -> tuple[Column, ...]:
        """The columns whose texts are a closed set."""
        return tuple(column for column in self.columns if column.values)

    @property
    def is_events(self) -> bool:
        """True if rows have ``start_ns`` and are sorted by it."""
        return any(column.name == "start_ns" for column in self.columns)

    def empty(self) -> pa.Table:
        """Return this table without rows."""
        return self._empty

    @cached_property
    def _empty(self) -> pa.Table:
        return self.arrow.empty_table()

    def unknown(self, rows: int) -> pa.Table:
        """Return the nullable columns of this table with ``rows`` nulls each: nothing is known."""
        fields = [field for field in self.arrow if field.nullable]
        return pa.table([nulls(rows, field.type) for field in fields], schema=pa.schema(fields))


def nulls(rows: int, kind: pa.DataType) -> Any:
    """Return an array of ``rows`` nulls of type ``kind``. Numbers take no memory."""
    if pa.types.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(nulls(rows, kind.index_type), pa.array([], kind.value_type))
    if not pa.types.is_primitive(kind):
        return _pa.nulls(rows, kind)
    return pa.Array.from_buffers(kind, rows, [zeros((rows + 7) // 8), zeros(rows * (kind.bit_width + 7) // 8)])


def zeros(size: int) -> pa.Buffer:
    """Return ``size`` bytes of zeros, which take no memory: all columns of zeros share read-only pages."""
    shared: pa.Buffer = _zeros(max(size - 1, 1).bit_length()).slice(0, size)
    return shared


@cache
def _zeros(bits: int) -> Any:
    memory = mmap.mmap(-1, 1 << bits, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ)
    if bits >= _LARGE_BITS and hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)  # readers of the zeros need few large pages
    return _pa.py_buffer(memory)


_LARGE_BITS = 22
"""Exponent of the size, 4 MB, from which memory uses large pages."""

START = Column("start_ns", I64, "Start of the event on the trace's clock.", "ns")
DURATION = Column("dur_ns", I64, "Duration; null where the end was not recorded.", "ns", nullable=True)
PROCESS = Column("process_id", I32, "Process that caused the event.", joins="processes.process_id")
THREAD = Column("thread_id", I32, "Thread on which the event ran.", joins="threads.thread_id")
DEVICE = Column("device_id", I16, "Device on which the event ran.", joins="devices.device_id")
STREAM = Column("stream", I64, "Stream (queue) number within its context.", nullable=True)
CONTEXT = Column("context_id", I32, "CUDA context within its process.", nullable=True)
CORRELATION = Column(
    "correlation_id",
    I64,
    "Links device work to the API call of the same process that launched it; null where unknown.",
    nullable=True,
    joins="cuda_api.correlation_id",
)
GRAPH_NODE = Column("graph_node_id", I64, "CUDA graph node that launched this; null outside graphs.", nullable=True)
GROUP = Column(
    "group_id",
    I64,
    "Events that one step set off, across threads and devices, where the trace links them; null outside steps.",
    nullable=True,
    joins="steps.group_id",
)
OP = Column("op", NAME, "Framework op on whose behalf this ran, where the trace names it.", nullable=True)
BYTES = Column("bytes", I64, "Amount of memory.", "bytes", nullable=True)

_LAUNCHED = (START, DURATION, DEVICE, PROCESS, STREAM, CONTEXT, CORRELATION)
_DEVICE_WORK = (*_LAUNCHED, GRAPH_NODE, GROUP, OP)

UNKNOWN_TEXT_NOTE = "unknown-text"
"""Code of the note on texts that are not in the closed set of their column or field."""

SEVERITIES = ("info", "warning", "error")
"""Values of ``notes.severity``, from least to most serious."""

DEVICE_KINDS = ("gpu", "tpu", "cpu")
"""Values of ``devices.kind``."""

MEMORY_KINDS = ("pageable", "pinned", "device", "array", "managed", "device_static", "managed_static", "unknown")
"""Values of the memory-kind columns."""

COPY_KINDS = ("h2d", "d2h", "d2d", "p2p", "h2h", "unknown")
"""Values of ``memcpy.kind``. Arrays count as device memory; migrations of unified memory go by their direction."""

API_DOMAINS = ("runtime", "driver")
"""Values of ``cuda_api.domain``."""

SYNC_KINDS = ("event", "stream_wait_event", "stream", "context", "unknown")
"""Values of ``sync.kind``."""

NVTX_KINDS = ("push_pop", "start_end", "mark")
"""Values of ``nvtx.kind``."""

DEVICE_OP_KINDS = ("module", "step", "container", "async_op", "scope", "marker")
"""Values of ``device_ops.kind``."""

ALLOCATION_KINDS = ("alloc", "free")
"""Values of ``memory_events.kind``."""

HOST_CATEGORIES = ("step", "input", "pipeline", "op", "transfer", "compile", "python", "runtime", "annotation")
"""Values of ``host_ops.category``.

``step``: a marker that declares a training step. ``input``: the program takes its next batch (``IteratorGetNext``,
``DataLoader.__next__``); while it lasts, its thread waits for input. ``pipeline``: a stage that prepares input, on any
thread (tf.data iterators). ``op``: an operation of the framework. ``transfer``: data on its way to or from a device.
``compile``: tracing and compiling. ``python``: a Python frame. ``annotation``: a range that the program or a library
named (``torch.profiler.record_function``). ``runtime``: everything else.
"""

THREAD_STATES = ("running", "waiting", "gil")
"""Values of ``stacks.state``. ``gil``: the thread wants to run Python and waits for the interpreter's lock."""

ORIGINS = ("program", "library", "standard", "native")
"""Values of ``stack_frames.origin``: files below the program's folder, installed packages, Python's own library,
compiled code."""

PHASES = (
    *("program", "train", "epoch", "step", "validation", "saving", "loading", "compilation", "collection"),
    *("recording", "unsampled"),
)
"""Values of ``phases.kind``.

``program``: a process, from its start to its end. ``train``: a whole training loop (``fit``). ``epoch``, ``step``: as
the hooks in the program count them, throughout the run. ``validation``: an evaluation between or after steps.
``saving``, ``loading``: a checkpoint or model is written or read. ``compilation``: the framework traces or compiles.
``collection``: Python's garbage collector. ``recording``: a profiler of the recording starts, or stops and saves.
``unsampled``: the process ran, and its stacks were not sampled any more.
"""

METRIC_SOURCES = ("keras", "lightning", "transformers", "tensorboard", "program")
"""Values of ``metrics.source``: the hook that received it, an event file, or ``traceviz.metric``."""

TOTAL_KINDS = ("kernel", "copy", "memset", "runtime", "driver", "unified_memory", "other")
"""Values of ``totals.kind``."""


def _memory_kind(name: str, meaning: str) -> Column:
    return Column(name, NAME, meaning, values=MEMORY_KINDS, otherwise="unknown")


def _dimension(name: str, axis: str, of: str) -> Column:
    return Column(name, I32, f"{axis} extent of the {of}.", nullable=True)


_DECLARED = (
    Table(
        "run",
        "the capture (one row)",
        (
            Column("format", TEXT, "Identifier of the source format, for example `nsys`."),
            Column("producer", TEXT, "Program that recorded the trace."),
            Column("producer_version", TEXT, "Its version as it states it.", nullable=True),
            Column("source_schema", TEXT, "Version of the source's own schema.", nullable=True),
            Column("framework", TEXT, "Framework of the program, where the trace names or shows it.", nullable=True),
            Column("driver_version", TEXT, "Device driver version.", nullable=True),
            Column("cuda_version", TEXT, "CUDA version.", nullable=True),
            Column("host", TEXT, "Host name; stored only on request.", nullable=True),
            Column("command", TEXT, "Command line; stored only on request.", nullable=True),
            Column("t0_unix_ns", I64, "Wall-clock time of `start_ns` = 0, since 1970-01-01 UTC.", "ns", nullable=True),
            Column("span_ns", I64, "From the first event's start to the last event's end.", "ns"),
            Column("reader", TEXT, "Reader and route that produced the tables."),
        ),
    ),
    Table(
        "devices",
        "an accelerator that the trace names or that did work",
        (
            Column("device_id", I16, "Surrogate id."),
            Column("kind", NAME, "What it is.", values=DEVICE_KINDS, otherwise="gpu"),
            Column("ordinal", I32, "Number by which the program addressed the device.", nullable=True),
            Column("name", TEXT, "Marketing name.", nullable=True),
            Column("uuid", TEXT, "Unique id.", nullable=True),
            Column("compute_capability", TEXT, "CUDA compute capability, for example `8.0`.", nullable=True),
            Column("sm_count", I32, "Streaming multiprocessors (or cores).", nullable=True),
            Column("max_threads_per_sm", I32, "Resident threads that one SM can hold.", nullable=True),
            Column("memory_bytes", I64, "Device memory.", "bytes", nullable=True),
            Column("memory_bandwidth", I64, "Peak bandwidth of device memory.", "bytes/s", nullable=True),
            Column("clock_hz", I64, "Peak clock rate.", "Hz", nullable=True),
        ),
    ),
    Table(
        "processes",
        "a process that owns at least one event",
        (
            Column("process_id", I32, "Surrogate id, in order of pid; where traces were combined, of rank."),
            Column("pid", I64, "Process id of the operating system; null where the trace has none.", nullable=True),
            Column("name", TEXT, "Program name.", nullable=True),
            Column("rank", I32, "Rank in the distributed job, where known.", nullable=True),
        ),
    ),
    Table(
        "threads",
        "a thread that owns at least one event",
        (
            Column("thread_id", I32, "Surrogate id, in order of pid and tid."),
            PROCESS,
            Column("tid", I64, "Thread id of the operating system, or the profiler's own number of the thread."),
            Column("name", TEXT, "Thread name.", nullable=True),
        ),
    ),
    Table(
        "kernels",
        "one execution of a kernel",
        (
            *_DEVICE_WORK,
            Column("name", NAME, "Demangled name."),
            _dimension("grid_x", "First", "grid in blocks"),
            _dimension("grid_y", "Second", "grid in blocks"),
            _dimension("grid_z", "Third", "grid in blocks"),
            _dimension("block_x", "First", "block in threads"),
            _dimension("block_y", "Second", "block in threads"),
            _dimension("block_z", "Third", "block in threads"),
            Column("registers_per_thread", I32, "Registers of one thread.", nullable=True),
            Column("static_shared_bytes", I32, "Static shared memory of a block.", "bytes", nullable=True),
            Column("dynamic_shared_bytes", I32, "Dynamic shared memory of a block.", "bytes", nullable=True),
            Column("occupancy", F64, "Theoretical occupancy, where the producer states it.", "ratio", nullable=True),
            Column("blocks_per_sm", F64, "Blocks of the grid per SM, where the producer states it.", nullable=True),
            Column(
                "achieved_occupancy",
                F64,
                "Estimate of the occupancy achieved, where the producer states it.",
                "ratio",
                nullable=True,
            ),
            Column("category", NAME, "Kind of operation as the producer states it (XLA: HLO category).", nullable=True),
            Column("module", NAME, "Compiled program that the kernel belongs to (XLA module).", nullable=True),
        ),
    ),
    Table(
        "memcpy",
        "one copy on a device",
        (
            *_DEVICE_WORK,
            Column("kind", NAME, "Direction of the copy.", values=COPY_KINDS, otherwise="unknown"),
            _memory_kind("src_memory", "Kind of the source memory."),
            _memory_kind("dst_memory", "Kind of the destination memory."),
            BYTES,
        ),
    ),
    Table(
        "memset",
        "one fill of device memory",
        (*_DEVICE_WORK, _memory_kind("memory", "Kind of the memory filled."), BYTES),
    ),
    Table(
        "graphs",
        "one execution of a CUDA graph that was recorded as a whole: what ran in it is not known",
        (
            *_LAUNCHED,
            GROUP,
            OP,
            Column("graph_id", I64, "Number of the graph.", nullable=True),
        ),
    ),
    Table(
        "graph_nodes",
        "what is known of a node of a CUDA graph: where it was made, or what the program calls its part of the graph",
        (
            Column("start_ns", I64, "When the node was made; where that was not recorded, when it first ran.", "ns"),
            PROCESS,
            Column(
                "thread_id",
                I32,
                "Thread that made it; null where that was not recorded.",
                nullable=True,
                joins="threads.thread_id",
            ),
            Column("graph_node_id", I64, "Number of the node, as device work states it.", nullable=True),
            Column("original_node_id", I64, "Node that this one is a copy of; null for none.", nullable=True),
            Column("part", NAME, "What the program calls this part of the graph.", nullable=True),
            Column("module", NAME, "Module that the part belongs to, by its path in the model.", nullable=True),
            Column("phase", NAME, "The pass of the node, if it is known.", nullable=True, values=("backward",)),
        ),
    ),
    Table(
        "cuda_api",
        "one call of the CUDA runtime or driver API",
        (
            START,
            DURATION,
            PROCESS,
            THREAD,
            Column("correlation_id", I64, "Unique within its process; device work refers to it.", nullable=True),
            Column("name", NAME, "Function name without its `_vNNNN` suffix."),
            Column("domain", NAME, "API of the function.", values=API_DOMAINS, otherwise="runtime"),
            Column("status", I32, "Return value; 0 is success.", nullable=True),
            GROUP,
        ),
    ),
    Table(
        "sync",
        "one synchronisation seen by CUPTI",
        (
            START,
            DURATION,
            Column("device_id", I16, "Device that was waited for.", nullable=True, joins="devices.device_id"),
            PROCESS,
            STREAM,
            CONTEXT,
            CORRELATION,
            Column("kind", NAME, "What was waited for.", values=SYNC_KINDS, otherwise="unknown"),
        ),
    ),
    Table(
        "overhead",
        "a stretch of time that the profiler itself took, as it states, or in a call that starts or stops it",
        (
            START,
            DURATION,
            Column("process_id", I32, "Process that was held up.", nullable=True, joins="processes.process_id"),
            Column("thread_id", I32, "Thread that was held up.", nullable=True, joins="threads.thread_id"),
            Column("name", NAME, "What the profiler did."),
        ),
    ),
    Table(
        "nvtx",
        "an NVTX range or mark",
        (
            START,
            DURATION,
            PROCESS,
            THREAD,
            Column("range_id", I64, "Row number of this range, from 0 in order of start."),
            Column("kind", NAME, "Kind of the range.", values=NVTX_KINDS, otherwise="start_end"),
            Column("name", NAME, "Text of the range."),
            Column("domain", NAME, "NVTX domain; empty for the default domain."),
            Column("category", NAME, "NVTX category.", nullable=True),
            Column("depth", I32, "Open push/pop ranges of the same thread around this one.", nullable=True),
            Column("parent_id", I64, "Innermost push/pop range around this one.", nullable=True, joins="nvtx.range_id"),
        ),
    ),
    Table(
        "host_ops",
        "an operation on the host: framework op, tf.data iterator, DataLoader call, Python frame",
        (
            START,
            DURATION,
            PROCESS,
            THREAD,
            Column("op_id", I64, "Row number of this operation, from 0 in order of start."),
            Column("name", NAME, "Name of the operation."),
            Column("category", NAME, "Kind of operation.", values=HOST_CATEGORIES, otherwise="runtime"),
            Column("depth", I32, "Operations of the same thread around this one.", nullable=True),
            Column("parent_id", I64, "Innermost operation around this one.", nullable=True, joins="host_ops.op_id"),
            CORRELATION,
            GROUP,
        ),
    ),
    Table(
        "op_args",
        "one property that the trace records of a host operation; exactly one of the three values is set",
        (
            Column("op_id", I64, "The operation.", joins="host_ops.op_id"),
            Column("key", NAME, "Name of the property."),
            Column("integer", I64, "A whole number; unsigned ones keep their 64 bits.", nullable=True),
            Column("real", F64, "A number with a fraction.", nullable=True),
            Column("text", NAME, "A text.", nullable=True),
        ),
    ),
    Table(
        "device_ops",
        "a stretch of a device's timeline around other work: a compiled module, a step, an asynchronous operation",
        (
            START,
            DURATION,
            DEVICE,
            PROCESS,
            Column("name", NAME, "Name."),
            Column("kind", NAME, "What it is.", values=DEVICE_OP_KINDS, otherwise="marker"),
            Column("category", NAME, "Kind of operation as the producer states it (XLA: HLO category).", nullable=True),
            Column("run_id", I64, "Number of the execution of a module.", nullable=True),
            GROUP,
        ),
    ),
    Table(
        "os_calls",
        "one call of the operating system's runtime library (read, poll, futex ...)",
        (START, DURATION, PROCESS, THREAD, Column("name", NAME, "Function name.")),
    ),
    Table(
        "scheduling",
        "a time in which a thread ran on a core, as the scheduler recorded it; between its rows it ran on none",
        (START, DURATION, PROCESS, THREAD),
    ),
    Table(
        "stack_frames",
        "a frame of a stack together with all frames around it; equal stacks are one row",
        (
            Column("stack_id", I64, "Surrogate id, from 0; that of a caller is lower than those of what it calls."),
            Column("parent_id", I64, "The stack of the caller.", nullable=True, joins="stack_frames.stack_id"),
            Column("function", NAME, "Name of the function, qualified where that is known."),
            Column("file", NAME, "File, below the program's folder or the package's; its name alone elsewhere."),
            Column("line", I32, "Line that runs, in the file.", nullable=True),
            Column("origin", NAME, "Whose code it is.", values=ORIGINS, otherwise="library"),
        ),
    ),
    Table(
        "stacks",
        "samples of one thread's stack, in a row and all the same: what the thread did in the time that they stand for",
        (
            START,
            DURATION,
            PROCESS,
            THREAD,
            Column("stack_id", I64, "Innermost frame of the stack.", joins="stack_frames.stack_id"),
            Column("samples", I64, "Number of samples; each stands for the time since the one before it."),
            Column("cpu_ns", I64, "Processor time that the thread used in that time.", "ns", nullable=True),
            Column("state", NAME, "State of the thread; null if not recorded.", nullable=True, values=THREAD_STATES),
        ),
    ),
    Table(
        "phases",
        "a part of a program's run as hooks in the program saw it, throughout the run",
        (
            START,
            DURATION,
            PROCESS,
            Column("thread_id", I32, "Thread that ran it.", nullable=True, joins="threads.thread_id"),
            Column("kind", NAME, "What it is.", values=PHASES),
            Column("name", NAME, "The function that did it, or what declared it: `torch.save`, `keras`."),
            Column("number", I64, "Number of the step or epoch; null for others.", nullable=True),
        ),
    ),
    Table(
        "metrics",
        "a figure of quality that the program stated during its run: a loss, an accuracy",
        (
            START,
            PROCESS,
            Column("name", NAME, "As the program calls it: `loss`, `val_accuracy`."),
            Column("value", F64, "The figure; null where it was not finite.", nullable=True),
            Column("step", I64, "Training step that it belongs to, as the program counts.", nullable=True),
            Column("epoch", I64, "Epoch that it belongs to, counted from 0.", nullable=True),
            Column("source", NAME, "What reported it.", values=METRIC_SOURCES, otherwise="program"),
        ),
    ),
    Table(
        "steps",
        "a training step that the trace itself declares",
        (
            START,
            DURATION,
            PROCESS,
            Column("step", I64, "Step number.", nullable=True),
            Column("name", NAME, "Name of the marker."),
            Column("marker", NAME, "What declared the step, for example ProfilerStep."),
            Column("thread_id", I32, "Thread that carries the marker.", nullable=True, joins="threads.thread_id"),
            Column("device_id", I16, "Device whose step this is.", nullable=True, joins="devices.device_id"),
            Column("group_id", I64, "The step's group of events.", nullable=True),
        ),
    ),
    Table(
        "memory_events",
        "one allocation or release of memory",
        (
            START,
            PROCESS,
            Column("device_id", I16, "Device whose memory it is.", nullable=True, joins="devices.device_id"),
            CORRELATION,
            Column("kind", NAME, "What happened.", values=ALLOCATION_KINDS),
            _memory_kind("memory", "Kind of the memory."),
            Column("pool", NAME, "Allocator or pool.", nullable=True),
            Column("address", I64, "Address.", nullable=True),
            BYTES,
            OP,
            Column("in_use_bytes", I64, "Memory in use in the pool afterwards.", "bytes", nullable=True),
            Column("peak_bytes", I64, "Highest use of the pool so far.", "bytes", nullable=True),
            Column("available_bytes", I64, "Memory that the pool can still give.", "bytes", nullable=True),
            Column("requested_bytes", I64, "Amount asked for, before rounding.", "bytes", nullable=True),
            Column("reserved_bytes", I64, "Memory that the allocator holds of the device.", "bytes", nullable=True),
        ),
    ),
    Table(
        "collectives",
        "a collective operation of several ranks on a device, as the trace describes it",
        (
            START,
            DURATION,
            DEVICE,
            PROCESS,
            STREAM,
            CORRELATION,
            Column("name", NAME, "What it does: allreduce, allgather, all_to_allv, broadcast ..."),
            Column("group", NAME, "Process group (communicator) that takes part.", nullable=True),
            Column("group_size", I32, "Ranks in that group.", nullable=True),
            Column("dtype", NAME, "Type of the elements.", nullable=True),
            Column("in_elements", I64, "Elements that the rank gives.", nullable=True),
            Column("out_elements", I64, "Elements that it receives.", nullable=True),
        ),
    ),
    Table(
        "samples",
        "one value of a time series",
        (
            START,
            Column("device_id", I16, "Device measured.", nullable=True, joins="devices.device_id"),
            Column("process_id", I32, "Process measured.", nullable=True, joins="processes.process_id"),
            Column("metric", NAME, "What was measured."),
            Column("unit", NAME, "Unit of the value."),
            Column("value", F64, "The value."),
        ),
    ),
    Table(
        "windows",
        "a stretch of the capture in which one source recorded a table; a table without such a row, throughout",
        (
            START,
            DURATION,
            Column("recorded", NAME, "Name of the table."),
            Column("source", NAME, "What recorded it."),
        ),
    ),
    Table(
        "totals",
        "one line of a summary that a profiler printed: all calls of one name together, without their times",
        (
            PROCESS,
            Column("kind", NAME, "What it sums up.", values=TOTAL_KINDS, otherwise="other"),
            Column("name", NAME, "Name of the kernel, the copy, the function or the counter."),
            Column("calls", I64, "Number of calls.", nullable=True),
            Column("total_ns", I64, "Duration of all of them.", "ns", nullable=True),
            Column("mean_ns", I64, "Mean duration as printed.", "ns", nullable=True),
            Column("min_ns", I64, "Shortest duration.", "ns", nullable=True),
            Column("max_ns", I64, "Longest duration.", "ns", nullable=True),
            BYTES,
            Column("device_id", I16, "Device, where the summary tells.", nullable=True, joins="devices.device_id"),
        ),
    ),
    Table(
        "settings",
        "a version, option or setting that the trace states about the program or the capture",
        (
            Column("process_id", I32, "Process that it is about.", nullable=True, joins="processes.process_id"),
            Column("key", TEXT, "Name of the setting."),
            Column("value", TEXT, "Its value as text."),
        ),
    ),
    Table(
        "notes",
        "something that the reader dropped, repaired or could not see",
        (
            Column("code", TEXT, "Stable code."),
            Column("severity", TEXT, "How serious it is.", values=SEVERITIES, otherwise="warning"),
            Column("count", I64, "Rows concerned.", nullable=True),
            Column("message", TEXT, "One sentence for people."),
        ),
    ),
)

TABLES: dict[str, Table] = {table.name: table for table in _DECLARED}
"""Every table of the contract, by name, in the order of the documentation."""

DEVICE_WORK = ("kernels", "memcpy", "memset", "graphs")
"""Tables whose rows keep a device busy."""

REQUIRED = ("run", "devices", "processes", "threads", "notes")
"""Tables that every trace has."""


def table(name: str) -> Table:
    """Return the declaration of table ``name``.

    Raises:
        UsageError: no such table; the error lists those that exist.
    """
    try:
        return TABLES[name]
    except KeyError:
        raise UsageError.unknown("table", name, TABLES) from None
