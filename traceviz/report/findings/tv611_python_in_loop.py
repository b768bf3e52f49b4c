"""Finding TV611: python in loop."""

from traceviz.report.findings.record import ONE_FUNCTION, FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV611",
    slug="python-in-loop",
    what=(
        "Either at least 100 operators a step are called one by one without any device, half of them no longer than "
        "100 microseconds, and take at least 20 % of the steps together with the Python between them; or at least 20 % "
        "of the steps are Python of the program itself, by samples of its stack."
    ),
    why=(
        "A call of an operator costs microseconds before it computes anything, and so does each line of Python: loops "
        "over small pieces cost that for each piece."
    ),
    advice=(
        (
            "Call fewer and larger operators: put what a loop computes piece by piece into one tensor. PyTorch: "
            "torch.stack and torch.bmm, torch.vmap, foreach or fused optimizers; JAX: jax.vmap, jax.lax.scan; "
            "TensorFlow: tf.vectorized_map, tf.while_loop within tf.function."
        ),
        "Compile the step. PyTorch: torch.compile; TensorFlow: tf.function; JAX: jax.jit.",
        "Use a larger batch, where it is small: the calls stay as many.",
        "Replace loops in Python by operations on whole arrays; what is the same in each step, do once before.",
        "Do it less often, or in a worker process: metrics every N steps, text and JSON from a process of its own.",
        "Compile what has to stay a loop (numba, Cython), or use a faster library (orjson for json).",
    ),
    misleads=(
        "While operators are recorded they take longer: the share of small ones is too large by about a tenth. Steps "
        "that have to run one after another (a simulation, a recurrence) cannot be put together."
    ),
    references=("https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",),
    section="host_limits",
    half_of=("TV612", "TV615", "TV616"),
    explains=("serialization", "host"),
    is_sampled=True,
    claim=ONE_FUNCTION,
    claims_of=(
        ("Python", "Python: interpreted code takes"),
        ("serialization", "Serialization: converting objects takes"),
        ("small operators", "Small operators: calling them takes"),
    ),
    tables=("host_time", "operators", "host_limits"),
    place=TimelinePlace("sampled", "the longest interval of Python", ("python",)),
)
