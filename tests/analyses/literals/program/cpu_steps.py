"""Two steps on the CPU: a convolution, a product of matrices, Python, an optimizer and a batch, and nothing at the end.

::

    ns         0       400     600 700     900   940  1000
    step 0     [ conv2d    ][ linear ][log][ optimizer  ][ next ]
                 [ mkldnn ]   [addmm]       [ add_ ]
    step 1     the same from 1000 on: conv2d 500, linear 100, log from 1600, optimizer from 1700, next from 1900
"""

from tests.analyses.builders import tables
from tests.analyses.literals.literal import Literal

NEXT = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
OPERATIONS = (
    *((0, 400, "aten::conv2d", "op"), (50, 300, "aten::mkldnn_convolution", "op")),
    *((1_000, 500, "aten::conv2d", "op"), (1_050, 400, "aten::mkldnn_convolution", "op")),
    *((400, 200, "aten::linear", "op"), (420, 150, "aten::addmm", "op")),
    *((1_500, 100, "aten::linear", "op"), (1_520, 60, "aten::addmm", "op")),
    *((600, 100, "train.py(5): log", "python"), (1_600, 50, "train.py(5): log", "python")),
    *((700, 200, "Optimizer.step#SGD.step", "annotation"), (720, 100, "aten::add_", "op")),
    *((1_700, 200, "Optimizer.step#SGD.step", "annotation"), (1_720, 120, "aten::add_", "op")),
    *((900, 40, NEXT, "input"), (1_900, 60, NEXT, "input")),
)
CONVOLUTION, MATMUL, OPTIMIZER, PYTHON, INPUT = 400 + 500, 200 + 100, 200 + 200, 100 + 50, 40 + 60
UNEXPLAINED = 2_000 - CONVOLUTION - MATMUL - OPTIMIZER - PYTHON - INPUT

LITERALS = (
    Literal(
        "cpu_steps",
        tables(steps=[(0, 1_000, 0), (1_000, 1_000, 1)], host_ops=OPERATIONS),
        {
            "facts": {"judged_ns": 2_000, "operator_share": (CONVOLUTION + MATMUL + OPTIMIZER) / 2_000},
            "By what is computed": {
                "key": ["convolution", "optimizer", "matmul", "python", "unexplained", "input"],
                "value": [CONVOLUTION, OPTIMIZER, MATMUL, PYTHON, UNEXPLAINED, INPUT],
            },
            "": {
                "label": ["Convolution", "Optimizer", "Matrix products", "Python", "Unexplained", "Input"],
                "time_ns": [CONVOLUTION, OPTIMIZER, MATMUL, PYTHON, UNEXPLAINED, INPUT],
                "share_of_judged": [
                    time / 2_000 for time in (CONVOLUTION, OPTIMIZER, MATMUL, PYTHON, UNEXPLAINED, INPUT)
                ],
                "calls": [4, 4, 4, 2, 0, 2],
                "largest": ["aten::mkldnn_convolution", "aten::add_", "aten::addmm", "train.py:5 log", None, NEXT],
                "largest_ns": [300 + 400, 100 + 120, 150 + 60, PYTHON, UNEXPLAINED, INPUT],
                "where": ["aten::conv2d", "Optimizer.step#SGD.step", "aten::linear", None, None, None],
                "group": ["convolution", "optimizer", "matmul", "python", "unexplained", "input"],
                "kind": [*["operator"] * 3, "python", "unexplained", "input"],
            },
            "Operators": {
                "type": [
                    *("aten::mkldnn_convolution", "aten::add_", "aten::addmm", "aten::conv2d"),
                    *("Optimizer.step#SGD.step", "aten::linear"),
                ],
                "label": [
                    *("Convolution", "Optimizer", "Matrix products", "Convolution", "Optimizer", "Matrix products"),
                ],
                "calls": [2, 2, 2, 2, 2, 2],
                "time_ns": [700, 220, 210, 200, 180, 90],
                "share_of_judged": [time / 2_000 for time in (700, 220, 210, 200, 180, 90)],
            },
        },
    ),
)
