"""Copies and fills, partly hidden by kernels; the last is after the three steps.

::

    ns       0      1000  2000         5000      9000 9500  10000 10400 20000 20700  30000  31000
    step     [ 0                                              ][ 1            ][ 2          ]
    memcpy   [ h2d  ]     [    h2d    ]          [d2h]                        [d2h] [h2d]    [d2h]
    memset                                                    [ ] [   ]
    kernel      [500    2100]                     [ ]
"""

from statistics import stdev

from tests.analyses.builders import tables
from tests.analyses.literals.literal import Literal

H2D, D2H, FILL = (1_000, 3_000, 100), (500, 400, 200), (100, 300)
"""Duration of each in ns, and bytes moved."""
H2D_BYTES, D2H_BYTES, FILL_BYTES = (20_000, 90_000, 70_000), (8, 4_000, 40), (1_000, 5_000)

DURATIONS = {
    "calls": [3, 3, 2],
    "total_ns": [4_100, 1_100, 400],
    "mean_ns": [4_100 / 3, 1_100 / 3, 200.0],
    "median_ns": [1_000.0, 400.0, 200.0],
    "min_ns": [100, 200, 100],
    "max_ns": [3_000, 500, 300],
    "stddev_ns": [stdev(H2D), stdev(D2H), stdev(FILL)],
}

LITERALS = (
    Literal(
        "copies",
        tables(
            steps=[(0, 10_000, 0), (10_000, 10_000, 1), (20_000, 10_000, 2)],
            memcpy=[
                (0, H2D[0], "h2d", "pinned", "device", H2D_BYTES[0]),
                (2_000, H2D[1], "h2d", "pinned", "device", H2D_BYTES[1]),
                (9_000, D2H[0], "d2h", "device", "pageable", D2H_BYTES[0]),
                (20_000, D2H[1], "d2h", "device", "pageable", D2H_BYTES[1]),
                (20_700, H2D[2], "h2d", "pinned", "device", H2D_BYTES[2]),
                (31_000, D2H[2], "d2h", "device", "pageable", D2H_BYTES[2]),
            ],
            memset=[(10_000, FILL[0], FILL_BYTES[0]), (10_200, FILL[1], FILL_BYTES[1])],
            kernels=[(500, 1_600, "k"), (9_100, 100, "k")],
        ),
        {
            # kernels hide 500 of the first copy, 100 of the second, 100 of the third
            "facts": {"bytes": 190_048, "total_ns": 5_600, "exposed_ns": 4_900, "calls": 8},
            "": {
                "kind": ["h2d", "d2h", "memset"],
                "src_memory": ["pinned", "device", None],
                "dst_memory": ["device", "pageable", "device"],
                "bytes": [180_000, 4_048, 6_000],
                "bandwidth": [180_000 / 4_100e-9, 4_048 / 1_100e-9, 6_000 / 400e-9],  # a second
                "mean_bytes": [60_000.0, 4_048 / 3, 3_000.0],
                "small_calls": [1, 3, 2],  # of up to 64 KiB
                "exposed_ns": [500 + 2_900 + 100, 400 + 400 + 200, 400],
                **DURATIONS,
            },
            "By kind": {
                "kind": ["h2d", "d2h", "memset"],
                "bytes": [180_000, 4_048, 6_000],
                "mean_bytes": [60_000.0, 4_048 / 3, 3_000.0],
                "median_bytes": [70_000.0, 40.0, 3_000.0],
                "min_bytes": [20_000, 8, 1_000],
                "max_bytes": [90_000, 4_000, 5_000],
                "stddev_bytes": [stdev(H2D_BYTES), stdev(D2H_BYTES), stdev(FILL_BYTES)],
                **DURATIONS,
            },
            "In steady steps": {
                "kind": ["h2d", "d2h", "memset"],
                "calls": [3, 2, 2],
                "total_ns": [4_100, 900, 400],
                "bytes": [180_000, 4_008, 6_000],
            },
        },
    ),
)
