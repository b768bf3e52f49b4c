"""Calls of three functions on two threads, driver calls inside runtime calls; two steps, between two kernels.

::

    ns        0    100  150   900 1000 1200 1300  1400  2000 2200 2240 2450 2500 2600 3000 3020  3500 3530  4000
    step                          [ 0                   ][ 1                          ]
    device                        [ kernel        ]      [ kernel         ]
    malloc         [50 ]      [   300   ]                                   [100 ]    [20 ] (thread 1)
    launch                                   [100 ]          [40 ]                               [30 ]
      driver                                  [50]                                                [10]
"""

from statistics import stdev

from tests.analyses.builders import tables
from tests.analyses.literals.literal import Literal

OTHER, DRIVER = {"thread_id": 1}, {"domain": "driver"}
MALLOC, LAUNCH, INSIDE = (50, 300, 100, 20), (100, 40, 30), (50, 10)

LITERALS = (
    Literal(
        "cuda_api",
        tables(
            span_ns=4_000,
            steps=[(1_000, 1_000, 0), (2_000, 1_000, 1)],
            kernels=[(1_000, 400, "k"), (2_000, 450, "k")],
            cuda_api=[
                (100, 50, "cudaMalloc"),
                (900, 300, "cudaMalloc"),
                (2_500, 100, "cudaMalloc", OTHER),
                (3_000, 20, "cudaMalloc", OTHER),
                (1_300, 100, "cudaLaunchKernel"),
                (2_200, 40, "cudaLaunchKernel"),
                (3_500, 30, "cudaLaunchKernel"),
                (1_320, 50, "cuLaunchKernel", DRIVER),
                (3_505, 10, "cuLaunchKernel", DRIVER),
            ],
        ),
        {
            "facts": {"api_total_ns": 470 + 170 + 60, "calls": 9, "exposed_ns": 270 + 30 + 10, "nested_ns": 60},
            "": {
                "name": ["cudaMalloc", "cudaLaunchKernel", "cuLaunchKernel"],
                "domain": ["runtime", "runtime", "driver"],
                "calls": [4, 3, 2],
                "total_ns": [470, 170, 60],
                "share_of_api": [470 / 700, 170 / 700, 60 / 700],
                "share_of_wall": [470 / 8_000, 170 / 4_000, 60 / 4_000],  # of two threads, of one
                "startup_ns": [50 + 100, 0, 0],
                "steady_ns": [200 + 100 + 20, 170, 60],
                "exposed_ns": [50 + 100 + 100 + 20, 30, 10],
                "mean_ns": [117.5, 170 / 3, 30.0],
                "median_ns": [75.0, 40.0, 30.0],
                "min_ns": [20, 30, 10],
                "max_ns": [300, 100, 50],
                "stddev_ns": [stdev(MALLOC), stdev(LAUNCH), stdev(INSIDE)],
            },
            "By thread": {
                "process": [0, 0],
                "thread": [0, 1],
                "calls": [7, 2],
                "total_ns": [350 + 170 + 60, 120],
                "share_of_wall": [520 / 4_000, 120 / 4_000],
                "exposed_ns": [150 + 30 + 10, 120],
            },
            "In steady steps": {  # calls that start in them
                "name": ["cudaLaunchKernel", "cudaMalloc", "cuLaunchKernel"],
                "domain": ["runtime", "runtime", "driver"],
                "calls": [2, 1, 1],
                "total_ns": [140, 100, 50],
            },
        },
        {"By thread/process": "whose calls a row has", "By thread/thread": "whose calls a row has"},
    ),
)
