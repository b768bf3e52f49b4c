"""Finding TV211: exposed compilation."""

from traceviz.report.findings.record import FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV211",
    slug="exposed-compilation",
    what="In at least 20 % of the judged time no device works while code is compiled or loaded.",
    why="Compiling is done once for each program and shape; while it lasts, nothing can run.",
    advice=(
        "Judge later steps: record after a warm-up.",
        "Keep shapes constant, and keep what was compiled: a persistent cache of JAX, torch.compile or XLA.",
    ),
    misleads="Programs that run only once pay for it in every run.",
    section="host_waits",
    part_of=("TV401",),
    compares_clocks=True,
    explains=("compilation",),
    is_candidate=False,
    tables=("host_waits", "compilation", "host_time"),
    place=TimelinePlace("idle_class", "the longest compilation without device work", ("compilation",)),
)
