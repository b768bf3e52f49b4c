"""Finding TV504: exposed communication."""

from traceviz.report.findings.record import COMMUNICATION, FindingRecord, TimelinePlace

OF_SHARDED = (
    "PyTorch with sharded parameters: prefetch the next layer (forward_prefetch, backward_prefetch of FSDP).",
    (
        "PyTorch with sharded parameters: gather less often, for more memory: keep them between the forward "
        "and the backward pass (reshard_after_forward=False), or shard within a machine only (a "
        "two-dimensional mesh, HYBRID_SHARD)."
    ),
)
"""Advice that comes first if parameters are gathered."""

RECORD = FindingRecord(
    code="TV504",
    slug="exposed-communication",
    what=(
        "Collectives (NCCL, RCCL and the like) run in at least 10 % of the judged time while their device computes "
        "nothing."
    ),
    why="What computing does not hide is added to every step, and grows with the number of ranks.",
    advice=(
        (
            "Start it earlier, and hide it. PyTorch: DistributedDataParallel reduces buckets during the backward "
            "pass: tune bucket_cap_mb, set gradient_as_bucket_view=True, and static_graph=True where it applies; "
            "JAX: let XLA's latency-hiding scheduler overlap collectives."
        ),
        (
            "Communicate less often: larger batches per rank, or accumulate gradients. PyTorch: model.no_sync() "
            "in all but the last pass."
        ),
        "Send fewer bytes: 16-bit gradients. PyTorch: the bf16_compress_hook of DistributedDataParallel.",
        *OF_SHARDED,
    ),
    misleads=(
        "The kernel of a rank that arrives early waits for the others. Where several ranks were captured, that wait is "
        "left out. Of transfers between two ranks, only the wait for the rank with the most work of its own is known. "
        "In the capture of one rank the wait is part of this, and no overlap removes it."
    ),
    references=("https://pytorch.org/docs/stable/notes/ddp.html",),
    section="communication",
    explains=("communication",),
    is_of_ranks=True,
    claim="Exposed communication: devices only communicate",
    tables=COMMUNICATION,
    place=TimelinePlace("idle_class", "the longest communication without computing", ("communication",)),
)
