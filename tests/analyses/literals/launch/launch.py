"""Launches of two functions: three that queue, one whose kernel starts before the call returns, a graph of two kernels.

::

    ns        0   10      30      60   100  120      150  190  200  230  300       400 410  440      490   600
    call      [10 ]                    [20 ]                   [ 30 ]    [ 100      ]  [ 8 ]
    kernel           [20: 30..50]             [30: 150..180]     [15: 210..225]  graph: [40: 440..480][60: 490..550]
    no call                                                                                              [5: 600]
    queue         20                         30              null                                32

Steps are 0 to 200, 200 to 400 and 400 to 600: five calls in three steps. The second graph waits 6 ns, the third has no
kernels, and two kernels have no call.

Then 21 launches of a device whose clock is off: kernel n seems to start 1 ms less n µs before its call. Its times
are moved by 1 ms and 5 µs. Two launches more are captured in a graph.
"""

from tests.analyses.builders import tables
from tests.analyses.literals.literal import Literal


def of(number):
    return {"correlation_id": number}


FIRST, EARLY = 2_000_000, 1_000_000
"""The first call of the second trace, and by how much its device seems to be early."""

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
                (588, 6, "cudaGraphLaunch", of(5)),
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
                "api_ns": 10 + 20 + 30 + 8 + 6 + 2,
                "queue_median_ns": 25.0,  # of 6, 20, 30, 32
                "queue_p95_ns": 32.0,
                "queued": 4,
                "api_median_ns": 9.0,  # of 2, 6, 8, 10, 20, 30
                "api_p95_ns": 30.0,
                "kernel_median_ns": 25.0,  # of 5, 15, 20, 30, 40, 60
                "launches_per_step": 5 / 3,
                "kernels_without_launch": 2,
            },
            "": {
                "name": ["cudaLaunchKernel", "cudaGraphLaunch"],
                "calls": [3, 3],
                "total_ns": [60, 16],
                "api_median_ns": [20.0, 6.0],
                "api_p95_ns": [30.0, 8.0],
                "queued": [2, 2],
                "queue_median_ns": [25.0, 19.0],  # of 20, 30; of 6, 32
                "queue_p95_ns": [30.0, 32.0],
                "kernels": [3, 3],
                "kernel_total_ns": [65, 105],
                "kernel_median_ns": [20.0, 40.0],  # of 15, 20, 30; of 5, 40, 60
            },
            "Delay from launch to start": {
                "device": ["GPU 0"],
                "launches": [5],
                "joined_share": [6 / 8],
                "smallest_ns": [10],  # of 30, 50, 10, 40, 12
                "median_ns": [30.0],
                "p95_ns": [50],
                "moved_ns": [None],
            },
        },
        {"facts/api_p95_ns": "the longest of six calls"},
    ),
    Literal(
        "launch",
        tables(
            cuda_api=[
                *((FIRST + 100_000 * n, 1_000 + 100 * n, "cudaLaunchKernel", of(n + 1)) for n in range(21)),
                (8_000_000, 10, "cudaStreamBeginCapture"),
                (8_000_100, 10, "cudaLaunchKernel", of(50)),
                (8_000_200, 10, "cudaLaunchKernel", of(51)),
                (8_000_300, 10, "cudaStreamEndCapture"),
            ],
            kernels=[(FIRST + 101_000 * n - EARLY, 10_000 + 500 * n, "k", of(n + 1)) for n in range(21)],
        ),
        {
            "facts": {
                "launches": 21,
                "api_ns": 21 * 1_000 + 100 * 210,  # 0 + 1 + ... + 20 = 210
                "queue_median_ns": 4_000 + 900 * 10.0,  # the delay, 5,000 + 1,000 n, without the call, 1,000 + 100 n
                "queue_p95_ns": 4_000 + 900 * 19.0,
                "queued": 21,
                "api_median_ns": 1_000 + 100 * 10.0,
                "api_p95_ns": 1_000 + 100 * 19.0,
                "kernel_median_ns": 10_000 + 500 * 10.0,
                "launches_per_step": None,
                "kernels_without_launch": 0,
                "launches_captured": 2,
            },
            "": {
                "name": ["cudaLaunchKernel"],
                "calls": [21],
                "total_ns": [42_000],
                "api_median_ns": [2_000.0],
                "api_p95_ns": [2_900.0],
                "queued": [21],
                "queue_median_ns": [13_000.0],
                "queue_p95_ns": [21_100.0],
                "kernels": [21],
                "kernel_total_ns": [21 * 10_000 + 500 * 210],
                "kernel_median_ns": [15_000.0],
            },
            "Delay from launch to start": {
                "device": ["GPU 0"],
                "launches": [21],
                "joined_share": [1.0],
                "smallest_ns": [5_000],
                "median_ns": [5_000 + 1_000 * 10.0],
                "p95_ns": [5_000 + 1_000 * 19],
                "moved_ns": [5_000 + EARLY],  # the quickest launch takes 5 µs
            },
        },
        {"Delay from launch to start/smallest_ns": "clocks are moved so that it is 5 µs"},
        name="a clock that is off, and launches that a graph captures",
    ),
)
