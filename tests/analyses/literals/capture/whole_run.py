"""A run of 10 s: imports, thirty steps, an evaluation and a checkpoint twice, and an end, in which a recording saves.

::

    ms  -2000    -1000   0     1000       1500   1800  1900     2900   3300   3500     4500   8000
        | import | data  | steps | validate | save | new | steps | validate | save | steps |  end |
"""

from tests.analyses.builders import tables
from tests.analyses.literals.literal import Literal

MS = 1_000_000
IN_LIBRARY = {"origin": "standard"}
FRAMES = (
    (0, None, "<module>", "train.py", 3),
    (1, 0, "_find_and_load", "importlib/_bootstrap.py", 1, IN_LIBRARY),
    (2, None, "<module>", "train.py", 99),
    (3, 2, "prepare", "data.py", 7),
    (4, 2, "main", "train.py", 50),
    (5, 4, "train_step", "train.py", 20),
    (6, 2, "main", "train.py", 60),
    (7, 6, "validate", "train.py", 30),
    (8, 2, "main", "train.py", 62),
    (9, 8, "save_checkpoint", "train.py", 88),
    (10, 8, "save_checkpoint", "train.py", 89),
    (11, 2, "main", "train.py", 64),
    (12, 11, "resample", "data.py", 17),
    (13, 2, "plot", "train.py", 95),
)
LONG = {9: 900, 19: 600}
"""Time after these steps until the next call of the optimizer, in ms."""


def steps():
    """Yield ``start_ns, dur_ns, kind, name``: of 100 ms, or as long as what comes after them, too."""
    begin = 0
    for number in range(30):
        lasts = (100 + LONG.get(number, 0)) * MS
        yield (begin, lasts, "step", "torch_optimizer", {"number": number})
        begin += lasts


def sampled(start, dur, stack):
    """Return one row of samples in ms, a hundred a second."""
    return (start * MS, dur * MS, stack, dur // 10)


STACKS = (
    *(sampled(-2000, 600, 1), sampled(-1400, 400, 1), sampled(-1000, 700, 3), sampled(-300, 300, 3)),
    *(sampled(0, 1000, 5), sampled(1000, 500, 7), sampled(1500, 200, 9), sampled(1700, 100, 10), sampled(1800, 60, 12)),
    *(sampled(1860, 40, 12), sampled(1900, 1000, 5), sampled(2900, 400, 7), sampled(3300, 200, 9)),
    *(sampled(3500, 1000, 5), sampled(4500, 2000, 13), sampled(6500, 1400, 13)),
    *(sampled(7900, 50, 13), sampled(7950, 50, 13)),
)
RUN_NS = 9_900 * MS
WHERE = [
    *("the script train.py (line 3)", "prepare (data.py:7)", "train_step (train.py:20)", "validate (train.py:30)"),
    *("save_checkpoint (train.py, 80.0 % of it in line 88)", "resample (data.py:17)", "plot (train.py:95)"),
]
LABELS = ["imports", "start-up", "steady steps", "validation", "saving", "between steps", "after the last step"]
KEYS = ["imports", "preparation", "steps", "validation", "saving", "between", "after"]
TIMES = [1000 * MS, 1000 * MS, 3000 * MS, 900 * MS, 500 * MS, 100 * MS, 3400 * MS]
OUTSIDE = [0, 1, 3, 4, 5, 6]

RUN = tables(
    phases=[
        (-2000 * MS, 10_000 * MS, "program", "train.py", {"thread_id": None}),
        *steps(),
        (7900 * MS, 60 * MS, "recording", "torch"),
        (7960 * MS, 40 * MS, "recording", "jax"),
    ],
    stacks=STACKS,
    stack_frames=FRAMES,
)

LITERALS = (
    Literal(
        "whole_run",
        RUN,
        {
            "facts": {
                "run_ns": RUN_NS,
                "steps": 30,
                "steps_share": 3_000 * MS / RUN_NS,
                "startup_ns": 2_000 * MS,
                "recording_ns": 100 * MS,
                "processes": 1,
            },
            "The run": {"key": KEYS, "value": TIMES},
            "": {
                "part": KEYS,
                "label": LABELS,
                "time_ns": TIMES,
                "share_of_run": [time / RUN_NS for time in TIMES],
                "where": WHERE,
            },
            "Where outside of steps": {
                "part": [LABELS[at] for at in OUTSIDE],
                "place": [WHERE[at] for at in OUTSIDE],
                "time_ns": [TIMES[at] for at in OUTSIDE],
                "share_of_part": [1.0] * 6,
                "samples": [100, 100, 90, 50, 10, 340],
            },
        },
        {
            "facts/processes": "one process trains",
            "facts/startup_ns": "a process tells once when it began, and when its first step did",
        },
    ),
)
