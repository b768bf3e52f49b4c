"""Finding TV206: blocking copies."""

from traceviz.report.findings.record import READ_RARELY, FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV206",
    slug="blocking-copies",
    what=(
        "In at least 5 % of the judged time no device works while the host waits in a copy that need not hold it up: "
        "an asynchronous copy from or to pageable memory, or one that is seen to return only when it is done "
        "(hipMemcpyWithStream, in which PyTorch on ROCm reads results)."
    ),
    why=(
        "The driver moves pageable memory through memory of its own, so the call returns only when all work before it "
        "on its stream is done. Until then the host launches nothing, and the device runs out of work."
    ),
    advice=(
        READ_RARELY,
        (
            "Copy to the host with non_blocking=True into pinned memory, record an event behind the copy, and read "
            "the result once that has passed, a step later."
        ),
        (
            "Copy to the device from pinned memory: DataLoader(pin_memory=True), tensor.pin_memory(), and "
            ".to(device, non_blocking=True)."
        ),
        "Where the host only needs sizes: compute them on the host, from data that is there already.",
    ),
    misleads=(
        "If work that was launched earlier has not started either, the device waits for something else, such as "
        "another rank or events that were not recorded, and the copy waits with it."
    ),
    references=(
        "https://docs.nvidia.com/cuda/cuda-runtime-api/api-sync-behavior.html",
        "https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html",
    ),
    section="cuda_api",
    compares_clocks=True,
    explains=("blocking_copy",),
    claim="Blocking copies: devices idle during them",
    tables=("host_waits", "copies", "cuda_api"),
    place=TimelinePlace("waiting_copy", "the longest wait in a copy call"),
)
