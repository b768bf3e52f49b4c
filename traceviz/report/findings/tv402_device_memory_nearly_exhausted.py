"""Finding TV402: device memory nearly exhausted."""

from traceviz.report.findings.record import FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV402",
    slug="device-memory-nearly-exhausted",
    what=(
        "At least 95 % of what a device's allocator can give has been in use; where only the memory of the device is "
        "known, the allocator has held at least 90 % of that."
    ),
    why="A slightly larger batch or another shape will fail, and the allocator may spend time in searching for room.",
    advice=(
        "Free what is not needed: gradient checkpointing, mixed precision, a smaller batch with accumulation.",
        "Look at the ops that held most at the peak.",
        (
            "Where much is reserved and unused, the memory is fragmented. PyTorch: "
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, and shapes that do not change."
        ),
    ),
    misleads="A batch size that was chosen to fill the device: then this is what was wanted.",
    references=("https://www.tensorflow.org/guide/profiler#memory_profile_tool",),
    section="memory",
    severity="hint",
    tables=("memory", "memory:1"),
    place=TimelinePlace("memory_peak", "around the highest use of memory"),
)
