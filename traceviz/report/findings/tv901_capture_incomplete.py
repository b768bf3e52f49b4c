"""Finding TV901: capture incomplete."""

from traceviz.report.findings.record import ELSEWHERE, FindingRecord

RECORD = FindingRecord(
    code="TV901",
    slug="capture-incomplete",
    what="The profiler reports errors or dropped events, or the file is cut off.",
    why="Totals are lower bounds, and idle time may be work that was not recorded.",
    advice=(
        "Record a shorter window, of ten to twenty steps, or fewer event kinds.",
        "Read the profiler's own messages below; where the file is cut off, copy it again.",
    ),
    misleads="Warnings of processes that do no device work.",
    section="capture",
    severity="warning",
    certainty="unexplained",
    tables=ELSEWHERE,
)
