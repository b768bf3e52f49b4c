"""A main thread in two steps and outside of them, and the loader's worker; one sample for every 10 ns.

::

    steps    |------ step: 400 ------|        |------ step: 400 ------|
    main     |-decode: 300-|forward: 100| print |decode: 200|forward: 200| save |
    worker   |------ distort: 600 ------------------|---- put: 300 ------|
             0            300       400     500          700        900    1000
"""

from math import sqrt

from tests.analyses.builders import tables
from tests.analyses.literals.literal import Literal
from tests.analyses.stacks import sampled

MAIN = "train.py:90 main"
NEXT = f"{MAIN} > torch/utils/data/dataloader.py:733 __next__"
FORWARD = f"{MAIN} > model.py:7 forward > torch/nn/modules/linear.py:114 forward"
LOOP = "torch/utils/data/_utils/worker.py:349 _worker_loop"
WORKER = {"process_id": 1, "thread_id": 1}
SAMPLES = 80


def interval(share: float) -> tuple[float, float]:
    """Return Wilson's interval of a share of the samples in steps."""
    middle, square = (share * SAMPLES + 1.96**2 / 2) / (SAMPLES + 1.96**2), share * (1 - share) * SAMPLES + 1.96**2 / 4
    half = 1.96 * sqrt(square) / (SAMPLES + 1.96**2)
    return middle - half, middle + half


def outside(share: float) -> tuple[float, float]:
    """Return the same of the 20 samples outside."""
    square = share * (1 - share) * 20 + 1.96**2 / 4
    middle, half = (share * 20 + 1.96**2 / 2) / (20 + 1.96**2), 1.96 * sqrt(square) / (20 + 1.96**2)
    return middle - half, middle + half


RUN = tables(
    phases=[(0, 400, "step", "loop"), (500, 400, "step", "loop")],
    threads=[(0, 0, "MainThread"), (1, 1, "MainThread")],
    processes=[(0, "train.py"), (1, "pt_data_worker")],
    **sampled(
        (0, 300, f"{NEXT} > data.py:41 decode_jpeg > PIL/Image.py:3000 open"),
        (300, 100, FORWARD),
        (400, 100, f"{MAIN} > print"),
        (500, 200, f"{NEXT} > data.py:42 decode_jpeg"),
        (700, 200, FORWARD),
        (900, 100, f"{MAIN} > train.py:88 save > os.fsync"),
        (0, 600, f"{LOOP} > data.py:20 distort", WORKER),
        (600, 300, f"{LOOP} > multiprocessing/queues.py:90 put > threading.py:327 wait", WORKER),
    ),
)

LITERALS = (
    Literal(
        "host_time",
        RUN,
        {
            "facts": {"steps_ns": 800, "outside_ns": 200, "samples": 80, "outside_samples": 20},
            "What for": {"key": ["input", "compute"], "value": [300 + 200, 100 + 200]},
            "In steps": {
                "place": ["forward (model.py:7)", "decode_jpeg (data.py:41)", "decode_jpeg (data.py:42)"],
                "label": ["computing", "input", "input"],
                "called": ["forward (linear.py:114)", "open (Image.py:3000)", None],
                "time_ns": [100 + 200, 300, 200],
                "share_of_part": [300 / 800, 300 / 800, 200 / 800],
                "samples": [30, 30, 20],
                "share_low": [interval(3 / 8)[0], interval(3 / 8)[0], interval(2 / 8)[0]],
                "share_high": [interval(3 / 8)[1], interval(3 / 8)[1], interval(2 / 8)[1]],
                "kind": ["compute", "input", "input"],
                "location": ["model.py:7 forward", "data.py:41 decode_jpeg", "data.py:42 decode_jpeg"],
                "leaf": [
                    "torch/nn/modules/linear.py:114 forward",
                    "PIL/Image.py:3000 open",
                    "data.py:42 decode_jpeg",
                ],
            },
            "Outside of steps": {
                "place": ["main (train.py:90)", "save (train.py:88)"],
                "label": ["logging", "saving"],
                "called": ["print", "os.fsync"],
                "time_ns": [100, 100],
                "share_of_part": [0.5, 0.5],
                "samples": [10, 10],
                "share_low": [outside(0.5)[0]] * 2,
                "share_high": [outside(0.5)[1]] * 2,
                "kind": ["logging", "saving"],
                "location": ["train.py:90 main", "train.py:88 save"],
                "leaf": ["print", "os.fsync"],
            },
            "Functions, with what they call and alone": {
                "function": [
                    "train.py main",
                    "data.py decode_jpeg",
                    "PIL/Image.py open",
                    "torch/nn/modules/linear.py forward",
                    "model.py forward",
                ],
                "inclusive_ns": [800, 500, 300, 300, 300],
                "share_of_part": [1.0, 500 / 800, 300 / 800, 300 / 800, 300 / 800],
                "self_ns": [0, 200, 300, 300, 0],
                "own": [True, True, False, False, True],
            },
            "Other threads and processes": {
                "process": ["pt_data_worker"] * 2,
                "thread": ["MainThread"] * 2,
                "place": ["distort (data.py:20)", "_worker_loop (worker.py:349)"],
                "label": ["input", "input"],
                "time_ns": [400 + 100, 300],
                "of_thread": [500 / 800, 300 / 800],
                "samples": [50, 30],
                "kind": ["input", "input"],
                "location": ["data.py:20 distort", "torch/utils/data/_utils/worker.py:349 _worker_loop"],
            },
        },
        {
            "Outside of steps": "each row is one call",
            **{
                f"Other threads and processes/{key}": "each row is one function"
                for key in ("time_ns", "of_thread", "samples")
            },
        },
    ),
)
