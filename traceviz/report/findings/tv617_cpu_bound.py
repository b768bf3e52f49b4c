"""Finding TV617: cpu bound."""

from traceviz.report.findings.record import FindingRecord

RECORD = FindingRecord(
    code="TV617",
    slug="cpu-bound",
    what=(
        "No device was captured, the main thread computes, or waits for what it computes, in at least 80 % of the "
        "steps, and nothing else was found to hold it up."
    ),
    why="It is what a program on a CPU should do: it becomes faster by computing less, or faster.",
    advice=(
        "Look at what the CPU computes: the operators with most of the time.",
        "Where the machine has a device, see that the program uses it.",
    ),
    misleads="It is no fault, and said so that its absence is one.",
    references=("https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",),
    section="host_limits",
    severity="hint",
    part_of=(
        "TV101",
        "TV102",
        "TV401",
        "TV407",
        "TV501",
        "TV502",
        "TV503",
        "TV506",
        "TV603",
        "TV604",
        "TV621",
        "TV701",
        "TV702",
        "TV703",
        "TV705",
    ),
    tables=("cpu_steps", "host_time", "operators"),
)
