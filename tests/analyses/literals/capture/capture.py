"""Two of four ranks on two devices: events of nine tables, and the profiler's own time.

Then a capture that starts with two kernels launched before it, and ends with 20 launches without kernels.
"""

from tests.analyses.builders import tables
from tests.analyses.literals.literal import Literal

ONE = {"process_id": 1, "thread_id": 1}
ON_ONE = {"process_id": 1, "device_id": 1}

LITERALS = (
    Literal(
        "capture",
        tables(
            span_ns=1_000,
            nvtx=[(0, 100, "step 0"), (100, 100, "step 1"), (200, 100, "step 2"), (0, 300, "step 0", ONE)],
            cuda_api=[(0, 5, "cudaLaunchKernel"), (50, 5, "cudaLaunchKernel", ONE)],
            os_calls=[(0, 5, "poll"), (9, 5, "poll")],
            kernels=[(0, 50, "k"), (60, 20, "k"), (100, 200, "k", ON_ONE)],
            memcpy=[(70, 20, "h2d", "pinned", "device", 8), (400, 20, "h2d", "pinned", "device", 8, ON_ONE)],
            memset=[(600, 10, 8), (620, 10, 8)],
            overhead=[(10, 30, "flush"), (30, 20, "flush"), (500, 7, "flush")],
            processes=[(0, "a", {"rank": 0}), (1, "b", {"rank": 2})],
            settings=[
                *(("world_size", "4"), ("world_size", "4", {"process_id": 1})),
                *(("framework.PyTorch.names", "names in at::native:: (3)"), ("framework.PyTorch.ranges", "ranges (2)")),
            ],
        ),
        {
            "facts": {
                "kind": "not known",  # steps of kernels that may be anything
                "kind_evidence": "steps repeat (step #)",
                "span_ns": 1_000,
                "framework_evidence": "names in at::native:: (3), ranges (2)",
                "devices": 2,
                "processes": 2,
                "ranks": "2 of 4 (0, 2)",
                "steps_source": "NVTX ranges",
                "events": 4 + 2 + 2 + 3 + 2 + 2,
                "device_events": 3 + 2 + 2,
                "overhead_ns": (50 - 10) + 7,  # two overlap
            }
        },
        {
            "facts/span_ns": "what the capture says of itself",
            "facts/devices": "a device goes with the last of its work, and each has several",
            "facts/processes": "a process goes with the last of its events, and each has several",
        },
    ),
    Literal(
        "capture",
        tables(
            span_ns=1_000,
            cuda_api=[
                (100, 5, "cudaLaunchKernel", {"correlation_id": 1}),
                (200, 5, "cudaLaunchKernel", {"correlation_id": 2}),
                *((300 + 10 * n, 5, "cudaLaunchKernel", {"correlation_id": 100 + n}) for n in range(21)),
            ],
            kernels=[
                (40, 10, "k"),
                (60, 10, "k", {"correlation_id": 77}),
                (110, 10, "k", {"correlation_id": 1}),
                (210, 50, "k", {"correlation_id": 2}),
            ],
        ),
        {
            "facts": {
                "kind": "not known",  # where kernels are missing, one name is no benchmark of one kernel
                "kind_evidence": "nothing in it tells",
                "span_ns": 1_000,
                "devices": 1,
                "processes": 1,
                "steps_source": "none found",
                "events": 23 + 4,
                "device_events": 4,
                "judged_from_ns": 40,  # the first kernel has no call
                "judged_until_ns": 210 + 50,  # 21 launches later have no kernel
                "launched_before": 2,
                "launches_without_work": 21,
            }
        },
        {
            "facts/span_ns": "what the capture says of itself",
            "facts/devices": "a device goes with the last of its work",
            "facts/judged_until_ns": "the end of the last device work",
            "facts/processes": "a process goes with the last of its events",
        },
        name="what was not recorded",
    ),
    Literal(
        "capture",
        # ns         0    400        500                  860      900      1000
        # profiler   [start|                    [flush]            |stop    ]
        # program         |[step 0][step 1][step 2]... [kernel]    |
        tables(
            span_ns=1_000,
            nvtx=[(500, 100, "step 0"), (600, 100, "step 1"), (700, 100, "step 2")],
            kernels=[(510, 50, "k"), (620, 20, "k"), (840, 20, "k")],
            overhead=[(0, 400, "start"), (650, 8, "flush"), (820, 4, "flush"), (900, 100, "stop")],
        ),
        {
            "facts": {
                "kind": "not known",  # steps of kernels that may be anything
                "span_ns": 900 - 400,
                "edges_ns": 400 + 100,
                "devices": 1,
                "processes": 1,
                "steps_source": "NVTX ranges",
                "events": 3 + 3,
                "device_events": 3,
                "overhead_ns": 8 + 4,
                "kind_evidence": "steps repeat (step #)",
            }
        },
        {
            "facts/devices": "it goes with the last of its work",
            "facts/processes": "and a process with the last of its events",
        },
        name="start and stop of the profiler",
    ),
)
