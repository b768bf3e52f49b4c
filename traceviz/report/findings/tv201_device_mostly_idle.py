"""Finding TV201: device mostly idle."""

from traceviz.report.findings.record import FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV201",
    slug="device-mostly-idle",
    what="The device is idle for more than half of the judged time (steady steps, or from the first to the last work).",
    why="An idle accelerator is paid for and does nothing; the causes of its gaps say what to change.",
    advice=("Look at the causes of the idle gaps, largest first: each names what the host did during the gap.",),
    misleads="Captures that include start-up, evaluation on the host or deliberate pauses (serving without load).",
    section="device_use",
    part_of=("TV102", "TV205", "TV207", "TV208", "TV209", "TV210", "TV211", "TV212"),
    compares_clocks=True,
    tables=("host_waits", "idle_gaps", "device_use"),
    place=TimelinePlace("idle_class", "the longest time without device work"),
)
