"""Finding TV705: between epochs."""

from traceviz.report.findings.record import RUN, FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV705",
    slug="between-epochs",
    what=(
        "In at least 5 % of the run, between its first and its last step, the program does something else: no step, no "
        "validation, no saving."
    ),
    why="No step runs during that time.",
    advice=(
        "Do it once before the loop, or concurrently in a thread or a worker process.",
        "Loaders: persistent_workers=True keeps the workers from starting again in each epoch.",
    ),
    misleads="Work that has to be done between epochs, such as new negative samples.",
    section="whole_run",
    is_of_run=True,
    tables=RUN,
    place=TimelinePlace("run_part", "the longest time between steps", ("between",)),
)
