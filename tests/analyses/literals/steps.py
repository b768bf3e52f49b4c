"""Eleven steps, of which the first takes long, on each of two ranks.

::

    rank 0   [ 0: 500 ][ 1: 100 ][ 2: 110 ] ... [ 10: 190 ]    begins at 0, each 10 longer than the last
    rank 1   the same, 5 later
"""

from tests.analyses.builders import tables
from tests.analyses.literals.literal import Literal

DURATIONS = [500, *range(100, 200, 10)]
STARTS = [sum(DURATIONS[:step]) for step in range(11)]


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
                "process": [0] * 11 + [1] * 11,
            },
        },
        {"Every step": "a step of the trace is a row", "facts/confidence": "steps are declared"},
    ),
)
