"""Finding TV610: blocking io."""

from traceviz.report.findings.record import ONE_FUNCTION, FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV610",
    slug="blocking-io",
    what=(
        "In at least 5 % of the steps, the program's main thread reads, writes, flushes or forces something to disk, "
        "or saves a checkpoint, by samples of its stack (ten or more in the steps, three or more of it)."
    ),
    why="Nothing is computed while the main thread waits for a file, a pipe or a socket.",
    advice=(
        "What is written: do it less often, every N steps or minutes. What is read: read it earlier, before the loop.",
        (
            "Do it during the steps, on another thread or process. PyTorch: "
            "torch.distributed.checkpoint.async_save, or copy the state and write it from a thread; JAX: orbax's "
            "AsyncCheckpointer; TensorFlow: tf.train.CheckpointOptions(enable_async=True)."
        ),
        "Leave fsync to where a crash of the machine may not lose it; write to a local disk, and move it later.",
    ),
    misleads="A machine whose disk others keep busy. What the input reads is not counted here, but as input.",
    references=("https://pytorch.org/docs/stable/distributed.checkpoint.html",),
    section="host_limits",
    half_of=("TV612", "TV615"),
    explains=("os_call", "waiting", "saving", "io"),
    is_sampled=True,
    claim=ONE_FUNCTION,
    claims_of=(("saving", "Saving: steps save"), ("input and output", "Input and output: steps read or write")),
    tables=("host_time", "os_calls", "host_limits"),
    place=TimelinePlace("sampled", "the longest input and output", ("io", "saving")),
)
