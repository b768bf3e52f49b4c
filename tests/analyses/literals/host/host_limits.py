"""Ten steps of 100 ms, sampled every 10 ms: each computes, saves and logs; a second thread wants to run Python.

::

    ms       0              50        70    80      100
    main     | linear        | fsync   | log | gc    |     in each step
    worker   | count_words                           |
    operators|m|m|                                          two of 10 us with 2 us after each
"""

from tests.analyses.builders import tables
from tests.analyses.literals.literal import Literal
from tests.analyses.stacks import sampled
from traceviz.analyses.derived.stacks.functions import wilson

MS = 1_000_000
MAIN = "train.py:90 main"
PARTS = (
    (f"{MAIN} > train.py:20 train_step > torch/nn/functional.py:9 linear > torch.linear", 50),
    (f"{MAIN} > train.py:88 save > os.fsync", 20),
    (f"{MAIN} > train.py:60 log > logging/__init__.py:99 emit", 10),
    (f"{MAIN} > train.py:70 free > gc.collect", 20),
)


def rows():
    for step in range(10):
        at = step * 100
        for stack, length in PARTS:
            yield at * MS, length * MS, stack, {"samples": length // 10, "cpu_ns": length * MS}
            at += length
        yield step * 100 * MS, 100 * MS, "train.py:16 count", {"samples": 10, "cpu_ns": 50 * MS, "thread_id": 1}


OPERATORS = [(step * 100 * MS + number * 12_000, 10_000, "aten::mm", "op") for step in range(10) for number in range(2)]
LOW, HIGH = zip(*(wilson(share, 100) for share in (0.5, 0.2, 0.1)), strict=True)

LITERALS = (
    Literal(
        "host_limits",
        tables(
            steps=[(n * 100 * MS, 100 * MS, n) for n in range(10)],
            host_ops=OPERATORS,
            phases=[
                *((n * 100 * MS, 100 * MS, "step", "train.py") for n in range(10)),
                *((n * 100 * MS + 80 * MS, 20 * MS, "collection", "2") for n in range(10)),
            ],
            threads=[(0, 0, "MainThread"), (1, 0, "statistics")],
            run={"framework": "PyTorch"},
            **sampled(*rows()),
        ),
        {
            "facts": {
                "samples": 100,
                "step_ns": 1_000 * MS,
                "gil_threads": 1.0 + 0.1 / 0.8,  # the main thread as well while it logs
                "collections": 10,
                "calls_per_step": 2,
                "call_ns": 10_000,
            },
            "What the main thread does in the steps": {
                "what": ["computing", "input and output, saving", "logging"],
                "share_of_steps": [0.5, 0.2, 0.1],
                "low": list(LOW),
                "high": list(HIGH),
                "samples": [50, 20, 10],
                "location": ["train.py:20 train_step", "train.py:88 save", "train.py:60 log"],
                "share_of_part": [1.0, 1.0, 1.0],
                "leaf": ["torch.linear", "os.fsync", "logging/__init__.py:99 emit"],
                "group": ["compute", "io", "logging"],
            },
        },
        {
            "facts/call_ns": "a median of calls that all last as long",
            "What the main thread does in the steps/share_of_part": "each part is spent in one line",
        },
    ),
)
LIMITED = LITERALS[0].tables
