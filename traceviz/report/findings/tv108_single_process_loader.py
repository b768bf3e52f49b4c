"""Finding TV108: single process loader."""

from traceviz.report.findings.record import INPUT, FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV108",
    slug="single-process-loader",
    what="Steps wait for input, and at least a tenth of the wait is in a DataLoader of PyTorch with num_workers=0.",
    why=(
        "The training process then reads, decodes and collates each batch itself, and launches nothing at that time: "
        "input and training take turns."
    ),
    advice=(
        "Set num_workers of the DataLoader to about the number of free cores.",
        "Keep the workers between epochs (persistent_workers=True); prefetch_factor is the batches that each prepares.",
        "Where samples already are tensors in memory, index whole batches instead of collating single samples.",
    ),
    misleads=(
        "Workers cost memory and start-up time: for data that is in memory and needs no work they gain nothing. The "
        "first call of an epoch opens files and builds indices."
    ),
    references=("https://pytorch.org/docs/stable/data.html#single-and-multi-process-data-loading",),
    section="input_pipeline",
    severity="hint",
    explains=("input",),
    certainty="suspected",
    tables=INPUT,
    place=TimelinePlace("input", "the longest wait for input", ("input_wait",)),
    needs_same_recorder=True,
)
