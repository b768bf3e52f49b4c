"""Training ranks: each step takes a batch, runs forward, backward and the optimizer, and reads its loss."""

from __future__ import annotations

from random import Random

from benchmarks.diagnosis import names
from benchmarks.diagnosis.costs import Costs
from benchmarks.diagnosis.engine import Actor, Shared, Signal
from benchmarks.diagnosis.knobs import Knob
from benchmarks.diagnosis.loader import Loader
from benchmarks.diagnosis.machine import GIL_QUANTUM, MICROSECOND, MILLISECOND, Machine, Thread
from benchmarks.diagnosis.model import COPY_STREAM, PAGEABLE_RATE, PINNED_RATE, Model
from benchmarks.diagnosis.parallel import order_passes
from benchmarks.diagnosis.record import Kind, Record, Span, ThreadFacts, Work
from benchmarks.diagnosis.worlds import GRAPH_STEPS, MIGRATION_NS, World

BATCH_NS = 150 * MICROSECOND
"""Time to copy a healthy batch of a step to the device."""
HOGS = 6
"""Threads of other programs that want a core."""
ALLOCATIONS = 4
CAUSES_EVERY = 4
"""Steps from one new shape to the next, if shapes change."""
INSTANTIATE_NS = 2 * MILLISECOND
"""Time to make an executable graph of a healthy program."""
HELPERS = (("pt_nccl_watchdg", "pthread_cond_timedwait"), ("tb_writer", "clock_nanosleep"))
"""Threads that sleep most of the time, and their calls of the operating system."""
FIRST_HELPER = 30
"""Number of the first of them."""
MOST_SLEEPS = 300


def train(world: World, *, keeps: bool = True) -> Record:
    """Run a training program and return what happened; without ``keeps`` only its end."""
    machine = Machine(Costs(world.seed, world.spread), world.ranks, world.cores, keeps=keeps)
    for rank in range(world.ranks):
        machine.simulation.start(_Rank(machine, world, rank).run())
    machine.simulation.run()
    if keeps:
        _add_helpers(machine, world)
    return machine.recorder.finish(world.ranks)


