"""Finding TV107: pipeline memory exhausted."""

from traceviz.report.findings.record import INPUT, FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV107",
    slug="pipeline-memory-exhausted",
    what="Steps wait for input, and the buffers of the tf.data pipeline use at least 90 % of their memory budget.",
    why="The runtime stops enlarging buffers and parallelism at that budget.",
    advice=(
        "Raise options.autotune.ram_budget (bytes) if the host has free memory.",
        "Keep smaller elements in buffers: decode and cast late, shuffle file names instead of images.",
    ),
    misleads="A cache that was meant to fill the memory.",
    references=("https://www.tensorflow.org/api_docs/python/tf/data/experimental/AutotuneOptions",),
    section="input_pipeline",
    severity="hint",
    explains=("input",),
    certainty="suspected",
    tables=INPUT,
    place=TimelinePlace("input", "the longest wait for input", ("input_wait",)),
    needs_same_recorder=True,
)
