"""Finding TV209: os wait."""

from traceviz.report.findings.record import SYSTEM, FindingRecord, TimelinePlace

CHILDREN = (
    "Child processes (waitpid, wait4, system): start them while other work is done, start fewer of them, or keep what "
    "they make (compiled code, files) for the next run."
)
FILES = "Files (read, write, fsync, open): do it on another thread, or less often."
LOCKS = "Locks and conditions (futex, sem_wait, pthread_cond_wait): another thread has what this one waits for."
SOCKETS = "Sockets and pipes (poll, recv, epoll_wait): another process has it, a loader's worker, say."

RECORD = FindingRecord(
    code="TV209",
    slug="os-wait",
    what=(
        "In at least 20 % of the judged time no device works while the leading thread waits, outside of any input "
        "range: in a call of the operating system, or in a Python function that waits (sleep, a lock, a queue)."
    ),
    why="A read, a lock or a sleep keeps the host from preparing work. The range or function around it says why.",
    advice=(
        FILES,
        LOCKS,
        CHILDREN,
        SOCKETS,
    ),
    only_for=(
        (FILES, ("os_call", "io")),
        (LOCKS, ("os_call", "lock", "gil", "python_wait", "wait")),
        (CHILDREN, ("child_process",)),
        (SOCKETS, ("os_call", "python_wait", "wait", "lock")),
    ),
    misleads=(
        "Where the loader is not marked, this may be the wait for input: wrap what takes the next batch in a range."
    ),
    section="host_waits",
    part_of=("TV102",),
    compares_clocks=True,
    explains=("os_call", "child_process", "waiting", "io", "sleep", "lock", "gil"),
    is_candidate=False,
    tables=SYSTEM,
    place=TimelinePlace("idle_class", "the longest wait in the operating system", ("host_blocked",)),
)
