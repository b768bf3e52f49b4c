"""Finding TV106: sequential map."""

from traceviz.report.findings.record import INPUT, FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV106",
    slug="sequential-map",
    what="Steps wait for input, and at least a tenth of the wait is for a tf.data map that runs one call at a time.",
    why="One core works on the map while the others are idle.",
    advice=(
        "Pass num_parallel_calls=tf.data.AUTOTUNE to map().",
        "Vectorise the function: batch first, then map whole batches.",
        "Cache its result where it does not depend on chance.",
    ),
    misleads="Functions that call Python hold the interpreter's lock: in parallel they gain little.",
    references=("https://www.tensorflow.org/guide/data_performance#parallelizing_data_transformation",),
    section="input_pipeline",
    severity="hint",
    explains=("input",),
    certainty="suspected",
    tables=INPUT,
    place=TimelinePlace("input", "the longest wait for input", ("input_wait",)),
    needs_same_recorder=True,
)
