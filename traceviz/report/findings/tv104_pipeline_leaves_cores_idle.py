"""Finding TV104: pipeline leaves cores idle."""

from traceviz.report.findings.record import INPUT, FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV104",
    slug="pipeline-leaves-cores-idle",
    what=(
        "Steps wait for a tf.data stage that works on fewer elements at once than the pipeline may use cores, with a "
        "fixed number."
    ),
    why="The cores that it leaves idle could prepare the next elements.",
    advice=(
        "Replace the fixed number by num_parallel_calls=tf.data.AUTOTUNE, or raise it to the number of cores.",
        "Set options.autotune.enabled = True if it was turned off.",
    ),
    misleads="A stage limited by the disk, the network or Python's lock does not gain from more calls at once.",
    references=("https://www.tensorflow.org/guide/data_performance",),
    section="input_pipeline",
    severity="hint",
    explains=("input",),
    certainty="suspected",
    tables=INPUT,
    place=TimelinePlace("input", "the longest wait for input", ("input_wait",)),
    needs_same_recorder=True,
)
