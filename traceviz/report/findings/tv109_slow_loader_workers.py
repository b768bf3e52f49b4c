"""Finding TV109: slow loader workers."""

from traceviz.report.findings.record import INPUT, OTHER_THREADS, FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV109",
    slug="slow-loader-workers",
    what=(
        "Steps wait for input, and at least a tenth of the wait is in a DataLoader of PyTorch with worker processes: "
        "none had finished the next batch."
    ),
    why="Workers prepare batches during the training. If together they are slower than the training, it waits.",
    advice=(
        "Raise num_workers towards the number of free cores.",
        "Set persistent_workers=True: else they start again in each epoch, and its first batch waits for that.",
        "Raise prefetch_factor where batches take unequal time.",
        "Make samples cheaper: decode at the size needed, cache, move augmentation to the device.",
    ),
    misleads=(
        "A capture that starts with the first batch of an epoch waits for the workers to start. More workers than "
        "cores, or a slow disk, gain nothing by more workers."
    ),
    references=("https://pytorch.org/docs/stable/data.html#multi-process-data-loading",),
    section="input_pipeline",
    severity="hint",
    explains=("input",),
    certainty="suspected",
    tables=INPUT,
    replaced_tables=(("host_time", OTHER_THREADS),),
    place=TimelinePlace("input", "the longest wait for input", ("input_wait",)),
    needs_same_recorder=True,
)
