"""Finding TV304: stream creation in steps."""

from traceviz.report.findings.record import ALLOCATION, FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV304",
    slug="stream-creation-in-steps",
    what="Streams are created or destroyed in steady steps while the device is idle.",
    why="cudaStreamCreateWithFlags takes tens of microseconds to milliseconds; streams are meant to be reused.",
    advice=("Create streams once, before the loop, and reuse them.",),
    misleads="A library that grows its pool in the first steps; those are counted as start-up.",
    section="cuda_api",
    compares_clocks=True,
    explains=("stream",),
    claim="Stream creation: devices wait for it",
    tables=ALLOCATION,
    place=TimelinePlace("idle_class", "the longest allocation without device work", ("allocation",)),
)
