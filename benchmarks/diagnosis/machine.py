"""The machine: host threads with cores and GIL, streams with launch queues, copy engines, interconnect, disk."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from benchmarks.diagnosis.costs import Costs
from benchmarks.diagnosis.engine import Actor, Shared, Signal, Simulation
from benchmarks.diagnosis.record import DeviceSpan, Kind, Recorder, Span, ThreadFacts, Work

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
QUEUE_LENGTH = 1_024
"""Pieces of work that a stream holds before a launch blocks."""


@dataclass(slots=True)
class Task:
    """Device work in a queue."""

    work: Work
    name: str
    ns: int
    done: Signal
    correlation: int
    launched: int
    after: tuple[Signal, ...] = ()
    meeting: Meeting | None = None
    bytes: int = 0
    pinned: bool = True
    grid: int = 1
    block: int = 128


class Meeting:
    """A collective of all ranks: none passes before all have come, and it takes each of them the same time."""

    def __init__(self, simulation: Simulation, ranks: int, ns: int) -> None:
        self.ns = ns
        self._missing = ranks
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
        simulation = self.machine.simulation
        while True:
            if not self.queue:
                self.arrival = simulation.signal()
                yield self.arrival
            task = self.queue[0]
            yield from task.after
            yield max(0, task.launched + LAUNCH_LATENCY - simulation.now)
            if task.work.is_copy:
                yield from self.machine.engines[self.rank, task.work].hold(self)
            start = simulation.now
            if task.meeting is not None:
                yield from task.meeting.join()
            yield task.ns
            self.machine.record_device(self, task, start)
            if task.work.is_copy:
                self.machine.engines[self.rank, task.work].release(self)
            self.queue.popleft()
            if self.room is not None:
                self.room.fire()
            task.done.fire()
            yield STREAM_GAP


class Machine:
    """All resources of a world and the recorder of what happens on them."""

    def __init__(self, costs: Costs, ranks: int, cores: int) -> None:
        self.simulation = Simulation()
        self.costs = costs
        self.ranks = ranks
        self.recorder = Recorder()
        self.cores = [Shared(self.simulation, cores, CORE_QUANTUM) for _ in range(ranks)]
        self.disks = [Shared(self.simulation, 1, 0) for _ in range(ranks)]
        self.engines = {
            (rank, work): Shared(self.simulation, 1, 0) for rank in range(ranks) for work in Work if work.is_copy
        }
        self.last_correlation = 0
        self._meetings: dict[tuple[str, int], Meeting] = {}

    def stream(self, rank: int, number: int) -> Stream:
        """Return a new stream whose actor runs."""
        stream = Stream(rank, number, self)
        self.simulation.start(stream.run())
        return stream

    def next_correlation(self) -> int:
        """Return a number for a call and its device work."""
        self.last_correlation += 1
        return self.last_correlation

    def meeting(self, name: str, index: int, mean_ns: float) -> Meeting:
        """Return the collective of this name and number. The first rank that asks draws its cost."""
        key = name, index
        if key not in self._meetings:
            self._meetings[key] = Meeting(self.simulation, self.ranks, self.costs.draw(name, mean_ns))
        return self._meetings[key]

    def record_device(self, stream: Stream, task: Task, start: int) -> None:
        """Record a task that ends now."""
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
        )
        self.recorder.device.append(span)


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

    def record(self, kind: Kind, name: str, start: int, correlation: int = 0) -> None:
        """Record a span of this thread that ends now."""
        self.machine.recorder.spans.append(Span(self.rank, self.number, kind, name, start, self.now, correlation))

    def work(self, ns: int) -> Actor:
        """Compute for this time on a core, with the GIL if the thread has one."""
        while ns > 0:
            yield from self.take_gil()
            yield from self.cores.hold(self)
            part = min(ns, CORE_QUANTUM)
            yield part
            ns -= part

    def take_gil(self) -> Actor:
        """Wait for the GIL while another thread has it."""
        if self.gil is None:
            return
        if self.gil.would_wait(self):
            self.cores.release(self)
            start = self.now
            yield from self.gil.hold(self)
            for begin in range(start, self.now, GIL_QUANTUM):  # CPython asks again after each of them
                end = min(begin + GIL_QUANTUM, self.now)
                span = Span(self.rank, self.number, Kind.OS, "pthread_cond_timedwait", begin, end)
                self.machine.recorder.spans.append(span)
        yield from self.gil.hold(self)

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
    ) -> Actor:
        """Call the runtime to queue device work. Pageable copies block until they are done."""
        start, correlation = self.now, self.machine.next_correlation()
        yield from self.work(call_ns)
        while len(stream.queue) >= QUEUE_LENGTH:
            stream.room = self.simulation.signal()
            yield stream.room
        done = self.simulation.signal()
        task = Task(work, name, ns, done, correlation, self.now, after, meeting, size, pinned, grid)
        stream.add(task)
        if work.is_copy and not pinned:
            yield done
        self.record(Kind.API, call, start, correlation)

    def enqueue(self, stream: Stream, work: Work, name: str, ns: int) -> None:
        """Queue device work of the graph that the last call launched."""
        signal = self.simulation.signal()
        stream.add(Task(work, name, ns, signal, self.machine.last_correlation, self.now, grid=1_024))

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
        self.record(Kind.API, call, start, self.machine.next_correlation())

    def call(self, name: str, ns: int) -> Actor:
        """Spend time in a call of the runtime that launches nothing."""
        start = self.now
        yield from self.work(ns)
        self.record(Kind.API, name, start, self.machine.next_correlation())
