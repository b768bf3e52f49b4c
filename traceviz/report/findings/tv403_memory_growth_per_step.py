"""Finding TV403: memory growth per step."""

from traceviz.report.findings.record import FindingRecord

RECORD = FindingRecord(
    code="TV403",
    slug="memory-growth-per-step",
    what="The use of a pool rises from nearly every steady step to the next, by at least 64 KiB.",
    why="What grows with every step ends in an out-of-memory error; until then it costs allocations.",
    advice=(
        "Keep numbers instead of tensors: float(loss), loss.item(), not the loss itself in a list.",
        "Do not build new graph objects (variables, functions, datasets) inside the loop.",
    ),
    misleads="A cache that is still being filled (dataset.cache(), the first epoch) grows too, and stops by itself.",
    references=("https://www.tensorflow.org/guide/profiler#memory_profile_tool",),
    section="memory",
    severity="hint",
    tables=("memory", "memory:1"),
)
