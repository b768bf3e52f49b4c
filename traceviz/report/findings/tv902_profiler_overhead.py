"""Finding TV902: profiler overhead."""

from traceviz.report.findings.record import ELSEWHERE, FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV902",
    slug="profiler-overhead",
    what=(
        "The profiler itself took more than 5 % of the judged time (steady steps, else first to last device work; all "
        "of the capture where no device works), while no device worked and nothing else explains the time."
    ),
    why="Durations of short calls and gaps between them are inflated; compare shares between traces with care.",
    advice=("Trace fewer event kinds (no CPU sampling, no backtraces), or a shorter window.",),
    misleads="Overhead at start-up, before the first step, does not distort the steps.",
    section="capture",
    explains=("profiler",),
    claim="Profiler: its own work takes",
    tables=ELSEWHERE,
    place=TimelinePlace("idle_class", "the longest work of the profiler", ("profiler",)),
)
