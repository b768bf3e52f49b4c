"""Finding TV605: host memory growth."""

from traceviz.report.findings.record import HOST, FindingRecord

RECORD = FindingRecord(
    code="TV605",
    slug="host-memory-growth",
    what=(
        "The resident memory of the program rises in at least nine of ten parts of the judged time, by at least 64 MiB "
        "and 5 % in all, goes on rising in its second half, and no process was started in that time."
    ),
    why="Training that leaks ends when the memory of the machine or the container is full, often hours later.",
    advice=(
        "Keep no tensors in lists: append loss.item(), or detach() first; clear histories of metrics.",
        "Look for caches that grow: tf.data cache() in memory, functools.cache, retraced tf.functions.",
        "Find the lines that allocate with memray, or tracemalloc for Python's own objects.",
    ),
    misleads=(
        "A cache that is being filled grows until it is full; a capture of the first epoch sees that. Pages that "
        "processes share count once for each."
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/notes/faq.html#my-model-reports-cuda-runtime-error-2-out-of-memory",
    ),
    section="host",
    severity="hint",
    tables=HOST,
)
