"""Finding TV606: operators of cpu steps."""

from traceviz.report.findings.record import COMPUTING, FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV606",
    slug="operators-of-cpu-steps",
    what=(
        "No device work was captured, and one family of operators (convolution, matrix products, embeddings, ...) has "
        "at least 20 % of the judged time."
    ),
    why="It is what the time goes into: where to look first for less of it.",
    advice=(
        (
            "Threads: as many as physical cores. PyTorch: torch.set_num_threads, OMP_NUM_THREADS, OMP_PROC_BIND; "
            "TensorFlow: intra_op_parallelism_threads."
        ),
        "Compile the step. PyTorch: torch.compile; TensorFlow: tf.function; JAX: jax.jit.",
        "Where the machine has a device, see that the program uses it, and record it as well.",
    ),
    misleads=(
        "It is a hint and no fault: something has to take most of the time. Times are those of the thread that leads, "
        "or of one that works for it; threads that compute the same operator at the same time take none of their own."
    ),
    references=("https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",),
    section="cpu_steps",
    severity="hint",
    half_of=("TV612", "TV621"),
    tables=COMPUTING,
    place=TimelinePlace("largest_operation", "the longest call of the operator with most time"),
)
