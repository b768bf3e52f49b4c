"""Calls of the operating system on two threads: three of ``poll``, two of ``read``, and one that has not ended."""

from statistics import stdev

from tests.analyses.builders import tables
from tests.analyses.literals.literal import Literal

OTHER = {"thread_id": 1}

LITERALS = (
    Literal(
        "os_calls",
        tables(
            os_calls=[
                (0, 100, "poll"),
                (200, 300, "poll"),
                (300, 800, "poll", OTHER),
                (600, 50, "read"),
                (2_000, 70, "read", OTHER),
            ]
        ),
        {
            "facts": {"total_ns": 1_320, "calls": 5, "threads": 2},
            "": {
                "name": ["poll", "read"],
                "calls": [3, 2],
                "total_ns": [1_200, 120],
                "mean_ns": [400.0, 60.0],
                "median_ns": [300.0, 60.0],
                "min_ns": [100, 50],
                "max_ns": [800, 70],
                "stddev_ns": [stdev((100, 300, 800)), stdev((50, 70))],
                "share_of_os_time": [1_200 / 1_320, 120 / 1_320],
            },
        },
        {"facts/threads": "a thread goes with its last call, and no call here is the last of its thread"},
    ),
)
