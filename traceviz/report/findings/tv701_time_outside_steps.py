"""Finding TV701: time outside steps."""

from traceviz.report.findings.record import RUN, FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV701",
    slug="time-outside-steps",
    what=(
        "From the first step on, the program spends more time validating, saving, between epochs and after the last "
        "step than in its steps."
    ),
    why="Faster steps hardly make such a run faster: its time is elsewhere.",
    advice=(
        "Start with the part and the place that the section on the whole run shows first.",
        "Do less of it: evaluate and save every N epochs or minutes, and not after each few steps.",
    ),
    misleads="A short run for a test: evaluation and saving cost the same after few steps as after many.",
    section="whole_run",
    half_of=("TV702", "TV703", "TV705"),
    is_of_run=True,
    tables=RUN,
    place=TimelinePlace("run_part", "the longest time outside of steps", ("validation", "saving", "between", "after")),
)
