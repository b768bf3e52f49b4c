"""The machine: host threads with cores and GIL, streams with launch queues, copy engines, interconnect, disk."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from benchmarks.diagnosis.costs import Costs
from benchmarks.diagnosis.engine import Actor, Shared, Signal, Simulation
from benchmarks.diagnosis.record import DeviceSpan, Kind, Migration, Recorder, Span, ThreadFacts, Work

MICROSECOND = 1_000
MILLISECOND = 1_000_000
GIL_QUANTUM = 5 * MILLISECOND
"""CPython's switch interval: a thread that waits for the GIL asks for it after this time."""
CORE_QUANTUM = 4 * MILLISECOND
LAUNCH_LATENCY = 3 * MICROSECOND
"""From the end of a launch call to the earliest start of its work."""
LAUNCH_CALL = 4 * MICROSECOND
STREAM_GAP = 800
"""Least time between two pieces of work of one stream, in nanoseconds."""
MIGRATED_BYTES, PAGE_BYTES, MANAGED_ADDRESS = 65_536, 4_096, 0x7F_4000_0000
"""The driver moves blocks of managed memory: a fault of one page brings its neighbours."""
QUEUE_LENGTH = 1_024
"""Pieces of work that a stream holds before a launch blocks."""


@dataclass(slots=True)
class Task:
    """Device work in a queue."""

    work: Work
    name: str
    ns: int
    done: Signal
    correlation: int = 0
    launched: int = 0
    after: tuple[Signal, ...] = ()
    meeting: Meeting | None = None
    bytes: int = 0
    pinned: bool = True
    grid: int = 1
    block: int = 128
    graph: int | None = None
    node: int = 0
    operation: str = "allreduce"
    migrations: int = 0
    """Migrations of managed memory during the work: the device touches pages that the host has."""


class Meeting:
    """A collective: no rank passes before all of its members have come, and it takes each of them the same time."""

    def __init__(self, simulation: Simulation, members: tuple[int, ...], ns: int) -> None:
        self.ns = ns
        self.members = members
        self._missing = len(members)
        self._complete = simulation.signal()

    def join(self) -> Actor:
        """Wait for the other ranks."""
        self._missing -= 1
        if not self._missing:
            self._complete.fire()
        yield self._complete


@dataclass(slots=True, eq=False)
class Stream:
    """Work of a device in order. :meth:`run` is its actor."""

    rank: int
    number: int
    machine: Machine
    queue: deque[Task] = field(default_factory=deque)
    last: Signal | None = None
    arrival: Signal | None = None
    room: Signal | None = None

    def add(self, task: Task) -> None:
        """Queue a task."""
        self.queue.append(task)
        self.last = task.done
        if self.arrival is not None:
            self.arrival.fire()

    def run(self) -> Actor:
        """Do the tasks in order, for ever."""
        simulation, free = self.machine.simulation, 0
        while True:
            if not self.queue:
                self.arrival = simulation.signal()
                yield self.arrival
            task = self.queue[0]
            yield from task.after
            earliest = max(free, task.launched + LAUNCH_LATENCY)
            if simulation.now < earliest:
                yield earliest - simulation.now
            engine = self.machine.engines[self.rank, task.work] if task.work.is_copy else None
            if engine is not None and not engine.try_hold(self):
                yield from engine.hold(self)
            start = simulation.now
            if task.meeting is not None:
                yield from task.meeting.join()
            yield task.ns
            self.machine.record_device(self, task, start)
            if engine is not None:
                engine.release(self)
            self.queue.popleft()
            if self.room is not None:
                self.room.fire()
            task.done.fire()
            free = simulation.now + STREAM_GAP


