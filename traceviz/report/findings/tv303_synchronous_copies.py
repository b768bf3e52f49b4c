"""Finding TV303: synchronous copies."""

from traceviz.report.findings.record import COPIES, FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV303",
    slug="synchronous-copies",
    what=(
        "Blocking copy calls in steady steps (cudaMemcpy, cuMemcpyHtoD ... without Async) during which the device "
        "runs no kernel."
    ),
    why="The host waits for the copy, and launches nothing during that time.",
    advice=(
        (
            "Copy on a stream from pinned memory (cudaMemcpyAsync). PyTorch: DataLoader(pin_memory=True) and "
            "tensor.to(device, non_blocking=True)."
        ),
        "Keep results on the device; copy several at once.",
    ),
    misleads="Copies that end a program's phase must be waited for.",
    references=("https://docs.nvidia.com/cuda/cuda-runtime-api/api-sync-behavior.html",),
    section="copies",
    compares_clocks=True,
    explains=("copy_d2h", "copy_h2d", "blocking_copy"),
    claim="Synchronous copies: devices wait for them",
    tables=COPIES,
    place=TimelinePlace("api_call", "the longest blocking copy call", ("blocking_copy",)),
)
