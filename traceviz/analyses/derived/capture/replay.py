"""Replay of the recorded dependencies of a few steps, with some of the time taken away.

Nodes are moments of host threads (a launch, the end of a wait, the edge of a step) and the ends of device work. An edge
is a recorded dependency with its delay. A replay computes the nodes in the order in which they were recorded::

    host    |-delta-|launch|-delta-|wait for A ...|-delta-|step ends
                       | launch latency   ^
    stream          ...|AAAAAAAAAAAAAAAAAA|BBBBB|          B: stream order

Without a change every node is as recorded, since the part of a delay that no dependency explains stays on its edges.

Source: Zhu, Phanishayee, Pekhimenko, *Daydream: Accurately Estimating the Efficacy of Optimizations for DNN Training*,
USENIX ATC 2020, which predicts run times from such a graph of a CUPTI trace.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from traceviz.analyses.derived.device.work import communication_names
from traceviz.analyses.derived.frames import bounds, end_ns, partners
from traceviz.analyses.derived.host.classes import LEADS
from traceviz.analyses.derived.host.copy_calls import waiting_copies
from traceviz.analyses.derived.steps.search import training_steps, training_thread
from traceviz.analyses.derived.view import TraceView, once_per_trace
from traceviz.core.arrays.intervals import Array, IntervalSet
from traceviz.trace import schema

Mask = npt.NDArray[np.bool_]

MOST_NODES = 12_000
"""Nodes of a replay, about. Of longer programs the first steady steps are replayed, so that it takes little time."""
KNOWN_LAUNCHES = 0.9
"""With fewer device work whose launch is known, nothing is proven."""
TYPICAL = 10
"""Percentile of delays that counts as the delay of a dependency itself; what is longer has another reason."""
LATENCY_NS, STREAM_GAP_NS = 5_000, 1_000
"""Delays of launches and of stream order, if the trace shows none."""
MEET = 0.95
"""Share of collectives that must overlap on all ranks, so that the n-th of each rank count as one."""
NEVER = -(1 << 60)
"""Weight of an edge that does not exist."""
WAIT, EDGE, LAUNCH, ARRIVAL, WORK = range(5)
"""Kinds of nodes, in their order at equal times. An arrival is the start of a collective on one rank."""


@dataclass(frozen=True, slots=True)
class Change:
    """Time to take away.

    Args:
        host: Time of the host's threads that vanishes, by process.
        idle: Device work that takes no time, as a mask over the rows of :attr:`Graph.work`.
        gone: Device work that is not launched any more.
        waits: True if calls no longer wait for the device.
        last_waits: True if the last wait of each step stays.
        delays: True if the delays of device work that no dependency explains vanish as well.
    """

    host: dict[int, IntervalSet] = field(default_factory=dict)
    idle: Mask | None = None
    gone: Mask | None = None
    waits: bool = False
    last_waits: bool = False
    delays: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """Dependencies of consecutive steady steps.

    Args:
        work: Device work by start: ``start_ns, end_ns, process_id, device_id, stream, table, name, kind, call_ns``.
        steps: The replayed steps: ``process_id, step, start_ns, end_ns``.
        all_steps: Number of all steady steps.
        known: Share of the device work whose launch is known.
    """

    work: pl.DataFrame
    steps: pl.DataFrame
    all_steps: int
    known: float
    threads: frozenset[int]
    """Threads of the host that the graph follows: those that launch or train."""
    _kinds: Array
    _times: Array
    _owners: Array
    """Row of ``work`` of each node of device work, else -1."""
    _ranks: Array
    """Process of each node of the host, else -1."""
    _before: Array
    """The time from which the edge of the host's order counts, for nodes of the host."""
    _sources: Array
    """Sources of the edges, four for each node."""
    _weights: Array
    _delays: Array
    """The part of the weights that no dependency explains, for nodes of device work."""
    _maybe: Array
    """Nodes of device work with an edge from work of another stream that may not have been needed."""
    _edges: tuple[Array, Array]
    """Nodes of the starts and ends of ``steps``."""
    _work_of_steps: tuple[Array, Array]
    """Nodes of device work, and the row of the step that launched each."""

    @property
    def step_ns(self) -> float:
        """Mean duration of the replayed steps, as recorded."""
        starts, ends = bounds(self.steps)
        return float((ends - starts).mean())

    @property
    def has_meetings(self) -> bool:
        """True if collectives of all ranks were matched, so that a replay moves the waits for late ranks."""
        return bool((self.work["meeting"] >= 0).any())

    def replay(self, change: Change) -> Array:
        """Return the durations of the steps with a change: those of the host, or of the devices if they are longer.

        ::

            host    |--0--|--1--|--2--|             without waits, the host launches ahead
            device     |---- 0 ----|---- 1 ----|---- 2 ----|
        """
        weights = self._weights.copy()
        if change.delays:
            weights -= np.where(weights > NEVER, self._delays[:, None], 0)
            weights[self._maybe, np.where(self._kinds[self._maybe] == WORK, 3, 2)] = NEVER
        for process, vanished in change.host.items():
            own = np.flatnonzero((self._ranks == process) & (self._before >= 0))
            weights[own, 0] -= vanished.overlap(self._before[own], self._times[own])
        starts, ends = bounds(self.work)
        is_work = self._owners >= 0
        for mask, is_gone in ((change.idle, False), (change.gone, True)):
            if mask is None:
                continue
            nodes = np.flatnonzero(is_work)
            nodes = nodes[mask[self._owners[nodes]] & (self._kinds[nodes] == WORK)]
            length = (ends - starts)[self._owners[nodes]]
            shorter = weights[nodes] - length[:, None]
            met = (self.work["meeting"].to_numpy()[self._owners[nodes]] >= 0)[:, None]
            shorter = np.where(
                met, np.maximum(shorter, 0), shorter
            )  # a collective still ends after the last rank comes
            weights[nodes] = np.where(weights[nodes] == NEVER, NEVER, np.maximum(shorter, 0) if is_gone else shorter)
            if is_gone:
                weights[nodes, 1:] = NEVER
                weights[nodes, 0] = np.where(self._sources[nodes, 0] > 0, 0, weights[nodes, 0])
        if change.waits:
            weights[self._waits_to_drop(keep_last=change.last_waits), 1] = NEVER
        values = _run(self._sources, weights)
        first, last = self._edges
        on_host = values[last] - values[first]
        nodes, steps = self._work_of_steps
        done = np.full(len(on_host), NEVER)
        np.maximum.at(done, steps, values[nodes])
        on_device = np.zeros_like(on_host)
        for process in self.steps["process_id"].unique():
            own = np.flatnonzero((self.steps["process_id"] == process).to_numpy())
            until = np.maximum.accumulate(done[own])
            before = np.append(NEVER, until[:-1])
            on_device[own] = np.maximum(until - np.maximum(before, values[first[own]]), 0)
            # The first step also fills the queue.
            on_device[own[0]] = on_device[own[1:]].mean() if own.size > 1 else on_host[own[0]]
        return on_host if on_host.sum() >= on_device.sum() else on_device

    def _waits_to_drop(self, *, keep_last: bool) -> Array:
        waits = np.flatnonzero((self._kinds == WAIT) & (self._weights[:, 1] > NEVER))
        if not keep_last:
            return waits
        kept = []
        for process, start, end in self.steps[["process_id", "start_ns", "end_ns"]].iter_rows():
            own = waits[(self._ranks[waits] == process) & (self._times[waits] > start) & (self._times[waits] <= end)]
            kept.extend(own[-1:].tolist())
        return np.setdiff1d(waits, np.array(kept, np.int64))


