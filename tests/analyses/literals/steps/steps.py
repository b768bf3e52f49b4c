"""Steps that follow one another, and steps with time between their marks.

Eleven steps on each of two ranks; the first takes long.

::

    rank 0   [ 0: 500 ][ 1: 100 ][ 2: 110 ] ... [ 10: 190 ]    starts at 0, each 10 longer than the last
    rank 1   the same, 5 later

Five marks; most of the time from the third to the fourth is claimed by a checkpoint, from 280 on::

    marks    [0-60] load [100-170] load [220-260] [save 280-400] [410-495] load [500-580]
    steps    |   7      |    8         |   9     |               |    10       |   11, cut
    last       100           120          60                          90           80

Six repeats of the kernels a, b and c, 30 each, that start at 0, 100, 220, 330, 420 and 530, and kernels that run once
from 680 to 720 (or to 1260 if the repeats, which take input, cover too little to judge by).

Six marks from 0 to 330; the first three only launch. The work of each ends 2 before that of the next starts::

    host     |3|4|5|   6   |   7   |   8   |
    device     |   3   |   4   |  5  |   6   |  7  |  8  |
"""

from itertools import pairwise

from tests.analyses.builders import tables
from tests.analyses.literals.literal import Literal

DURATIONS = [500, *range(100, 200, 10)]
STARTS = [sum(DURATIONS[:step]) for step in range(11)]
MARKS = ((0, 60), (100, 70), (220, 40), (410, 85), (500, 80))
BEGINS = (0, 100, 220, 330, 420, 530)
REPEATS = [(at + 30 * place, 30, name) for at in BEGINS for place, name in enumerate("abc")]
ELSEWHERE = "without a kernel, repeats begin at another"
OTHERS = [(680, 25, "x"), (705, 15, "y")]
TAKEN = [(at + 5, 5, "h2d", "pinned", "device", 64) for at in BEGINS]
HOST = (0, 10, 22, 34, 130, 230, 330)
DEVICE = (5, 103, 213, 303, 413, 501, 586)


def rank(process, late):
    own = {"thread_id": process, "process_id": process}
    return [(late + at, dur, step, own) for step, (at, dur) in enumerate(zip(STARTS, DURATIONS, strict=True))]


