"""Two devices; the first runs two kernels at once for a while. The recording is 1,000 ns long.

::

    ns        0   50   100  140   200  250   300  380  400   500   650   700  740   900  910  1000
    step               [ 0                               ][ 1                ][ 2            ]
    device 0           [ kernel         ]                    [ kernel ]  [copy ]
                                  [ kernel               ]
    device 1      [ kernel  ]                [kernel]                               [fill]
"""

from tests.analyses.builders import tables
from tests.analyses.literals.literal import Literal

ONE = {"device_id": 1}

LITERALS = (
    Literal(
        "device_use",
        tables(
            span_ns=1_000,
            steps=[(100, 300, 0), (400, 300, 1), (700, 300, 2)],
            kernels=[
                (100, 150, "a"),
                (200, 200, "b", {"stream": 8}),
                (500, 150, "a"),
                (50, 90, "a", ONE),
                (300, 80, "a", ONE),
            ],
            memcpy=[(700, 40, "h2d", "pinned", "device", 8)],
            memset=[(900, 10, 8, ONE)],
        ),
        {
            "facts": {"busy_ns": 490 + 180, "idle_ns": 510 + 820, "span_ns": 1_000, "utilisation": 670 / 2_000},
            "": {
                "device": ["GPU 0", "GPU 1"],
                "busy_ns": [300 + 150 + 40, 90 + 80 + 10],
                "idle_ns": [510, 820],
                "utilisation": [0.49, 0.18],
                "judged_utilisation": [490 / 900, (40 + 80 + 10) / 900],  # the steps start at 100
                "concurrent_ns": [50, 0],
                "extent_ns": [740 - 100, 910 - 50],
                "inner_idle_ns": [640 - 490, 860 - 180],
            },
        },
        {"facts/span_ns": "what the capture says of itself"},
    ),
)
