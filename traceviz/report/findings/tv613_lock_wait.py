"""Finding TV613: lock wait."""

from traceviz.report.findings.record import ONE_FUNCTION, THREADS, FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV613",
    slug="lock-wait",
    what=(
        "In at least 5 % of the steps, the program's main thread waits for a lock, a queue, another thread or process, "
        "or sleeps, by samples of its stack, and no thread computes for it during that time."
    ),
    why="The main thread has nothing to do until another one has done its part.",
    advice=(
        "Look at what the other thread does during the wait: that has to become faster, or to be done by several.",
        "Hold locks for a moment: prepare first, then lock, exchange and unlock; do not sleep or write under one.",
        "Enlarge the queue (maxsize), and let several threads fill it.",
        "Sleep only where nothing waits: poll less often from another thread.",
        "A server that waits for requests has time left. A client: ask for several things at once, or earlier.",
    ),
    misleads="A program that waits by design: for other programs, for requests, for the rate of a service.",
    references=("https://docs.python.org/3/library/threading.html",),
    section="host_limits",
    half_of=("TV612", "TV615", "TV618"),
    explains=("os_call", "waiting", "sleep", "lock"),
    is_sampled=True,
    claim=ONE_FUNCTION,
    claims_of=(
        ("sleep", "Sleep: steps sleep"),
        ("starved", "Starved: steps wait for a queue"),
        ("connections", "Connections: steps wait for one"),
        ("waiting", "Waiting: steps wait for others"),
        ("locks", "Locks: steps wait for a lock"),
    ),
    tables=THREADS,
    place=TimelinePlace("sampled", "the longest wait for a lock or a thread", ("lock", "sleep")),
)
