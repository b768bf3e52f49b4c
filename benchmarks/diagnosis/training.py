"""Training ranks: each step takes a batch, runs forward, backward and the optimizer, and reads its loss."""

from __future__ import annotations

from random import Random

from benchmarks.diagnosis import names
from benchmarks.diagnosis.costs import Costs
from benchmarks.diagnosis.engine import Actor, Shared, Signal
from benchmarks.diagnosis.knobs import Knob
from benchmarks.diagnosis.loader import Loader
from benchmarks.diagnosis.machine import GIL_QUANTUM, MICROSECOND, MILLISECOND, Machine, Thread
from benchmarks.diagnosis.record import Kind, Record, Work
from benchmarks.diagnosis.worlds import World

COMPUTE_STREAM, COMMUNICATION_STREAM = 7, 20
BATCH_NS = 150 * MICROSECOND
"""Time to copy a healthy batch to the device."""
PINNED_RATE, PAGEABLE_RATE, DEVICE_RATE, INTERCONNECT_RATE = 12, 4, 600, 100
"""Bytes per nanosecond of copies and collectives."""
HOGS = 6
"""Threads of other programs that want a core."""
COMMUNICATION = 0.08
"""Healthy time of gradients on the interconnect, as a share of device time: the backward pass hides most of it."""
ALLOCATIONS = 4


def train(world: World) -> Record:
    """Run a training program and return what happened."""
    machine = Machine(Costs(world.seed, world.spread), world.ranks, world.cores)
    for rank in range(world.ranks):
        machine.simulation.start(_Rank(machine, world, rank).run())
    machine.simulation.run()
    return machine.recorder.finish(world.ranks)


