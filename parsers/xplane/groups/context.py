"""Connections of the events of an XPlane capture: events that start groups, and events that cause others.

Within a thread an event causes the events that it encloses. Across threads and devices the profiler writes pairs of
stats: a producer (``_pt``, ``_p``) and a consumer (``_ct``, ``_c``) with the same type and id are connected. Some pairs
are known only by other stats: a kernel and its launch by the correlation id, requests to a TPU by their queue. The
rules are those of xprof (``group_events.cc``, ``preprocess_xplane.cc``), including their oddities, so that the groups
are equal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from traceviz.parsers.shared.arrays.operations import take
from traceviz.parsers.xplane.decode.raw import Array, Kind, Plane

HOST_PLANE = "/host:CPU"
TPU_PREFIX = "/device:TPU:"
MODULE_LINES = ("XLA Modules", "Sparse Core Modules")
_TENSOR_CORE = re.compile(r"/device:TPU:([0-9]{1,9})")
_SPARSE_CORE = re.compile(r"/device:TPU:[0-9]+ SparseCore(?: [a-zA-Z]+)? [0-9]+")


_OP_NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_./>\\-]*")
_OP_NUMBER = re.compile(r"_[0-9]+$")
_JAX_TYPE = re.compile(r"[a-z_][a-z0-9_]*(\[.*\])?")
_OP_TYPE = re.compile(r"[A-Z_][a-zA-Z0-9_]*")

_LEGACY, _TPU_STREAM, _TPU_LAUNCH = 1, 11, 12
"""Types of contexts that older profilers did not state, found by other stats."""

_DISPATCH = _LEGACY, ("id", "iter_num")
"""Dispatches of a TPU program by an executor, identified by step and iteration."""
_QUEUE = _TPU_STREAM, ("request_id", "queue_addr")
"""Requests to a TPU, identified by number and queue."""

_NO_PROCESS = 1 << 40
"""Stands for a missing process id; real ids have 32 bits."""

_RUN_BITS = (1 << 27) - 1
"""A TPU knows only the low bits of a run's id."""

_LEVELS = {"ProcessBatch": 2, "OrbaxServing::ProcessBatch": 2, "BatchingSessionRun": 1}
"""Serving events that are roots of these levels, independent of their stats."""

_REQUESTS = (
    *("RunProgramRequest", "HostCallbackRequest", "TransferH2DRequest", "TransferPreprocessedH2DRequest"),
    *("TransferD2HRequest", "OnDeviceSendRequest", "OnDeviceRecvRequest", "OnDeviceSendRecvLocalRequest"),
    *("CustomWait", "OnDeviceSendRequestMulti", "OnDeviceRecvRequestMulti", "PjrtAsyncWait"),
)


def is_among(events: Array, listed: Array) -> Array:
    """Return whether each of ``events`` is in the ascending ``listed`` (bool), by search: hashing takes longer."""
    if not listed.size:
        return np.zeros(events.size, dtype=bool)
    if events is listed or np.array_equal(events, listed):  # stats that come in pairs need no search
        return np.ones(events.size, dtype=bool)
    place = np.searchsorted(listed, events)
    equal: Array = listed[np.minimum(place, listed.size - 1)] == events
    return equal


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One number per event for the events that have one.

    Args:
        event: Positions of the events, ascending, each once (int64).
        value: Their numbers (int64).
    """

    event: Array
    value: Array

    def at(self, events: Array, otherwise: int) -> Array:
        """Return the number of each of ``events`` (int64), ``otherwise`` for those without one."""
        numbers = np.full(events.size, otherwise, np.int64)
        listed = is_among(events, self.event)
        numbers[listed] = self.value[np.searchsorted(self.event, events[listed])]
        return numbers


@dataclass(frozen=True, slots=True, eq=False)
class Ends:
    """One side of connections.

    Args:
        event: Positions of the events (int64), ascending.
        key: Type, id and process of the connection of each (int64, n by 3).
    """

    event: Array
    key: Array


def is_host(plane: str) -> bool:
    """Return whether a plane of this name holds threads."""
    return plane.startswith("/host:")


def is_core(plane: str, *, sparse: bool) -> bool:
    """Return whether ``plane`` is the name of the plane of a TPU's tensor core, or of a ``sparse`` core."""
    return bool((_SPARSE_CORE if sparse else _TENSOR_CORE).fullmatch(plane))


