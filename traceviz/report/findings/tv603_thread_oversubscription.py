"""Finding TV603: thread oversubscription."""

from traceviz.report.findings.record import FindingRecord

RECORD = FindingRecord(
    code="TV603",
    slug="thread-oversubscription",
    what=(
        "In steady steps, at least twice as many threads of the program want to run as there are cores for it, and "
        "they wait for each other in at least 20 % of the time in which they could run, which makes up a fifth of one "
        "core or more. Ten samples or more lie in these steps."
    ),
    why=(
        "Threads take turns on the cores: caches are cold after each turn, and code that waits for the slowest "
        "thread of "
        "a parallel operation waits for its turn as well."
    ),
    advice=(
        (
            "Divide the cores: processes times threads should not exceed them. PyTorch: "
            "torch.set_num_threads(1) in workers; OMP_NUM_THREADS for each rank."
        ),
        "OpenCV in workers: cv2.setNumThreads(0).",
        "Fewer loader workers, or a smaller private thread pool for tf.data.",
        "In a container, set thread numbers by its CPU limit: libraries see all cores of the machine.",
    ),
    misleads=(
        "The stake is an upper bound: threads that no other thread waits for may queue. What threads wait for those "
        "of other "
        "programs does not count; a note says where others used the machine."
    ),
    references=("https://docs.pytorch.org/docs/stable/notes/multiprocessing.html#cpu-oversubscription",),
    section="host",
    explains=("host",),
    certainty="suspected",
    claim="Too many threads: they may waste",
    tables=("host", "host_time", "cpu_steps"),
)
