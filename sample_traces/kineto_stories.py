"""The stories that the synthetic PyTorch captures tell: a small network in training, healthy or with one problem.

Every story is a function that gives one program per rank, and is registered with what a report must say of it.
Durations are chosen so that the problem takes a clear share of the steps and nothing else does.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace

from kineto_program import GB, MS, US, Kernel, Memory, TorchProgram

STEPS = 12
FIRST_STEP = 5
"""Number of the first captured step: wait and warm-up come before it."""
BATCH_BYTES = 32 * 3 * 224 * 224
ACTIVATION_BYTES = 96 * 1024 * 1024
GRADIENT_ELEMENTS = 25_557_032
TRANSFER_NS = 300 * US
"""How long an all-reduce takes once all ranks are there."""
LATE_NS = 180 * US
"""How long after the device a thread goes on that has slept meanwhile."""
SINGLE = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
WORKERS = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


@dataclass(frozen=True, slots=True)
class Expected:
    """What a report must say."""

    verdict: str
    findings: tuple[str, ...]
    steps: int = STEPS


@dataclass(frozen=True, slots=True)
class Story:
    """A capture, of one or more ranks, and what it tells."""

    name: str
    tells: str
    expected: Expected
    train: Callable[[], list[TorchProgram]]


Train = Callable[[], list[TorchProgram]]

STORIES: list[Story] = []


def story(
    tells: str, verdict: str = "not-input-bound", findings: tuple[str, ...] = (), steps: int = STEPS
) -> Callable[[Train], Train]:
    """Registers a function as the story of its name."""

    def register(train: Train) -> Train:
        STORIES.append(Story(train.__name__, tells, Expected(verdict, findings, steps), train))
        return train

    return register


@dataclass(frozen=True, slots=True)
class Layer:
    """Operators of a layer, from the outermost, and the kernels of its forward and its backward pass."""

    ops: tuple[str, ...]
    node: str
    forward: Kernel
    backward: Kernel


CONVOLUTION = ("aten::conv2d", "aten::convolution", "aten::_convolution", "aten::cudnn_convolution")
NORM = ("aten::batch_norm", "aten::_batch_norm_impl_index", "aten::cudnn_batch_norm")
RELU = ("aten::relu", "aten::clamp_min")
LINEAR = ("aten::linear", "aten::addmm")

_XMMA = "sm80_xmma_{}_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x16_stage4_kernel_cudnn"
_GEMM = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_{}"
_NORM = "void cudnn::bn_{}_tr_1C11_kernel_NCHW<float, float, int, 512, true, 1>(cudnnTensorStruct, float const*)"
_ELEMENTWISE = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::{}, "
    "std::array<char*, 2ul> >(int, at::native::(anonymous namespace)::{}, std::array<char*, 2ul>)"
)
_ADAM = (
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::"
    "FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)::FusedAdamMathFunctor<float, 4>, float>"
)


def _layer(ops: tuple[str, ...], node: str, names: tuple[str, str], times_us: tuple[int, int]) -> Layer:
    forward, backward = (Kernel(name, dur * US, 2048) for name, dur in zip(names, times_us, strict=True))
    return Layer(ops, node, forward, backward)


def _relu(*times_us: int) -> Layer:
    functors = ("launch_clamp_scalar", "threshold_kernel_impl")
    names = tuple(_ELEMENTWISE.format(functor, functor) for functor in functors)
    return _layer(RELU, "ReluBackward0", (names[0], names[1]), (times_us[0], times_us[1]))


def _with_tensor_cores(*times_us: int) -> Layer:
    return _layer(
        CONVOLUTION, "ConvolutionBackward0", (_XMMA.format("fprop"), _XMMA.format("wgrad")), (times_us[0], times_us[1])
    )


NETWORK = (
    _with_tensor_cores(420, 860),
    _layer(NORM, "CudnnBatchNormBackward0", (_NORM.format("fw"), _NORM.format("bw")), (140, 210)),
    _relu(70, 90),
    _with_tensor_cores(610, 1240),
    _relu(60, 80),
    _layer(LINEAR, "AddmmBackward0", (_GEMM.format("tn"), _GEMM.format("nt")), (240, 470)),
)
FULL_PRECISION = (
    _layer(LINEAR, "AddmmBackward0", ("ampere_sgemm_128x64_tn", "ampere_sgemm_128x64_nt"), (1300, 2500)),
    _relu(70, 90),
    _layer(LINEAR, "AddmmBackward0", ("ampere_sgemm_128x128_tn", "ampere_sgemm_128x128_nt"), (900, 1900)),
)
SMALL = (_relu(9, 9),) * 24
ADAM = Kernel(_ADAM, 380 * US, 2048, 512)
SMALL_ADAM = Kernel(_ADAM, 9 * US, 2048, 512)


@dataclass(frozen=True, slots=True)
class Training:
    """How a training loop behaves.

    Args:
        loader: Name of the range around the taking of a batch.
        loads_ns: How long that takes.
        pinned: Whether batches lie in pinned memory.
        read_every: After this many layers a number is read from the device; 0 means never.
        slowness: The durations of the kernels are this many times what they are elsewhere.
        graphs: Whether the passes are replayed as a CUDA graph.
        in_use: Bytes that are allocated before the capture, of ``reserved``.
    """

    network: tuple[Layer, ...] = NETWORK
    optimizer: Kernel = ADAM
    op_ns: int = 4 * US
    loader: str = WORKERS
    loads_ns: int = 60 * US
    batch_bytes: int = BATCH_BYTES
    pinned: bool = True
    read_every: int = 0
    slowness: float = 1.0
    graphs: bool = False
    in_use: int = 21 * GB
    reserved: int = 25 * GB

    def runs(self, seed: str) -> list[TorchProgram]:
        """One process that trains so."""
        return train_together([self], seed)


def train_together(trainings: list[Training], seed: str) -> list[TorchProgram]:
    """One process for each of ``trainings``; what they exchange ends at once for all."""
    ranks = [
        TorchProgram(seed, Memory(training.in_use, training.reserved), rank, len(trainings))
        for rank, training in enumerate(trainings)
    ]
    given = [0 for _ in ranks]
    for number in range(FIRST_STEP, FIRST_STEP + STEPS):
        running = [
            one_step(program, training, number, before)
            for program, training, before in zip(ranks, trainings, given, strict=True)
        ]
        arrivals = [next(step) for step in running]
        for step in running:
            step.send(max(arrivals) + TRANSFER_NS)
        given = [program.finished_by() for program in ranks]
    return ranks


def one_step(program: TorchProgram, training: Training, number: int, before: int) -> Generator[int, int, None]:
    """A step that begins when the host has seen the device finish what it had been given at ``before``.

    Gives the time at which the gradients are there to be exchanged, takes when all ranks have them, and gives the end.
    """
    with program.annotation(f"ProfilerStep#{number}"):
        with program.annotation(training.loader):
            program.work(training.loads_ns)
        with program.op("aten::to", "aten::_to_copy", "aten::copy_"):
            program.copy_in(training.batch_bytes, pinned=training.pinned)
        if training.graphs:
            replay_passes(program, training)
        else:
            run_forward(program, training)
            run_backward(program, training)
        end = yield program.arrive()
        if program.world_size > 1:
            program.all_reduce(GRADIENT_ELEMENTS, end)
        with program.annotation("Optimizer.step#Adam.step"), program.op("aten::_fused_adam_"):
            program.launch(training.optimizer)
        program.wait_until(before)
        program.work(20 * US)
    yield program.now


def run_forward(program: TorchProgram, training: Training) -> None:
    """Every layer allocates what it gives; some loops look at a number on the way."""
    for place, layer in enumerate(training.network, 1):
        with program.op(*layer.ops, overhead_ns=training.op_ns):
            program.allocate(ACTIVATION_BYTES)
            program.launch(slowed(layer.forward, training))
        if training.read_every and place % training.read_every == 0:
            with program.op("aten::item", "aten::_local_scalar_dense"):
                program.copy_out(4)
                program.synchronise(wake_up_ns=LATE_NS)


def run_backward(program: TorchProgram, training: Training) -> None:
    """The same layers from the last to the first, on a thread of the autograd engine."""
    with program.on_thread(program.backward):
        for layer in reversed(training.network):
            outer = f"autograd::engine::evaluate_function: {layer.node}"
            with program.op(outer, layer.node, overhead_ns=training.op_ns):
                program.launch(slowed(layer.backward, training))
                program.allocate(-ACTIVATION_BYTES)


def replay_passes(program: TorchProgram, training: Training) -> None:
    """Both passes in one call."""
    kernels = [layer.forward for layer in training.network]
    kernels += [layer.backward for layer in reversed(training.network)]
    program.replay(tuple(kernels))


def slowed(kernel: Kernel, training: Training) -> Kernel:
    """``kernel`` on the device of this training."""
    return replace(kernel, dur_ns=round(kernel.dur_ns * training.slowness))


WAITS = "highly-input-bound"


@story("nothing is wrong: bfloat16 on tensor cores, pinned batches, a host that runs ahead")
def torch_healthy() -> list[TorchProgram]:
    return Training().runs("healthy")


@story("num_workers=0: the training process prepares every batch itself", WAITS, ("TV101", "TV108"))
def torch_input_bound_single() -> list[TorchProgram]:
    return Training(loader=SINGLE, loads_ns=9 * MS).runs("single")


@story("the worker processes of the loader cannot keep up", WAITS, ("TV101", "TV109"))
def torch_input_bound_workers() -> list[TorchProgram]:
    return Training(loads_ns=9 * MS).runs("workers")


@story("kernels of 9 µs, launched one by one", findings=("TV202",))
def torch_launch_bound() -> list[TorchProgram]:
    return Training(SMALL, SMALL_ADAM, op_ns=2 * US, loads_ns=10 * US, batch_bytes=4096).runs("small")


@story("the same kernels, launched as a CUDA graph")
def torch_cuda_graphs() -> list[TorchProgram]:
    return Training(SMALL, SMALL_ADAM, loads_ns=10 * US, batch_bytes=4096, graphs=True).runs("graphs")


@story("batches are copied from pageable memory, and training waits for them", WAITS, ("TV101", "TV302"))
def torch_pageable_copies() -> list[TorchProgram]:
    return Training(pinned=False, batch_bytes=4 * BATCH_BYTES).runs("pageable")


@story("a number is read from the device after every layer, and the host wakes up late", findings=("TV203",))
def torch_item_in_steps() -> list[TorchProgram]:
    return Training(read_every=1).runs("item")


@story("the caching allocator holds nearly all memory of the device", findings=("TV402",))
def torch_memory_nearly_full() -> list[TorchProgram]:
    return Training(in_use=39 * GB, reserved=41 * GB).runs("memory")


@story("matrix products in 32 bits on a device with tensor cores", findings=("TV405",))
def torch_mixed_precision_off() -> list[TorchProgram]:
    return Training(FULL_PRECISION).runs("precision")


@story(
    "four ranks, of which the third computes a third slower: the others wait for it",
    findings=("TV501",),
    steps=48,
)
def torch_four_ranks_straggler() -> list[TorchProgram]:
    return train_together([Training(slowness=1.35 if rank == 2 else 1.0) for rank in range(4)], "ranks")