LITERALS = (
    Literal(
        "steps",
        tables(steps=rank(0, 0) + rank(1, 5)),
        {
            "facts": {
                "count": 22,
                "warmup": 2,
                "median_ns": 145,  # of 100, 110, ... 190, each twice
                "mean_ns": 145,
                "p95_ns": 190,
                "source": "declared by the trace",
                "marker": "ProfilerStep",
                "confidence": 1.0,
            },
            "Every step": {
                "step": [*range(11)] * 2,
                "start_ns": [late + start for late in (0, 5) for start in STARTS],
                "dur_ns": DURATIONS * 2,
                "warmup": [True, *[False] * 10] * 2,
                "cut": [False] * 22,
                "process": [0] * 11 + [1] * 11,
            },
        },
        {"Every step": "a step of the trace is a row", "facts/confidence": "steps are declared"},
    ),
    Literal(
        "steps",
        tables(
            nvtx=[
                *((start, dur, f"step {7 + number}") for number, (start, dur) in enumerate(MARKS)),
                (280, 120, "save checkpoint"),
            ],
        ),
        {
            "facts": {
                "count": 5,
                "warmup": 0,
                "median_ns": 95,  # of 60, 90, 100, 120; nothing is known after the last
                "mean_ns": 92,  # 370 / 4 = 92.5, to even
                "p95_ns": 120,
                "source": "NVTX ranges",
                "marker": "step #",
                "confidence": 1.0,
            },
            "Every step": {
                "step": [7, 8, 9, 10, 11],
                "start_ns": [0, 100, 220, 410, 500],
                "dur_ns": [100, 120, 60, 90, 80],
                "warmup": [False] * 5,
                "cut": [False, False, False, False, True],
                "process": [0] * 5,
            },
        },
        {
            "Every step": "a mark is a row",
            "facts/confidence": "steps are declared",
            "facts/warmup": "no step is slow",
        },
        name="with time between the marks",
    ),
    Literal(
        "steps",
        tables(kernels=[*REPEATS, *OTHERS], devices=[(0, "GPU 0"), (1, "GPU 1")]),
        {
            "facts": {
                "count": 5,
                "warmup": 0,
                "median_ns": 110,  # of 100, 120, 110, 90, 110
                "mean_ns": 106,
                "p95_ns": 120,
                "source": "inferred from repeating kernels",
                "marker": "a",
                "confidence": 1.0,
                "work_share": 450 / 580,  # 5 · 90; the last repeat has another 90, the others 40
                "time_share": 530 / 720,
            },
            "Every step": {
                "step": [0, 1, 2, 3, 4],
                "start_ns": [0, 100, 220, 330, 420],
                "dur_ns": [100, 120, 110, 90, 110],
                "warmup": [False] * 5,
                "cut": [False] * 5,
                "process": [0] * 5,
            },
        },
        {
            "Every step": "a kernel begins a repeat",
            "facts/warmup": "no step is slow",
            **dict.fromkeys(("facts/count", "facts/median_ns", "facts/mean_ns", "facts/p95_ns"), ELSEWHERE),
        },
        name="inferred",
    ),
    Literal(
        "steps",
        tables(kernels=[*REPEATS, *OTHERS, (960, 300, "z")], memcpy=TAKEN),
        {
            "facts": {
                "repeats": 5,
                "repeat_median_ns": 110,
                "source": "inferred from repeating kernels",
                "marker": "a",
                "confidence": 1.0,
                "work_share": 450 / 880,
                "time_share": 530 / 1260,
            },
            "Every repeat": {
                "step": [0, 1, 2, 3, 4],
                "start_ns": [0, 100, 220, 330, 420],
                "dur_ns": [100, 120, 110, 90, 110],
                "warmup": [False] * 5,
                "cut": [False] * 5,
                "process": [0] * 5,
            },
        },
        {"Every repeat": "a kernel begins a repeat", "facts/repeat_median_ns": ELSEWHERE},
        name="inferred and not judged",
    ),
    Literal(
        "steps",
        tables(
            steps=[(start, end - start, 3 + step) for step, (start, end) in enumerate(pairwise(HOST))],
            cuda_api=[(start + 1, 2, "cudaLaunchKernel", {"correlation_id": start}) for start in HOST[:-1]],
            kernels=[
                (start, end - start - 2, "k", {"correlation_id": launched})
                for (start, end), launched in zip(pairwise(DEVICE), HOST, strict=False)
            ],
        ),
        {
            "facts": {
                "count": 6,
                "warmup": 0,
                "median_ns": 94,  # of 83, 88, 90, 98, 110, 110: (90 + 98) / 2
                "mean_ns": 96,  # 579 / 6 = 96.5, to even
                "p95_ns": 110,
                "device_median_ns": 94,
                "host_median_ns": 54,  # of 10, 12, 12, 96, 100, 100
                "source": "declared by the trace",
                "marker": "ProfilerStep",
                "confidence": 1.0,
            },
            "Every step": {
                "step": [3, 4, 5, 6, 7, 8],
                "start_ns": [5, 103, 213, 303, 413, 501],
                "dur_ns": [98, 110, 90, 110, 88, 83],  # the last until its work ends, at 584
                "warmup": [False] * 6,
                "cut": [False] * 6,
                "process": [0] * 6,
                "host_start_ns": [0, 10, 22, 34, 130, 230],
                "host_dur_ns": [10, 12, 12, 96, 100, 100],
            },
        },
        {
            "Every step": "a step of the trace is a row",
            "facts/confidence": "steps are declared",
            "facts/warmup": "no step is slow",
        },
        name="of a host that runs ahead",
    ),
)
