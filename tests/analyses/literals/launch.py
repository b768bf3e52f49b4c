"""Launches of two functions: three that queue, one whose kernel begins before the call returns, a graph of two kernels.

::

    ns        0   10      30      60   100  120      150  190  200  230  300       400 410  440      490   600
    call      [10 ]                    [20 ]                   [ 30 ]    [ 100      ]  [ 8 ]
    kernel           [20: 30..50]             [30: 150..180]     [15: 210..225]  graph: [40: 440..480][60: 490..550]
    no call                                                                                              [5: 600]
    queue         20                         30              null                                32

Steps are 0 to 200, 200 to 400 and 400 to 600: five calls in three steps. The second graph waits 6 ns, the third has no
kernels, and two kernels have no call.
"""

from tests.analyses.builders import tables
from tests.analyses.literals.literal import Literal


def of(number):
    return {"correlation_id": number}


LITERALS = (
    Literal(
        "launch",
        tables(
            steps=[(0, 200, 0), (200, 200, 1), (400, 200, 2)],
            cuda_api=[
                (0, 10, "cudaLaunchKernel", of(1)),
                (100, 20, "cudaLaunchKernel", of(2)),
                (200, 30, "cudaLaunchKernel", of(3)),
                (400, 8, "cudaGraphLaunch", of(4)),
                (590, 4, "cudaGraphLaunch", of(5)),
                (604, 2, "cudaGraphLaunch", of(7)),
                (300, 100, "cudaStreamSynchronize", of(6)),
            ],
            kernels=[
                (30, 20, "a", of(1)),
                (150, 30, "a", of(2)),
                (210, 15, "a", of(3)),
                (440, 40, "b", of(4)),
                (490, 60, "b", of(4)),
                (600, 5, "c", of(5)),
                (700, 3, "d"),
                (710, 3, "d", of(8)),
            ],
        ),
        {
            "facts": {
                "launches": 6,
                "api_ns": 10 + 20 + 30 + 8 + 4 + 2,
                "queue_median_ns": 25.0,  # of 6, 20, 30, 32
                "queue_p95_ns": 32.0,
                "queued": 4,
                "api_median_ns": 9.0,  # of 2, 4, 8, 10, 20, 30
                "api_p95_ns": 30.0,
                "kernel_median_ns": 25.0,  # of 5, 15, 20, 30, 40, 60
                "launches_per_step": 5 / 3,
                "kernels_without_launch": 2,
            },
            "": {
                "name": ["cudaLaunchKernel", "cudaGraphLaunch"],
                "calls": [3, 3],
                "total_ns": [60, 14],
                "api_median_ns": [20.0, 4.0],
                "api_p95_ns": [30.0, 8.0],
                "queued": [2, 2],
                "queue_median_ns": [25.0, 19.0],  # of 20, 30; of 6, 32
                "queue_p95_ns": [30.0, 32.0],
                "kernels": [3, 3],
                "kernel_total_ns": [65, 105],
                "kernel_median_ns": [20.0, 40.0],  # of 15, 20, 30; of 5, 40, 60
            },
        },
        {"facts/api_p95_ns": "the longest of six calls"},
    ),
)
