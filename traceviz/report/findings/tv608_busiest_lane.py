"""Finding TV608: busiest lane."""

from traceviz.report.findings.record import FindingRecord

RECORD = FindingRecord(
    code="TV608",
    slug="busiest-lane",
    what=(
        "The trace is of a program that no known profiler recorded (in the format of Chrome's trace viewer), and one "
        "kind of event takes at least 20 % of the captured time in its busiest lane, or one lane works much longer "
        "than the others of its kind, which are like each other."
    ),
    why="It is what most of the time goes into, as far as the trace shows.",
    advice=(
        "Look at the event that is named, and at the lanes that wait during it.",
        "If one lane works longest: compare its work with that of the others; if it is the same, look at its machine.",
        "For more than that, record the program with its framework's profiler, or with Nsight Systems.",
    ),
    misleads=(
        "What a lane is, the trace does not say: a thread, a queue, part of a simulated machine. A lane that waits in "
        "an event of its own looks busy."
    ),
    references=("https://ui.perfetto.dev",),
    section="lanes",
    severity="hint",
    tables=("lanes", "lanes:1"),
)