class PlaneStats:
    """The stats of a plane that connect events, by key; and its events by name."""

    def __init__(self, plane: Plane) -> None:
        self.plane = plane

    @cached_property
    def _position(self) -> dict[str, int]:
        """Position of each name; the last one if a name occurs more than once."""
        return {name: position for position, name in enumerate(self.plane.names)}

    def _positions(self, name: str) -> Sequence[int]:
        """Return positions of ``name``. Usually none of tens of thousands of names occurs twice."""
        if name not in self._position:
            return ()
        if len(self._position) == len(self.plane.names):
            return (self._position[name],)
        return [position for position, other in enumerate(self.plane.names) if other == name]

    def named(self, *names: str) -> Array:
        """Return positions of the events with one of ``names`` (int64)."""
        positions = [position for name in names for position in self._positions(name)]
        if not positions:
            return np.empty(0, np.int64)
        is_named = np.zeros(len(self.plane.names), dtype=bool)
        is_named[positions] = True
        return np.flatnonzero(take(is_named, self.plane.events.name, False))

    def column(self, key: str, *, last: bool = False, signed: bool = False) -> Column:
        """Return the numbers under ``key``: of several in one event the first, or the ``last``.

        Values that are not integers count as 0; with ``signed`` also unsigned integers, because xprof then requires a
        signed one.
        """
        rows, stats = self.plane.rows_of(key), self.plane.stats
        events = take(stats.event, rows)
        edge = events[1:] != events[:-1]
        if not edge.all():
            kept = np.r_[edge, True] if last else np.r_[True, edge]
            rows, events = rows[kept], events[kept]
        kinds, values = take(stats.kind, rows, 0), take(stats.value, rows)
        whole = kinds == Kind.SIGNED if signed else (kinds == Kind.SIGNED) | (kinds == Kind.UNSIGNED)
        return Column(events.astype(np.int64), values if whole.all() else np.where(whole, values, 0))

    def texts(self, key: str) -> dict[int, str]:
        """Return the text under ``key`` of each event that has one."""
        rows = self.plane.rows_of(key)
        stats = self.plane.stats.of(rows[self.plane.stats.kind[rows] == Kind.TEXT])
        pairs = zip(stats.event.tolist(), stats.value.tolist(), strict=True)
        return {event: self.plane.texts[value] for event, value in reversed(list(pairs))}


def intersect(columns: Sequence[Column], candidates: Array) -> tuple[Array, list[Array]]:
    """Return those of the events ``candidates`` that are in all ``columns``, and their values in each."""
    events = candidates
    for column in columns:
        listed = is_among(events, column.event)
        events = events if listed.all() else events[listed]
    return events, [
        column.value if np.array_equal(column.event, events) else column.value[np.searchsorted(column.event, events)]
        for column in columns
    ]


