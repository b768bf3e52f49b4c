"""Two ranks that reduce together, and compute that hides a part of it; who arrives first waits.

::

    ns          0     100    300 340 350   400 480 500 570   1000 1100 1120 1150 1200 1250
    rank 0      [ gemm        ]                              [ gemm               ]
                      [ reduce         ]   [ gather  ]                      [ reduce     ]
    rank 1      [ gemm            ]                          [ gemm     ]
                             [ reduce  ]       [ gather  ]        [ reduce               ]
"""

from statistics import stdev

from tests.analyses.builders import tables
from tests.analyses.literals.literal import Literal

REDUCE, GATHER = "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "ncclDevKernel_AllGather_RING_LL"
TIMES = ((100, 250, 0), (400, 100, 0), (1_150, 100, 0), (300, 50, 1), (480, 90, 1), (1_100, 150, 1))
NAMES = (REDUCE, GATHER, REDUCE, REDUCE, GATHER, REDUCE)
ELEMENTS = (1_000, 300, 3_000, 1_000, 300, 3_000)


def of(rank):
    return {"process_id": rank, "device_id": rank}


def on(rank, name):
    """Return the rank, with gathers on a stream of their own."""
    return of(rank) | ({"stream": 99} if name == GATHER else {})


def described(name, elements, rank):
    reduces = name == REDUCE
    return {
        **of(rank),
        "group": "default_pg" if reduces else "tp",
        "group_size": 2,
        "dtype": "Float" if reduces else "BFloat16",
        "in_elements": elements,
        "out_elements": elements if reduces else 2 * elements,
    }


# By kernel; the figures of collectives are the same.
REDUCES, GATHERS = (250, 50, 100, 150), (100, 90)
DURATIONS = {
    "calls": [4, 2],
    "total_ns": [550, 190],
    "mean_ns": [137.5, 95.0],
    "median_ns": [125.0, 95.0],
    "min_ns": [50, 90],
    "max_ns": [250, 100],
    "stddev_ns": [stdev(REDUCES), stdev(GATHERS)],
}

LITERALS = (
    Literal(
        "communication",
        tables(
            steps=[(start, 1_000, i, {"process_id": rank}) for rank in (0, 1) for i, start in enumerate((0, 1_000))],
            kernels=[
                *((0, 300, "sgemm", of(0)), (1_000, 200, "sgemm", of(0))),
                *((0, 340, "sgemm", of(1)), (1_000, 120, "sgemm", of(1))),
                *((start, dur, name, on(rank, name)) for (start, dur, rank), name in zip(TIMES, NAMES, strict=True)),
            ],
            collectives=[
                (start, dur, "allreduce" if name == REDUCE else "_allgather_base", described(name, elements, rank))
                for (start, dur, rank), name, elements in zip(TIMES, NAMES, ELEMENTS, strict=True)
            ],
        ),
        {
            "facts": {
                "total_ns": 550 + 190,
                "exposed_ns": (50 + 100 + 50) + (10 + 90 + 130),  # of rank 0, of rank 1
                "overlap_share": (740 - 430) / 740,
                "shared_share": 550 / 740,
                # the first of two waits until the other starts, unless compute hides it: rank 0 from 100 to 300
                # (hidden), and 10 of the gather (100 against 90); rank 1 from 1100 to 1150 (20 hidden)
                "waiting_ns": 10 + 30,
                "busy_ns": 740,
                "calls": 6,
            },
            "": {"name": [REDUCE, GATHER], **DURATIONS},
            "Collectives": {
                "name": ["allreduce", "_allgather_base"],
                "group": ["default_pg", "tp"],
                "group_size": [2, 2],
                "dtype": ["Float", "BFloat16"],
                "mean_bytes": [4 * 2_000.0, 2 * 600.0],  # the larger of what goes in and out
                "exposed_ns": [(50 + 50) + (10 + 130), 100 + 90],
                "algorithm_bandwidth": [4 * 8_000 / 550e-9, 2 * 1_200 / 190e-9],
                "bus_bandwidth": [4 * 8_000 / 550e-9 * (2 * (2 - 1) / 2), 2 * 1_200 / 190e-9 * ((2 - 1) / 2)],
                **DURATIONS,
            },
        },
        {"Collectives/group_size": "part of what makes a row"},
    ),
)
