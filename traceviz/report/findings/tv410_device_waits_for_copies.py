"""Finding TV410: device waits for copies."""

from traceviz.report.findings.record import FindingRecord

RECORD = FindingRecord(
    code="TV410",
    slug="device-waits-for-copies",
    what=(
        "TPUs wait in at least 5 % of their time for the end of asynchronous copies (copy-done, send-done, recv-done): "
        "between their own memories, or between device and host."
    ),
    why=(
        "XLA starts such copies early so that computing hides them. If there is too little to compute, or the copy "
        "is too large for the link, the device waits for the rest."
    ),
    advice=(
        "Start the copy earlier: prefetch what is kept in host memory one layer or step earlier.",
        "Move fewer bytes: offload less, in bfloat16 or smaller, or shard it over more devices.",
        "Compute again instead of offloading (jax.checkpoint with a policy that saves less).",
        "Let XLA schedule more at once: larger batches, fewer barriers between layers.",
    ),
    misleads=(
        "Serving without load, and microbenchmarks of copies. The wait is an upper bound of the gain: what is copied "
        "has to arrive at some time."
    ),
    references=("https://docs.jax.dev/en/latest/notebooks/host-offloading.html",),
    section="device_programs",
    explains=("other_device",),
    claim="Device copies: devices wait for them",
    tables=("device_programs", "copies"),
)
