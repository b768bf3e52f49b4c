"""Finding TV212: managed memory migration."""

from traceviz.report.findings.record import COPIES, FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV212",
    slug="managed-memory-migration",
    what=(
        "In at least 20 % of the judged time no kernel runs while pages of managed memory migrate one by one between "
        "host and device: 100 migrations in a row or more."
    ),
    why=(
        "Each page that host or device touches while the other one holds it is a fault that stops the thread. A copy "
        "of the same bytes in one piece is many times as fast."
    ),
    advice=(
        (
            "Move managed memory at once, before it is used: cudaMemPrefetchAsync to the device before a kernel, and "
            "to cudaCpuDeviceId before the host reads it."
        ),
        "State how it is used: cudaMemAdvise with SetReadMostly, SetPreferredLocation or SetAccessedBy.",
        "Or allocate with cudaMalloc, and copy from pinned memory.",
    ),
    misleads="Data that does not fit into the memory of the device has to migrate.",
    references=("https://developer.nvidia.com/blog/unified-memory-cuda-beginners/",),
    section="host_waits",
    compares_clocks=True,
    explains=("migration",),
    is_candidate=False,
    tables=("host_waits", *COPIES),
    place=TimelinePlace("idle_class", "the longest time between migrations"),
)
