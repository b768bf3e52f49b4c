"""Two TPU cores: one whose programs give the steps, one that declares its steps.

::

    ns         0     100     200                      300     400                                        550  700   820
    core 0     [init][init ] [ jit_train            ]         [ jit_train                               ]    [jit_train]
                [fusion]     infeed fusion reduce wait        infeed fusion  reduce  wait  outfeed           fusion outf
                 10 to 80    20     50     20     10          30     60      25      15    12                80     8

    ns         0   10                                300  310                                    610  640    700
    core 1     [ step 0                              ][ step 1                                      ]
                   [ jit_train                   ]        [ jit_train                           ]            [fusion]
                   infeed fusion reduce wait outfeed      infeed fusion reduce wait outfeed
                   40     150    30     20   5            60     100    50     30   10
"""

from statistics import stdev

from tests.analyses.builders import tables
from tests.analyses.literals.literal import Literal

CATEGORIES = {"infeed": "infeed", "fusion.1": "loop fusion", "all-reduce.2": "all-reduce", "outfeed": "outfeed"}
TRAIN, INIT = (100, 150, 120, 250, 300), (100, 60)
WINDOW = 820 + 640


def program(start, dur, name, core):
    return (start, dur, name, "module", {"device_id": core})


def copying(start, dur, core):
    return (start, dur, "async-copy", "async_op", {"device_id": core})


def ops(core, *found):
    return [
        (start, dur, name, {"device_id": core, "category": CATEGORIES.get(name, "copy-done")})
        for start, dur, name in found
    ]


LITERALS = (
    Literal(
        "device_programs",
        tables(
            devices=[(core, "v6e", {"kind": "tpu", "ordinal": core}) for core in (0, 1)],
            steps=[(0, 300, 0, {"device_id": 1}), (300, 340, 1, {"device_id": 1})],
            device_ops=[
                *(program(0, INIT[0], "init", 0), program(100, INIT[1], "init", 0)),
                *(program(start, dur, "jit_train", 0) for start, dur in zip((200, 400, 700), TRAIN[:3], strict=True)),
                *(program(start, dur, "jit_train", 1) for start, dur in zip((10, 310), TRAIN[3:], strict=True)),
                *(copying(215, 60, 0), copying(250, 40, 0), copying(780, 30, 0)),
                *(copying(0, 90, 1), copying(330, 20, 1)),
            ],
            kernels=[
                *ops(0, (10, 70, "fusion.1"), (200, 20, "infeed"), (220, 50, "fusion.1"), (270, 20, "all-reduce.2")),
                *ops(0, (290, 10, "copy-done.4"), (400, 30, "infeed"), (430, 60, "fusion.1")),
                *ops(0, (490, 25, "all-reduce.2"), (515, 15, "copy-done.4"), (530, 12, "outfeed")),
                *ops(0, (700, 80, "fusion.1"), (780, 8, "outfeed")),
                *ops(1, (10, 40, "infeed"), (50, 150, "fusion.1"), (200, 30, "all-reduce.2")),
                *ops(1, (230, 20, "copy-done.7"), (250, 5, "outfeed"), (310, 60, "infeed"), (370, 100, "fusion.1")),
                *ops(1, (470, 50, "all-reduce.2"), (520, 30, "copy-done.7"), (550, 10, "outfeed")),
                *ops(1, (700, 50, "fusion.1")),
            ],
        ),
        {
            "facts": {
                "devices": 2,
                "executions": 5 + 2,
                "window_ns": WINDOW,
                "compute_share": (260 + 250) / WINDOW,
                "infeed_share": (50 + 100) / WINDOW,
                "outfeed_share": (20 + 15) / WINDOW,
                "collective_share": (45 + 80) / WINDOW,
                "async_wait_share": (25 + 50) / WINDOW,
                "idle_share": (420 + 145) / WINDOW,
            },
            "": {
                "device": ["TPU 0 v6e", "TPU 1 v6e"],
                "executions": [5, 2],
                "steps": [3, 2],  # without declared ones, those of the program that runs most often
                "step_ns": [(200 + 300) / 2, (300 + 340) / 2],
                "window_ns": [820, 640],  # from the first program to the end of the last; the declared steps
                "compute_ns": [70 + 50 + 60 + 80, 150 + 100],
                "infeed_ns": [20 + 30, 40 + 60],
                "outfeed_ns": [12 + 8, 5 + 10],
                "collective_ns": [20 + 25, 30 + 50],
                "async_wait_ns": [10 + 15, 20 + 30],
                "idle_ns": [820 - 400, 640 - 495],
                "async_ns": [75 + 30, 90 + 20],  # the first two overlap
            },
            "By program": {
                "name": ["jit_train", "init"],
                "calls": [5, 2],
                "total_ns": [920, 160],
                "mean_ns": [184.0, 80.0],
                "median_ns": [150.0, 80.0],
                "min_ns": [100, 60],
                "max_ns": [300, 100],
                "stddev_ns": [stdev(TRAIN), stdev(INIT)],
            },
            "Asynchronous work waited for": {
                "name": ["copy-done.7", "copy-done.4"],
                "calls": [2, 2],
                "total_ns": [50, 25],
                "share_of_wait": [50 / 75, 25 / 75],
                "mean_ns": [25.0, 12.5],
                "median_ns": [25.0, 12.5],
                "min_ns": [20, 10],
                "max_ns": [30, 15],
                "stddev_ns": [stdev((20, 30)), stdev((10, 15))],
            },
        },
        {"facts/devices": "a device is there until its last program is left out"},
    ),
)
