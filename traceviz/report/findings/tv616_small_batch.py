"""Finding TV616: small batch."""

from traceviz.report.findings.record import FindingRecord

RECORD = FindingRecord(
    code="TV616",
    slug="small-batch",
    what=(
        "No device was captured, a batch has at most eight examples, and at least 100 operators a step, half of them "
        "no longer than 100 microseconds, take at least 20 % of the steps together with the Python between them."
    ),
    why="The fixed cost of each operator is paid for a few examples: more of them take hardly longer.",
    advice=(
        "Use a larger batch (and adapt the learning rate): a step of many examples costs little more.",
        (
            "Where the batch has to stay small: compile the step, so that it calls fewer operators. PyTorch: "
            "torch.compile; TensorFlow: tf.function; JAX: jax.jit."
        ),
    ),
    misleads="Models for which a batch of one is meant (online learning), or that fill the memory with it.",
    references=("https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",),
    section="host_limits",
    explains=("host",),
    claim="Small batch: overhead takes",
    tables=("operators", "host_time", "host_limits"),
)
