"""Finding TV614: logging in steps."""

from traceviz.report.findings.record import HOST, FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV614",
    slug="logging-in-steps",
    what=(
        "In at least 5 % of the steps, the program's main thread writes messages, metrics or a progress bar, by "
        "samples of its stack."
    ),
    why="Each message is formatted and written, and flushed, before the step goes on.",
    advice=(
        "Log every N steps, and gather what several steps have to say into one line.",
        "Format only what is written: logger.debug('%s', x) with the level that is on; no f-strings of tensors.",
        "Write from another thread: logging.handlers.QueueHandler with a QueueListener.",
    ),
    misleads="A terminal or a file system that is slow at the moment.",
    references=("https://docs.python.org/3/howto/logging-cookbook.html#dealing-with-handlers-that-block",),
    section="host_limits",
    half_of=("TV612", "TV615"),
    explains=("logging",),
    is_sampled=True,
    claim="Logging: steps write messages",
    tables=HOST,
    place=TimelinePlace("sampled", "the longest logging", ("logging",)),
)
