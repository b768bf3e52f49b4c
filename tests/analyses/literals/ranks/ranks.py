"""Three ranks, three steps, five collectives; the clock of rank 1 is 7 µs fast. True times in µs:

::

    step 0            gemm       all-reduce (ends at 120)        all-gather (ends at 160)      idle
    rank 0   0-220    0-80        80: skew 20, waits 20          130: skew  0, waits 20        input 170-200
    rank 1   0-200    0-100      100: skew 40, waits  0, last    150: skew 20, waits  0, last
    rank 2   0-190    0-60        60: skew  0, waits 40          140: skew 10, waits 10

    step 1                       all-reduce (ends at 350)
    rank 0   220-470  220-300    300: skew  0, waits 30
    rank 1   200-460  220-310    310: skew 10, waits 20                                        input 400-425
    rank 2   190-472  220-330    330: skew 30, waits  0, last

    step 2                       all-reduce (ends at 570)        all-gather (ends at 600)
    rank 0   470-660  470-540    540: skew 15, waits 10          580: skew  0, waits 10
    rank 1   460-653  470-550    550: skew 25, waits  0, last    585: skew  5, waits  5        gemm 613-623
    rank 2   472-655  475-525    525: skew  0, waits 25          590: skew 10, waits  0, last  input 610-630

A gap after a step belongs to it: they take 220, 250, 190; 200, 260, 193; 190, 282, 183. Without the waits:
180, 220, 170; 200, 240, 188; 140, 282, 158.
The transfer is the shortest of a collective: 20 of each all-reduce, 10 of each all-gather.
"""

from tests.analyses.builders import tables
from tests.analyses.literals.literal import Literal

US = 1_000
OWN = "Own time: per step, without waiting in collectives; shares of steady step time"
ARRIVALS = "Arrivals at collectives (skew: after the first rank)"
COMMON = "Own times of the steps that all ranks have"
AHEAD = (0, 7, 0)
REDUCE, GATHER = "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "ncclDevKernel_AllGather_RING_LL"
STEPS = (((0, 215), (220, 250), (470, 190)), ((0, 195), (200, 260), (460, 193)), ((0, 190), (190, 275), (472, 183)))
WORK = (  # by rank: start and end of each kernel
    (
        ("gemm", (0, 80), (220, 300), (470, 540)),
        (REDUCE, (80, 120), (300, 350), (540, 570)),
        (GATHER, (130, 160), (580, 600)),
    ),
    (
        ("gemm", (0, 100), (220, 310), (470, 550), (613, 623)),
        (REDUCE, (100, 120), (310, 350), (550, 570)),
        (GATHER, (150, 160), (585, 600)),
    ),
    (
        ("gemm", (0, 60), (220, 330), (475, 525)),
        (REDUCE, (60, 120), (330, 350), (525, 570)),
        (GATHER, (140, 160), (590, 600)),
    ),
)
INPUT = ((170, 30), (400, 25), (610, 20))
CALLS = (((5, 10), (10, 10), (300, 30)), ((20, 10),), ((30, 12), (630, 8)))
JUDGED = (660, 653, 655)
WAITS = (20 + 20 + 30 + 10 + 10, 0 + 0 + 20 + 0 + 5, 40 + 10 + 0 + 25 + 0)


def of(rank, at, dur, *named):
    return ((at + AHEAD[rank]) * US, dur * US, *named, {"process_id": rank, "thread_id": rank})


def on_device(rank, begin, end, name):
    return ((begin + AHEAD[rank]) * US, (end - begin) * US, name, {"process_id": rank, "device_id": rank})


LITERALS = (
    Literal(
        "ranks",
        tables(
            processes=[(rank, "python", {"rank": rank}) for rank in range(3)],
            threads=[(rank, rank, "python") for rank in range(3)],
            settings=[("distributedInfo.world_size", "4")],
            steps=[of(rank, *step, number) for rank in range(3) for number, step in enumerate(STEPS[rank])],
            nvtx=[of(rank, *INPUT[rank], "data loading") for rank in range(3)],
            cuda_api=[of(rank, *call, "cudaLaunchKernel") for rank in range(3) for call in CALLS[rank]],
            kernels=[
                on_device(rank, *times, name) for rank in range(3) for name, *runs in WORK[rank] for times in runs
            ],
        ),
        {
            "facts": {
                "count": 3,
                "world_size": 4,
                "slowest_factor": 200 / 180,  # of medians 180, 200, 158
                "lost_ns": 77_333,  # 200 - 520/3, 282 - 742/3, 188 - 516/3
                "collectives": 5,
                "wait_ns": 63_333,  # (90 + 25 + 75) / 3
            },
            OWN: {
                "rank": [0, 1, 2],
                "steps": [3, 3, 3],
                "median_step_ns": [220.0 * US, 200.0 * US, 190.0 * US],
                "mean_step_ns": [660 * US / 3, 653 * US / 3, 655 * US / 3],
                "own_ns": [190_000, 209_333, 193_333],  # 570, 628 and 580 without the waits
                "busy_share": [400 / 660, (270 + 10 + 105) / 653, 375 / 655],
                "compute_share": [230 / 660, 280 / 653, 220 / 655],
                "communication_share": [170 / 660, 105 / 653, 155 / 655],
                "input_share": [30 / 660, 25 / 653, 20 / 655],
                "slowest": [0, 2, 1],
                "score": [-0.6745, 0.6745 * 48 / 10, 0.0],  # 580 is the median, 10 the median deviation
                "kernels": [8, 9, 8],
                "api_ns": [(15 + 30) * US, 10 * US, 20 * US],
                "judged_ns": [judged * US for judged in JUDGED],
            },
            ARRIVALS: {
                "rank": [0, 1, 2],
                "collectives": [5, 5, 5],
                "median_skew_ns": [0.0, 20.0 * US, 10.0 * US],
                "last": [0, 3, 2],
                "wait_ns": [wait * US for wait in WAITS],
                "wait_share": [wait / judged for wait, judged in zip(WAITS, JUDGED, strict=True)],
                "clock_ns": [0, 7 * US, 0],
            },
            "By collective": {
                "name": [REDUCE, GATHER],
                "group": ["", ""],
                "calls": [3, 2],
                "transfer_ns": [60 * US, 20 * US],
                "wait_ns": [(60 + 50 + 35) * US, (30 + 15) * US],
                "median_skew_ns": [30.0 * US, 15.0 * US],  # of 40, 30, 25; of 20, 10
            },
            COMMON: {
                "step": [0, 1, 2],
                "slowest": [1, 2, 1],
                "max_ns": [200 * US, 282 * US, 188 * US],
                "mean_ns": [520 * US / 3, 742 * US / 3, 516 * US / 3],
            },
        },
        {
            "facts/count": "a rank is there until its last event is left out",
            "facts/world_size": "a setting",
            **dict.fromkeys((f"{OWN}/rank", f"{ARRIVALS}/rank"), "a rank's number is its own"),
            f"{ARRIVALS}/clock_ns": "the ends of all collectives agree",
            f"{COMMON}/step": "of marks of all",
        },
    ),
)
