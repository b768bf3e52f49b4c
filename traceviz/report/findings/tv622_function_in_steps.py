"""Finding TV622: function in steps."""

from traceviz.report.findings.record import ONE_FUNCTION, FindingRecord

RECORD = FindingRecord(
    code="TV622",
    slug="function-in-steps",
    what=(
        "No device was captured, and a function of the program that does not train (no forward or backward pass, no "
        "optimizer, no input) takes at least 20 % of the steps with all that it calls, by samples of the main thread's "
        "stack; no statement on a single kind of time names it and says how much there is to gain."
    ),
    why="The steps wait for it: plots, metrics, monitors and simulations in the loop cost more than they seem to.",
    advice=(
        (
            "What steps do not need (a plot, a metric, a log): do it every N steps, or once after the loop. What they "
            "need (a batch, an environment): prepare it in another process, or compute on whole arrays."
        ),
        "See what takes its time: traceviz report RUN --section host_time, and the flame graph of the page.",
    ),
    misleads="A function whose work is the purpose of the program, such as the environment of an agent.",
    section="host_limits",
    half_of=("TV612", "TV615"),
    explains=("os_call", "waiting", "saving", "io", "sleep", "lock", "gil", "logging", "serialization", "host"),
    is_sampled=True,
    claim=ONE_FUNCTION,
    tables=("host_time", "host_limits"),
)
