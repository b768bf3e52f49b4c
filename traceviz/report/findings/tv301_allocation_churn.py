"""Finding TV301: allocation churn."""

from traceviz.report.findings.record import ALLOCATION, FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV301",
    slug="allocation-churn",
    what="Device memory is allocated or freed in steady steps (cudaMalloc, cudaFree, cuMemAlloc ...), the device idle.",
    why="cudaMalloc and cudaFree take tens to hundreds of microseconds, and cudaFree waits for the device.",
    advice=(
        "Allocate once and reuse; keep shapes constant, or pad them to a few sizes.",
        "PyTorch: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; do not call torch.cuda.empty_cache() in steps.",
        "TensorFlow: TF_GPU_ALLOCATOR=cuda_malloc_async, or let it take the memory at once (no memory growth).",
        "CUDA: cudaMallocAsync with a memory pool.",
    ),
    misleads="A framework's caching allocator grows in the first steps; those are counted as start-up.",
    references=("https://docs.nvidia.com/cuda/cuda-c-programming-guide/#stream-ordered-memory-allocator",),
    section="cuda_api",
    compares_clocks=True,
    explains=("allocation",),
    claim="Allocation churn: devices idle during it",
    tables=ALLOCATION,
    place=TimelinePlace("idle_class", "the longest allocation without device work", ("allocation",)),
)
