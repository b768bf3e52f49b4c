"""Finding TV205: host bound."""

from traceviz.report.findings.record import FindingRecord, TimelinePlace

COMPILE = (
    "Compile the step, and launch once instead of many times. TensorFlow: tf.function(jit_compile=True); PyTorch: "
    "torch.compile(model), or CUDA graphs with mode='reduce-overhead'; JAX: one jax.jit for the step."
)
SLOW_OPERATORS = (
    "PyTorch: the operators with the most host time say what is slow (record with_stack=True to see the Python between "
    "them)."
)
ON_DEVICE = (
    "Compute it on the device, or before it is needed. PyTorch: device='cuda' where tensors are made (torch.randn(..., "
    "device='cuda')), or in the workers of a DataLoader."
)
"""Advice about operators that compute on the host while the device waits for their result."""
BATCH = "Use a larger batch: the host prepares the same operators, and the device has more to do."
BESIDE = (
    "Let the device work at the same time: launch its next work before this work of the host, do it on another thread, "
    "or move it to the device."
)
TRANSFER = (
    "Parameters on the host: keep on the device what fits, or copy the next layer from pinned memory on a stream of "
    "its own while this one computes."
)
FRAMEWORK, OPERATOR_ON_HOST, OTHER = "framework", "operator on the host", "other"
"""Kinds of the host's own work, in addition to those of its causes: a framework prepares the step; its operators
compute on the host; anything else."""

RECORD = FindingRecord(
    code="TV205",
    slug="host-bound",
    what=(
        "In at least 20 % of the judged time no device works, and the innermost recorded event of the host is its own "
        "work: an operator, a Python function, the optimizer, the framework's runtime, a launch call, or a range."
    ),
    why="The device cannot work faster than the host launches. The events show what the host did instead.",
    advice=(
        ON_DEVICE,
        COMPILE,
        SLOW_OPERATORS,
        BATCH,
        TRANSFER,
        BESIDE,
        "Where Python functions take the time: move their work out of the step, or to the device.",
    ),
    only_for=(
        (ON_DEVICE, (OPERATOR_ON_HOST,)),
        *((text, (FRAMEWORK,)) for text in (COMPILE, SLOW_OPERATORS, BATCH)),
        (TRANSFER, ("parameter_transfer",)),
        (BESIDE, (OTHER,)),
    ),
    misleads=(
        "A profiler that records stacks or shapes slows the host more than the device. Another program on the same "
        "cores does so, too."
    ),
    references=("https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",),
    section="host_waits",
    half_of=("TV202", "TV407"),
    compares_clocks=True,
    explains=("host",),
    is_candidate=False,
    tables=("host_waits", "host_time", "cuda_api"),
    place=TimelinePlace("idle_class", "the longest work of the host without device work", ("host_compute",)),
)
