"""Finding TV202: launch bound kernels."""

from traceviz.report.findings.record import LAUNCHES, FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV202",
    slug="launch-bound-kernels",
    what=(
        "Kernels shorter than 10 µs on average or in the median, and after more than half of them the device is idle "
        "until the next one arrives: the host cannot launch as fast as the device executes."
    ),
    why="Each launch costs the host several microseconds; where kernels are shorter than that, the device starves.",
    advice=(
        "Use a larger batch: the same launches do more work.",
        (
            "Launch many kernels at once. TensorFlow: XLA (jit_compile=True); PyTorch: CUDA graphs "
            "(torch.cuda.graphs) or torch.compile(model, mode='reduce-overhead'); JAX: one jax.jit for the step."
        ),
        "Fuse small operations (fused optimizers, fused layer norm).",
        "TensorFlow: TF_GPU_THREAD_MODE=gpu_private keeps tf.data from delaying launches.",
    ),
    misleads="Kernels replayed by CUDA graphs are launched together; a capture with heavy tracing slows the host.",
    references=("https://pytorch.org/blog/accelerating-pytorch-with-cuda-graphs/",),
    section="kernels",
    explains=("kernel_launch", "launch_queue", "host"),
    label="launch-bound",
    claim="Launch-bound: devices wait for launches",
    tables=LAUNCHES,
    place=TimelinePlace("idle_class", "the longest kernel launch without device work", ("kernel_launch",)),
)
