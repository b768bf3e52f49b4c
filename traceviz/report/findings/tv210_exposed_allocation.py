"""Finding TV210: exposed allocation."""

from traceviz.report.findings.record import FindingRecord, TimelinePlace

REGISTER = (
    "Register host memory once, before the work (cudaHostRegister), and use the same buffers again: MPI and other "
    "libraries register each buffer on its first use."
)
REUSE = "Allocate and create once, and reuse. PyTorch and TensorFlow do so after the first steps."

RECORD = FindingRecord(
    code="TV210",
    slug="exposed-allocation",
    what=(
        "In at least 20 % of the judged time no device works while memory is allocated, freed or registered, or "
        "streams are created."
    ),
    why="These calls take the driver's lock, and cudaFree waits for the device.",
    advice=(
        REUSE,
        REGISTER,
        "If this is start-up, judge later steps: record after a warm-up.",
    ),
    only_for=((REUSE, ("allocation", "stream")), (REGISTER, ("registration",))),
    misleads="A program that runs only once allocates in every run. Calls that create a context are no part of it.",
    section="host_waits",
    part_of=("TV301", "TV304"),
    compares_clocks=True,
    explains=("allocation", "registration", "stream"),
    is_candidate=False,
    tables=("host_waits", "cuda_api"),
    place=TimelinePlace("idle_class", "the longest allocation without device work", ("allocation",)),
)
