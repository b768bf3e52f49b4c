"""Two ranks without devices that reduce together on threads of their own; operators hide a part of it.

::

    ns            0     100    300 340    500  600 620  700   1000 1100 1120 1150 1200 1250
    rank 0        [ mm          ]                             [ mm                ]
          second        [ reduce       ]       [ broadcast ]                 [ reduce     ]
    rank 1        [ mm              ]                         [ mm       ]
          second               [ reduce]           [broadc.]       [ reduce               ]
"""

from statistics import stdev

from tests.analyses.builders import tables
from tests.analyses.literals.literal import Literal

REDUCE, BROADCAST = "gloo:all_reduce", "gloo:broadcast"
REDUCES, BROADCASTS = (400, 100, 200, 150), (100, 80)
COMPUTED = ((0, 300, 0), (1_000, 200, 0), (0, 340, 1), (1_000, 120, 1))
COMMUNICATED = (
    *((100, 400, REDUCE, 0), (600, 100, BROADCAST, 0), (1_150, 100, REDUCE, 0)),
    *((300, 200, REDUCE, 1), (620, 80, BROADCAST, 1), (1_100, 150, REDUCE, 1)),
)


def of(rank, thread=0):
    return {"process_id": rank, "thread_id": 2 * thread + rank}


LITERALS = (
    Literal(
        "host_collectives",
        tables(
            steps=[(start, 1_000, start // 1_000, of(rank)) for rank in (0, 1) for start in (0, 1_000)],
            host_ops=[
                *((start, dur, "aten::mm", "op", of(rank)) for start, dur, rank in COMPUTED),
                *((start, dur, name, "annotation", of(rank, 1)) for start, dur, name, rank in COMMUNICATED),
            ],
        ),
        {
            "facts": {
                "total_ns": 850 + 180,
                "exposed_ns": (200 + 100 + 50) + (160 + 80 + 130),  # of rank 0, of rank 1
                # rank 0 waits from 100 to 300, while it computes, and from 600 to 620; rank 1 from 1100 to 1150, of
                # which it computes 20
                "waiting_ns": 20 + 30,
                "calls": 6,
            },
            "": {
                "name": [REDUCE, BROADCAST],
                "calls": [4, 2],
                "total_ns": [850, 180],
                "exposed_ns": [200 + 50 + 160 + 130, 100 + 80],
                "mean_ns": [212.5, 90.0],
                "median_ns": [175.0, 90.0],
                "min_ns": [100, 80],
                "max_ns": [400, 100],
                "stddev_ns": [stdev(REDUCES), stdev(BROADCASTS)],
            },
        },
    ),
)
