"""The stories that the synthetic databases tell: a toy CNN in training, healthy or with one known problem.

Every story is a function that lets a :class:`~program.Program` train and is registered with what a report must say
of it. Durations are chosen so that the problem takes a clear share of the steps and nothing else does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nsys_database import NsysDatabase
from program import COLLECTIVE_STREAM, COMPUTE_STREAM, MS, US, Kernel, Program

BATCH_BYTES = 64 * 3 * 128 * 128 * 4
LABEL_BYTES = 64 * 8

_ELEMENTWISE = (
    "void at::native::vectorized_elementwise_kernel<(int)4, {}, at::detail::Array<char *, (int){}>>(int, T2, T3)"
)
_ADAM = (
    "void at::native::<unnamed>::multi_tensor_apply_kernel<at::native::<unnamed>::TensorListMetadata<(int)4>, "
    "at::native::<unnamed>::FusedAdamMathFunctor<float, (int)4>, float *, float>(T1, T2, T3...)"
)
_SOFTMAX = "void <unnamed>::softmax_warp_{}<float, float, float, (int)4, (bool)1>(T2 *, const T1 *, int, int, int)"
_MAX_POOL = "void at::native::<unnamed>::max_pool_{}_nchw<float, float>(int, const T1 *, long, long, int, T1 *, long *)"
_BATCH_NORM = "void cudnn::bn_{}_tr_1C11_kernel_NCHW<float, float, int, (int)512, (bool)1, (int)1>(T1, T2)"


def _elementwise(functor: str, arrays: int, dur_ns: int) -> Kernel:
    return Kernel(_ELEMENTWISE.format(functor, arrays), "vectorized_elementwise_kernel", dur_ns, 4096, 128, 24)


def _convolution(kind: str, dur_ns: int) -> Kernel:
    name = f"sm80_xmma_{kind}_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x16_stage4_kernel_cudnn"
    return Kernel(name, name, dur_ns, 1024, 128, 238, 81_920)


def _gemm(layout: str, dur_ns: int) -> Kernel:
    name = f"void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x128_32x3_{layout}_align4>(T1::Params)"
    return Kernel(name, "Kernel", dur_ns, 256, 128, 230, 98_304)


def _named(name: str, short: str, dur_ns: int, grid: int = 512, block: int = 512) -> Kernel:
    return Kernel(name, short, dur_ns, grid, block, 40)


FORWARD = (
    _convolution("fprop", 420 * US),
    _named(_BATCH_NORM.format("fw"), "bn_fw_tr_1C11_kernel_NCHW", 140 * US),
    _elementwise("at::native::<unnamed>::launch_clamp_scalar(at::TensorIteratorBase &)", 2, 70 * US),
    _named(_MAX_POOL.format("forward"), "max_pool_forward_nchw", 120 * US),
    _convolution("fprop", 610 * US),
    _named(_BATCH_NORM.format("fw"), "bn_fw_tr_1C11_kernel_NCHW", 90 * US),
    _gemm("tn", 160 * US),
    _named(_SOFTMAX.format("forward"), "softmax_warp_forward", 12 * US, 64, 128),
)
BACKWARD = (
    _named(_SOFTMAX.format("backward"), "softmax_warp_backward", 14 * US, 64, 128),
    _gemm("nt", 170 * US),
    _gemm("nn", 180 * US),
    _named(_BATCH_NORM.format("bw"), "bn_bw_tr_1C11_kernel_NCHW", 190 * US),
    _convolution("dgrad", 640 * US),
    _convolution("wgrad", 700 * US),
    _named(_MAX_POOL.format("backward"), "max_pool_backward_nchw", 230 * US),
    _convolution("wgrad", 480 * US),
)
OPTIMIZER = (_named(_ADAM, "multi_tensor_apply_kernel", 110 * US),)
TINY = tuple(
    _elementwise(f"at::native::{functor}<float>", arrays, 3 * US)
    for functor, arrays in (("CUDAFunctor_add", 3), ("AUnaryFunctor", 2), ("BUnaryFunctor", 2), ("FillFunctor", 1))
)
ALL_REDUCE = Kernel(
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm *, unsigned long, ncclWork *)",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
    900 * US,
    24,
    512,
    96,
)


@dataclass(frozen=True, slots=True)
class Expected:
    """What a report must say.

    Args:
        verdict: Code of the input-pipeline verdict.
        findings: Codes of exactly the findings that the story gives rise to.
        steps: Steps that the report counts over all ranks, the slow first one included.
    """

    verdict: str
    findings: tuple[str, ...]
    steps: int


@dataclass(frozen=True, slots=True)
class Story:
    """One synthetic database: its name, what it tells, what must be found, and how it is made.

    ``tell`` adds rows for the number of ``steps`` given.
    """

    name: str
    tells: str
    expected: Expected
    tell: Callable[[NsysDatabase, int], None]
    steps: int = 30

    def database(self) -> NsysDatabase:
        """The rows of the story."""
        database = NsysDatabase(self.tells)
        self.tell(database, self.steps)
        return database


# --- what the stories share -----------------------------------------------------------------------------------


def start_up(program: Program) -> None:
    """Imports, context, modules and the first allocations: slow, and nobody's problem."""
    for _ in range(6):
        program.os_call("open64", 15 * US)
        program.os_call("read", 400 * US)
        program.os_call("mmap64", 25 * US)
        program.compute(8 * MS)
    program.call("cuInit", 3 * MS, driver=True)
    program.call("cudaFree_v3020", 90 * MS)  # the customary way to create the context
    for _ in range(3):
        program.call("cuModuleLoadData", 11 * MS, driver=True)
    for _ in range(8):
        program.malloc()
    program.call("cudaHostAlloc_v3020", 2 * MS)
    program.call("cudaStreamCreateWithFlags_v5000", 60 * US)
    program.copy("h2d", 40_000_000, pinned=False, stream=COMPUTE_STREAM)
    program.synchronize_stream()


