"""Finding TV203: synchronisation exposes idle."""

from traceviz.report.findings.record import READ_RARELY, WAITS, FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV203",
    slug="synchronisation-exposes-idle",
    what=(
        "Device-wide, stream or event synchronisation, or copies to pageable host memory, in steady steps: the host "
        "waits for the device, which then falls idle."
    ),
    why="The host waits until the device has finished, and only then prepares the work that the device waits for.",
    advice=(
        READ_RARELY,
        "Replace cudaDeviceSynchronize by an event or stream wait on what is really needed.",
        "Copy with non_blocking=True from pinned memory.",
    ),
    misleads="Only the idle time is counted: a synchronisation that waits for a busy device costs nothing here.",
    references=("https://docs.nvidia.com/cuda/cuda-runtime-api/api-sync-behavior.html",),
    section="cuda_api",
    compares_clocks=True,
    explains=("synchronisation",),
    counts_later_time=True,
    claim="Synchronisation: devices idle while the host waits",
    tables=WAITS,
    place=TimelinePlace("idle_class", "the longest wait for a device that then idles", ("synchronisation",)),
)
