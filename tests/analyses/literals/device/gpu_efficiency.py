"""Two GPUs of 10 and 20 multiprocessors, whose SMs hold 1,000 threads each, in two steps of 1,000 ns, and after them.

A kernel of ``grid`` blocks puts ``grid / SMs`` on each SM; with ``block`` threads a block it fills that many times
``block / 1000`` of the slots, at most the occupancy that the trace states as possible. By hand, within the steps::

    GPU 0     ns at           blocks per SM   SMs with a block     slots      weighted: blocks   slots
    A         0 to 400        0.5             0.5 (1 with A)       0.05                 200      20
    A         100 to 300      0.7             1 (both)             0.07                 140      14
    B         500 to 800      2               1                    0.2                  600      60
    A         1000 to 1200    1               1                    0.2                  200      40
    B         1300 to 1400    4               1                    0.3 (of 0.4)         400      30
    D         1500 to 1550, 1560 to 1590: its grid is not known
    sum       1080 of 2000                    900 (ns of all SMs)  of 1200 ns           1540     164

    GPU 1     ns at           blocks per SM   SMs with a block     slots      weighted: blocks   slots
    E         0 to 500        0.5             0.5                  0.05                 250      25
    F         600 to 800      0.75            0.75                 0.15                 150      30
    F         900 to 940      0.25            0.25                 0.025                10       1
    E         1000 to 1100    1               1                    0.1                  100      10
    sum       840 of 2000                     510                  of 840 ns            510      66
"""

from tests.analyses.builders import tables
from tests.analyses.literals.literal import Literal


def kernel(start, dur, name, device, shape, **more):
    return (start, dur, name, {"device_id": device, **dict(zip(("grid_x", "block_x"), shape, strict=True)), **more})


LITERALS = (
    Literal(
        "gpu_efficiency",
        tables(
            steps=[(0, 1_000, 0), (1_000, 1_000, 1)],
            devices=[
                (0, "small", {"ordinal": 0, "sm_count": 10, "max_threads_per_sm": 1_000}),
                (1, "large", {"ordinal": 1, "sm_count": 20, "max_threads_per_sm": 1_000}),
            ],
            kernels=[
                kernel(0, 400, "A", 0, (5, 100)),
                kernel(100, 200, "A", 0, (7, 100)),
                kernel(500, 300, "B", 0, (20, 100), occupancy=0.3),
                kernel(1_000, 200, "A", 0, (10, 200)),
                kernel(1_300, 100, "B", 0, (40, 100), occupancy=0.3),
                kernel(1_500, 50, "D", 0, (None, 100)),
                kernel(1_560, 30, "D", 0, (None, 100)),
                kernel(2_100, 100, "C", 0, (3, 100)),
                kernel(2_300, 60, "C", 0, (4, 100)),
                kernel(0, 500, "E", 1, (10, 100)),
                kernel(600, 200, "F", 1, (15, 200)),
                kernel(900, 40, "F", 1, (5, 100)),
                kernel(1_000, 100, "E", 1, (20, 100)),
            ],
        ),
        {
            "facts": {
                "utilisation": (1_080 + 840) / 4_000,
                "sm_efficiency": 0.3525,  # (900 + 510) / 4000
                "occupancy": 0.112745,  # (164 + 66) / 2040
                "small_grid_share": (600 + 740) / 2_040,
                "known_share": 2_040 / (2_040 + 80),
                "judged_ns": 4_000,
            },
            "": {
                "device": ["GPU 0 small", "GPU 1 large"],
                "kernel_ns": [1_080 + 160, 840],  # C runs after the steps
                "utilisation": [0.54, 0.42],
                "sm_efficiency": [0.45, 0.255],
                "occupancy": [0.136667, 0.078571],  # 164 / 1200, 66 / 840, to millionths
                "blocks_per_sm": [1.283333, 0.607143],  # 1540 / 1200, 510 / 840
                "small_grid_share": [600 / 1_200, 740 / 840],
                "span_utilisation": [1_240 / 2_360, 840 / 2_360],
                "judged_kernel_ns": [1_080, 840],
                "judged_ns": [2_000, 2_000],
            },
            "Kernels": {  # of the whole capture
                "name": ["A", "E", "B", "F", "C", "D"],
                "calls": [3, 2, 2, 2, 2, 2],
                "total_ns": [800, 600, 400, 240, 160, 80],
                "sm_efficiency": [0.675, 0.583333, 1.0, 0.666667, 0.3375, None],
                "occupancy": [0.0925, 0.058333, 0.225, 0.129167, 0.03375, None],
                "blocks_per_sm": [0.675, 0.583333, 2.5, 0.666667, 0.3375, None],
            },
        },
    ),
)
