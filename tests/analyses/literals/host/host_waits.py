"""The host's work in two gaps of a device, 900 ns and 500 ns long: 1,400 ns of the 1,700 ns from first to last work.

::

    device      |0-100|                                   |1000-1100|                    |1600-1700|
    epoch       |0----------------------------800|              |1100------------------1600|
    load            |150------250|                                 |1150-1200|
    read               |170-200|                                     |1160-1180|
    Linear_0, mm                   |300----500|                              |1200-1300|
    cudaMalloc                        |350-400|  |600-700|
"""

from tests.analyses.builders import tables
from tests.analyses.literals.literal import Literal

LITERALS = (
    Literal(
        "host_waits",
        tables(
            run={"span_ns": 1_700, "format": "nsys"},
            kernels=[(0, 100, "gemm"), (1_000, 100, "gemm"), (1_600, 100, "gemm")],
            nvtx=[(0, 800, "epoch"), (1_100, 500, "epoch")],
            host_ops=[
                (150, 100, "train.py(41): load", "python"),
                (300, 200, "nn.Module: Linear_0", "python"),
                (300, 200, "aten::mm", "op"),
                (1_150, 50, "train.py(41): load", "python"),
                (1_200, 100, "nn.Module: Linear_0", "python"),
                (1_200, 100, "aten::mm", "op"),
            ],
            cuda_api=[(350, 50, "cudaMalloc"), (600, 100, "cudaMalloc")],
            os_calls=[(170, 30, "read"), (1_160, 20, "read")],
        ),
        {
            "facts": {"idle_ns": 1_400, "idle_share": 1_400 / 1_700, "unexplained_share": 200 / 1_700},
            "Kinds": {
                "key": ["range", "operator", "allocation", "python", "os_call", "unexplained"],
                "value": [650, 150 + 100, 50 + 100, 70 + 30, 30 + 20, 200],
            },
            "Causes": {
                "cause": ["epoch", "aten::mm", "unexplained", "cudaMalloc", "train.py:41 load", "read"],
                "where": [None, "epoch", None, "epoch", "epoch", "train.py:41 load"],
                "label": ["ranges", "operators", "unexplained", "allocation", "Python", "operating system"],
                # 700 + 500 less 150 of load, 300 of aten::mm and 100 of the cudaMalloc outside of it
                "time_ns": [650, 250, 200, 150, 100, 50],
                "share_of_judged": [time / 1_700 for time in (650, 250, 200, 150, 100, 50)],
                "calls": [2, 2, 0, 2, 2, 2],
                "total_ns": [1_300, 300, None, 150, 150, 50],
                "kind": ["range", "operator", "unexplained", "allocation", "python", "os_call"],
                "operator": [None, "aten::mm", None, None, None, None],
                "module": [None, "Linear_0", None, None, None, None],
                "range": ["epoch", "epoch", None, "epoch", "epoch", "epoch"],
                "location": [None, None, None, None, "train.py:41 load", "train.py:41 load"],
            },
        },
    ),
)
