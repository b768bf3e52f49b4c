"""Finding TV210: exposed allocation."""

from traceviz.report.findings.record import FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV210",
    slug="exposed-allocation",
    what="In at least 20 % of the judged time no device works while memory is allocated or freed, or streams are made.",
    why="These calls take the driver's lock, and cudaFree waits for the device.",
    advice=(
        "Allocate and create once, and reuse. PyTorch and TensorFlow do so after the first steps.",
        "If this is start-up, judge later steps: record after a warm-up.",
    ),
    misleads="A program that runs only once allocates in every run. Calls that create a context are no part of it.",
    section="host_waits",
    part_of=("TV301", "TV304"),
    compares_clocks=True,
    explains=("allocation", "stream"),
    is_candidate=False,
    tables=("host_waits", "cuda_api"),
    place=TimelinePlace("idle_class", "the longest allocation without device work", ("allocation",)),
)
