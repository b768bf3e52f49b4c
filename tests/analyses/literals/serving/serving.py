"""A serving engine that the device keeps up with, and one that queues work for its device."""

from tests.analyses.builders import tables
from tests.analyses.literals.literal import Literal


def steps(*given):
    """Return annotations of vLLM: start, duration, prompts, their tokens, requests that generate a token each."""
    names = (
        f"execute_context_{prompts}({tokens})_generation_{running}({running})"
        for _, _, prompts, tokens, running in given
    )
    return [(start, dur, name, "annotation") for (start, dur, *_), name in zip(given, names, strict=True)]


def launches(*calls):
    return [(at, 2, "cudaLaunchKernel", {"correlation_id": at}) for at in calls]


def kernels(*given):
    """Return kernels: the moment of their launch, start, duration."""
    return [(start, dur, "gemm", {"correlation_id": called}) for called, start, dur in given]


# host      |------- 0 -------|     |----- 1 -----|    |- 2 -|        |--- 3 ---|            steps
# from      0               100    150          230   300   320      400      440
# device       ####   ##               ###               #              ########             of step 3 until 445
#             20-60  70-90           175-200          306-316          410-445
# host                                                                         |-- sync --| |- sync -|
#                                                                             440       800 810    1000
FOLLOWED = Literal(
    "serving",
    tables(
        span_ns=1000,
        host_ops=steps((0, 100, 2, 300, 0), (150, 80, 1, 100, 0), (300, 20, 0, 0, 3), (400, 40, 0, 0, 4)),
        cuda_api=[
            *launches(10, 30, 160, 302, 405),
            (440, 360, "cudaStreamSynchronize"),
            (810, 190, "cudaStreamSynchronize"),
        ],
        kernels=kernels((10, 20, 40), (30, 70, 20), (160, 175, 25), (302, 306, 10), (405, 410, 35)),
    ),
    {
        "facts": {
            "engine": "vLLM",
            "steps": 4,
            "step_ns": 245,  # 100 + 80 + 20 + 45
            "covered_share": 0.245,
            "busy_share": 130 / 245,  # 60 + 25 + 10 + 35
            "outside": "cudaStreamSynchronize",
            "outside_ns": 545,  # 360 - 5 within step 3, + 190; more than half of the 755 outside of steps
        },
        "": {
            "phase": ["prefill", "decode"],
            "steps": [2, 2],
            "requests": [1.5, 3.5],
            "tokens": [400, 7],
            "total_ns": [180, 65],
            "share": [180 / 245, 65 / 245],
            "median_ns": [90.0, 32.5],
            "tokens_per_s": [400 / 180 * 1e9, 7 / 65 * 1e9],
            "busy_ns": [85, 45],
            "busy_share": [85 / 180, 45 / 65],
            "idle_ns": [95, 20],
            "host_gap_ns": [22.5, 8.0],  # of 20 and 175 - 150; of 6 and 10
            "host_ns": [90.0, 30.0],
        },
        "Every engine step": {
            "step": [0, 1, 2, 3],
            "phase": ["prefill", "prefill", "decode", "decode"],
            "prompts": [2, 1, 0, 0],
            "running": [0, 0, 3, 4],
            "prompt_tokens": [300, 100, 0, 0],
            "new_tokens": [0, 0, 3, 4],
            "start_ns": [0, 150, 300, 400],
            "dur_ns": [100, 80, 20, 45],
            "busy_ns": [60, 25, 10, 35],
            "host_gap_ns": [20, 25, 6, 10],
            "host_ns": [100, 80, 20, 40],
            "process": [0, 0, 0, 0],
        },
    },
    {"Every engine step": "a step is an annotation"},
    "the device keeps up",
)

# host     |-0-|  |-1-|  |--2--|                                                             annotations
#         0   20 30  54 60    90
# device                         |### #####|  |### ####|     |######### ##|                  steps
#                               100      200 215     300    330         450
AHEAD = Literal(
    "serving",
    tables(
        host_ops=steps((0, 20, 0, 0, 3), (30, 24, 0, 0, 4), (60, 30, 1, 50, 2)),
        cuda_api=launches(2, 5, 31, 35, 62, 64),
        kernels=kernels((2, 100, 30), (5, 140, 60), (31, 215, 25), (35, 250, 50), (62, 330, 90), (64, 430, 20)),
    ),
    {
        "facts": {
            "engine": "vLLM",
            "steps": 3,
            "step_ns": 305,  # 100 + 85 + 120
            "covered_share": 305 / 450,
            "busy_share": 275 / 305,  # 90 + 75 + 110
            "host_ns": 24,  # of 20, 24, 30
        },
        "": {
            "phase": ["mixed", "decode"],
            "steps": [1, 2],
            "requests": [3.0, 3.5],
            "tokens": [52, 7],
            "total_ns": [120, 185],
            "share": [120 / 305, 185 / 305],
            "median_ns": [120.0, 92.5],
            "tokens_per_s": [52 / 120 * 1e9, 7 / 185 * 1e9],
            "busy_ns": [110, 165],
            "busy_share": [110 / 120, 165 / 185],
            "idle_ns": [10, 20],
            "host_gap_ns": [30.0, 15.0],  # unknown before the first
            "host_ns": [30.0, 22.0],
        },
        "Every engine step": {
            "step": [0, 1, 2],
            "phase": ["decode", "decode", "mixed"],
            "prompts": [0, 0, 1],
            "running": [3, 4, 2],
            "prompt_tokens": [0, 0, 50],
            "new_tokens": [3, 4, 2],
            "start_ns": [100, 215, 330],
            "dur_ns": [100, 85, 120],
            "busy_ns": [90, 75, 110],
            "host_gap_ns": [None, 15, 30],
            "host_ns": [20, 24, 30],
            "process": [0, 0, 0],
        },
    },
    {"Every engine step": "a step is an annotation"},
    "the host runs ahead",
)

LITERALS = (FOLLOWED, AHEAD)
