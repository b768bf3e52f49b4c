"""PyTorch operators in two steps and after them: nested, recorded twice, backward on a thread of its own.

::

    ns          0                        1000                     2000
    step        [ 0                      ][ 1                     ]
    linear      [0 100]                  [1000 1120]
      addmm      [10 50]                  [1010 1060]
    mm                 [110 170]                    [1200 1230]     [2100 2130]
    add                         [200 250], and in it once more [205 245]
    thread 1    MmBackward0 [400 440], AddmmBackward0 [500 560]

Each launches one kernel; one kernel names mm and has no call, one has neither.
"""

from tests.analyses.builders import tables
from tests.analyses.literals.literal import Literal

TENSOR, PLAIN = "ampere_bf16_s16816gemm_bf16_128x64", "ampere_sgemm_128x64_tn"
BACK = {"thread_id": 1}
SMALL, LARGE, BIAS = "[[2,3],[3,4]]", "[[8,8],[8,8]]", "[[4],[2,3],[3,4]]"


def launch(start, dur, number, thread=0):
    return (start, dur, "cudaLaunchKernel", {"correlation_id": number, "thread_id": thread})


def number_of(op, sequence, thread=0):
    return [(op, "Sequence number", {"integer": sequence}), (op, "Fwd thread id", {"integer": thread})]


def kernel(start, dur, name, number):
    return (start, dur, name, {"correlation_id": number})


def node(start, dur, name, number, launch):
    return (start, dur, name, {"graph_node_id": number, "correlation_id": launch})


OF_GRAPH = (40 + 10 + 6 + 7) + (30 + 20 + 5 + 8)
ADDMM_SELF, MM_SELF = 25 + 25, 50 + 25 + 26
"""Without the launches of 15, 25; 10, 5 and 4 ns."""
DEVICE = 700 + 300 + 260 + 70 + 40

