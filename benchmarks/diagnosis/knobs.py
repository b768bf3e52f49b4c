"""The causes that a world can have, and how a report may name them.

``answers`` are keys of first causes (:attr:`traceviz.report.Verdict.cause`) that name the cause. ``symptoms`` are true
of it, but name only what it does to the device or the host. ``evidence`` are the kinds of captures that show it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Format(StrEnum):
    """Kinds of captures, by what they record."""

    NSYS = "nsys"
    KINETO = "kineto"
    KINETO_STACKS = "kineto-stacks"
    KINETO_ROCM = "kineto-rocm"
    CUPTI_MONITOR = "cupti-monitor"
    XPLANE = "xplane"
    XPLANE_TPU = "xplane-tpu"
    TRACE_JSON = "trace-json"
    NVPROF = "nvprof"
    RUN = "run"


class Knob(StrEnum):
    """A cause."""

    SLOW_LOADER = "slow-loader"
    SLOW_WORKERS = "slow-workers"
    SLOW_DISK = "slow-disk"
    INPUT_COPY = "input-copy"
    RESULT_READS = "result-reads"
    SMALL_KERNELS = "small-kernels"
    HOST_PYTHON = "host-python"
    GIL = "gil"
    LOGGING = "logging"
    CHECKPOINT = "checkpoint"
    EVALUATION = "evaluation"
    INTERCONNECT = "interconnect"
    STRAGGLER = "straggler"
    UNEVEN_RANKS = "uneven-ranks"
    HOST_COLLECTIVES = "host-collectives"
    OFFLOAD = "offload"
    RESULTS_TO_HOST = "results-to-host"
    DEVICE_COPIES = "device-copies"
    ALLOCATION = "allocation"
    STREAM_CREATION = "stream-creation"
    COMPILATION = "compilation"
    FIRST_USE = "first-use"
    START_UP = "start-up"
    SLEEP = "sleep"
    LOCK = "lock"
    GARBAGE_COLLECTION = "garbage-collection"
    LAYOUT = "layout"
    SLOW_KERNELS = "slow-kernels"
    SMALL_GRIDS = "small-grids"
    OTHER_PROGRAMS = "other-programs"
    FEW_REQUESTS = "few-requests"
    SCHEDULER = "scheduler"
    PIPELINE_BUBBLE = "pipeline-bubble"
    UNEVEN_STAGES = "uneven-stages"
    TENSOR_COMMUNICATION = "tensor-communication"
    SMALL_MICRO_BATCHES = "small-micro-batches"
    GRAPH_CAPTURE = "graph-capture"
    MANAGED_MEMORY = "managed-memory"
    CHILD_PROCESSES = "child-processes"

    __hash__ = str.__hash__  # that of Enum takes much of the time of a simulation


ALL = frozenset(Format)
STACKS = frozenset({Format.KINETO_STACKS, Format.XPLANE, Format.XPLANE_TPU, Format.RUN})
"""Captures that hold functions of Python."""
CALLS = frozenset({Format.NSYS})
"""Captures that hold calls of the operating system."""
HOST = frozenset({"host", "host-bound", "unexplained", "os_call", "os-wait", "exposed-wait", "waiting"})
"""The device waits for the host."""
MIGRATIONS = frozenset({Format.NSYS, Format.NVPROF})
"""Captures that hold migrations of managed memory."""
LAUNCHES = frozenset({"launch-bound-kernels", "kernel_launch", "eager-ops-in-steps"})


@dataclass(frozen=True, slots=True)
class KnobFacts:
    """A cause, the names that a report may give it, and its range of strengths.

    Args:
        knob: The cause.
        answers: Keys that name it.
        symptoms: Keys of its effect.
        evidence: Captures that hold evidence.
        least: Least time that it adds, as a share of the healthy step.
        most: Most time that it adds.
        ranks: Least number of ranks.
        serves: True if it is a cause of serving engines, not of training.
        needs_ranges: True if only ranges show it in captures without functions of Python.
        needs_calls: True if only calls of the runtime show it.
        places: Words of a sentence that make a symptom an answer, such as the function that takes the time.
        once: True if it happens once, before the first kernel.
    """

    knob: Knob
    answers: frozenset[str]
    symptoms: frozenset[str] = HOST
    evidence: frozenset[Format] = ALL
    least: float = 0.3
    most: float = 1.5
    ranks: int = 1
    serves: bool = False
    needs_ranges: bool = False
    needs_calls: bool = False
    places: tuple[str, ...] = ()
    once: bool = False

    def is_shown_by(self, format_: Format, *, has_ranges: bool, has_calls: bool = True) -> bool:
        """Return whether a capture holds evidence of the cause."""
        has_names = has_ranges or not self.needs_ranges or format_ in STACKS
        return format_ in self.evidence and has_names and (has_calls or not self.needs_calls)


def _keys(*keys: str) -> frozenset[str]:
    return frozenset(keys)


_INPUT = _keys("input", "input-bound", "single-process-loader", "slow-loader-workers", "prefetch-runs-empty")
_READS = _keys(
    "synchronisation", "synchronisation-exposes-idle", "exposed-wait", "device_wait", "blocking_copy", "blocking-copies"
)
_RANKS = _keys("straggler", "step-time-imbalance", "late-collectives")
_COPIES = _keys(
    "copy_h2d", "device-waits-for-copies", "pageable-copies", "synchronous-copies", "blocking_copy", "blocking-copies"
)

KNOBS = {
    facts.knob: facts
    for facts in (
        KnobFacts(
            Knob.SLOW_LOADER,
            _INPUT,
            HOST | _RANKS | {"possible_input"},
            needs_ranges=True,
            places=("input wait", "decode (dataset.py"),
        ),
        KnobFacts(
            Knob.SLOW_WORKERS,
            _INPUT,
            HOST | _RANKS | {"possible_input", "lock"},
            needs_ranges=True,
            places=("input wait", "decode (dataset.py"),
        ),
        KnobFacts(
            Knob.SLOW_DISK,
            _INPUT | {"io", "blocking-io"},
            HOST | _RANKS | {"possible_input"},
            needs_ranges=True,
            places=("input wait", "read_record (dataset.py"),
        ),
        KnobFacts(Knob.INPUT_COPY, _INPUT | _COPIES),
        KnobFacts(
            Knob.RESULT_READS,
            _READS,
            HOST | LAUNCHES | {"launch_queue"},
            needs_calls=True,
            places=("_local_scalar_dense",),
        ),
        KnobFacts(Knob.SMALL_KERNELS, LAUNCHES | {"host", "host-bound"}, HOST, least=0.8, most=3.0),
        KnobFacts(
            Knob.HOST_PYTHON,
            _keys("python-in-loop", "function-in-steps", "cpu-bound"),
            HOST | LAUNCHES,
            STACKS,
            least=0.8,
            most=2.5,
            places=("route_tokens",),
        ),
        KnobFacts(
            Knob.GIL,
            _keys("gil", "gil-contention"),
            HOST | LAUNCHES | _READS | _INPUT | {"lock", "lock-wait"},
            STACKS | CALLS,
            least=0.5,
        ),
        KnobFacts(
            Knob.LOGGING,
            _keys("logging", "logging-in-steps"),
            HOST | {"io", "blocking-io"},
            needs_ranges=True,
            places=("log_metrics", "emit"),
        ),
        KnobFacts(
            Knob.CHECKPOINT,
            _keys("saving", "checkpoint-in-loop", "time-outside-steps", "run_between", "run_saving"),
            HOST | {"io", "blocking-io", "copy_d2h", "serialization"},
            needs_ranges=True,
            places=("save_checkpoint", "save ("),
        ),
        KnobFacts(
            Knob.EVALUATION,
            _keys("slow-validation", "time-outside-steps", "run_between", "run_validation"),
            HOST | {"healthy"},  # it may be intended: a report that states its share next to healthy steps names it
            needs_ranges=True,
            most=1.2,
            places=("validation",),
        ),
        KnobFacts(
            Knob.INTERCONNECT,
            _keys("communication", "exposed-communication", "shared-stream"),
            _RANKS,
            least=0.5,
            ranks=2,
        ),
        KnobFacts(Knob.STRAGGLER, _RANKS, _keys("communication", "exposed-communication"), least=0.4, ranks=2),
        KnobFacts(
            Knob.UNEVEN_RANKS,
            _RANKS,
            HOST | {"communication", "exposed-communication"},
            least=0.4,
            ranks=2,
            places=("augment",),
        ),
        KnobFacts(
            Knob.HOST_COLLECTIVES,
            _keys("host_collective", "host-collectives"),
            HOST | {"communication", "exposed-communication"},
            needs_ranges=True,
            ranks=2,
            places=("gloo",),
        ),
        KnobFacts(Knob.OFFLOAD, _COPIES | {"parameter_transfer", "parameter-transfer"}, HOST | {"launch_queue"}),
        KnobFacts(Knob.RESULTS_TO_HOST, _keys("copy_d2h", "device-waits-for-copies"), HOST | {"launch_queue"}),
        KnobFacts(Knob.DEVICE_COPIES, _keys("other_device", "device-waits-for-copies")),
        KnobFacts(Knob.ALLOCATION, _keys("allocation", "allocation-churn", "exposed-allocation"), needs_calls=True),
        KnobFacts(Knob.STREAM_CREATION, _keys("stream", "stream-creation-in-steps"), needs_calls=True),
        KnobFacts(
            Knob.COMPILATION,
            _keys("compilation", "exposed-compilation", "recompilation-in-steps", "run_compilation"),
            HOST | {"first_launch", "first-launch"},
            needs_ranges=True,
            places=("compile",),
        ),
        KnobFacts(
            Knob.FIRST_USE,
            _keys("first_launch", "first-launch", "slow-start", "exposed-compilation", "compilation"),
            HOST | {"kernel_launch", "time-outside-steps", "healthy"},
            least=5,
            most=20,
            needs_calls=True,
            places=("before them", "start-up"),
            once=True,
        ),
        KnobFacts(
            Knob.START_UP,
            _keys("slow-start", "import", "time-outside-steps", "run_imports", "run_preparation", "run_startup"),
            HOST | {"serialization", "healthy"},
            STACKS,  # calls of the operating system show little of it: imports leave none
            least=5,
            most=30,
            places=("before them", "start-up"),
            once=True,
        ),
        # The finding on locks is also that on sleep; its sentence says which of them it is.
        KnobFacts(Knob.SLEEP, _keys("sleep"), HOST | {"lock-wait"}, STACKS | CALLS, places=("sleep",)),
        KnobFacts(
            Knob.LOCK,
            _keys("lock", "lock-wait"),
            HOST,
            STACKS | CALLS,
            places=("_thread.lock", "acquire", "pthread_cond_wait"),
        ),
        KnobFacts(Knob.GARBAGE_COLLECTION, _keys("garbage-collection"), HOST, STACKS, places=("collect",)),
        KnobFacts(Knob.LAYOUT, _keys("layout-conversion"), _keys("healthy")),
        KnobFacts(
            Knob.SLOW_KERNELS, _keys("matrix-ops-in-full-precision", "healthy"), frozenset(), least=0.5, most=3.0
        ),
        KnobFacts(
            Knob.SMALL_GRIDS,
            _keys("small-grids", "small-grids-with-free-memory", "small-batch"),
            _keys("healthy"),
            ALL - {Format.TRACE_JSON},  # it has no number of multiprocessors
            most=3.0,
        ),
        KnobFacts(
            Knob.OTHER_PROGRAMS,
            _keys("thread-oversubscription", "launches-beside-input-threads"),
            HOST | LAUNCHES | _INPUT | _READS | {"possible_input"},
            frozenset(),
            least=1.0,
            most=1.0,
        ),
        KnobFacts(
            Knob.FEW_REQUESTS,
            _keys("waits-for-work"),
            HOST | {"lock", "sleep"},
            STACKS | CALLS,
            least=1.5,
            most=4.0,
            serves=True,
            places=("epoll_wait", "get (queue"),
        ),
        KnobFacts(
            Knob.SCHEDULER,
            _keys("python-in-loop", "function-in-steps"),
            HOST | LAUNCHES,
            STACKS,
            serves=True,
            places=("schedule",),
        ),
        # Stages that wait for one another are what a report sees of a bubble. It is named if the sentence says that the
        # wait is for the exchange between stages.
        KnobFacts(
            Knob.PIPELINE_BUBBLE,
            _keys("pipeline-bubble"),
            _RANKS | {"communication", "exposed-communication"},
            ranks=2,
            places=("SendRecv", "send_recv", " recv", "pipeline", "stage", "micro-batch"),  # PyTorch: "recv"
        ),
        KnobFacts(
            Knob.UNEVEN_STAGES,
            _RANKS | {"uneven-stages"},
            _keys("communication", "exposed-communication", "pipeline-bubble"),
            least=0.4,
            ranks=2,
        ),
        KnobFacts(
            Knob.TENSOR_COMMUNICATION,
            _keys("communication", "exposed-communication", "shared-stream"),
            _RANKS,
            ranks=2,
        ),
        KnobFacts(
            Knob.SMALL_MICRO_BATCHES,
            LAUNCHES | {"host", "host-bound", "small-batch", "small-micro-batches"},
            HOST,
            least=0.5,
        ),
        KnobFacts(
            Knob.GRAPH_CAPTURE,
            _keys("compilation", "exposed-compilation", "recompilation-in-steps", "graph-capture"),
            HOST | {"driver", "first_launch"},
            needs_calls=True,
            places=("GraphInstantiate", "BeginCapture"),
        ),
        KnobFacts(
            Knob.MANAGED_MEMORY,
            _keys("migration", "managed-memory-migration"),
            # The host waits for pages within the function that touches them. Stacks show the function only.
            HOST | {"copy_h2d", "copy_d2h", "healthy", "python-in-loop", "function-in-steps"},
            MIGRATIONS,
            least=0.6,
            most=2.0,
        ),
        KnobFacts(
            Knob.CHILD_PROCESSES,
            _keys("child_process"),
            HOST | {"lock", "lock-wait"},
            STACKS | CALLS,
            places=("wait4", "subprocess", "child process"),
        ),
    )
}
"""All causes by their names."""
