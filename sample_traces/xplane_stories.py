"""The stories that the synthetic XPlane captures tell: device planes in the layout that real ones have.

Every story is a function that fills a capture of one host, and is registered with what a report must say of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xplane_program import MS, US, GpuProgram, Kernel
from xplane_space import Line, Plane, Space, Stats

STEPS = 12
START_NS = 1_790_000_000_000_000_000
"""Wall clock at the start of every story."""
BATCH_BYTES = 64 * 32 * 32 * 3 * 4
PIPELINE = "Iterator::Root::Prefetch::BatchV2::Map::TensorSlice"
ITERATOR_IDS = [9_223_372_036_854_000_000 + 1_000_003 * place for place in range(5)]
"""Ids of the iterators of :data:`PIPELINE`: some fit into int64, some do not, as in real captures."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What a report must say."""

    verdict: str
    findings: tuple[str, ...]
    steps: int = STEPS


WAITS_FOR_MAP = Expected("highly-input-bound", ("TV101", "TV103", "TV106"))
INCOMPLETE = Expected(WAITS_FOR_MAP.verdict, (*WAITS_FOR_MAP.findings, "TV901"))


@dataclass(frozen=True, slots=True)
class Story:
    """A capture and what it tells."""

    name: str
    tells: str
    expected: Expected
    fill: Callable[[Space], None]

    def space(self) -> Space:
        """A fresh capture."""
        space = Space("synthetic")
        self.fill(space)
        environment: Stats = {"profile_start_time": START_NS, "profile_stop_time": START_NS + 200 * MS}
        space.plane("Task Environment", 0, environment)
        return space


STORIES: list[Story] = []


def story(tells: str, expected: Expected) -> Callable[[Callable[[Space], None]], Callable[[Space], None]]:
    """Registers a function as the story of its name."""

    def register(fill: Callable[[Space], None]) -> Callable[[Space], None]:
        STORIES.append(Story(fill.__name__, tells, expected, fill))
        return fill

    return register


def _keras_kernel(name: str, op: str, dur_ns: int, grid: int) -> Kernel:
    return Kernel(name, dur_ns, grid, 256, 64, {"tf_op": op})


_CONVOLUTION = "sm80_xmma_{}_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x16_stage4_kernel_cudnn"
_EIGEN = "void Eigen::internal::EigenMetaKernel<Eigen::TensorEvaluator<{}>, int>(Eigen::TensorEvaluator<{}>, int)"
_GRADIENT = "gradient_tape/sequential/conv2d/Conv2D/Conv2DBackprop{0}:Conv2DBackprop{0}"

KERAS_KERNELS = (
    _keras_kernel(_CONVOLUTION.format("fprop"), "sequential/conv2d/Conv2D:Conv2D", 900 * US, 2048),
    _keras_kernel(_EIGEN.format("Relu", "Relu"), "sequential/conv2d/Relu:Relu", 240 * US, 2048),
    _keras_kernel(_CONVOLUTION.format("dgrad"), _GRADIENT.format("Input"), 1400 * US, 2048),
    _keras_kernel(_CONVOLUTION.format("wgrad"), _GRADIENT.format("Filter"), 1600 * US, 2048),
    _keras_kernel(_EIGEN.format("Adam", "Adam"), "adam/AssignSubVariableOp:AssignSubVariableOp", 300 * US, 512),
)


@story("Keras on a GPU: the device waits for a sequential map of tf.data", WAITS_FOR_MAP)
def gpu_keras_input_bound(space: Space) -> None:
    _keras(space, recorded_steps=STEPS)


@story(
    "the same, but the profiler's buffers were full after seven steps: later device events are missing",
    INCOMPLETE,
)
def gpu_events_dropped(space: Space) -> None:
    _keras(space, recorded_steps=7)
    calls = STEPS * (len(KERAS_KERNELS) + 3)
    events = 7 * (len(KERAS_KERNELS) + 2)
    space.warnings.append(
        f"Detected GPU events dropped on synthetic: Profiler has collected {calls} driver events and {events} device "
        "events."
    )


