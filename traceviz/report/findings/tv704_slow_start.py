"""Finding TV704: slow start."""

from traceviz.report.findings.record import RUN, FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV704",
    slug="slow-start",
    what=(
        "A run of two minutes or more spends at least 20 % of it before its first step; or a shorter one, if other "
        "programs leave the machine alone, half of it and 30 s; or half of it without imports and compilation."
    ),
    why="Each start, also after a failure, waits for it, and the devices with it.",
    advice=(
        "Prepare data once and keep the result; load it lazily or in workers.",
        "Import heavy packages where they are used (python -X importtime shows which they are).",
        "Keep compiled programs: torch.compile and JAX have caches on disk.",
    ),
    misleads=(
        "Short runs for a test mostly start up. Below 30 s of start-up, imports do not count, and the rest is "
        "for information."
    ),
    section="whole_run",
    hint_if=(
        "In a run below two minutes, it is shorter than 30 s or mostly imports; in a longer one, it is mostly imports "
        "and less than half of the run."
    ),
    is_of_run=True,
    tables=RUN,
    place=TimelinePlace("run_part", "the longest part of the start", ("imports", "preparation")),
)
