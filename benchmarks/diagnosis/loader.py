"""Loaders: the program itself, or processes with a queue of batches."""

from __future__ import annotations

from collections import deque

from benchmarks.diagnosis.engine import Actor, Shared, Signal
from benchmarks.diagnosis.knobs import Knob
from benchmarks.diagnosis.machine import GIL_QUANTUM, MICROSECOND, Machine, Thread
from benchmarks.diagnosis.record import Kind
from benchmarks.diagnosis.worlds import World

PREFETCH = 2
"""Batches that each loader process prepares in advance."""
SINGLE = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
MULTIPLE = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
FIRST_WORKER = 100
"""Number of the thread of the first loader process."""


class Loader:
    """Batches of one rank. :meth:`take` is called by the thread that trains."""

    def __init__(self, machine: Machine, world: World, rank: int, batches: int) -> None:
        self._world, self._simulation = world, machine.simulation
        # The first batch is there: a capture starts in the middle of a program.
        self._ready = 1 if world.workers else 0
        self._arrival: Signal | None = None
        self._room: deque[Signal] = deque()
        self._left = batches - self._ready
        for worker in range(world.workers):
            gil = Shared(machine.simulation, 1, GIL_QUANTUM)
            number = FIRST_WORKER + worker
            thread = Thread(machine, rank, number, "pt_data_worker", gil, process=1 + worker)
            machine.simulation.start(self._produce(thread))

    def take(self, thread: Thread) -> Actor:
        """Wait for a batch."""
        start = thread.now
        if not self._world.workers:
            yield from self._prepare(thread, share=1.0)
            thread.record(Kind.RANGE, SINGLE, start)
            return
        yield from thread.work(20 * MICROSECOND)
        if not self._ready:
            self._arrival = self._simulation.signal()
            yield from thread.wait(self._arrival, "poll")
        self._ready -= 1
        if self._room:
            self._room.popleft().fire()
        yield from thread.work(30 * MICROSECOND)
        thread.record(Kind.RANGE, MULTIPLE, start)

    def _prepare(self, thread: Thread, share: float) -> Actor:
        """Read, decode and collate one batch."""
        world, use = self._world, f"loader/{thread.number}"
        start = thread.now
        slow_disk, passes = world.added_to_pass(Knob.SLOW_DISK), world.micro_batches
        # Steps hide this much reading of other processes.
        hidden = world.device_ns / passes if slow_disk and world.workers else 0
        disk = 30 * MICROSECOND + slow_disk + hidden
        yield from thread.read_disk(thread.cost(f"{use}/disk", disk))
        thread.record(Kind.PYTHON, "dataset.py(41): read_record", start)
        start = thread.now
        slow = world.added_to_pass(Knob.SLOW_LOADER) + world.added_to_pass(Knob.SLOW_WORKERS) * share
        healthy = 0.02 * world.device_ns / passes
        yield from thread.work(thread.cost(f"{use}/healthy", healthy) + thread.cost(f"{use}/slow", slow))
        thread.record(Kind.PYTHON, "dataset.py(58): decode", start)

    def _produce(self, thread: Thread) -> Actor:
        world = self._world
        # The time of all workers together is one step and the strength: the steps wait for the strength.
        share = (
            world.workers * (1 + 1 / world.strengths[Knob.SLOW_WORKERS])
            if Knob.SLOW_WORKERS in world.strengths
            else 1.0
        )
        while self._left > 0:
            self._left -= 1
            yield from self._prepare(thread, share)
            while self._ready >= PREFETCH * world.workers:
                room = self._simulation.signal()
                self._room.append(room)
                yield from thread.wait(room, "futex")
            self._ready += 1
            if self._arrival is not None:
                self._arrival.fire()
        thread.leave()