def _run(sources: Array, weights: Array) -> Array:
    """Return the time of each node: the latest of its edges, which come from nodes before it."""
    values = [0] * len(sources)
    edges = (sources[:, n].tolist() for n in range(4)), (weights[:, n].tolist() for n in range(4))
    (a, b, c, d), (at_a, at_b, at_c, at_d) = edges
    for node in range(1, len(values)):
        values[node] = max(
            values[a[node]] + at_a[node],
            values[b[node]] + at_b[node],
            values[c[node]] + at_c[node],
            values[d[node]] + at_d[node],
        )
    return np.array(values, np.int64)


@once_per_trace
def recorded_graph(trace: TraceView) -> Graph | None:
    """Return the graph of the first steady steps; ``None`` without steady steps, or if devices mark them."""
    found = training_steps(trace)
    steady = found.steady.select("process_id", "step", "start_ns", "end_ns")
    if not steady.height or found.host is not None or found.source == "counted":
        return None
    calls = trace.api_calls("launch", "async_copy", "blocking_copy")
    work = _read_work(trace, calls)
    steps = _choose_steps(steady, work, calls)
    begin, end = int(steps["start_ns"].min()), int(steps["end_ns"].max())  # type: ignore[arg-type]  # never empty
    meetings = _match_collectives(trace, work)
    inside = (pl.col("end_ns") > begin) & (pl.col("start_ns") < end)
    work = work.with_columns(pl.Series("meeting", meetings)).filter(inside)
    judged = work.filter(pl.col("start_ns") >= begin)
    known = 1 - judged["call_ns"].null_count() / judged.height if judged.height else 1.0
    return _Builder(trace, work, steps, calls, begin, end).build(steady.height, known)


