"""Finding TV205: host bound."""

from traceviz.report.findings.record import FindingRecord, TimelinePlace

BATCH = "Use a larger batch: the host prepares the same operators, and the device has more to do."
"""Advice if operators of a framework take the time."""
BESIDE = (
    "Let the device work at the same time: launch its next work before this work of the host, do it on another thread, "
    "or move it to the device."
)
"""Advice for other work of the host."""

TRANSFER = (
    "Parameters on the host: keep on the device what fits, or copy the next layer from pinned memory on a stream of "
    "its own while this one computes."
)
"""Advice if parameters are brought to the device."""

RECORD = FindingRecord(
    code="TV205",
    slug="host-bound",
    what=(
        "In at least 20 % of the judged time no device works, and the innermost recorded event of the host is its own "
        "work: an operator, a Python function, the optimizer, the framework's runtime, a launch call, or a range."
    ),
    why="The device can work no faster than the host tells it to. The events say what the host was busy with instead.",
    advice=(
        (
            "Compile the step, and launch once instead of many times. TensorFlow: "
            "tf.function(jit_compile=True); PyTorch: torch.compile(model), or CUDA graphs with "
            "mode='reduce-overhead'; JAX: one jax.jit for the step."
        ),
        (
            "PyTorch: the operators with the most host time say what is slow (record with_stack=True to see the "
            "Python between them)."
        ),
        BATCH,
        TRANSFER,
        BESIDE,
        "Where Python functions take the time: move their work out of the step, or to the device.",
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