def first_step_extra(program: Program, step: int) -> None:
    """The first step compiles, chooses algorithms and grows the memory pool."""
    if step == 0:
        program.call("cuModuleLoadData", 24 * MS, driver=True)
        program.malloc()
        program.malloc()
        program.compute(30 * MS)


def train(program: Program, batch_at: int = 0) -> int:
    """Launch forward (not before the batch has arrived), backward and optimizer; gives the time of the last end."""
    with program.range("forward"):
        for kernel in FORWARD:
            program.launch(kernel, not_before=batch_at)
    with program.range("backward"):
        for kernel in BACKWARD:
            program.launch(kernel)
    with program.range("optimizer"):
        program.fill(4 * 1024)
        for kernel in OPTIMIZER:
            end = program.launch(kernel)
    return end


def train_without_ranges(program: Program, batch_at: int) -> None:
    """The same work by a program that nobody annotated."""
    for kernel in (*FORWARD, *BACKWARD, *OPTIMIZER):
        program.launch(kernel, not_before=batch_at)
        program.compute(4 * US)


def copy_batch(program: Program) -> int:
    """Copy one batch from pinned memory on a stream of its own; gives the time at which it has arrived."""
    program.copy("h2d", LABEL_BYTES)
    return program.copy("h2d", BATCH_BYTES)


# --- the stories ----------------------------------------------------------------------------------------------


def healthy(database: NsysDatabase, steps: int) -> None:
    """The host prepares step n+1 while the device works on step n, and waits for nothing else."""
    program = Program(database)
    start_up(program)
    previous = program.device_end
    for step in range(steps):
        with program.range(f"step {step}"):
            first_step_extra(program, step)
            with program.range("data loading"):
                program.os_call("pthread_mutex_lock", 2 * US)
                program.compute(60 * US)
            arrived = copy_batch(program)
            program.call("cudaStreamWaitEvent_v3020", 3 * US)
            end = train(program, arrived)
            program.wait_until(previous)
            previous = end
    program.synchronize_device()


def input_bound(database: NsysDatabase, steps: int) -> None:
    """Loading a batch takes twice as long as training on it, and nothing is loaded ahead."""
    program = Program(database)
    start_up(program)
    for step in range(steps):
        with program.range(f"step {step}"):
            first_step_extra(program, step)
            with program.range("data loading"):
                load_batch(program)
            train(program, copy_batch(program))


def load_batch(program: Program) -> None:
    """Wait for a worker, read a file, decode it: about 8 ms."""
    program.os_call("poll", 4_800 * US)
    program.os_call("read", 900 * US)
    program.compute(1_900 * US)
    program.os_call("sem_wait", 400 * US)


def input_bound_unannotated(database: NsysDatabase, steps: int) -> None:
    """The same slow loader, but only CUDA and operating-system calls were recorded."""
    program = Program(database)
    start_up(program)
    for step in range(steps):
        first_step_extra(program, step)
        load_batch(program)
        train_without_ranges(program, copy_batch(program))


def launch_bound(database: NsysDatabase, steps: int) -> None:
    """Dozens of 3 µs kernels per step: the device waits for the next launch after each."""
    program = Program(database)
    start_up(program)
    for step in range(steps):
        with program.range(f"step {step}"):
            first_step_extra(program, step)
            for index in range(52):
                program.launch(TINY[index % len(TINY)])
                program.compute(300)


def allocation_churn(database: NsysDatabase, steps: int) -> None:
    """Three work buffers are allocated and released in every step, and the device waits meanwhile."""
    program = Program(database)
    start_up(program)
    for step in range(steps):
        with program.range(f"step {step}"):
            first_step_extra(program, step)
            for _ in range(3):
                program.malloc(220 * US)
            train(program)
            for _ in range(3):
                program.free(300 * US)


