"""Finding TV105: pipeline without prefetch."""

from traceviz.report.findings.record import INPUT, FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV105",
    slug="pipeline-without-prefetch",
    what="Steps wait for input, and the tf.data pipeline does not end in a prefetch.",
    why="Without it, a batch is prepared when the program asks for it, and training and input take turns.",
    advice=("Add .prefetch(tf.data.AUTOTUNE) as the last transformation.",),
    misleads="Some stages prefetch by themselves (MapAndBatch by one batch, a parallel map by its parallelism).",
    references=("https://www.tensorflow.org/guide/data_performance#prefetching",),
    section="input_pipeline",
    severity="hint",
    explains=("input",),
    certainty="suspected",
    tables=INPUT,
    place=TimelinePlace("input", "the longest wait for input", ("input_wait",)),
    needs_same_recorder=True,
)
