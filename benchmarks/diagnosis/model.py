"""The model of one rank: its forward and backward passes, operator by operator or as a graph, and their exchanges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from benchmarks.diagnosis import names
from benchmarks.diagnosis.engine import Actor, Signal
from benchmarks.diagnosis.knobs import Knob
from benchmarks.diagnosis.machine import LAUNCH_CALL, MICROSECOND, Machine, Meeting, Stream, Task, Thread
from benchmarks.diagnosis.parallel import place_of
from benchmarks.diagnosis.record import Kind, Work
from benchmarks.diagnosis.worlds import MIGRATION_NS, World

COMPUTE_STREAM, COPY_STREAM, COMMUNICATION_STREAM, PIPELINE_STREAM = 7, 14, 20, 21
"""Numbers of streams. A pipeline has four, for each neighbour and direction."""
PINNED_RATE, PAGEABLE_RATE, DEVICE_RATE, INTERCONNECT_RATE = 12, 4, 600, 100
"""Bytes per nanosecond of copies and collectives."""
COMMUNICATION, TENSOR_COMMUNICATION, TRANSFER = 0.08, 0.04, 0.003
"""Healthy time of gradients, of tensor parallel layers and of a transfer between stages, as shares of device time. The
backward pass hides most of the first."""
KERNEL_OUTLIERS, SHARDED_OUTLIERS, SHARDED_SPREAD = 0.002, 0.0005, 0.01
"""Kernels have fewer outliers than calls of the host. Those of ranks that share a model have equal shapes, so their
times differ little: else such ranks would wait for one another in a healthy program."""
GRAPH = 1


class Model:
    """The part of the model that a rank has, and the threads and streams that run it."""

    def __init__(self, machine: Machine, world: World, rank: int, main: Thread) -> None:
        self.machine, self.world, self.rank, self.main = machine, world, rank, main
        self.place = place_of(world, rank)
        self.autograd = Thread(machine, rank, 2, f"pt_autograd_{rank}", None)
        self.compute = machine.stream(rank, COMPUTE_STREAM)
        self.communication = machine.stream(rank, COMMUNICATION_STREAM)
        self.pending: tuple[Signal, ...] = ()
        """Work of other streams that the next kernel waits for."""
        self.page_faults_ns = 0
        """Time that the next kernel takes longer because its pages are on the host."""
        straggles = Knob.STRAGGLER in world.strengths and rank == world.ranks - 1
        self.kernel_factor = 1 + world.strengths[Knob.STRAGGLER] if straggles else 1.0
        self.is_first_use = Knob.FIRST_USE in world.strengths
        self._shares_layers = world.stages * world.tensor > 1
        self._channels: dict[str, Stream] = {}
        self._meetings: Counter[str] = Counter()
        reduced = {(world.operators - 1) // 2, world.operators - 1}
        self._reduced_operators = reduced if world.tensor > 1 else frozenset[int]()

    def forward(self) -> Actor:
        """Launch a forward pass, after that of the stage before."""
        yield from self._receive("activations", self.place.before)
        for layer in range(self.world.layers):
            yield from self._forward_layer(self.main, layer)
        yield from self._large_head(self.main, 1)
        yield from self._send("activations", self.place.after)

    def backward(self, *, is_last: bool) -> Actor:
        """Let the thread of autograd launch a backward pass, and wait for it to have done so.

        Gradients are reduced in the last pass of a step only.
        """
        yield from self._receive("gradients", self.place.after)
        start = self.main.now
        yield from self.main.work(20 * MICROSECOND)
        launched = self.machine.simulation.signal()
        self.machine.simulation.start(self._backward_thread(launched, is_last=is_last))
        yield from self.main.wait(launched, "pthread_cond_wait")
        self.main.record(Kind.PYTHON, "torch/_tensor.py(570): backward", start)
        yield from self._send("gradients", self.place.before)

    def capture(self, instantiate_ns: int) -> Actor:
        """Record a forward and a backward pass as a graph: the host calls everything, and the device does nothing."""
        world, main = self.world, self.main
        yield from main.call("cudaStreamBeginCapture", 10 * MICROSECOND)
        for part in range(2 * world.layers * world.operators):
            name, _, _ = names.OPERATORS[part % world.operators % len(names.OPERATORS)]
            start = main.now
            yield from main.work(main.cost("capture", world.operator_ns))
            yield from main.call("cudaLaunchKernel", LAUNCH_CALL)
            main.record(Kind.OPERATOR, name, start)
        yield from main.call("cudaStreamEndCapture", 50 * MICROSECOND)
        yield from main.call("cudaGraphInstantiate", instantiate_ns)

    def launch_graph(self) -> Actor:
        """Launch the graph of a forward and a backward pass."""
        yield from self.main.launch_graph(GRAPH, self.main.cost("graph", 12 * MICROSECOND), self._nodes())

    def operator(self, thread: Thread, name: str, kernel: str, ns: int, grid: int = 2_048) -> Actor:
        """Call an operator that launches a kernel."""
        start, world = thread.now, self.world
        use = f"operator/{thread.number}"
        yield from thread.work(thread.cost(use, 0.7 * world.operator_ns))
        call_ns = LAUNCH_CALL
        if self.is_first_use:
            self.is_first_use = False
            call_ns += round(world.added_ns(Knob.FIRST_USE))
        after, self.pending = self.pending, ()
        migrations, ns, self.page_faults_ns = self.page_faults_ns // MIGRATION_NS, ns + self.page_faults_ns, 0
        yield from thread.launch(
            self.compute, Work.KERNEL, kernel, ns, call_ns=call_ns, after=after, grid=grid, migrations=migrations
        )
        yield from thread.work(thread.cost(use, 0.3 * world.operator_ns))
        thread.record(Kind.OPERATOR, name, start)

    def copy(
        self, thread: Thread, name: str, work: Work, ns: int, *, size: int, pinned: bool, stream: Stream | None = None
    ) -> Actor:
        """Call an operator that launches a copy, on the computing stream unless another one is given."""
        start = thread.now
        yield from thread.work(5 * MICROSECOND)
        stream = stream or self.compute
        yield from thread.launch(stream, work, "", ns, call="cudaMemcpyAsync", size=size, pinned=pinned)
        thread.record(Kind.OPERATOR, name, start)

    def read_result(self, thread: Thread) -> Actor:
        """Copy a number to the host and wait for it."""
        start = thread.now
        yield from thread.work(3 * MICROSECOND)
        yield from thread.launch(
            self.compute, Work.DEVICE_TO_HOST, "", 1_500, call="cudaMemcpyAsync", size=4, pinned=True
        )
        yield from thread.synchronize(self.compute)
        thread.record(Kind.OPERATOR, "aten::_local_scalar_dense", start)
        yield from thread.take_gil()

    def kernel_ns(self, use: str, mean_ns: float) -> int:
        """Draw the duration of a kernel."""
        use = f"{self.rank}/{'sharded' if self._shares_layers else 'kernel'}/{use}"
        spread, outliers = (SHARDED_SPREAD, SHARDED_OUTLIERS) if self._shares_layers else (None, KERNEL_OUTLIERS)
        return self.machine.costs.draw(use, mean_ns * self.kernel_factor, spread=spread, outliers=outliers)

    def python(self, name: str, mean_ns: float) -> Actor:
        """Run a function of Python on the main thread; nothing if it takes no time."""
        if mean_ns > 0:
            start = self.main.now
            yield from self.main.work(self.main.cost(name, mean_ns))
            self.main.record(Kind.PYTHON, name, start)

    def _forward_layer(self, thread: Thread, layer: int) -> Actor:
        world, start = self.world, thread.now
        parts = world.layers * world.operators
        # Half of what is copied is needed in the forward pass, the other half in the backward pass.
        yield from self._layer_copy(thread, Knob.OFFLOAD, Work.HOST_TO_DEVICE, 2 * world.layers, PINNED_RATE)
        for position in range(world.operators):
            name, kernel, _ = names.OPERATORS[position % len(names.OPERATORS)]
            if Knob.HOST_PYTHON in world.strengths:
                yield from self.python("model.py(112): route_tokens", world.added_to_pass(Knob.HOST_PYTHON) / parts)
            yield from self._compute_operator(thread, name, kernel, 1)
            if position in self._reduced_operators:
                yield from self._reduce_layer(thread)
            if Knob.RESULT_READS in world.strengths:
                for _ in range(max(1, round(2 * world.strengths[Knob.RESULT_READS]))):
                    yield from self.read_result(thread)
            if Knob.SMALL_KERNELS in world.strengths:
                yield from self._small_kernels(thread)
        layout = world.added_to_pass(Knob.LAYOUT) / world.layers
        if layout:
            yield from self.operator(thread, "aten::cudnn_convolution", names.LAYOUT, self.kernel_ns("layout", layout))
        yield from self._layer_copy(thread, Knob.DEVICE_COPIES, Work.DEVICE_TO_DEVICE, world.layers, DEVICE_RATE)
        yield from self._layer_copy(thread, Knob.RESULTS_TO_HOST, Work.DEVICE_TO_HOST, world.layers, PINNED_RATE)
        thread.record(Kind.PYTHON, f"nn.Module: Block_{layer}", start)

    def _backward_thread(self, launched: Signal, *, is_last: bool) -> Actor:
        world, thread = self.world, self.autograd
        yield from self._large_head(thread, 2)
        for _ in range(world.layers):
            yield from self._layer_copy(thread, Knob.OFFLOAD, Work.HOST_TO_DEVICE, 2 * world.layers, PINNED_RATE)
            for position in reversed(range(world.operators)):
                name, kernel, backward = names.OPERATORS[position % len(names.OPERATORS)]
                start = thread.now
                yield from self._compute_operator(thread, name.replace("linear", "mm"), kernel, 2)
                thread.record(Kind.OPERATOR, f"autograd::engine::evaluate_function: {backward}", start)
                if position in self._reduced_operators:
                    yield from self._reduce_layer(thread)
            if is_last and world.data > 1:
                yield from self._collective(thread, self.communication, self._meet_for_gradients())
        self._wait_for_gradients()
        thread.leave()
        launched.fire()

    def _wait_for_gradients(self) -> None:
        """Let the next kernel, which is of the optimizer or of the next pass, wait for the last reduction."""
        last = self.communication.last
        if last is not None and not last.fired:
            self.pending = (*self.pending, last)

    def _compute_operator(self, thread: Thread, name: str, kernel: str, passes: int) -> Actor:
        kernel, ns, grid = self._compute_kernel(f"{thread.number}/{name}", kernel, passes)
        yield from self.operator(thread, name, kernel, ns, grid)

    def _compute_kernel(self, use: str, kernel: str, passes: int) -> tuple[str, int, int]:
        """Return the name, the duration and the grid of a kernel of a pass."""
        world, factor, grid = self.world, float(passes), 2_048
        if kernel == names.HALF and Knob.SLOW_KERNELS in world.strengths:
            products = sum(name == names.HALF for _, name, _ in names.OPERATORS[: world.operators])
            kernel = names.FULL
            factor *= 1 + world.strengths[Knob.SLOW_KERNELS] * world.operators / products
        if Knob.SMALL_GRIDS in world.strengths:
            factor, grid = factor * (1 + world.strengths[Knob.SMALL_GRIDS]), 16
        return kernel, self.kernel_ns(use, world.pass_kernel_ns * factor), grid

    def _nodes(self) -> Iterator[tuple[Stream, Task]]:
        """Return the work of the graph in its order."""
        world, signal = self.world, self.machine.simulation.signal
        layer = list(range(world.operators))
        for passes, positions in ((1, layer), (2, layer[::-1])):
            for _ in range(world.layers):
                for position in positions:
                    name, kernel, _ = names.OPERATORS[position % len(names.OPERATORS)]
                    kernel, ns, grid = self._compute_kernel(f"graph/{passes}/{name}", kernel, passes)
                    after, self.pending = self.pending, ()
                    yield self.compute, Task(Work.KERNEL, kernel, ns, signal(), after=after, grid=grid)
                if passes == 2 and world.data > 1:
                    meeting, last = self._meet_for_gradients(), self.compute.last
                    reduce = Task(Work.COLLECTIVE, names.ALL_REDUCE, meeting.ns, signal(), meeting=meeting, grid=24)
                    reduce.after = (last,) if last else ()
                    reduce.bytes = meeting.ns * INTERCONNECT_RATE
                    yield self.communication, reduce
        self._wait_for_gradients()

    def _large_head(self, thread: Thread, passes: int) -> Actor:
        """Compute what the last stage has more than the others, such as the projection on a vocabulary."""
        if Knob.UNEVEN_STAGES in self.world.strengths and self.place.after is None:
            ns = self.kernel_ns(f"head/{passes}", passes / 3 * self.world.added_to_pass(Knob.UNEVEN_STAGES))
            yield from self.operator(thread, "aten::linear", names.HALF, ns)

    def _small_kernels(self, thread: Thread) -> Actor:
        """Launch operators whose kernels take less time than their launch."""
        world = self.world
        host_ns = world.operator_ns + LAUNCH_CALL
        parts = world.layers * world.operators
        for _ in range(max(1, round(world.added_to_pass(Knob.SMALL_KERNELS) / (host_ns * parts)))):
            yield from self.operator(thread, "aten::add", names.ADD, self.kernel_ns("small", 2.5 * MICROSECOND))

    def _layer_copy(self, thread: Thread, knob: Knob, work: Work, parts: int, rate: int) -> Actor:
        """Copy a part of what a cause copies in each step, in the order of the computing stream."""
        if knob in self.world.strengths:
            ns = thread.cost(f"{knob}/{thread.number}", self.world.added_to_pass(knob) / parts)
            yield from self.copy(thread, "aten::copy_", work, ns, size=ns * rate, pinned=True)

    def _meet(self, name: str, mean_ns: float, members: tuple[int, ...]) -> Meeting:
        """Return the next collective of this name; each rank asks for all of them in the same order."""
        index, self._meetings[name] = self._meetings[name], self._meetings[name] + 1
        return self.machine.meeting(name, index, mean_ns, members)

    def _meet_for_gradients(self) -> Meeting:
        world = self.world
        slow = world.added_ns(Knob.INTERCONNECT)
        # The backward pass of a micro-batch hides some of it; a slow interconnect takes this time and the added one.
        hidden = 2 / 3 * world.device_ns / world.micro_batches
        mean = hidden + slow if slow else COMMUNICATION * world.device_ns / world.passes
        return self._meet(f"gradients/{self.place.data[0]}", mean / world.layers, self.place.data)

    def _reduce_layer(self, thread: Thread) -> Actor:
        """Add the results of the ranks that share a layer: on the computing stream, as the next kernel needs them."""
        world = self.world
        mean = TENSOR_COMMUNICATION * world.device_ns + world.added_ns(Knob.TENSOR_COMMUNICATION)
        mean /= 2 * world.layers * len(self._reduced_operators) * world.micro_batches
        name = f"tensor/{self.place.tensor[0]}"
        yield from self._collective(thread, self.compute, self._meet(name, mean, self.place.tensor))

    def _send(self, channel: str, other: int | None) -> Actor:
        """Send what the last pass computed to another stage, as soon as that waits for it."""
        if other is not None:
            yield from self._transfer(channel, "send", self.rank, other)

    def _receive(self, channel: str, other: int | None) -> Actor:
        """Wait for what another stage sends; the next kernel needs it."""
        if other is not None:
            yield from self._transfer(channel, "recv", other, self.rank)
            last = self._channels[f"{channel}/recv"].last
            if last is not None:
                self.pending = (*self.pending, last)

    def _transfer(self, channel: str, operation: str, sender: int, receiver: int) -> Actor:
        key = f"{channel}/{operation}"
        if key not in self._channels:
            self._channels[key] = self.machine.stream(self.rank, PIPELINE_STREAM + len(self._channels))
        mean = TRANSFER * self.world.device_ns / self.world.micro_batches
        meeting = self._meet(f"transfer of {channel}/{sender}", mean, (sender, receiver))
        yield from self._collective(self.main, self._channels[key], meeting, names.SEND_RECEIVE, operation)

    def _collective(
        self,
        thread: Thread,
        stream: Stream,
        meeting: Meeting,
        kernel: str = names.ALL_REDUCE,
        operation: str = "allreduce",
    ) -> Actor:
        """Launch a collective. It starts when the work that was launched before on the computing stream is done."""
        start, last = thread.now, self.compute.last
        yield from thread.work(10 * MICROSECOND)
        yield from thread.launch(
            stream,
            Work.COLLECTIVE,
            kernel,
            meeting.ns,
            after=(last,) if last and stream is not self.compute else (),
            meeting=meeting,
            size=meeting.ns * INTERCONNECT_RATE,
            grid=24,
            operation=operation,
        )
        thread.record(Kind.RANGE, "nccl:all_reduce" if operation == "allreduce" else f"nccl:{operation}", start)
