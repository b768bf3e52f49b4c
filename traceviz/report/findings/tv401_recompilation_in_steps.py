"""Finding TV401: recompilation in steps."""

from traceviz.report.findings.record import COMPILATION, FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV401",
    slug="recompilation-in-steps",
    what="Functions are traced or programs compiled in at least two steady steps of a process, while no device works.",
    why=(
        "Tracing and compiling take milliseconds to minutes; they are meant to happen in the first step only. Each new "
        "shape, type or Python argument makes the framework compile again."
    ),
    advice=(
        "Keep shapes constant: drop the remainder of the last batch, pad sequences to a few lengths.",
        "TensorFlow: tf.function(reduce_retracing=True) or an input_signature; pass tensors, not Python numbers.",
        "JAX: mark changing arguments as arrays (not static_argnums), create jitted functions once, outside loops.",
    ),
    misleads=(
        "A capture whose steps are the program's first, or one that contains an evaluation. The call of a function "
        "that was traced first counts as a whole, its execution included."
    ),
    references=(
        "https://www.tensorflow.org/guide/function#controlling_retracing",
        "https://docs.jax.dev/en/latest/jit-compilation.html",
    ),
    section="compilation",
    compares_clocks=True,
    explains=("compilation",),
    claim="Recompilation: steps compile again for",
    tables=COMPILATION,
    place=TimelinePlace("idle_class", "the longest compilation without device work", ("compilation",)),
)
