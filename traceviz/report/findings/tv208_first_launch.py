"""Finding TV208: first launch."""

from traceviz.report.findings.record import FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV208",
    slug="first-launch",
    what=(
        "In at least 20 % of the judged time no device works because first calls create the device's context or load "
        "its code."
    ),
    why="This happens once for each kernel of a program. Later steps do not pay for it.",
    advice=(
        "Judge later steps: record after a warm-up.",
        "Load early or lazily as it suits: CUDA_MODULE_LOADING=LAZY or EAGER.",
    ),
    misleads="Programs that run only once pay for it in every run.",
    section="host_waits",
    compares_clocks=True,
    explains=("first_launch",),
    is_candidate=False,
    tables=("host_waits", "host_time", "cuda_api"),
    place=TimelinePlace("idle_class", "the longest compilation without device work", ("compilation",)),
)