LITERALS = (
    Literal(
        "operators",
        tables(
            run={"framework": "PyTorch"},
            steps=[(0, 1_000, 0), (1_000, 1_000, 1)],
            host_ops=[
                (0, 100, "aten::linear"),
                (10, 40, "aten::addmm"),
                (110, 60, "aten::mm"),
                (200, 50, "aten::add"),
                (205, 40, "aten::add"),
                (400, 40, "MmBackward0", "op", BACK),
                (500, 60, "AddmmBackward0", "op", BACK),
                (1_000, 120, "aten::linear"),
                (1_010, 50, "aten::addmm"),
                (1_200, 30, "aten::mm"),
                (2_100, 30, "aten::mm"),
            ],
            op_args=[
                *number_of(0, 5),
                *number_of(1, 5),
                *number_of(2, 6),
                *number_of(5, 6, thread=1),
                *number_of(6, 5, thread=1),
                *((op, "Input Dims", {"text": text}) for op, text in ((1, BIAS), (2, SMALL), (8, BIAS))),
                *((op, "Input Dims", {"text": LARGE}) for op in (9, 10)),
            ],
            cuda_api=[
                launch(20, 15, 1),
                launch(120, 10, 2),
                launch(210, 20, 3),
                launch(405, 5, 4, thread=1),
                launch(510, 10, 5, thread=1),
                launch(1_020, 25, 6),
                launch(1_205, 5, 7),
                launch(2_110, 4, 8),
            ],
            kernels=[
                kernel(200, 500, TENSOR, 1),
                kernel(720, 100, PLAIN, 2),
                kernel(830, 40, "vectorized_elementwise_kernel<float>", 3),
                kernel(900, 70, PLAIN, 4),
                kernel(1_000, 300, TENSOR, 5),
                kernel(1_310, 200, TENSOR, 6),
                kernel(1_520, 60, PLAIN, 7),
                kernel(2_200, 10, PLAIN, 8),
                (2_300, 90, PLAIN, {"op": "aten::mm"}),
                (2_400, 30, PLAIN),
            ],
        ),
        {
            "facts": {
                "operators": 6,
                "calls": 10,
                "host_self_ns": ADDMM_SELF + 50 + MM_SELF + 35 + 30 + 130,
                "device_ns": DEVICE,
                "attributed_share": DEVICE / (DEVICE + 30),
                "eligible_share": (DEVICE - 40) / DEVICE,
                "tensor_core_share": 1_000 / DEVICE,
            },
            "": {
                "name": ["aten::addmm", "AddmmBackward0", "aten::mm", "MmBackward0", "aten::add", "aten::linear"],
                "calls": [2, 1, 3, 1, 1, 2],
                "calls_per_step": [1.0, 0.5, 1.0, 0.5, 0.5, 1.0],
                "device_self_ns": [500 + 200, 300, 100 + 60 + 10 + 90, 70, 40, 0],
                "share_of_device_op_time": [part / DEVICE for part in (700, 300, 260, 70, 40, 0)],
                "device_ns": [700, 300, 260, 70, 40, 700],
                "host_self_ns": [ADDMM_SELF, 50, MM_SELF, 35, 10 + 20, 60 + 70],
                "host_ns": [90, 60, 120, 40, 50, 220],
                "tensor_core_eligible": [True, True, True, True, False, True],
                "tensor_core_share": [1.0, 1.0, 0.0, 0.0, 0.0, None],
                "backward_ns": [300, 0, 70, 0, 0, 300],
                "device_self_per_step_ns": [350.0, 150.0, 80.0, 35.0, 20.0, 0.0],
                "host_self_per_step_ns": [25.0, 25.0, 37.5, 17.5, 15.0, 65.0],
                "outer_calls_per_step": [1.0, 0.5, 1.0, 0.5, 0.5, 1.0],
            },
            "By shapes": {  # what has no call has no shapes either
                "name": [
                    *("aten::addmm", "AddmmBackward0", "aten::mm", "aten::mm", "MmBackward0"),
                    *("aten::add", "aten::linear"),
                ],
                "shapes": [BIAS, None, SMALL, LARGE, None, None, None],
                "calls": [2, 1, 1, 2, 1, 1, 2],
                "calls_per_step": [1.0, 0.5, 0.5, 0.5, 0.5, 0.5, 1.0],
                "device_self_ns": [700, 300, 100, 70, 70, 40, 0],
                "share_of_device_op_time": [part / 1_280 for part in (700, 300, 100, 70, 70, 40, 0)],
                "device_ns": [700, 300, 100, 70, 70, 40, 700],
                "host_self_ns": [50, 50, 50, 51, 35, 30, 130],
                "host_ns": [90, 60, 60, 60, 40, 50, 220],
                "tensor_core_eligible": [True, True, True, True, True, False, True],
                "tensor_core_share": [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, None],
                "backward_ns": [300, 0, 70, 0, 0, 0, 300],
                "device_self_per_step_ns": [350.0, 150.0, 50.0, 30.0, 35.0, 20.0, 0.0],
                "host_self_per_step_ns": [25.0, 25.0, 25.0, 12.5, 17.5, 15.0, 65.0],
                "outer_calls_per_step": [1.0, 0.5, 0.5, 0.5, 0.5, 0.5, 1.0],
            },
        },
    ),
    Literal(  # mm and add are captured and launched twice by replay, as are a part with a name, and one without
        "operators",
        tables(
            run={"framework": "PyTorch"},
            host_ops=[
                (0, 40, "aten::mm"),
                (50, 30, "aten::add"),
                (200, 100, "replay"),
                (400, 100, "replay"),
                (600, 20, "aten::mul"),
                (700, 30, "aten::mul"),
            ],
            graph_nodes=[
                *((10, 1, None), (60, 2, None), (100, 11, 1), (101, 12, 2)),
                (300, 14, None, {"thread_id": None, "part": "merge"}),
            ],
            cuda_api=[
                (210, 20, "cudaGraphLaunch", {"correlation_id": 1}),
                (410, 30, "cudaGraphLaunch", {"correlation_id": 2}),
                launch(605, 3, 3),
                launch(705, 4, 4),
            ],
            kernels=[
                node(300, 40, TENSOR, 11, 1),
                node(350, 10, PLAIN, 12, 1),
                node(360, 6, PLAIN, 13, 1),
                node(370, 7, PLAIN, 14, 1),
                node(500, 30, TENSOR, 11, 2),
                node(540, 20, PLAIN, 12, 2),
                node(560, 5, PLAIN, 13, 2),
                node(570, 8, PLAIN, 14, 2),
                kernel(640, 25, PLAIN, 3),
                kernel(740, 35, PLAIN, 4),
                (800, 4, PLAIN),
                (810, 9, PLAIN),
            ],
        ),
        {
            "facts": {
                "operators": 5,
                "calls": 6,
                "host_self_ns": 40 + 30 + 150 + 43,
                "device_ns": OF_GRAPH + 60,
                "attributed_share": (OF_GRAPH + 60) / (OF_GRAPH + 60 + 13),
                "eligible_share": 70 / (OF_GRAPH + 60),
                "tensor_core_share": 70 / (OF_GRAPH + 60),
                "graph_share": OF_GRAPH / (OF_GRAPH + 60 + 13),
                "graph_unknown_share": (6 + 5) / OF_GRAPH,
            },
            "": {
                "name": ["aten::mm", "aten::mul", "aten::add", "merge", "replay"],
                "calls": [1, 2, 1, 0, 2],
                "calls_per_step": [None] * 5,
                "device_self_ns": [40 + 30, 25 + 35, 10 + 20, 7 + 8, 6 + 5],
                "share_of_device_op_time": [part / (OF_GRAPH + 60) for part in (70, 60, 30, 15, 11)],
                "device_ns": [70, 60, 30, 15, OF_GRAPH],  # who launches a graph has all of it in total
                "host_self_ns": [40, 17 + 26, 30, None, 80 + 70],
                "host_ns": [40, 50, 30, None, 200],
                "tensor_core_eligible": [True, False, False, False, False],
                "tensor_core_share": [1.0, 0.0, 0.0, 0.0, 0.0],
                "backward_ns": [0] * 5,
                "device_self_per_step_ns": [None] * 5,
                "host_self_per_step_ns": [None] * 5,
                "outer_calls_per_step": [None] * 5,
            },
        },
        {"/backward_ns": "no backward operator is recorded"},
        name="of graphs",
    ),
)
