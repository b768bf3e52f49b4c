"""A serving engine: requests arrive, and each iteration prefills new ones or decodes a token for all that run."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.diagnosis import names
from benchmarks.diagnosis.costs import Costs
from benchmarks.diagnosis.engine import Actor, Shared, Signal
from benchmarks.diagnosis.knobs import Knob
from benchmarks.diagnosis.machine import GIL_QUANTUM, MICROSECOND, Machine, Stream, Task, Thread
from benchmarks.diagnosis.record import Kind, Record, Work
from benchmarks.diagnosis.worlds import World

TOKENS = 6
"""Tokens of each answer."""
MOST_RUNNING = 4
"""Requests that the engine decodes at once."""


def serve(world: World, *, keeps: bool = True) -> Record:
    """Run a serving engine until all requests are answered, and return what happened, or its end only."""
    machine = Machine(Costs(world.seed, world.spread), 1, world.cores, keeps=keeps)
    engine = _Engine(machine, world)
    machine.simulation.start(engine.arrive())
    machine.simulation.start(engine.run())
    machine.simulation.run()
    return machine.recorder.finish(1)


class _Engine:
    def __init__(self, machine: Machine, world: World) -> None:
        self.machine, self.world = machine, world
        self.main = Thread(machine, 0, 1, "EngineCore", Shared(machine.simulation, 1, GIL_QUANTUM))
        self.stream = machine.stream(0, 7)
        self.waiting = 0
        self.arrived = 0
        self.arrival: Signal | None = None

    def arrive(self) -> Actor:
        """Let requests arrive. Healthy engines always have some that wait."""
        for _ in range(self.world.steps):
            yield self.machine.costs.draw("arrival", self.world.added_ns(Knob.FEW_REQUESTS) * TOKENS)
            self.waiting += 1
            self.arrived += 1
            if self.arrival is not None:
                self.arrival.fire()

    def run(self) -> Actor:
        """Answer all requests."""
        running: list[int] = []
        while self.waiting or running or self.arrived < self.world.steps:
            if not self.waiting and not running:
                yield from self._wait_for_request()
                continue
            yield from self._schedule()
            start = self.main.now
            if self.waiting and len(running) < MOST_RUNNING:
                self.waiting -= 1
                running.append(TOKENS)
                yield from self._prefill()
            else:
                running = [left - 1 for left in running if left > 1]
                yield from self._decode()
            yield from self._sample()
            self.main.record(Kind.RANGE, "execute_model", start)
        self.main.leave()
        self.machine.end_program()

    def _wait_for_request(self) -> Actor:
        start = self.main.now
        self.arrival = self.machine.simulation.signal()
        yield from self.main.wait(self.arrival, "epoll_wait")
        self.main.record(Kind.PYTHON, "queue.py(154): get", start)

    def _schedule(self) -> Actor:
        start, mean = self.main.now, 40 * MICROSECOND + self.world.added_ns(Knob.SCHEDULER)
        yield from self.main.work(self.main.cost("schedule", mean))
        self.main.record(Kind.PYTHON, "vllm/v1/core/sched/scheduler.py(160): schedule", start)

    def _prefill(self) -> Actor:
        world = self.world
        for _ in range(world.layers):
            for position in range(world.operators):
                name, kernel, _ = names.OPERATORS[position % len(names.OPERATORS)]
                start = self.main.now
                yield from self.main.work(self.main.cost("operator", world.operator_ns))
                ns = self.main.cost("prefill", 3 * world.kernel_ns)
                yield from self.main.launch(self.stream, Work.KERNEL, kernel, ns)
                self.main.record(Kind.OPERATOR, name, start)

    def _decode(self) -> Actor:
        """Launch one graph that decodes a token of every request."""
        yield from self.main.launch_graph(1, 10 * MICROSECOND, self._nodes())

    def _nodes(self) -> Iterator[tuple[Stream, Task]]:
        world = self.world
        for position in range(world.layers * world.operators):
            _, kernel, _ = names.OPERATORS[position % world.operators]
            ns = self.main.cost("decode", 3 * world.kernel_ns)
            yield self.stream, Task(Work.KERNEL, kernel, ns, self.machine.simulation.signal(), grid=1_024)

    def _sample(self) -> Actor:
        start = self.main.now
        yield from self.main.launch(
            self.stream, Work.DEVICE_TO_HOST, "", 1_500, call="cudaMemcpyAsync", size=32, pinned=True
        )
        yield from self.main.synchronize(self.stream)
        self.main.record(Kind.OPERATOR, "aten::_local_scalar_dense", start)
        yield from self.main.take_gil()
