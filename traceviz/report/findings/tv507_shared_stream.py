"""Finding TV507: communication and compute share a stream."""

from traceviz.report.findings.record import COMMUNICATION, FindingRecord

RECORD = FindingRecord(
    code="TV507",
    slug="shared-stream",
    what=(
        "At least half of the communication runs on a stream that also runs at least half of the compute kernels of "
        "its device, and takes at least 2 % of the judged time while the device computes nothing."
    ),
    why="A stream runs its work in order, so communication on the stream of the computing can never overlap with it.",
    advice=(
        (
            "If the next kernels do not need the result, communicate on a stream of its own, and wait for an event "
            "before the result is used. PyTorch: async_op=True, and work.wait() where the result is needed."
        ),
        (
            "If they need it, divide the work: communicate one part while the next part is computed (chunks of "
            "attention heads, of layers, of the batch)."
        ),
    ),
    misleads=(
        "Every kernel after the communication needs its result, as in tensor parallelism without chunks. No second "
        "stream then helps."
    ),
    references=("https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/usage/streams.html",),
    section="communication",
    explains=("communication",),
    certainty="at most",
    is_candidate=False,
    tables=COMMUNICATION,
)
