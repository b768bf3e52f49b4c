"""Ranges in two domains, one within another, one that never ended; work that two of them launched overlaps.

::

    ns        0   10  30        100    200  210 230      300          400  450
    train     [                 ]      [                 ]            [... never ends
      load        [   ]                     [   ]
    io                                                                      [ 460 .. 500 ] (domain io)
    kernels       [20 .. 90 ]  [110..130]   [220 .. 260]
                        [60 .. 120 ] on another stream
"""

from statistics import stdev

from tests.analyses.builders import tables
from tests.analyses.literals.literal import Literal


def of(number, **more):
    return {"correlation_id": number, **more}


LITERALS = (
    Literal(
        "ranges",
        tables(
            nvtx=[
                (0, 100, "train"),
                (10, 20, "load"),
                (200, 140, "train"),
                (210, 30, "load"),
                (400, None, "train"),
                (460, 40, "io", {"domain": "disk"}),
                (520, 10, "io", {"domain": "disk"}),
                (600, None, "here", {"kind": "mark"}),
            ],
            cuda_api=[
                (12, 3, "cudaLaunchKernel", of(1)),
                (50, 3, "cudaLaunchKernel", of(2)),
                (90, 5, "cudaLaunchKernel", of(3)),
                (212, 3, "cudaLaunchKernel", of(4)),
                (300, 3, "cudaLaunchKernel", of(5)),
                (462, 3, "cudaLaunchKernel", of(6)),
                (522, 3, "cudaLaunchKernel", of(7)),
            ],
            kernels=[
                (20, 70, "a", of(1)),
                (60, 60, "b", of(2, stream=8)),
                (150, 20, "a", of(3)),
                (220, 40, "a", of(4)),
                (310, 15, "a", of(5)),
                (470, 5, "a", of(6)),
                (530, 6, "a", of(7)),
            ],
        ),
        {
            "facts": {"calls": 6, "names": 3, "unfinished": 1},
            "": {
                "domain": ["", "", "disk"],
                "name": ["train", "load", "io"],
                "calls": [2, 2, 2],
                "total_ns": [240, 50, 50],
                "self_ns": [80 + 110, 50, 50],
                "device_span_ns": [(170 - 20) + (325 - 220), 70 + 40, 5 + 6],
                "device_busy_ns": [(120 - 20) + 20 + 40 + 15, 70 + 40, 5 + 6],
                "mean_ns": [120.0, 25.0, 25.0],
                "median_ns": [120.0, 25.0, 25.0],
                "min_ns": [100, 20, 10],
                "max_ns": [140, 30, 40],
                "stddev_ns": [stdev((100, 140)), stdev((20, 30)), stdev((40, 10))],
            },
        },
        {
            "facts/names": "a name goes with the last of its ranges, and each has two",
            "facts/unfinished": "one never ended",
        },
    ),
    Literal(
        "ranges",
        tables(
            nvtx=[
                *((100 * step, 50 + step, f"step {step}") for step in range(12)),
                *((100 * step + 5, 10 * step, f"load#{step}") for step in range(1, 3)),
            ],
            cuda_api=[(10, 3, "cudaLaunchKernel", of(1)), (1_110, 3, "cudaLaunchKernel", of(2))],
            kernels=[(60, 70, "a", of(1)), (1_120, 9, "a", of(2))],
        ),
        {
            "facts": {"calls": 14, "names": 14, "unfinished": 0},
            "": {
                "domain": [""] * 14,
                "name": [*(f"step {step}" for step in range(11, -1, -1)), "load#2", "load#1"],
                "calls": [1] * 14,
                "total_ns": [*range(61, 49, -1), 20, 10],
                "self_ns": [*range(61, 52, -1), 52 - 20, 51 - 10, 50, 20, 10],
                "device_span_ns": [9, *[0] * 10, 70, 0, 0],
                "device_busy_ns": [9, *[0] * 10, 70, 0, 0],
                "mean_ns": [*map(float, range(61, 49, -1)), 20.0, 10.0],
                "median_ns": [*map(float, range(61, 49, -1)), 20.0, 10.0],
                "min_ns": [*range(61, 49, -1), 20, 10],
                "max_ns": [*range(61, 49, -1), 20, 10],
                "stddev_ns": [0.0] * 14,
            },
            "With running numbers as N": {
                "domain": ["", ""],
                "name": ["step N", "load#N"],
                "calls": [12, 2],
                "total_ns": [sum(range(50, 62)), 30],
                "self_ns": [sum(range(50, 62)) - 30, 30],
                "device_span_ns": [79, 0],
                "device_busy_ns": [79, 0],
                "mean_ns": [55.5, 15.0],
                "median_ns": [55.5, 15.0],
                "min_ns": [50, 10],
                "max_ns": [61, 20],
                "stddev_ns": [stdev(range(50, 62)), stdev((10, 20))],
            },
        },
        {"": "a range of each name: those of several calls are in the other literal", "facts/unfinished": "none"},
        "with running numbers",
    ),
    Literal(  # two layers are captured, with a node between them, and launched as a graph in each of two steps
        "ranges",
        tables(
            nvtx=[(0, 90, "capture"), (5, 35, "layer"), (50, 30, "layer"), (200, 100, "step"), (400, 120, "step")],
            graph_nodes=[
                *((10, 1, None), (60, 2, None), (85, 3, None)),
                *((100, 11, 1), (101, 12, 2), (102, 13, 3)),
            ],
            cuda_api=[(210, 20, "cudaGraphLaunch", of(1)), (410, 20, "cudaGraphLaunch", of(2))],
            kernels=[
                (300, 40, "a", of(1, graph_node_id=11)),
                (350, 10, "b", of(1, graph_node_id=12)),
                (365, 6, "c", of(1, graph_node_id=13)),
                (500, 30, "a", of(2, graph_node_id=11)),
                (540, 20, "b", of(2, graph_node_id=12)),
                (565, 5, "c", of(2, graph_node_id=13)),
            ],
        ),
        {
            "facts": {"calls": 5, "names": 3, "unfinished": 0},
            "": {
                "domain": ["", "", ""],
                "name": ["step", "capture", "layer"],
                "calls": [2, 1, 2],
                "total_ns": [220, 90, 65],
                "self_ns": [220, 90 - 65, 65],
                "device_span_ns": [(371 - 300) + (570 - 500), 0, 0],
                "device_busy_ns": [(40 + 10 + 6) + (30 + 20 + 5), 0, 0],
                "mean_ns": [110.0, 90.0, 32.5],
                "median_ns": [110.0, 90.0, 32.5],
                "min_ns": [100, 90, 30],
                "max_ns": [120, 90, 35],
                "stddev_ns": [stdev((100, 120)), 0.0, stdev((30, 35))],
                "graph_ns": [0, 56 + 55, (40 + 10) + (30 + 20)],
            },
        },
        {"facts/names": "a name goes with the last of its ranges", "facts/unfinished": "all end"},
        name="of graphs",
    ),
)