def _keras(space: Space, recorded_steps: int) -> None:
    """``Profiled batch`` without a root level, as Keras 3 writes it; groups come from ``FunctionRun``."""
    host = space.plane("/host:CPU")
    program = GpuProgram(space, "keras")
    python = host.line(1001, "python3")
    executor = host.line(-8_100_000_000_000_000_001, "tf_Compute/-8100000000000000001")
    getter = host.line(1003, "tf_data_iterator_get_next/1003")
    producer = host.line(1004, "tf_data_iterator_resource/1004")
    _name_iterators(host)
    program.now = 1 * MS
    for step in range(STEPS):
        program.recording = step < recorded_steps
        start, run = program.now, 7_000_000_000_000_000_000 + step
        program.now += 60 * US
        executed = program.now
        _wait_for_batch(program, getter, producer, run, step)
        program.copy_in(executor, BATCH_BYTES, {"tf_op": "IteratorGetNext/_3:_Send"})
        for kernel in KERAS_KERNELS:
            program.launch(executor, kernel)
        done = program.now
        program.copy_out(executor, 4, {"tf_op": "#edge_name=copy#"})
        program.synchronise(python)
        end = program.now + 10 * US
        _enclose(python, start, end, run, step)
        link: Stats = {"id": run, "iter_num": 0, "_ct": 2, "_c": run}
        executor.add("ExecutorState::Process", executed, done + 8 * US, link)
        program.now = end + program.vary(15 * US)


def _enclose(python: Line, start: int, end: int, run: int, step: int) -> None:
    """What the Python thread does around a step."""
    python.add("Profiled batch", start, end, {"step_num": step + 2})
    python.add("multi_step_on_iterator", start + 5 * US, end - 2 * US, {"tracing_count": 1})
    python.add("TFE_Py_ExecuteCancelable", start + 10 * US, end - 4 * US)
    python.add("EagerExecute", start + 15 * US, end - 5 * US, {"is_func": 1})
    python.add("EagerKernelExecute", start + 20 * US, end - 6 * US)
    python.add("FunctionRun", start + 30 * US, start + 55 * US, {"id": run, "_r": 1, "_pt": 2, "_p": run})


def _wait_for_batch(program: GpuProgram, getter: Line, producer: Line, run: int, step: int) -> None:
    """The getter's thread finds the prefetch buffer empty; the producer's thread is still in its map.

    ::

        getter    |IteratorGetNextOp::DoCompute [Root [Prefetch        ]]|
        producer  |PrefetchProduce [BatchV2 [Map |Map |Map | ...      ]]|
    """
    start = program.now
    end = start + program.vary(3600 * US)
    root, prefetch, batch, mapped, source = _paths()
    ids = dict(zip(_paths(), ITERATOR_IDS, strict=True))
    getter.add("IteratorGetNextOp::DoCompute", start, end, {"id": run, "iter_num": 0, "element_size": BATCH_BYTES})
    options: Stats = {"cpu_budget": 8, "ram_budget_megabytes": 10_000, "autotune": "true"}
    getter.add(root, start + 4 * US, end - 4 * US, {"id": ids[root], **options})
    waiting: Stats = {"buffer_limit": 2, "buffered_elements": 0}
    getter.add(prefetch, start + 6 * US, end - 6 * US, {"id": ids[prefetch], "parent_id": ids[root], **waiting})
    getter.add("PrefetchConsume", end - 9 * US, end - 7 * US, {"element_id": step})
    begun = start - 40 * US
    producer.add("PrefetchProduce", begun, end - 10 * US, {"element_id": step})
    size: Stats = {"batch_size": 64}
    producer.add(batch, begun + 2 * US, end - 12 * US, {"id": ids[batch], "parent_id": ids[prefetch], **size})
    slot = (end - 20 * US - begun) // 8
    for place in range(8):
        first = begun + 4 * US + place * slot
        producer.add(mapped, first, first + slot - 2 * US, {"id": ids[mapped], "parent_id": ids[batch]})
        producer.add(source, first + 1 * US, first + 3 * US, {"id": ids[source], "parent_id": ids[mapped]})
        producer.add("InstantiatedCapturedFunction::Run", first + 4 * US, first + slot - 3 * US, {"id": 90 + place})
    program.now = end + 10 * US