class _Rank:
    """One process with a device."""

    def __init__(self, machine: Machine, world: World, rank: int) -> None:
        self.machine, self.world, self.rank = machine, world, rank
        simulation = machine.simulation
        gil = Shared(simulation, 1, GIL_QUANTUM)
        self.main = Thread(machine, rank, 1, "python", gil)
        self.autograd = Thread(machine, rank, 2, f"pt_autograd_{rank}", None)
        self.compute = machine.stream(rank, COMPUTE_STREAM)
        self.communication = machine.stream(rank, COMMUNICATION_STREAM)
        self.loader = Loader(machine, world, rank, world.steps)
        self.over = False
        self.gradients: tuple[Signal, ...] = ()
        """The last collective of the backward pass: the next kernel waits for it."""
        if Knob.GIL in world.strengths:
            simulation.start(self._keep_gil(Thread(machine, rank, 3, "metrics", gil)))
        if Knob.OTHER_PROGRAMS in world.strengths:
            for hog in range(HOGS):
                simulation.start(self._keep_core(f"hog {hog}"))
        straggles = Knob.STRAGGLER in world.strengths and rank == world.ranks - 1
        self.kernel_factor = 1 + world.strengths[Knob.STRAGGLER] if straggles else 1.0
        self.is_first_use = Knob.FIRST_USE in world.strengths

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

    def _start_up(self) -> Actor:
        added = self.world.added_ns(Knob.START_UP)
        if added:
            yield from self._python("<frozen importlib._bootstrap>(1349): _find_and_load", 0.7 * added)
            start = self.main.now
            yield from self.main.read_disk(self.main.cost("weights", 0.3 * added))
            self.main.record(Kind.PYTHON, "torch/serialization.py(1291): load", start)

    def _step(self, index: int) -> Actor:
        world, main = self.world, self.main
        yield from self.loader.take(main)
        yield from self._copy_batch()
        yield from self._interruptions(index)
        for layer in range(world.layers):
            yield from self._forward_layer(main, layer)
        yield from self._backward(index)
        yield from self._exchange_on_host(index)
        start = main.now
        for _ in range(2):
            ns = self._kernel("optimizer", 0.2 * world.kernel_ns * world.layers / 2)
            yield from self._operator(main, "aten::_fused_adamw_", names.OPTIMIZER, ns)
        main.record(Kind.RANGE, "Optimizer.step#AdamW.step", start)
        yield from self._read_result(main)
        for _ in range(ALLOCATIONS if Knob.ALLOCATION in world.strengths else 0):
            yield from main.call("cudaFree", main.cost("free", world.added_ns(Knob.ALLOCATION) / (2 * ALLOCATIONS)))
        yield from self._log()

    def _copy_batch(self) -> Actor:
        slow = self.world.added_ns(Knob.INPUT_COPY)
        rate = PAGEABLE_RATE if slow else PINNED_RATE
        ns = self.main.cost("batch", BATCH_NS) + self.main.cost("batch/slow", slow)
        yield from self._copy(self.main, "aten::to", Work.HOST_TO_DEVICE, ns, size=ns * rate, pinned=not slow)

    def _interruptions(self, index: int) -> Actor:
        """Causes between the batch and the forward pass, while the device has nothing to do."""
        world, main = self.world, self.main
        for _ in range(ALLOCATIONS if Knob.ALLOCATION in world.strengths else 0):
            yield from main.call("cudaMalloc", main.cost("malloc", world.added_ns(Knob.ALLOCATION) / (2 * ALLOCATIONS)))
        if Knob.STREAM_CREATION in world.strengths:
            half = world.added_ns(Knob.STREAM_CREATION) / 2
            yield from main.call("cudaStreamCreateWithFlags", main.cost("create", half))
            yield from main.call("cudaStreamDestroy", main.cost("destroy", half))
        every = 4  # steps from one new shape to the next
        if Knob.COMPILATION in world.strengths and index % every == 2:
            start = main.now
            yield from self._python(
                "torch/_inductor/compile_fx.py(1150): compile_fx", every * world.added_ns(Knob.COMPILATION)
            )
            main.record(Kind.RANGE, "_compile.compile_inner (dynamo_timed)", start)
        if Knob.SLEEP in world.strengths:
            start = main.now
            yield from main.pause(main.cost("sleep", world.added_ns(Knob.SLEEP)), "clock_nanosleep")
            main.record(Kind.PYTHON, "<built-in function sleep>", start)
        if Knob.LOCK in world.strengths:
            start = main.now
            yield from main.pause(main.cost("lock", world.added_ns(Knob.LOCK)), "pthread_cond_wait")
            main.record(Kind.PYTHON, "<built-in method acquire of _thread.lock object at 0x7f21c5d0>", start)
        yield from self._python("<built-in function collect>", world.added_ns(Knob.GARBAGE_COLLECTION))
        slow_rank = Random(f"{world.seed}/uneven/{index}").randrange(world.ranks)
        if slow_rank == self.rank:
            yield from self._python("augment.py(77): augment", world.added_ns(Knob.UNEVEN_RANKS))

    def _forward_layer(self, thread: Thread, layer: int) -> Actor:
        world, start = self.world, thread.now
        parts = 2 * world.layers  # forward and backward of each layer
        yield from self._layer_copy(thread, Knob.OFFLOAD, Work.HOST_TO_DEVICE, parts, PINNED_RATE)
        for position in range(world.operators):
            name, kernel, _ = names.OPERATORS[position % len(names.OPERATORS)]
            yield from self._python(
                "model.py(112): route_tokens", world.added_ns(Knob.HOST_PYTHON) / (world.layers * world.operators)
            )
            yield from self._compute_operator(thread, name, kernel, 1)
            for _ in range(self._reads()):
                yield from self._read_result(thread)
            yield from self._small_kernels(thread)
        layout = world.added_ns(Knob.LAYOUT) / world.layers
        if layout:
            yield from self._operator(thread, "aten::cudnn_convolution", names.LAYOUT, self._kernel("layout", layout))
        yield from self._layer_copy(thread, Knob.DEVICE_COPIES, Work.DEVICE_TO_DEVICE, world.layers, DEVICE_RATE)
        yield from self._layer_copy(thread, Knob.RESULTS_TO_HOST, Work.DEVICE_TO_HOST, world.layers, PINNED_RATE)
        thread.record(Kind.PYTHON, f"nn.Module: Block_{layer}", start)

    def _reads(self) -> int:
        """Return how often the program reads a result after an operator."""
        strength = self.world.strengths.get(Knob.RESULT_READS)
        return 0 if strength is None else max(1, round(2 * strength))

    def _backward(self, index: int) -> Actor:
        """Let the thread of autograd launch the backward pass, and wait for it to have done so."""
        start = self.main.now
        yield from self.main.work(20 * MICROSECOND)
        launched = self.machine.simulation.signal()
        self.machine.simulation.start(self._backward_thread(index, launched))
        yield from self.main.wait(launched, "pthread_cond_wait")
        self.main.record(Kind.PYTHON, "torch/_tensor.py(570): backward", start)

    def _backward_thread(self, index: int, launched: Signal) -> Actor:
        world, thread = self.world, self.autograd
        reduced: list[Signal] = []
        for layer in reversed(range(world.layers)):
            yield from self._layer_copy(thread, Knob.OFFLOAD, Work.HOST_TO_DEVICE, 2 * world.layers, PINNED_RATE)
            for position in reversed(range(world.operators)):
                name, kernel, backward = names.OPERATORS[position % len(names.OPERATORS)]
                start = thread.now
                yield from self._compute_operator(thread, name.replace("linear", "mm"), kernel, 2)
                thread.record(Kind.OPERATOR, f"autograd::engine::evaluate_function: {backward}", start)
            if world.ranks > 1:
                yield from self._all_reduce(thread, index * world.layers + layer)
                if self.communication.last is not None:
                    reduced.append(self.communication.last)
        self.gradients = tuple(reduced[-1:])
        thread.leave()
        launched.fire()

    def _all_reduce(self, thread: Thread, index: int) -> Actor:
        world, start = self.world, thread.now
        slow = world.added_ns(Knob.INTERCONNECT)
        mean = (COMMUNICATION + (2 / 3 - COMMUNICATION if slow else 0)) * world.device_ns + slow
        meeting = self.machine.meeting("gradients", index, mean / world.layers)
        yield from thread.work(10 * MICROSECOND)
        yield from thread.launch(
            self.communication,
            Work.COLLECTIVE,
            names.ALL_REDUCE,
            meeting.ns,
            after=(self.compute.last,) if self.compute.last else (),
            meeting=meeting,
            size=meeting.ns * INTERCONNECT_RATE,
            grid=24,
        )
        thread.record(Kind.RANGE, "nccl:all_reduce", start)

    def _exchange_on_host(self, index: int) -> Actor:
        if Knob.HOST_COLLECTIVES not in self.world.strengths:
            return
        start = self.main.now
        meeting = self.machine.meeting("host", index, self.world.added_ns(Knob.HOST_COLLECTIVES))
        yield from self.main.synchronize(self.compute)
        self.main.leave()
        yield from meeting.join()
        yield from self.main.pause(meeting.ns, "recvmsg")
        self.main.record(Kind.RANGE, "gloo:all_reduce", start)

    def _compute_operator(self, thread: Thread, name: str, kernel: str, passes: int) -> Actor:
        world, factor, grid = self.world, float(passes), 2_048
        if kernel == names.HALF and Knob.SLOW_KERNELS in world.strengths:
            kernel, factor = names.FULL, factor * (1 + world.strengths[Knob.SLOW_KERNELS])
        if Knob.SMALL_GRIDS in world.strengths:
            factor, grid = factor * (1 + world.strengths[Knob.SMALL_GRIDS]), 16
        ns = self._kernel(f"{thread.number}/{name}", world.kernel_ns * factor)
        yield from self._operator(thread, name, kernel, ns, grid)

    def _operator(self, thread: Thread, name: str, kernel: str, ns: int, grid: int = 2_048) -> Actor:
        start, world = thread.now, self.world
        use = f"operator/{thread.number}"
        yield from thread.work(thread.cost(use, 0.7 * world.operator_ns))
        call_ns = 4 * MICROSECOND
        if self.is_first_use:
            self.is_first_use = False
            call_ns += round(world.added_ns(Knob.FIRST_USE))
        after, self.gradients = self.gradients, ()
        yield from thread.launch(self.compute, Work.KERNEL, kernel, ns, call_ns=call_ns, after=after, grid=grid)
        yield from thread.work(thread.cost(use, 0.3 * world.operator_ns))
        thread.record(Kind.OPERATOR, name, start)

    def _small_kernels(self, thread: Thread) -> Actor:
        """Launch operators whose kernels take less time than their launch."""
        world = self.world
        if Knob.SMALL_KERNELS not in world.strengths:
            return
        host_ns = world.operator_ns + 4 * MICROSECOND
        for _ in range(max(1, round(world.added_ns(Knob.SMALL_KERNELS) / (host_ns * world.layers * world.operators)))):
            yield from self._operator(thread, "aten::add", names.ADD, self._kernel("small", 2.5 * MICROSECOND))

    def _layer_copy(self, thread: Thread, knob: Knob, work: Work, parts: int, rate: int) -> Actor:
        """Copy a part of what a cause copies in each step, in the order of the computing stream."""
        ns = thread.cost(f"{knob}/{thread.number}", self.world.added_ns(knob) / parts)
        if ns:
            yield from self._copy(thread, "aten::copy_", work, ns, size=ns * rate, pinned=True)

    def _copy(self, thread: Thread, name: str, work: Work, ns: int, *, size: int, pinned: bool) -> Actor:
        start = thread.now
        yield from thread.work(5 * MICROSECOND)
        yield from thread.launch(self.compute, work, "", ns, call="cudaMemcpyAsync", size=size, pinned=pinned)
        thread.record(Kind.OPERATOR, name, start)

    def _read_result(self, thread: Thread) -> Actor:
        start = thread.now
        yield from thread.work(3 * MICROSECOND)
        yield from thread.launch(
            self.compute, Work.DEVICE_TO_HOST, "", 1_500, call="cudaMemcpyAsync", size=4, pinned=True
        )
        yield from thread.synchronize(self.compute)
        thread.record(Kind.OPERATOR, "aten::_local_scalar_dense", start)
        yield from thread.take_gil()

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
            start = self.main.now
            size = round(0.2 * added) * PAGEABLE_RATE
            yield from self._copy(
                self.main, "aten::copy_", Work.DEVICE_TO_HOST, round(0.2 * added), size=size, pinned=False
            )
            yield from self.main.work(self.main.cost("pickle", 0.2 * added))
            yield from self.main.pause(self.main.cost("save", 0.6 * added), "write")
            self.main.record(Kind.PYTHON, "torch/serialization.py(944): save", start)
            self.main.record(Kind.RANGE, "save_checkpoint", start)

    def _validate(self, every: int) -> Actor:
        added = every * self.world.added_ns(Knob.EVALUATION)
        if added:
            start = self.main.now
            for _ in range(max(1, round(3 * added / self.world.device_ns))):
                for layer in range(self.world.layers):
                    yield from self._forward_layer(self.main, layer)
            yield from self._read_result(self.main)
            self.main.record(Kind.RANGE, "validation", start)

    def _python(self, name: str, mean_ns: float) -> Actor:
        """Run a function of Python on the main thread; nothing if it takes no time."""
        if mean_ns > 0:
            start = self.main.now
            yield from self.main.work(self.main.cost(name, mean_ns))
            self.main.record(Kind.PYTHON, name, start)

    def _kernel(self, use: str, mean_ns: float) -> int:
        return self.machine.costs.draw(f"{self.rank}/kernel/{use}", mean_ns * self.kernel_factor)

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