class Machine:
    """All resources of a world and the recorder of what happens on them."""

    def __init__(self, costs: Costs, ranks: int, cores: int, *, keeps: bool = True) -> None:
        self.simulation = Simulation()
        self.costs = costs
        self.ranks = ranks
        self.recorder = Recorder(keeps)
        self.cores = [Shared(self.simulation, cores, CORE_QUANTUM) for _ in range(ranks)]
        self.disks = [Shared(self.simulation, 1, 0) for _ in range(ranks)]
        self.engines = {
            (rank, work): Shared(self.simulation, 1, 0) for rank in range(ranks) for work in Work if work.is_copy
        }
        self._correlations = [0] * ranks
        self._meetings: dict[tuple[str, int], Meeting] = {}

    def stream(self, rank: int, number: int) -> Stream:
        """Return a new stream whose actor runs."""
        stream = Stream(rank, number, self)
        self.simulation.start(stream.run())
        return stream

    def next_correlation(self, rank: int) -> int:
        """Return a number for a call and its device work; each process counts its own."""
        self._correlations[rank] += 1
        return self._correlations[rank]

    def meeting(self, name: str, index: int, mean_ns: float, members: tuple[int, ...] = ()) -> Meeting:
        """Return the collective of this name and number. The first rank that asks draws its cost.

        ``members`` are the ranks that meet; all, if none are given.
        """
        key = name, index
        if key not in self._meetings:
            members = members or tuple(range(self.ranks))
            self._meetings[key] = Meeting(self.simulation, members, self.costs.draw(name, mean_ns))
        return self._meetings[key]

    def end_program(self) -> None:
        """Note that the program of a rank ends now."""
        self.recorder.end = self.simulation.now

    def record_device(self, stream: Stream, task: Task, start: int) -> None:
        """Record a task that ends now."""
        self.recorder.end = self.simulation.now
        if not self.recorder.keeps:
            return
        meets_some = task.meeting is not None and len(task.meeting.members) < self.ranks
        span = DeviceSpan(
            rank=stream.rank,
            stream=stream.number,
            work=task.work,
            name=task.name,
            start=start,
            end=self.simulation.now,
            correlation=task.correlation,
            bytes=task.bytes,
            pinned=task.pinned,
            grid=task.grid,
            block=task.block,
            graph=task.graph,
            node=task.node,
            operation=task.operation,
            members=task.meeting.members if task.meeting is not None and meets_some else (),
        )
        self.recorder.device.append(span)
        if task.migrations:
            self.record_migrations(stream.rank, start, self.simulation.now, task.migrations, to_device=True)

    def record_migrations(self, rank: int, start: int, end: int, count: int, *, to_device: bool) -> None:
        """Record migrations of managed memory at equal distances in an interval. Each follows a page fault."""
        if not self.recorder.keeps:
            return
        period = (end - start) / count
        for index in range(count):
            first, last = start + round((index + 0.5) * period), start + round((index + 1) * period)
            address = MANAGED_ADDRESS + index * MIGRATED_BYTES
            faults = MIGRATED_BYTES // PAGE_BYTES if to_device else 1
            self.recorder.migrations.append(Migration(rank, to_device, first, last, MIGRATED_BYTES, faults, address))