def hash_rows(*columns: Array | int) -> Array:
    """Return one hash (int64) for each row of ``columns``; two different rows are equal with a chance of 1 in 2**64."""
    total = np.zeros(np.broadcast_shapes(*(np.shape(column) for column in columns)), np.uint64)
    for column in columns:
        total += np.asarray(column).astype(np.int64).astype(np.uint64)
        total += np.uint64(0x9E3779B97F4A7C15)
        total = (total ^ (total >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        total = (total ^ (total >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        total ^= total >> np.uint64(31)
    return total.view(np.int64)


def roots_of(stats: PlaneStats) -> Column:
    """Return root events of a plane with their levels: those with stat ``_r``, and roots by name."""
    marked = stats.column("_r", last=True, signed=True)
    old = np.setdiff1d(stats.named("TraceContext"), marked.event)
    levels = dict(zip(marked.event.tolist(), marked.value.tolist(), strict=True)) | dict.fromkeys(old.tolist(), 1)
    for name, level in _LEVELS.items():
        levels |= dict.fromkeys(stats.named(name).tolist(), level)
    events = np.array(sorted(levels), dtype=np.int64)
    return Column(events, np.array([levels[event] for event in events.tolist()], dtype=np.int64))


def ends_of(stats: PlaneStats) -> tuple[Ends, Ends]:
    """Return producing and consuming sides of the connections of a plane.

    Ids of connections are unique within a process: that of the stat ``_pid``, else that of the plane, if it states one.
    Only events of a launch on a TPU belong to no process, as devices do.
    """
    producers = _joined(
        _declared(stats, "_pt", "_p"),
        _identified(stats, *_DISPATCH, "ExecutorState::Process"),
        _identified(stats, *_QUEUE, "EnqueueRequestLocked"),
        _launched(stats, "DoEnqueueProgram"),
    )
    consumers = _joined(
        _declared(stats, "_ct", "_c"),
        _modules(stats),
        _identified(stats, *_DISPATCH, "TpuExecuteOp"),
        _identified(stats, *_QUEUE, *_REQUESTS),
        _launched(stats, "CompleteCallbacks"),
    )
    launches = [events[keys[:, 0] == _TPU_LAUNCH] for events, keys in (producers, consumers)]
    own = stats.plane.properties.get("process_id")
    pids = stats.column("_pid", last=True)

    def within_process(events: Array, keys: Array) -> Ends:
        process = pids.at(events, own if isinstance(own, int) else _NO_PROCESS)
        process[np.isin(events, np.concatenate(launches))] = _NO_PROCESS
        return Ends(events, np.column_stack((keys, process)))

    return within_process(*producers), within_process(*consumers)


_Side = tuple[Array, Array]
"""Events, and type and id of the connection of each (n by 2)."""


def _side(events: Array, context: int | Array, ids: Array) -> _Side:
    return events, np.column_stack((np.broadcast_to(context, ids.shape), ids)).astype(np.int64)


def _declared(stats: PlaneStats, context: str, identity: str) -> _Side:
    """Return connections that the stats ``context`` (type) and ``identity`` (id) state."""
    contexts, identities = stats.column(context, last=True, signed=True), stats.column(identity, last=True)
    events, (types, ids) = intersect((contexts, identities), contexts.event)
    return _side(events, types.astype(np.int32), ids)


def _identified(stats: PlaneStats, context: int, keys: tuple[str, ...], *names: str) -> _Side:
    """Return the events with one of ``names``, identified by their stats ``keys``."""
    events, values = intersect([stats.column(key) for key in keys], stats.named(*names))
    return _side(events, context, hash_rows(*values))


def _launched(stats: PlaneStats, name: str) -> _Side:
    """Return executions of a TPU program on the host's side, identified by device, queue, run and kind of core."""
    columns = (stats.column("device_ordinal"), stats.column("queue_id"), stats.column("run_id"))
    events, (device, queue, run) = intersect(columns, stats.named(name))
    return _side(
        events, _TPU_LAUNCH, hash_rows(device, queue, run & _RUN_BITS, stats.column("core_type").at(events, 0))
    )


def _modules(stats: PlaneStats) -> _Side:
    """Return the same on the device's side: events of the line of modules of a tensor core."""
    core = _TENSOR_CORE.fullmatch(stats.plane.name)
    ranges = [line.events for line in stats.plane.lines if core and line.name == MODULE_LINES[0]]
    inside = np.concatenate([np.arange(events.start, events.stop) for events in ranges] or [np.empty(0, np.int64)])
    events, (queue, run) = intersect((stats.column("queue_id"), stats.column("run_id")), inside)
    device = int(core[1]) if core and core[1] else 0
    return _side(events, _TPU_LAUNCH, hash_rows(device, queue, run, stats.column("core_type").at(events, 0)))


def _joined(*sides: _Side) -> _Side:
    """Return all of ``sides``; a later one replaces an earlier one of the same event."""
    events = np.concatenate([side[0] for side in sides])
    keys = np.concatenate([side[1] for side in sides])
    if (events[1:] > events[:-1]).all():
        return events, keys
    order = np.argsort(events, kind="stable")
    order = order[np.r_[events[order][1:] != events[order][:-1], True]] if order.size else order
    return events[order], keys[order]


_KNOWN_TYPES = frozenset(
    """
    UnknownHostEventType TraceContext SessionRun FunctionRun RunGraph RunGraphDone TfOpRun EagerExecute
    ExecutorState::Process ExecutorDoneCallback MemoryAllocation MemoryDeallocation RemotePerfCounter
    InstantiatedCapturedFunction::Run InstantiatedCapturedFunction::RunWithBorrowedArgs
    InstantiatedCapturedFunction::RunInstantiated InstantiatedCapturedFunction::RunAsync ParallelForOp ForeverOp
    WhileOp-EvalCond WhileOp-StartBody ForOp IteratorGetNextOp::DoCompute IteratorGetNextAsOptionalOp::DoCompute
    Iterator PrefetchProduce PrefetchConsume ParallelInterleaveProduce ParallelInterleaveConsume
    ParallelInterleaveInitializeInput ParallelMapProduce ParallelMapConsume MapAndBatchProduce MapAndBatchConsume
    ParseExampleProduce ParseExampleConsume ParallelBatchProduce ParallelBatchConsume BatchingSessionRun
    ProcessBatch BrainSessionRun ConcatInputTensors MergeInputTensors ScheduleWithoutSplit ScheduleWithSplit
    ScheduleWithEagerSplit ASBSQueue::Schedule OrbaxServing::ProcessBatch OrbaxServing::ConcatInputBuffers
    TfrtModelRun ServingModelRun KernelLaunch KernelExecute EnqueueRequestLocked RunProgramRequest
    HostCallbackRequest TransferH2DRequest TransferPreprocessedH2DRequest TransferD2HRequest OnDeviceSendRequest
    OnDeviceRecvRequest OnDeviceSendRecvLocalRequest CustomWait OnDeviceSendRequestMulti OnDeviceRecvRequestMulti
    PjrtAsyncWait DoEnqueueProgram DoEnqueueContinuationProgram WriteHbm ReadHbm TpuExecuteOp CompleteCallbacks
    TPUPartitionedCallOp-InitializeVarOnTPU TPUPartitionedCallOp-ExecuteRemote TPUPartitionedCallOp-ExecuteLocal
    Linearize Delinearize TransferBufferFromDevice-FastPath tpu::System::TransferToDevice=>IssueEvent
    tpu::System::TransferToDevice=>IssueEvent=>Done tpu::System::TransferFromDevice=>IssueEvent
    tpu::System::TransferFromDevice=>IssueEvent=>Done tpu::System::Execute
    """.split()  # noqa: SIM905  one name after the other, as in a text, is what can be compared
)
"""Events that xprof knows by name, and therefore never treats as launches."""


def is_op(name: str) -> bool:
    """Return whether xprof treats ``name`` as a TensorFlow operation (``name:Type``) or a tf.data iterator."""
    head, colon, kind = name.partition(":")
    if not colon or head == "Iterator":
        return bool(colon)
    if not kind:
        return not _JAX_TYPE.fullmatch(_OP_NUMBER.sub("", head.rpartition("/")[2]))
    return bool(_OP_NAME.fullmatch(head) and _OP_TYPE.fullmatch(kind))


def correlation_column(stats: PlaneStats) -> Column:
    """Return correlation ids of launches on the host, or of launched work on a device.

    An operation or another known event with such an id is neither.
    """
    column = stats.column("correlation_id")
    names = stats.plane.events.name[column.event]
    used_names = [(place, stats.plane.names[place]) for place in np.unique(names).tolist()]
    known = [place for place, name in used_names if name in _KNOWN_TYPES or is_op(name)]
    kept = ~np.isin(names, known)
    return Column(column.event[kept], column.value[kept])
