"""Ops of TensorFlow on two threads and on the device, some of them run one by one.

::

    ns         0   10 30  40    70  100  200 260 300 340  500 550  600 670  700 705 715 720  750 760  770 785
    thread 0   [ d/MatMul             ]  [ d   ] [ e   ]  [eager]  [eager]  [ eager       ]  [ Relu]  [ Relu]
                   [Cast] [Iterator::]                    Relu     Relu         [ Cast ]
    thread 1                                          [ c/Cast, from 400 to 430 ]
"""

from tests.analyses.builders import tables
from tests.analyses.literals.literal import Literal

D, E, CAST, RELU = "d/MatMul:MatMul", "e/MatMul:MatMul", "c/Cast:Cast", "Relu:Relu"
DEVICE_NS = (300 + 200) + 70 + 50 + 40 + (20 + 10) + 15

LITERALS = (
    Literal(
        "framework_ops",
        tables(
            steps=[(0, 400, 0), (400, 400, 1)],
            host_ops=[
                (0, 100, D),
                (10, 20, CAST),
                (40, 30, "Iterator::Root", "pipeline"),
                (200, 60, D),
                (300, 40, E),
                (400, 30, CAST, "op", {"thread_id": 1}),
                (500, 50, "EagerExecute: Relu", "runtime"),  # stands for the op, which is not recorded in it
                (600, 70, "EagerExecute: Relu", "runtime"),
                (700, 20, "EagerExecute: Cast", "runtime"),
                (705, 10, "Cast:Cast"),
                (750, 10, RELU),
                (770, 15, RELU),
            ],
            kernels=[
                *((0, 300, "k", {"op": D}), (300, 200, "k", {"op": D}), (500, 50, "k", {"op": CAST})),
                *((550, 40, "k", {"op": "x/Mul:Mul"}), (590, 15, "k", {"op": "y/Mul:Mul"}), (610, 99, "k")),
            ],
            memcpy=[(600, 70, "h2d", "pinned", "device", 8, {"op": E})],
            memset=[(700, 20, 8, {"op": RELU}), (730, 10, 8, {"op": RELU})],
        ),
        {
            "facts": {
                "ops": 7,
                "calls": 2 + 1 + 2 + 4 + 1,
                "host_self_ns": 110 + 40 + 50 + 145 + 10,
                "device_ns": DEVICE_NS,  # the kernel of no op has no part in it
                "eager_share": 3 / 10,
            },
            "By type": {
                "type": ["MatMul", "Mul", "Cast", "Relu"],
                "ops": [2, 2, 2, 1],
                "calls": [3, 0, 3, 4],
                "host_ns": [200, None, 60, 145],  # an op that only the device names is not known on the host
                "host_self_ns": [150, None, 60, 145],
                "device_ns": [570, 55, 50, 30],
                "share_of_device_op_time": [570 / DEVICE_NS, 55 / DEVICE_NS, 50 / DEVICE_NS, 30 / DEVICE_NS],
                "eager_share": [0.0, None, 1 / 3, 2 / 4],
            },
            "By op": {
                "op": ["d/MatMul", "e/MatMul", "c/Cast", "x/Mul", "Relu", "y/Mul", "Cast"],
                "type": ["MatMul", "MatMul", "Cast", "Mul", "Relu", "Mul", "Cast"],
                "calls": [2, 1, 2, 0, 4, 0, 1],
                "host_ns": [100 + 60, 40, 20 + 30, None, 50 + 70 + 10 + 15, None, 10],
                "host_self_ns": [50 + 60, 40, 50, None, 145, None, 10],  # of the first, Cast and the iterator have 50
                "device_ns": [500, 70, 50, 40, 30, 15, 0],
                "share_of_device_op_time": [part / DEVICE_NS for part in (500, 70, 50, 40, 30, 15, 0)],
                "eager_share": [0.0, 0.0, 0.0, None, 2 / 4, None, 1.0],
            },
        },
    ),
)
