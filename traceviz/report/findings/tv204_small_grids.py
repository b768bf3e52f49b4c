"""Finding TV204: small grids."""

from traceviz.report.findings.record import FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV204",
    slug="small-grids",
    what=(
        "While kernels run, multiprocessors without a block are worth at least 20 % of the judged time: kernels have "
        "fewer blocks than the GPU has multiprocessors. Communication, which is small on purpose, does not count."
    ),
    why=(
        "A GPU counts as busy while one of its multiprocessors works. The others could do as much again in the same "
        "time."
    ),
    advice=(
        "Use a larger batch, or larger pieces of work: grids grow with it.",
        (
            "Fuse small kernels, so that fewer and larger ones run. TensorFlow: XLA (jit_compile=True); "
            "PyTorch: torch.compile(model), and optimizers with fused=True; JAX: one jax.jit for the step."
        ),
        "Run independent small kernels at once: several streams, CUDA graphs, or several processes with MPS.",
    ),
    misleads=(
        "Kernels that keep a multiprocessor for themselves (persistent and split-k kernels) have few blocks and still "
        "use all there is. Blocks that wait for memory gain less from company than the bound says."
    ),
    references=("https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/#occupancy",),
    section="gpu_efficiency",
    part_of=("TV409",),
    explains=("device_compute",),
    certainty="at most",
    claim="Small grids: larger ones save up to",
    tables=("gpu_efficiency:1", "kernels"),
    place=TimelinePlace("small_grid", "the longest kernel with a small grid"),
)
