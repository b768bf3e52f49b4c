"""Finding TV408: devices unused."""

from traceviz.report.findings.record import FindingRecord

RECORD = FindingRecord(
    code="TV408",
    slug="devices-unused",
    what="The program can use several devices and computes on one of them, in at least 75 % of the judged time.",
    why=(
        "Frameworks reserve every device that they see, but place all work on the first unless the program says "
        "otherwise. It is "
        "for information only, unless an operation shows that the program means to use several."
    ),
    advice=(
        "TensorFlow: tf.distribute.MirroredStrategy; PyTorch: DistributedDataParallel; JAX: jit over shards.",
        "Where one device is enough, hide the others (CUDA_VISIBLE_DEVICES), so that others can use them.",
    ),
    misleads=(
        "Other processes work on the other devices. The bound assumes perfect scaling with a global batch that stays."
    ),
    references=("https://www.tensorflow.org/guide/distributed_training",),
    section="devices",
    hint_if="No operation shows that the program means to use several devices.",
    explains=("device_compute",),
    certainty="at most",
    claim="Unused devices: using them saves up to",
    tables=("devices", "device_use"),
)
