"""Finding TV407: eager ops in steps."""

from traceviz.report.findings.record import FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV407",
    slug="eager-ops-in-steps",
    what=(
        "At least half of the ops run one by one (eagerly), ten or more in a step, and starting them takes at least "
        "5 % of the judged time while no device works."
    ),
    why="Each eager op passes through Python and the runtime, tens of microseconds, before it does any work.",
    advice=(
        "Decorate the training step with @tf.function; in Keras, compile without run_eagerly=True.",
        "JAX: put the whole step into one jax.jit.",
        "Then let XLA fuse it: tf.function(jit_compile=True).",
    ),
    misleads=(
        "Code that runs eagerly for debugging, or a capture that is mostly set-up. Ops that take milliseconds each "
        "lose little by being started one by one."
    ),
    references=("https://www.tensorflow.org/guide/function",),
    section="framework_ops",
    compares_clocks=True,
    explains=("kernel_launch", "launch_queue", "host"),
    claim="Eager ops: starting them takes",
    tables=("framework_ops", "launch", "operators"),
    place=TimelinePlace("idle_class", "the longest kernel launch without device work", ("kernel_launch",)),
)