def _choose_steps(steady: pl.DataFrame, work: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """Return the first steps with at most :data:`MOST_NODES` events, at least one of each process."""
    begin, end = steady["start_ns"].min(), steady["end_ns"].max()
    events = sum(frame["start_ns"].is_between(begin, end).sum() for frame in (work, calls))
    if events <= MOST_NODES:
        return steady
    most = max(1, int(steady["step"].n_unique() * MOST_NODES / events))
    return steady.filter(pl.col("step").is_in(steady["step"].unique().sort()[:most].implode()))


def _read_work(trace: TraceView, calls: pl.DataFrame) -> pl.DataFrame:
    """Return all device work by start, with the start of the call that launched it."""
    key = ("start_ns", end_ns(), "process_id", "device_id", "stream", "correlation_id")
    parts = []
    for table in filter(trace.tables.rows, schema.DEVICE_WORK):
        name = pl.col("name").cast(pl.String) if table == "kernels" else pl.lit(None, pl.String).alias("name")
        kind = pl.col("kind").cast(pl.String) if table == "memcpy" else pl.lit(None, pl.String).alias("kind")
        parts.append(trace.frame(table, *key, name, kind).with_columns(pl.lit(table).alias("table")))
    columns = {"start_ns": pl.Int64, "end_ns": pl.Int64, "process_id": pl.Int32, "device_id": pl.Int16}
    if not parts:
        texts = dict.fromkeys(("name", "kind", "table"), pl.String)
        return pl.DataFrame(schema={**columns, "stream": pl.Int64, **texts, "call_ns": pl.Int64})
    work = pl.concat(parts)
    row = partners(work, calls)
    starts = calls["start_ns"].to_numpy()
    at = starts[np.maximum(row, 0)] if starts.size else np.zeros(row.size, np.int64)
    known = (row >= 0) & (at <= work["start_ns"].to_numpy())
    call = pl.Series("call_ns", at, pl.Int64).set(pl.Series(~known), None)
    return work.drop("correlation_id").with_columns(call).sort("start_ns", "end_ns")


def _match_collectives(trace: TraceView, work: pl.DataFrame) -> Array:
    """Return the number of the collective of each row of ``work``; -1 for other work, and if ranks do not match."""
    numbers = np.full(work.height, -1, np.int64)
    names = communication_names(trace)
    ranks = work["process_id"].unique().to_list()
    if not names or len(ranks) < 2:
        return numbers
    is_one = work["name"].is_in(names).fill_null(value=False).to_numpy()
    rows = [np.flatnonzero(is_one & (work["process_id"] == rank).to_numpy()) for rank in ranks]
    if len({own.size for own in rows}) > 1 or not rows[0].size:
        return numbers
    starts, ends = bounds(work)
    latest, earliest = (np.max([starts[own] for own in rows], 0), np.min([ends[own] for own in rows], 0))
    if (latest < earliest).mean() >= MEET:
        for own in rows:
            numbers[own] = np.arange(own.size)
    return numbers


class _Builder:
    """Makes the graph of one window of a trace."""

    def __init__(  # noqa: PLR0917 (the parts of a window)
        self, trace: TraceView, work: pl.DataFrame, steps: pl.DataFrame, calls: pl.DataFrame, begin: int, end: int
    ) -> None:
        self.trace, self.work, self.steps, self.begin, self.end = trace, work, steps, begin, end
        self.calls, self.threads = calls, _leading_threads(trace, calls, steps)
        self.starts, self.ends = bounds(work)
        self.call = work["call_ns"].fill_null(NEVER).to_numpy()
        self.process = work["process_id"].to_numpy().astype(np.int64)
        self.meeting = work["meeting"].to_numpy()

    def build(self, all_steps: int, known: float) -> Graph:
        """Return the graph."""
        points = self._host_points()
        rows = np.arange(self.work.height)
        met = self.meeting >= 0
        # The work of a collective can only be computed once all ranks have arrived.
        arrived = dict(zip(*self._last_arrivals(), strict=True)) if met.any() else {}
        at = np.where(met, [arrived.get(number, 0) for number in self.meeting.tolist()], self.starts)
        tables = (points["time"].to_numpy(), self.starts[met], at)
        times = np.concatenate([[self.begin], *tables])
        kinds = np.concatenate(
            [[LAUNCH], points["kind"].to_numpy(), np.full(met.sum(), ARRIVAL), np.full(rows.size, WORK)]
        )
        owners = np.concatenate([np.full(1 + points.height, -1), rows[met], rows])
        ranks = np.concatenate([[-1], points["process_id"].to_numpy(), np.full(met.sum() + rows.size, -1)])
        waits = np.concatenate([[-1], points["wait_ns"].to_numpy(), np.full(met.sum() + rows.size, -1)])
        order = np.concatenate([[0], 1 + np.lexsort((kinds[1:], times[1:]))])
        graph = _Nodes(
            times[order], kinds[order], owners[order], ranks[order], waits[order], np.zeros_like(order), order < 0
        )
        sources, weights, before = self._connect(graph)
        place = np.argsort(order)
        # The edges of the steps are the last points of the host: starts, then ends.
        first = place[1 + points.height - 2 * self.steps.height :][: self.steps.height]
        last = place[1 + points.height - self.steps.height :][: self.steps.height]
        return Graph(
            work=self.work,
            steps=self.steps,
            all_steps=all_steps,
            known=known,
            threads=frozenset(self.threads),
            _kinds=graph.kinds,
            _times=graph.times,
            _owners=graph.owners,
            _ranks=graph.ranks,
            _before=before,
            _sources=sources,
            _weights=weights,
            _delays=graph.delays,
            _maybe=np.flatnonzero(graph.maybe),
            _edges=(first, last),
            _work_of_steps=self._work_of_steps(place[1 + points.height + met.sum() :]),
        )

    def _work_of_steps(self, nodes: Array) -> tuple[Array, Array]:
        """Return the nodes of device work that a step launched, and the row of that step."""
        of_step = np.full(self.work.height, -1, np.int64)
        launched = np.where(self.call > NEVER, self.call, self.starts)
        for row, (process, start, end) in enumerate(self.steps[["process_id", "start_ns", "end_ns"]].iter_rows()):
            of_step[(self.process == process) & (launched >= start) & (launched < end)] = row
        known = of_step >= 0
        return nodes[known], of_step[known]

    def _last_arrivals(self) -> tuple[list[int], list[int]]:
        met = self.work.filter(pl.col("meeting") >= 0).group_by("meeting").agg(pl.col("start_ns").max())
        return met["meeting"].to_list(), met["start_ns"].to_list()

    def _host_points(self) -> pl.DataFrame:
        """Return the points of the host: ``time, kind, process_id, wait_ns``. The edges of steps are the last rows.

        ``wait_ns`` is the time from which a call waits; -1 for other points.
        """
        none = pl.lit(-1, pl.Int64).alias("wait_ns")
        process = pl.col("process_id").cast(pl.Int64)
        inside = (pl.col("start_ns") >= self.begin) & (pl.col("start_ns") <= self.end)
        on_leading = pl.col("thread_id").is_in(self.threads)
        start = pl.col("start_ns").alias("time")
        calls = self.calls.filter(inside & on_leading)
        launches = calls.select(start, pl.lit(LAUNCH, pl.Int64).alias("kind"), process, none)
        synchronise = self.trace.api_calls("synchronisation").select(
            "start_ns", "end_ns", "process_id", "thread_id", pl.col("start_ns").alias("wait_ns")
        )
        copies = waiting_copies(self.trace).select("start_ns", "end_ns", "process_id", "thread_id", "wait_ns")
        waits = pl.concat([synchronise, copies]).filter(inside & on_leading & (pl.col("end_ns") <= self.end))
        kind = pl.lit(WAIT, pl.Int64).alias("kind")
        begins = waits.select(pl.col("wait_ns").alias("time"), kind, process, none)
        returns = waits.select(pl.col("end_ns").alias("time"), kind, process, pl.col("wait_ns"))
        edge = pl.lit(EDGE, pl.Int64).alias("kind")
        edges = [self.steps.select(pl.col(at).alias("time"), edge, process, none) for at in ("start_ns", "end_ns")]
        return pl.concat([launches, begins, returns, *edges])

    def _connect(self, nodes: _Nodes) -> tuple[Array, Array, Array]:
        """Return sources and weights of all edges, and the time from which the host's order counts for each node."""
        count = nodes.times.size
        sources, weights = np.zeros((count, 4), np.int64), np.full((count, 4), NEVER, np.int64)
        before = np.full(count, -1, np.int64)
        node_of = np.zeros(self.work.height, np.int64)
        node_of[nodes.owners[nodes.kinds == WORK]] = np.flatnonzero(nodes.kinds == WORK)
        for rank in np.unique(np.concatenate([nodes.ranks, self.process])):
            if rank < 0:
                continue
            self._connect_host(nodes, int(rank), sources, weights, before, node_of)
            self._connect_work(nodes, int(rank), sources, weights, node_of)
        self._connect_meetings(nodes, sources, weights)
        weights[sources >= np.arange(count)[:, None]] = NEVER  # clocks of ranks may differ a little
        weights[0] = 0
        return sources, weights, before

    def _connect_host(  # noqa: PLR0917 (arrays to fill)
        self, nodes: _Nodes, rank: int, sources: Array, weights: Array, before: Array, node_of: Array
    ) -> None:
        """Connect the points of a process in their order, and the ends of its waits with what they waited for."""
        own = np.flatnonzero(nodes.ranks == rank)
        sources[own[1:], 0] = own[:-1]
        before[own] = np.append(self.begin, nodes.times[own[:-1]])[: own.size]
        weights[own, 0] = nodes.times[own] - before[own]
        rows = np.flatnonzero(self.process == rank)
        if not rows.size:
            return
        by_end = rows[np.argsort(self.ends[rows], kind="stable")]
        for node in own[nodes.waits[own] >= 0]:  # calls that wait are few next to device work
            begin, end = int(nodes.waits[node]), int(nodes.times[node])
            first, last = np.searchsorted(self.ends[by_end], [begin, end], side="right")
            candidates = by_end[first:last]
            candidates = candidates[self.call[candidates] <= begin]
            if candidates.size:
                row = candidates[-1]
                sources[node, 1], weights[node, 1] = node_of[row], end - self.ends[row]
                weights[node, 0], before[node] = 0, -1

    def _connect_work(self, nodes: _Nodes, rank: int, sources: Array, weights: Array, node_of: Array) -> None:
        """Connect device work with its stream, its launch, and the work of other streams that it waited for."""
        rows = np.flatnonzero(self.process == rank)
        if not rows.size:
            return
        starts, ends, call = self.starts[rows], self.ends[rows], self.call[rows]
        before, previous = self._stream_order(rows)
        gap_ns = _typical(starts - previous, (previous > call + LATENCY_NS * 4) & (call > NEVER), STREAM_GAP_NS)
        latency_ns = _typical(starts - call, previous < call, LATENCY_NS)
        launch = self._launch_nodes(nodes, rank, call)
        launched = launch >= 0
        other, other_end = self._other_streams(rows)
        ready = np.maximum(
            np.where(before >= 0, previous + gap_ns, NEVER), np.where(launched, call + latency_ns, NEVER)
        )
        is_late = (other >= 0) & (other_end > np.maximum(previous, call))
        ready = np.where(is_late, np.maximum(ready, starts), ready)
        is_free = ready <= NEVER
        extra = np.where(is_free, 0, starts - ready)
        length = np.where(self.meeting[rows] >= 0, 0, ends - starts)
        node = node_of[rows].copy()
        is_arrival = self.meeting[rows] >= 0
        nodes.delays[node[~is_free]] = np.maximum(extra, 0)[~is_free]
        arrivals = np.flatnonzero(nodes.kinds == ARRIVAL)
        arrival_of = dict(zip(nodes.owners[arrivals].tolist(), arrivals.tolist(), strict=True))
        for place in np.flatnonzero(is_arrival):
            node[place] = arrival_of[int(rows[place])]
        # Work of another stream that had ended before the launch may be needed as well: nothing says that it is not.
        is_earlier = (other >= 0) & ~is_late & (call >= other_end)
        nodes.maybe[node[is_earlier]] = True
        edges = (
            (0, before >= 0, node_of[np.maximum(before, 0)], gap_ns + extra),
            (1, launched, np.maximum(launch, 0), latency_ns + extra),
            (2, is_late, node_of[np.maximum(other, 0)], starts - other_end + extra),
            (3, is_earlier & ~is_arrival, node_of[np.maximum(other, 0)], np.zeros(rows.size, np.int64)),
            (2, is_earlier & is_arrival, node_of[np.maximum(other, 0)], np.zeros(rows.size, np.int64)),
            (0, is_free, np.zeros(rows.size, np.int64), starts - self.begin),
        )
        for column, holds, source, weight in edges:
            sources[node[holds], column] = source[holds]
            weights[node[holds], column] = (weight + length)[holds]

    def _stream_order(self, rows: Array) -> tuple[Array, Array]:
        """Return the row of the work before each one on its stream, -1 for none, and its end."""
        stream = self.work["stream"].fill_null(-1).to_numpy()[rows]
        device = self.work["device_id"].to_numpy()[rows].astype(np.int64)
        order = np.lexsort((self.starts[rows], stream, device))
        follows = (np.diff(stream[order]) == 0) & (np.diff(device[order]) == 0)
        before = np.full(rows.size, -1, np.int64)
        before[order[1:][follows]] = rows[order[:-1][follows]]
        return before, np.where(before >= 0, self.ends[np.maximum(before, 0)], NEVER)

    def _launch_nodes(self, nodes: _Nodes, rank: int, call: Array) -> Array:
        """Return the node of the launch of each piece of work, by the start of its call; -1 if it is not known."""
        points = np.flatnonzero((nodes.ranks == rank) & (nodes.kinds == LAUNCH))
        if not points.size:
            return np.full(call.size, -1, np.int64)
        place = np.minimum(np.searchsorted(nodes.times[points], call), points.size - 1)
        return np.where(nodes.times[points[place]] == call, points[place], -1)

    def _other_streams(self, rows: Array) -> tuple[Array, Array]:
        """Return the work that ended last before each start, and its end; -1 if there is none.

        It is that of another stream, unless nothing else ended since the work before it on its own stream.
        """
        by_end = rows[np.argsort(self.ends[rows], kind="stable")]
        place = np.searchsorted(self.ends[by_end], self.starts[rows], side="right") - 1
        stream = self.work["stream"].fill_null(-1).to_numpy()
        own = stream[by_end[np.maximum(place, 0)]] == stream[rows]
        place = np.where(own, place - 1, place)
        other = by_end[np.maximum(place, 0)]
        found = (place >= 0) & (self.starts[other] < self.starts[rows]) & (stream[other] != stream[rows])
        return np.where(found, other, -1), self.ends[other]

    def _connect_meetings(self, nodes: _Nodes, sources: Array, weights: Array) -> None:
        """Let a collective end on all ranks after the last arrival, by the shortest time that one of them took."""
        arrivals = np.flatnonzero(nodes.kinds == ARRIVAL)
        if not arrivals.size:
            return
        number = self.meeting[nodes.owners[arrivals]]
        order = np.lexsort((arrivals, number))
        arrivals, number = arrivals[order], number[order]
        same = np.flatnonzero(np.diff(number) == 0)
        sources[arrivals[same + 1], 3], weights[arrivals[same + 1], 3] = arrivals[same], 0
        last = {int(key): int(node) for key, node in zip(number, arrivals, strict=True)}
        length: dict[int, int] = {}
        for row in np.flatnonzero(self.meeting >= 0):
            key = int(self.meeting[row])
            latest = int(nodes.times[last[key]])
            length[key] = min(length.get(key, 1 << 60), max(0, int(self.ends[row]) - latest))
        for node in np.flatnonzero(nodes.kinds == WORK):
            key = int(self.meeting[nodes.owners[node]])
            if key >= 0:
                sources[node], weights[node] = 0, NEVER
                sources[node, 0], weights[node, 0] = (
                    last[key],
                    int(self.ends[nodes.owners[node]]) - int(nodes.times[last[key]]),
                )


def _leading_threads(trace: TraceView, calls: pl.DataFrame, steps: pl.DataFrame) -> list[int]:
    """Return threads that launch much of the work of their process, and those that train."""
    counts = calls.group_by("process_id", "thread_id").len()
    is_leading = pl.col("len") >= LEADS * pl.col("len").sum().over("process_id")
    training = (training_thread(trace, rank) for rank in steps["process_id"].unique())
    return sorted({*counts.filter(is_leading)["thread_id"], *training})


@dataclass(frozen=True, slots=True, eq=False)
class _Nodes:
    """Nodes in the order of a replay."""

    times: Array
    kinds: Array
    owners: Array
    ranks: Array
    waits: Array
    delays: Array
    maybe: Mask


def _typical(delays: Array, holds: Mask, otherwise: int) -> int:
    """Return the typical delay among those that ``holds`` marks."""
    known = delays[holds & (delays >= 0)]
    return int(np.percentile(known, TYPICAL)) if known.size else otherwise
