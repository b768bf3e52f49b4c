"""Finding TV103: prefetch runs empty."""

from traceviz.report.findings.record import INPUT, FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV103",
    slug="prefetch-runs-empty",
    what="Steps wait for input, and at least half of the calls of a tf.data prefetch found its buffer empty.",
    why=(
        "A prefetch helps only while its buffer has elements: here the stages before it are slower than the training, "
        "and a larger buffer would run empty as well."
    ),
    advice=(
        "Make the slow stage before it faster: parallel map and interleave, cache, larger vectorised pieces.",
        "Where batches take unequal time, a larger buffer evens them out: .prefetch(tf.data.AUTOTUNE).",
    ),
    misleads="The first calls after the start find every buffer empty; so does a prefetch behind another one.",
    references=("https://www.tensorflow.org/guide/data_performance_analysis",),
    section="input_pipeline",
    severity="hint",
    explains=("input",),
    certainty="suspected",
    tables=INPUT,
    place=TimelinePlace("input", "the longest wait for input", ("input_wait",)),
    needs_same_recorder=True,
)
