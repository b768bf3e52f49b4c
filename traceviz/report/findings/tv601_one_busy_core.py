"""Finding TV601: one busy core."""

from traceviz.report.findings.record import FindingRecord

RECORD = FindingRecord(
    code="TV601",
    slug="one-busy-core",
    what=(
        "The program keeps 0.8 to 1.3 cores busy, more than a quarter of its cores are idle, and its steps wait for "
        "the host (for input or for Python) in at least 20 % of their time; where no steps were recorded, its GPUs "
        "work in less than half of it."
    ),
    why=(
        "One thread does all the work, as Python's lock lets only one thread at a time run Python. The other cores "
        "could do the same work at the same time."
    ),
    advice=(
        (
            "Prepare input on other cores. TensorFlow: num_parallel_calls=tf.data.AUTOTUNE, and no Python inside "
            "map(); PyTorch: num_workers of the DataLoader; JAX: worker processes of the loader."
        ),
        "Find what the busy thread does: record Python's functions (py-spy top --pid PID needs no restart).",
        "Replace loops in Python by operations on whole arrays, which release the lock.",
    ),
    misleads="Work that cannot be split (a simulator, a tokenizer for one stream) keeps one core busy by design.",
    references=("https://docs.python.org/3/glossary.html#term-global-interpreter-lock",),
    section="host",
    half_of=("TV610", "TV611", "TV612", "TV613", "TV614", "TV615", "TV616", "TV622"),
    certainty="suspected",
    tables=("host_time", "host", "cpu_steps"),
)
