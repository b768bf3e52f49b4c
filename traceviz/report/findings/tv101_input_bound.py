"""Finding TV101: input bound."""

from traceviz.report.findings.record import INPUT, FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV101",
    slug="input-bound",
    what=(
        "Steady steps wait for input for at least 5 % of their time (moderately input-bound) or 20 % (highly): the "
        "program waits for its next batch (a data-loading range, tf.data's IteratorGetNext, a TPU's infeed) while no "
        "device works, or input is copied to an idle device."
    ),
    why=(
        "The accelerator waits while the host reads, decodes and augments the next batch. No change to the model helps "
        "until this wait is gone."
    ),
    advice=(
        (
            "Prefetch the input. TensorFlow: .prefetch(tf.data.AUTOTUNE); PyTorch: more workers and "
            "a larger prefetch_factor of the DataLoader; JAX: batches from a background thread or process."
        ),
        (
            "Do the slow stage in parallel. TensorFlow: num_parallel_calls=tf.data.AUTOTUNE; PyTorch: num_workers "
            "near the number of free cores; JAX: several worker processes of the loader."
        ),
        "Do it once: cache decoded data in memory or on disk, or preprocess offline.",
        "Move decoding and augmentation to the device (vectorised ops, NVIDIA DALI).",
    ),
    misleads=(
        "A range that wraps more than loading, or a capture of the first steps only, while loader workers start. "
        "The wait is an upper bound of the gain: another limit shows once it is gone."
    ),
    references=(
        "https://www.tensorflow.org/guide/data_performance",
        "https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
    ),
    section="input_pipeline",
    compares_clocks=True,
    explains=("input",),
    is_candidate=False,
    is_of_input=True,
    tables=INPUT,
    place=TimelinePlace("input", "the longest wait for input", ("input_wait",)),
)