def _add_helpers(machine: Machine, world: World) -> None:
    """Add the sleeps of threads that do nothing else. They change no time of the others."""
    recorder = machine.recorder
    for rank in range(world.ranks):
        for number, (name, call) in enumerate(HELPERS[: world.helpers], start=FIRST_HELPER):
            recorder.threads.append(ThreadFacts(rank, number, name, 0))
            drawn = Random(f"{world.seed}/{rank}/{name}").uniform(1, 30) * MILLISECOND
            period = max(round(drawn), recorder.end // MOST_SLEEPS)
            recorder.spans += [
                Span(rank, number, Kind.OS, call, start, start + period - 5 * MICROSECOND)
                for start in range(0, recorder.end - period, period)
            ]


class _Rank:
    """One process with a device."""

    def __init__(self, machine: Machine, world: World, rank: int) -> None:
        self.machine, self.world, self.rank = machine, world, rank
        simulation = machine.simulation
        gil = Shared(simulation, 1, GIL_QUANTUM)
        self.main = Thread(machine, rank, 1, "python", gil)
        self.model = Model(machine, world, rank, self.main)
        self.order = order_passes(world, self.model.place.stage)
        self.copier = Thread(machine, rank, 4, "prefetcher", None) if world.prefetches else None
        self.copy_stream = machine.stream(rank, COPY_STREAM)
        # The first stage needs the inputs, the last one their labels.
        takes_batches = self.model.place.before is None or self.model.place.after is None
        self.loader = Loader(machine, world, rank, world.steps * world.micro_batches) if takes_batches else None
        self.has_graph = world.graphs and world.steps < GRAPH_STEPS
        self.over = False
        if Knob.GIL in world.strengths:
            simulation.start(self._keep_gil(Thread(machine, rank, 3, "metrics", gil)))
        if Knob.OTHER_PROGRAMS in world.strengths:
            for hog in range(HOGS):
                simulation.start(self._keep_core(f"hog {hog}"))

    def run(self) -> Actor:
        """Start up, run all steps, and end."""
        yield from self._start_up()
        every = max(3, self.world.steps // 3)
        for index in range(self.world.steps):
            start = self.main.now
            yield from self._step(index)
            self.main.record(Kind.STEP, f"ProfilerStep#{index}", start)
            if (index + 1) % every == 0:
                yield from self._save(every)
                yield from self._validate(every)
        self.over = True
        self.main.leave()
        self.machine.end_program()

    def _start_up(self) -> Actor:
        added = self.world.added_ns(Knob.START_UP)
        if added:
            yield from self.model.python("<frozen importlib._bootstrap>(1349): _find_and_load", 0.7 * added)
            start = self.main.now
            yield from self.main.read_disk(self.main.cost("weights", 0.3 * added))
            self.main.record(Kind.PYTHON, "torch/serialization.py(1291): load", start)

    def _step(self, index: int) -> Actor:
        world, main, model = self.world, self.main, self.model
        if world.graphs:
            yield from self._take_batch()
            yield from self._interruptions(index)
            yield from self._graph_passes(index)
        else:
            backward_left = world.micro_batches
            for number, is_forward in enumerate(self.order):
                if is_forward:
                    yield from self._take_batch()
                    if number == 0:
                        yield from self._interruptions(index)
                    yield from model.forward()
                else:
                    backward_left -= 1
                    yield from model.backward(is_last=not backward_left)
        yield from self._exchange_on_host(index)
        start = main.now
        for _ in range(2):
            ns = model.kernel_ns("optimizer", 0.1 * world.kernel_ns * world.layers)
            yield from model.operator(main, "aten::_fused_adamw_", names.OPTIMIZER, ns)
        main.record(Kind.RANGE, "Optimizer.step#AdamW.step", start)
        yield from model.read_result(main)
        for _ in range(ALLOCATIONS if Knob.ALLOCATION in world.strengths else 0):
            yield from main.call("cudaFree", main.cost("free", world.added_ns(Knob.ALLOCATION) / (2 * ALLOCATIONS)))
        yield from self._log()

    def _graph_passes(self, index: int) -> Actor:
        """Run both passes as a graph. The program captures it after its first step, or whenever shapes are new."""
        world, model = self.world, self.model
        if Knob.GRAPH_CAPTURE in world.strengths and index % CAUSES_EVERY == CAUSES_EVERY // 2:
            added = CAUSES_EVERY * world.added_ns(Knob.GRAPH_CAPTURE) - world.pass_host_ns
            yield from model.capture(self.main.cost("new shape", max(INSTANTIATE_NS, added)))
        if not self.has_graph and index:
            yield from model.capture(self.main.cost("instantiate", INSTANTIATE_NS))
            self.has_graph = True
        if self.has_graph:
            yield from model.launch_graph()
        else:
            yield from model.forward()
            yield from model.backward(is_last=True)

    def _take_batch(self) -> Actor:
        """Take the batch of a pass and copy it, in this thread or in the one that copies."""
        if self.loader is None:
            return
        yield from self.loader.take(self.main)
        world, passes = self.world, self.world.micro_batches
        slow = world.added_to_pass(Knob.INPUT_COPY)
        rate = PAGEABLE_RATE if slow else PINNED_RATE
        ns = self.main.cost("batch", BATCH_NS / passes) + self.main.cost("batch/slow", slow)
        if self.copier is None:
            yield from self._copy_batch(self.main, ns, rate)
            return
        copied = self.machine.simulation.signal()
        self.machine.simulation.start(self._copy_on_thread(self.copier, ns, rate, copied))
        yield from self.main.wait(copied, "pthread_cond_wait")
        if self.copy_stream.last is not None:
            self.model.pending = (*self.model.pending, self.copy_stream.last)

    def _copy_batch(self, thread: Thread, ns: int, rate: int) -> Actor:
        stream = self.model.compute if thread is self.main else self.copy_stream
        is_pinned = rate == PINNED_RATE
        yield from self.model.copy(
            thread, "aten::to", Work.HOST_TO_DEVICE, ns, size=ns * rate, pinned=is_pinned, stream=stream
        )

    def _copy_on_thread(self, thread: Thread, ns: int, rate: int, copied: Signal) -> Actor:
        yield from self._copy_batch(thread, ns, rate)
        thread.leave()
        copied.fire()

    def _interruptions(self, index: int) -> Actor:
        """Causes between the batch and the forward pass, while the device has nothing to do."""
        world, main, python = self.world, self.main, self.model.python
        for _ in range(ALLOCATIONS if Knob.ALLOCATION in world.strengths else 0):
            yield from main.call("cudaMalloc", main.cost("malloc", world.added_ns(Knob.ALLOCATION) / (2 * ALLOCATIONS)))
        if Knob.STREAM_CREATION in world.strengths:
            half = world.added_ns(Knob.STREAM_CREATION) / 2
            yield from main.call("cudaStreamCreateWithFlags", main.cost("create", half))
            yield from main.call("cudaStreamDestroy", main.cost("destroy", half))
        if Knob.COMPILATION in world.strengths and index % CAUSES_EVERY == CAUSES_EVERY // 2:
            start = main.now
            added = CAUSES_EVERY * world.added_ns(Knob.COMPILATION)
            yield from python("torch/_inductor/compile_fx.py(1150): compile_fx", added)
            main.record(Kind.RANGE, "_compile.compile_inner (dynamo_timed)", start)
        for knob, call, function in (
            (Knob.SLEEP, "clock_nanosleep", "<built-in function sleep>"),
            (Knob.LOCK, "pthread_cond_wait", "<built-in method acquire of _thread.lock object at 0x7f21c5d0>"),
            (Knob.CHILD_PROCESSES, "wait4", "subprocess.py(2011): _wait"),
        ):
            if knob in world.strengths:
                start = main.now
                yield from main.pause(main.cost(knob, world.added_ns(knob)), call)
                main.record(Kind.PYTHON, function, start)
        yield from python("<built-in function collect>", world.added_ns(Knob.GARBAGE_COLLECTION))
        slow_rank = Random(f"{world.seed}/uneven/{index}").randrange(world.ranks)
        if slow_rank == self.rank:
            yield from python("augment.py(77): augment", world.added_ns(Knob.UNEVEN_RANKS))
        if Knob.MANAGED_MEMORY in world.strengths:
            yield from self._touch_managed_memory()

    def _touch_managed_memory(self) -> Actor:
        """Change an array that the device used last: its pages come one by one, and go back in the next kernel."""
        start, added = self.main.now, self.world.added_ns(Knob.MANAGED_MEMORY)
        yield from self.model.python("table.py(64): update_rows", 0.7 * added)
        count = max(1, (self.main.now - start) // MIGRATION_NS)
        self.machine.record_migrations(self.rank, start, self.main.now, count, to_device=False)
        self.model.page_faults_ns = self.main.cost("page faults", 0.3 * added)

    def _exchange_on_host(self, index: int) -> Actor:
        if Knob.HOST_COLLECTIVES not in self.world.strengths:
            return
        start = self.main.now
        meeting = self.machine.meeting("host", index, self.world.added_ns(Knob.HOST_COLLECTIVES))
        yield from self.main.synchronize(self.model.compute)
        self.main.leave()
        yield from meeting.join()
        yield from self.main.pause(meeting.ns, "recvmsg")
        self.main.record(Kind.RANGE, "gloo:all_reduce", start)

    def _log(self) -> Actor:
        added = self.world.added_ns(Knob.LOGGING)
        if added:
            start = self.main.now
            yield from self.main.work(self.main.cost("format", added / 2))
            yield from self.main.pause(self.main.cost("write", added / 2), "write")
            self.main.record(Kind.PYTHON, "logging/__init__.py(1011): emit", start)
            self.main.record(Kind.RANGE, "log_metrics", start)

    def _save(self, every: int) -> Actor:
        added = every * self.world.added_ns(Knob.CHECKPOINT)
        if added:
            start, ns = self.main.now, round(0.2 * added)
            yield from self.model.copy(
                self.main, "aten::copy_", Work.DEVICE_TO_HOST, ns, size=ns * PAGEABLE_RATE, pinned=False
            )
            yield from self.main.work(self.main.cost("pickle", 0.2 * added))
            yield from self.main.pause(self.main.cost("save", 0.6 * added), "write")
            self.main.record(Kind.PYTHON, "torch/serialization.py(944): save", start)
            self.main.record(Kind.RANGE, "save_checkpoint", start)

    def _validate(self, every: int) -> Actor:
        added = every * self.world.added_ns(Knob.EVALUATION)
        if added:
            start = self.main.now
            forward_ns = self.world.device_ns / (3 * self.world.micro_batches)
            for _ in range(max(1, round(added / forward_ns))):
                yield from self.model.forward()
            yield from self.model.read_result(self.main)
            self.main.record(Kind.RANGE, "validation", start)

    def _keep_gil(self, thread: Thread) -> Actor:
        """Compute in Python next to the training thread, for the share of time that is the strength."""
        while not self.over:
            start = thread.now
            yield from thread.work(20 * MILLISECOND)
            thread.record(Kind.PYTHON, "metrics.py(30): aggregate", start)
            yield from thread.pause(
                max(1, round(20 * MILLISECOND * max(0.0, 1 / self.world.strengths[Knob.GIL] - 1))), "clock_nanosleep"
            )
        thread.leave()

    def _keep_core(self, name: str) -> Actor:
        """Compute in another program."""
        cores = self.machine.cores[self.rank]
        while not self.over:
            yield from cores.hold(name)
            yield MILLISECOND
        cores.release(name)
