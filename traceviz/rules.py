"""Every rule that a report may raise, in one table: what it means, why it matters, what to do, when it misleads.

A code never changes its meaning; a slug names the problem, never the cure. ``traceviz explain CODE`` prints a rule.
"""

from __future__ import annotations

from dataclasses import dataclass

from traceviz.errors import UsageError


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of problem.

    Args:
        code: Stable code.
        slug: Name of the problem.
        what: What was seen, and the condition that raises it.
        why: Why it costs time.
        advice: What to do, most promising first.
        misleads: When the rule fires and should be ignored.
        references: Where to read on.
        part_of: Codes of rules that speak of the same time more precisely: where one is raised, this one is not.
    """

    code: str
    slug: str
    what: str
    why: str
    advice: tuple[str, ...]
    misleads: str
    references: tuple[str, ...] = ()
    part_of: tuple[str, ...] = ()


RULES: tuple[Rule, ...] = (
    Rule(
        "TV101",
        "input-bound",
        "Steady steps wait for input for at least 5 % of their time (moderately input-bound) or 20 % (highly): the "
        "training thread is inside a data-loading range while no device works, or input is copied to an idle device.",
        "The accelerator waits while the host reads, decodes and augments the next batch. No change to the model helps "
        "until this wait is gone.",
        (
            "Let the input run ahead: prefetch in tf.data, more workers and prefetch_factor in a DataLoader.",
            "Do the slow stage in parallel: num_parallel_calls=AUTOTUNE, num_workers near the number of free cores.",
            "Do it once: cache decoded data in memory or on disk, or preprocess offline.",
            "Move decoding and augmentation to the device (vectorised ops, NVIDIA DALI).",
        ),
        "A range that wraps more than loading, or a capture of the first steps only, while loader workers start. "
        "The wait is an upper bound of the gain: another limit shows once it is gone.",
        (
            "https://www.tensorflow.org/guide/data_performance",
            "https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
        ),
    ),
    Rule(
        "TV102",
        "possibly-input-bound",
        "No data-loading range was recorded, and in at least 20 % of steady step time no device works, nothing is "
        "launched or waited for, and the training thread waits in an operating-system call or computes on the host.",
        "A loader that is too slow looks like this, but so does any other work on the host.",
        (
            "Record ranges around data loading (NVTX range named 'data loading'), or name yours with --input-range.",
            "If the capture has no operating-system calls, record them too (nsys: --trace=cuda,nvtx,osrt).",
            "Compare with a run on synthetic data kept on the device: if it is faster, the input is the limit.",
        ),
        "Checkpointing, logging, evaluation or Python overhead between steps look the same without ranges.",
        ("https://docs.nvidia.com/nsight-systems/UserGuide/",),
    ),
    Rule(
        "TV201",
        "device-mostly-idle",
        "The device is idle for more than half of the judged time (steady steps, or from the first to the last work).",
        "An idle accelerator is paid for and does nothing; the causes of its gaps say what to change.",
        ("Look at the causes of the idle gaps, largest first: each names what the host did meanwhile.",),
        "Captures that include start-up, evaluation on the host or deliberate pauses (serving without load).",
        part_of=("TV102",),
    ),
    Rule(
        "TV202",
        "launch-bound-kernels",
        "Kernels shorter than 10 µs on average, and after more than half of them the device is idle until the next "
        "one arrives: the host cannot launch as fast as the device executes.",
        "Each launch costs the host several microseconds; where kernels are shorter than that, the device starves.",
        (
            "Use a larger batch: the same launches do more work.",
            "Launch many kernels at once: CUDA graphs, torch.compile(mode='reduce-overhead'), XLA (jit_compile=True).",
            "Fuse small operations (fused optimizers, fused layer norm).",
            "TensorFlow: TF_GPU_THREAD_MODE=gpu_private keeps tf.data from delaying launches.",
        ),
        "Kernels replayed by CUDA graphs are launched together; a capture with heavy tracing slows the host.",
        ("https://pytorch.org/blog/accelerating-pytorch-with-cuda-graphs/",),
    ),
    Rule(
        "TV203",
        "synchronisation-exposes-idle",
        "Device-wide, stream or event synchronisation in steady steps, during which the device falls idle.",
        "The host waits until the device has finished, and only then prepares the work that the device waits for.",
        (
            "Read results (loss.item(), numpy(), print) every N steps, not in each.",
            "Replace cudaDeviceSynchronize by an event or stream wait on what is really needed.",
            "Copy with non_blocking=True from pinned memory.",
        ),
        "Only the idle time is counted: a synchronisation that waits for a busy device costs nothing here.",
        ("https://docs.nvidia.com/cuda/cuda-runtime-api/api-sync-behavior.html",),
    ),
    Rule(
        "TV301",
        "allocation-churn",
        "Device memory is allocated or freed in steady steps (cudaMalloc, cudaFree, cuMemAlloc ...), the device idle.",
        "cudaMalloc and cudaFree take tens to hundreds of microseconds, and cudaFree waits for the device.",
        (
            "Allocate once and reuse; keep shapes constant, or pad them to a few sizes.",
            "PyTorch: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; do not call torch.cuda.empty_cache() in steps.",
            "TensorFlow: TF_GPU_ALLOCATOR=cuda_malloc_async, or let it take the memory at once (no memory growth).",
            "CUDA: cudaMallocAsync with a memory pool.",
        ),
        "A framework's caching allocator grows in the first steps; those are counted as start-up.",
        ("https://docs.nvidia.com/cuda/cuda-c-programming-guide/#stream-ordered-memory-allocator",),
    ),
    Rule(
        "TV302",
        "pageable-copies",
        "Copies between the device and pageable host memory, issued by the runtime or the driver API, that the device "
        "waits for: their time does not overlap compute.",
        "The driver stages pageable memory through a pinned buffer: slower, and cudaMemcpyAsync then blocks the host.",
        (
            "PyTorch: DataLoader(pin_memory=True) and tensor.to(device, non_blocking=True).",
            "CUDA: allocate staging buffers with cudaHostAlloc / cudaMallocHost and reuse them.",
            "Copy on a second stream while the previous step computes.",
        ),
        "Small copies of a few kilobytes gain nothing; copies hidden behind compute are not counted.",
        ("https://developer.nvidia.com/blog/how-optimize-data-transfers-cuda-cc/",),
    ),
    Rule(
        "TV303",
        "synchronous-copies",
        "Blocking copy calls in steady steps (cudaMemcpy, cuMemcpyHtoD ... without Async) during which the device "
        "runs no kernel.",
        "The host waits for the copy, and nothing is launched meanwhile.",
        (
            "Use cudaMemcpyAsync on a stream, from pinned memory.",
            "Keep results on the device; copy several at once.",
        ),
        "Copies that end a program's phase must be waited for.",
        ("https://docs.nvidia.com/cuda/cuda-runtime-api/api-sync-behavior.html",),
    ),
    Rule(
        "TV304",
        "stream-creation-in-steps",
        "Streams are created or destroyed in steady steps while the device is idle.",
        "cudaStreamCreateWithFlags takes tens of microseconds to milliseconds; streams are meant to be reused.",
        ("Create streams once, before the loop, and reuse them.",),
        "A library that grows its pool in the first steps; those are counted as start-up.",
    ),
    Rule(
        "TV901",
        "capture-incomplete",
        "The profiler reports errors, or dropped events.",
        "Totals are lower bounds, and idle time may be work that was not recorded.",
        (
            "Record a shorter window (--delay, --duration) or fewer event kinds.",
            "Read the profiler's own messages below.",
        ),
        "Warnings of processes that do no device work.",
    ),
    Rule(
        "TV902",
        "profiler-overhead",
        "The profiler itself took more than 5 % of the judged time (steady steps, else first to last device work).",
        "Durations of short calls and gaps between them are inflated; compare shares between traces with care.",
        ("Trace fewer event kinds (no CPU sampling, no backtraces), or a shorter window.",),
        "Overhead at start-up, before the first step, does not distort the steps.",
    ),
)

_BY_NAME = {key: rule for rule in RULES for key in (rule.code.lower(), rule.slug)}


def rule(code: str) -> Rule:
    """The rule with this code or slug (case does not matter).

    Raises:
        UsageError: no such rule; the error lists those that exist.
    """
    try:
        return _BY_NAME[code.lower()]
    except KeyError:
        raise UsageError.unknown("rule", code, (f"{r.code} ({r.slug})" for r in RULES)) from None
