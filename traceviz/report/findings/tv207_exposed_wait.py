"""Finding TV207: exposed wait."""

from traceviz.report.findings.record import FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV207",
    slug="exposed-wait",
    what=(
        "In at least 20 % of the judged time the host waits for a device (a synchronising call, block_until_ready) and "
        "no device works."
    ),
    why="What the host waits for was not on the device yet, or had ended: the wait keeps the host from preparing more.",
    advice=(
        "Wait for results later: prepare and launch the next step first.",
        "JAX: call block_until_ready once, after the loop. PyTorch: read losses every N steps.",
        "If other threads work during the wait (the runtime's dispatch, communication), look at what they do.",
    ),
    misleads="Waits at the end of a measurement are meant. Devices of other processes are not seen.",
    section="host_waits",
    part_of=("TV203",),
    compares_clocks=True,
    explains=("synchronisation", "device_wait"),
    is_candidate=False,
    tables=("host_waits", "host_time", "cuda_api"),
    place=TimelinePlace("idle_class", "the longest wait for a device that then idles", ("synchronisation",)),
)