class Thread:
    """A host thread. Its methods are actors: the caller runs them with ``yield from``.

    Args:
        machine: The machine.
        rank: Its rank.
        number: Number of the thread in its rank.
        name: Its name.
        gil: The GIL of its process; ``None`` for a thread that never runs Python.
        process: Number of its process in the rank: 0 is the program, others are loader processes.
        slower: Factor on its own work.
    """

    def __init__(
        self,
        machine: Machine,
        rank: int,
        number: int,
        name: str,
        gil: Shared | None,
        *,
        process: int = 0,
        slower: float = 1,
    ) -> None:
        self.machine, self.simulation = machine, machine.simulation
        self.rank, self.number, self.gil, self.slower = rank, number, gil, slower
        self.cores = machine.cores[rank]
        machine.recorder.threads.append(ThreadFacts(rank, number, name, process))

    @property
    def now(self) -> int:
        """Time of the simulation."""
        return self.simulation.now

    def cost(self, use: str, mean_ns: float) -> int:
        """Draw a cost of this rank."""
        return self.machine.costs.draw(f"{self.rank}/{use}", mean_ns * self.slower)

    def record(self, kind: Kind, name: str, start: int, correlation: int = 0, *, end: int | None = None) -> None:
        """Record a span of this thread. It ends now unless another end is given."""
        if self.machine.recorder.keeps:
            end = self.simulation.now if end is None else end
            self.machine.recorder.spans.append(Span(self.rank, self.number, kind, name, start, end, correlation))

    def work(self, ns: int) -> Actor:
        """Compute for this time on a core, with the GIL if the thread has one."""
        while ns > 0:
            if self.gil is not None and not self.gil.try_hold(self):
                yield from self.take_gil()
            if not self.cores.try_hold(self):
                yield from self.cores.hold(self)
            part = min(ns, CORE_QUANTUM)
            yield part
            ns -= part

    def take_gil(self) -> Actor:
        """Wait for the GIL while another thread has it."""
        if self.gil is None or self.gil.try_hold(self):
            return
        self.cores.release(self)
        start = self.now
        yield from self.gil.hold(self)
        for begin in range(start, self.now, GIL_QUANTUM):  # CPython asks again after each of them
            self.record(Kind.OS, "pthread_cond_timedwait", begin, end=min(begin + GIL_QUANTUM, self.now))

    def leave(self) -> None:
        """Release core and GIL, before waiting."""
        self.cores.release(self)
        if self.gil is not None:
            self.gil.release(self)

    def wait(self, signal: Signal, call: str = "") -> Actor:
        """Wait for a signal without core and GIL, in a call of the operating system if there is a name."""
        start = self.now
        self.leave()
        yield signal
        if call and self.now > start:
            self.record(Kind.OS, call, start)

    def pause(self, ns: int, call: str) -> Actor:
        """Let time pass in a call of the operating system."""
        start = self.now
        self.leave()
        yield ns
        self.record(Kind.OS, call, start)

    def read_disk(self, ns: int, call: str = "read") -> Actor:
        """Use the disk for this time. Others wait for it."""
        start = self.now
        self.leave()
        disk = self.machine.disks[self.rank]
        yield from disk.hold(self)
        yield ns
        disk.release(self)
        self.record(Kind.OS, call, start)

    def launch(
        self,
        stream: Stream,
        work: Work,
        name: str,
        ns: int,
        *,
        call: str = "cudaLaunchKernel",
        call_ns: int = LAUNCH_CALL,
        after: tuple[Signal, ...] = (),
        meeting: Meeting | None = None,
        size: int = 0,
        pinned: bool = True,
        grid: int = 1_024,
        graph: int | None = None,
        operation: str = "allreduce",
        migrations: int = 0,
    ) -> Actor:
        """Call the runtime to queue device work. Pageable copies block until they are done."""
        start, correlation = self.now, self.machine.next_correlation(self.rank)
        yield from self.work(call_ns)
        while len(stream.queue) >= QUEUE_LENGTH:
            stream.room = self.simulation.signal()
            yield stream.room
        done = self.simulation.signal()
        stream.add(
            Task(
                work,
                name,
                ns,
                done,
                correlation,
                self.now,
                after,
                meeting,
                size,
                pinned,
                grid,
                graph=graph,
                operation=operation,
                migrations=migrations,
            )
        )
        if work.is_copy and not pinned:
            yield done
        self.record(Kind.API, call, start, correlation)

    def launch_graph(self, graph: int, call_ns: int, nodes: Iterable[tuple[Stream, Task]]) -> Actor:
        """Launch a graph: one call queues all of its work."""
        start, correlation = self.now, self.machine.next_correlation(self.rank)
        yield from self.work(call_ns)
        for node, (stream, task) in enumerate(nodes):
            task.graph, task.node, task.correlation, task.launched = graph, node, correlation, self.now
            stream.add(task)
        self.record(Kind.API, "cudaGraphLaunch", start, correlation)

    def synchronize(self, stream: Stream, call: str = "cudaStreamSynchronize") -> Actor:
        """Wait for all work of a stream, without the GIL. The caller takes it again when the call has returned."""
        start = self.now
        yield from self.work(MICROSECOND)
        if stream.last is not None and not stream.last.fired:
            if self.gil is not None:
                self.gil.release(self)
            yield stream.last
        yield from self.cores.hold(self)
        yield MICROSECOND
        self.record(Kind.API, call, start, self.machine.next_correlation(self.rank))

    def call(self, name: str, ns: int) -> Actor:
        """Spend time in a call of the runtime that launches nothing."""
        start = self.now
        yield from self.work(ns)
        self.record(Kind.API, name, start, self.machine.next_correlation(self.rank))
