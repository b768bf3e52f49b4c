"""Finding TV409: small grids with free memory."""

from traceviz.report.findings.record import FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV409",
    slug="small-grids-with-free-memory",
    what=(
        "In at least 5 % of the judged time only kernels run that have fewer blocks than the device has "
        "multiprocessors, and at least half of the device's memory was never in use."
    ),
    why="A grid smaller than the device leaves multiprocessors idle; a larger batch makes larger grids at little cost.",
    advice=(
        "Use a larger batch (and adapt the learning rate) while memory allows.",
        (
            "Let fewer and larger kernels run, or several at once. TensorFlow: XLA (jit_compile=True); "
            "PyTorch: torch.compile(model), CUDA graphs or more streams; JAX: one jax.jit for the step."
        ),
    ),
    misleads=(
        "Optimizer and bookkeeping kernels do not grow with the batch. Memory that another process needs is not free."
    ),
    references=("https://www.tensorflow.org/guide/gpu_performance_analysis",),
    section="devices",
    explains=("device_compute",),
    certainty="at most",
    claim="Small grids: larger batches save up to",
    tables=("gpu_efficiency:1", "kernels"),
    place=TimelinePlace("small_grid", "the longest kernel with a small grid"),
)
