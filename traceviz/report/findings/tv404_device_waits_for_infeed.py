"""Finding TV404: device waits for infeed."""

from traceviz.report.findings.record import FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV404",
    slug="device-waits-for-infeed",
    what="TPUs wait for infeed in at least 5 % of their time.",
    why="The accelerator has asked for the next batch, and the host does not have it ready.",
    advice=(
        "Prefetch the input: prefetch(AUTOTUNE), parallel map and interleave on the hosts.",
        "Send less: uint8 images, preprocessing on the device.",
        "Use more hosts per device, or cache the decoded data set.",
    ),
    misleads="The first steps of a program, in which the buffers fill. The wait is an upper bound of the gain.",
    references=("https://www.tensorflow.org/guide/data_performance",),
    section="device_programs",
    part_of=("TV101",),
    explains=("input",),
    claim="Infeed: devices wait for data",
    tables=("input_pipeline", "device_programs"),
    place=TimelinePlace("input", "the longest wait for input", ("input_wait",)),
)
