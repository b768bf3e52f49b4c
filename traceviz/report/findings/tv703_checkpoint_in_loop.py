"""Finding TV703: checkpoint in loop."""

from traceviz.report.findings.record import RUN, FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV703",
    slug="checkpoint-in-loop",
    what=(
        "Between its first and its last step, the program waits for at least 5 % of the run until checkpoints or "
        "models are written."
    ),
    why="A synchronous save stops the loop until the file is written, with fsync until the disk has it.",
    advice=(
        "Save less often: every N minutes rather than every N steps.",
        (
            "Write during the training: copy the state to the host, and let a thread write it "
            "(torch.distributed.checkpoint.async_save, orbax AsyncCheckpointer, "
            "tf.train.CheckpointOptions(enable_async=True))."
        ),
        "Save what is needed to go on, to a local disk; fsync only the last one.",
    ),
    misleads="A short run for a test that saves at its end or after each few steps.",
    section="whole_run",
    is_of_run=True,
    tables=RUN,
    place=TimelinePlace("loop_part", "the longest saving in the loop", ("saving",)),
)