def pageable_copies(database: NsysDatabase, steps: int) -> None:
    """Activations travel to and from ordinary memory on the compute stream, through the runtime API."""
    _copy_through_pageable_memory(Program(database), steps)


def pageable_copies_driver(database: NsysDatabase, steps: int) -> None:
    """The same through the driver API (cuMemcpyHtoDAsync_v2, cuLaunchKernel), as TensorFlow calls it."""
    _copy_through_pageable_memory(Program(database, driver_api=True), steps)


def _copy_through_pageable_memory(program: Program, steps: int) -> None:
    start_up(program)
    for step in range(steps):
        with program.range(f"step {step}"):
            first_step_extra(program, step)
            with program.range("data loading"):
                program.compute(50 * US)
            with program.range("copy to device"):
                program.copy("h2d", BATCH_BYTES, pinned=False, stream=COMPUTE_STREAM)
            train(program)


def synchronisation(database: NsysDatabase, steps: int) -> None:
    """After every few kernels the program waits for the whole device, and wakes up late."""
    program = Program(database)
    start_up(program)
    for step in range(steps):
        with program.range(f"step {step}"):
            first_step_extra(program, step)
            for index, kernel in enumerate((*FORWARD, *BACKWARD, *OPTIMIZER)):
                program.launch(kernel)
                if index % 2:
                    program.synchronize_device(wake_up_ns=180 * US)


def two_ranks(database: NsysDatabase, steps: int) -> None:
    """Two processes train on two devices; their correlation ids are the same, their collectives end together."""
    ranks = (Program(database, 1001, 0), Program(database, 2001, 1))
    for program in ranks:
        start_up(program)
    previous = [program.device_end for program in ranks]
    for step in range(steps):
        previous = _step_together(ranks, step, previous)


def _step_together(ranks: tuple[Program, Program], step: int, previous: list[int]) -> list[int]:
    """One step of both ranks; the second half of the backward pass hides most of the collective."""
    begins = [program.now for program in ranks]
    for program in ranks:
        first_step_extra(program, step)
        for kernel in FORWARD:
            program.launch(kernel)
    gradients = [[program.launch(kernel) for kernel in BACKWARD[:6]][-1] for program in ranks]
    starts = [p.ready(COLLECTIVE_STREAM, after=done) for p, done in zip(ranks, gradients, strict=True)]
    end = max(starts) + ALL_REDUCE.dur_ns
    finished = []
    for program, begin, start, waited in zip(ranks, begins, starts, previous, strict=True):
        program.launch_until(ALL_REDUCE, COLLECTIVE_STREAM, start, end)
        for kernel in BACKWARD[6:]:
            program.launch(kernel)
        finished.append(program.launch(OPTIMIZER[0], not_before=end))
        program.wait_until(waited)
        program.add_range(f"step {step}", begin)
    return finished


NOT_INPUT_BOUND = "not-input-bound"

STORIES: tuple[Story, ...] = (
    Story("healthy", "nothing is wrong", Expected(NOT_INPUT_BOUND, (), 30), healthy),
    Story(
        "input_bound",
        "the device waits for a slow loader inside the range 'data loading'",
        Expected("highly-input-bound", ("TV101",), 30),
        input_bound,
    ),
    Story(
        "input_bound_unannotated",
        "the device waits for a slow loader, without any NVTX range",
        Expected("possibly-input-bound", ("TV102",), 29),  # inferred: from one repetition to the next
        input_bound_unannotated,
    ),
    Story(
        "launch_bound",
        "kernels of 3 µs, launched too slowly to keep the device busy",
        Expected(NOT_INPUT_BOUND, ("TV202",), 28),
        launch_bound,
        steps=28,
    ),
    Story(
        "allocation_churn",
        "cudaMalloc and cudaFree in every step while the device is idle",
        Expected(NOT_INPUT_BOUND, ("TV301",), 30),
        allocation_churn,
    ),
    Story(
        "pageable_copies",
        "input copied from pageable memory, exposed, through the runtime API",
        Expected("highly-input-bound", ("TV101", "TV302"), 30),
        pageable_copies,
    ),
    Story(
        "pageable_copies_driver",
        "input copied from pageable memory, exposed, through the driver API",
        Expected("highly-input-bound", ("TV101", "TV302"), 30),
        pageable_copies_driver,
    ),
    Story(
        "synchronisation",
        "cudaDeviceSynchronize after every second kernel",
        Expected(NOT_INPUT_BOUND, ("TV203",), 30),
        synchronisation,
    ),
    Story(
        "two_ranks",
        "two processes on two devices with equal correlation ids and NCCL all-reduce",
        Expected(NOT_INPUT_BOUND, (), 2 * 24),
        two_ranks,
        steps=24,
    ),
)
