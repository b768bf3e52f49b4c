"""Two lanes of a program that no known profiler recorded: a main thread that waits for its worker, and the worker.

::

    ns        0    100        400    500         800    900  1000
    main      [ frame                ] [ frame                 ]
                    [ wait    ]            [ wait       ]
    worker          [ solve ]              [ solve     ]
"""

from tests.analyses.builders import tables
from tests.analyses.literals.literal import Literal

WORKER = {"thread_id": 1}

LITERALS = (
    Literal(
        "lanes",
        tables(
            host_ops=[
                *((0, 500, "frame", "annotation"), (500, 500, "frame", "annotation")),
                *((100, 300, "wait", "annotation"), (600, 320, "wait", "annotation")),
                *((100, 250, "solve", "annotation", WORKER), (600, 310, "solve", "annotation", WORKER)),
            ],
            threads=[(0, 0, "main"), (1, 0, "worker")],
            run={"producer": "Chrome trace format"},
        ),
        {
            "facts": {"lanes": 2, "events": 6, "busiest_share": 1.0, "no_lane_share": 0.0},
            "": {
                "lane": ["main", "worker"],
                "events": [4, 2],
                "busy_ns": [1_000, 560],
                "busy_share": [1.0, 0.56],
                "largest": ["wait", "solve"],
                "largest_ns": [620, 560],
            },
            "Events, without those inside": {
                "lane": ["main", "worker", "main"],
                "name": ["wait", "solve", "frame"],
                "calls": [2, 2, 2],
                "self_ns": [620, 560, 1_000 - 620],
                "self_share": [0.62, 0.56, 0.38],
            },
        },
        {
            "facts/lanes": "a lane goes with its last event",
        },
    ),
)