def _paths() -> list[str]:
    """The iterators of :data:`PIPELINE`, from the root."""
    parts = PIPELINE.split("::")
    return ["::".join(parts[:depth]) for depth in range(2, len(parts) + 1)]


def _name_iterators(host: Plane) -> None:
    """Iterators are shown by their kind alone."""
    for path in _paths()[1:]:
        host.named[path] = (f"Iterator::{path.rsplit('::', 1)[1]}", {})


def _fusion(name: str, dur_ns: int) -> Kernel:
    source: Stats = {
        "tf_op": f"jit(train_step)/{name}",
        "hlo_op": name,
        "hlo_module": "jit_train_step",
        "program_id": 7,
    }
    return Kernel(name.replace(".", "_"), dur_ns, 4096, 128, 40, source)


JAX_KERNELS = (
    *(_fusion(f"loop_multiply_fusion.{place}", 220 * US) for place in range(6)),
    *(_fusion(f"gemm_fusion_dot.{place}", 610 * US) for place in range(9)),
    _fusion("input_reduce_fusion", 180 * US),
)


@story("JAX on a GPU, annotated: the device is busy, nothing is wrong", Expected("not-input-bound", ()))
def gpu_jax_healthy(space: Space) -> None:
    metadata = space.plane("/host:metadata", 0, {"jax_version": "0.10.2", "jaxlib_version": "0.10.2"})
    metadata.stats["cuda_version"] = "12090"
    host = space.plane("/host:CPU")
    python = host.line(2001, "python3")
    program = GpuProgram(space, "jax")
    program.now = 1 * MS
    for step in range(STEPS):
        start = program.now
        program.now += 30 * US
        called = program.now
        program.copy_in(python, BATCH_BYTES, {"tf_op": "DevicePut"})
        for kernel in JAX_KERNELS:
            program.launch(python, kernel)
        python.add("PjitFunction(train_step)", called, program.now)
        program.synchronise(python)
        end = program.now + 5 * US
        python.add("train", start, end, {"step_num": step, "_r": 1})
        program.now = end + 3 * US


@story("a TPU that waits for its infeed", Expected("highly-input-bound", ("TV101",)))
def tpu_infeed_wait(space: Space) -> None:
    """Times of a TPU: a step is a module execution, its first operation takes the batch from the infeed queue."""
    device = space.plane("/device:TPU:0", 0, {"device_type_string": "TPU v5 lite", "peak_teraflops_per_second": 197.0})
    steps, modules = device.line(1, "Steps"), device.line(2, "XLA Modules")
    operations = device.line(3, "XLA Ops")
    host = space.plane("/host:CPU")
    python, feeder = host.line(3001, "python3"), host.line(3002, "tf_infeed/3002")
    works = (("fusion.1", "convolution fusion", 2400 * US), ("fusion.2", "loop fusion", 1900 * US))
    infeed = "%infeed.1 = ((f32[64,32,32,3]{3,2,1,0}), token[]) infeed(token[] %token.1)"
    device.named[infeed] = ("infeed.1", {"hlo_category": "infeed", "program_id": 11})
    for name, category, _ in works:
        device.named[f"%{name} = f32[64,10]{{1,0}} fusion()"] = (name, {"hlo_category": category, "program_id": 11})
    now = 1 * MS
    for step in range(STEPS):
        start, waited = now, 3600 * US + step * 10 * US
        operations.add(infeed, now, now + waited)
        feeder.add("InfeedEnqueueTuple:InfeedEnqueueTuple", now + waited - 400 * US, now + waited)
        now += waited
        for name, _, dur_ns in works:
            operations.add(f"%{name} = f32[64,10]{{1,0}} fusion()", now, now + dur_ns)
            now += dur_ns
        modules.add("jit_train_step(11)", start, now, {"run_id": 500 + step, "_ct": 12, "_c": 900 + step})
        steps.add(str(step), start, now, {"group_id": step})
        python.add("train", start - 60 * US, now - 80 * US, {"step_num": step, "_r": 1})
        python.add("PjitFunction(train_step)", start - 50 * US, start - 10 * US)
        python.add("tpu::System::Execute", start - 30 * US, start - 20 * US, {"_pt": 12, "_p": 900 + step})
        now += 20 * US
