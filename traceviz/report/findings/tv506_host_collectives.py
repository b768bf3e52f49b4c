"""Finding TV506: host collectives."""

from traceviz.report.findings.record import HOST_COLLECTIVES, FindingRecord, TimelinePlace

RECORD_ALL = "Record all ranks and give them to one report: it says which of them is late."
"""Advice if one rank was recorded."""
OF_PYTORCH = (
    (
        "PyTorch: on GPUs init_process_group(backend='nccl') instead of gloo; on CPUs give gloo the fast "
        "network (GLOO_SOCKET_IFNAME), or use MPI."
    ),
    (
        "PyTorch: communicate less often: larger batches per rank, or accumulate gradients (model.no_sync() in "
        "all but the last pass)."
    ),
    (
        "PyTorch: send fewer bytes, and earlier: 16-bit gradients (the bf16_compress_hook of "
        "DistributedDataParallel), static_graph=True, a smaller bucket_cap_mb."
    ),
)
"""Advice about collectives of PyTorch; the first is about devices and networks."""
OF_MPI = (
    ("MPI: compute while it communicates: MPI_Isend, MPI_Irecv and MPI_Iallreduce before the work, MPI_Wait after it."),
    "MPI: with data on devices, a library that takes pointers to their memory (CUDA-aware MPI) saves copies.",
)
"""Advice about MPI."""

RECORD = FindingRecord(
    code="TV506",
    slug="host-collectives",
    what=(
        "In at least 10 % of the judged time the program waits in collectives that run on the host (PyTorch's gloo, "
        "MPI or UCC, calls of MPI), and computes nothing during that time, neither on a device nor on the host."
    ),
    why=(
        "The host sends the data through its own memory and network, and the program stands still until the last rank "
        "has sent its part: the time is added to every step."
    ),
    advice=(
        RECORD_ALL,
        *OF_PYTORCH,
        *OF_MPI,
    ),
    misleads=(
        "A rank that arrives early waits for the others. Where several ranks were captured, that wait is left out; in "
        "the capture of one rank it is part of this, and no faster network removes it."
    ),
    references=("https://pytorch.org/docs/stable/distributed.html",),
    section="host_collectives",
    explains=("host_collective",),
    disjoint_from=("TV501", "TV502", "TV503"),
    is_of_ranks=True,
    claim="Host collectives: ranks exchange data",
    tables=HOST_COLLECTIVES,
    place=TimelinePlace("idle_class", "the longest communication without computing", ("communication",)),
)
