"""Finding TV618: threads per item."""

from traceviz.report.findings.record import HOST, FindingRecord

RECORD = FindingRecord(
    code="TV618",
    slug="threads-per-item",
    what=(
        "A process of the program started at least 100 threads without names of their own, or 20 pools of threads, as "
        "their running numbers show; three or more of them were seen."
    ),
    why=(
        "A thread costs 50 to 100 microseconds to start and to join, and memory for its stack. Hundreds at once take "
        "turns on a few cores and on Python's lock."
    ),
    advice=(
        "Start a few threads once, about as many as there are cores, and give them work through a queue.",
        "Keep one pool for the whole run: a ThreadPoolExecutor made before the loop.",
        (
            "Let the framework do it: num_workers of PyTorch's DataLoader; TensorFlow: "
            "map(..., num_parallel_calls=tf.data.AUTOTUNE)."
        ),
    ),
    misleads=(
        "Threads that are started rarely and wait most of the time cost little. The stake is what the main thread "
        "spends starting and joining them, where its stacks were sampled."
    ),
    references=("https://docs.python.org/3/library/concurrent.futures.html#threadpoolexecutor",),
    section="host",
    explains=("os_call", "waiting", "lock", "gil", "host"),
    claim="Threads: starting them takes",
    tables=HOST,
)
