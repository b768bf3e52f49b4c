"""Finding TV302: pageable copies."""

from traceviz.report.findings.record import COPIES, FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV302",
    slug="pageable-copies",
    what=(
        "Copies between the device and pageable host memory, issued by the runtime or the driver API, that the device "
        "waits for: their time does not overlap compute."
    ),
    why="The driver stages pageable memory through a pinned buffer: slower, and cudaMemcpyAsync then blocks the host.",
    advice=(
        "PyTorch: DataLoader(pin_memory=True) and tensor.to(device, non_blocking=True).",
        "CUDA: allocate staging buffers with cudaHostAlloc / cudaMallocHost and reuse them.",
        "Copy on a second stream while the previous step computes.",
    ),
    misleads="Small copies of a few kilobytes gain nothing; copies hidden behind compute are not counted.",
    references=("https://developer.nvidia.com/blog/how-optimize-data-transfers-cuda-cc/",),
    section="copies",
    explains=("copy_d2h", "copy_h2d", "blocking_copy"),
    claim="Pageable copies: devices wait for them",
    tables=COPIES,
    place=TimelinePlace("pageable_copy", "the longest pageable copy"),
)
