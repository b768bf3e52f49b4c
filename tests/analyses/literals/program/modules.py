"""Modules named by frames, by the hierarchy that operators state, and ranges in their place.

Frames, two passes; in brackets the device time of what is launched there::

    ns         0      10-50         60-110      120-150       200        backward, thread 1: 300-320     330-360
    Net_0      [      Linear_0      Linear_1    ReLU_0   [7]  ]          ReluBackward0 [50]  AddmmBackward0 [90]
                      linear [100]  [200]       relu [30]                for relu            for linear

    ns         1000   1010-1060     1070-1140   1150-1170     1260       1400-1420           1430-1460
    Net_0      [      Linear_0      Linear_1    ReLU_0   [9]  ]          ReluBackward0 [60]  AddmmBackward0 [95]
                      linear [110]  [210]       relu [40]
"""

from tests.analyses.builders import tables
from tests.analyses.literals.literal import Literal

PYTORCH = {"framework": "PyTorch"}
BACK = {"thread_id": 1}
LINEAR, RELU = "AddmmBackward0", "ReluBackward0"


def frame(start, dur, name):
    return (start, dur, f"nn.Module: {name}", "python")


def launches(*found):
    """Return calls of 5 ns that launch a kernel each, on (start, duration of the kernel, thread)."""
    calls, kernels = [], []
    for number, (start, dur, thread) in enumerate(found):
        calls.append((start, 5, "cudaLaunchKernel", {"correlation_id": number, "thread_id": thread}))
        kernels.append((10_000 + 1_000 * number, dur, "k", {"correlation_id": number}))
    return {"cuda_api": calls, "kernels": kernels}


def sequence(op, number, thread=0):
    return [(op, "Sequence number", {"integer": number}), (op, "Fwd thread id", {"integer": thread})]


def stated(op, path):
    return (op, "Module Hierarchy", {"text": path})


def node(start, dur, number, launch):
    return (start, dur, "k", {"graph_node_id": number, "correlation_id": launch})


OF_GRAPH = (40 + 10 + 6 + 7) + (30 + 20 + 5 + 8)
OF_ALL = OF_GRAPH + 25 + 35 + 4 + 9
ATTENTION = "layers / 0 / attention"
FRAMES_DEVICE = (100 + 200 + 30 + 7) + (110 + 210 + 40 + 9) + (50 + 90 + 60 + 95) + 14
TOP = "TOP(Net)::forward."
FIRST, SECOND = (f"{TOP}layer1(Block)::forward.{number}(Linear)::forward." for number in (0, 1))
LEVEL = {"Exact/level": "where a part stands, not how often"}

LITERALS = (
    Literal(
        "modules",
        tables(
            run=PYTORCH,
            host_ops=[
                *(frame(0, 200, "Net_0"), frame(10, 40, "Linear_0"), (15, 20, "aten::linear")),
                *(frame(60, 50, "Linear_1"), frame(120, 30, "ReLU_0"), (125, 10, "aten::relu")),
                *((300, 20, RELU, "op", BACK), (330, 30, LINEAR, "op", BACK)),
                *(frame(1_000, 260, "Net_0"), frame(1_010, 50, "Linear_0"), (1_020, 20, "aten::linear")),
                *(frame(1_070, 70, "Linear_1"), frame(1_150, 20, "ReLU_0"), (1_155, 10, "aten::relu")),
                *((1_400, 20, RELU, "op", BACK), (1_430, 30, LINEAR, "op", BACK)),
            ],
            op_args=[
                *(*sequence(2, 5), *sequence(5, 6), *sequence(6, 6, thread=1), *sequence(7, 5, thread=1)),
                *(*sequence(10, 7), *sequence(13, 8), *sequence(14, 8, thread=1), *sequence(15, 7, thread=1)),
            ],
            memcpy=[(5_000, 14, "h2d", "pinned", "device", 8)],  # its launch is unknown
            **launches(
                *((20, 100, 0), (70, 200, 0), (130, 30, 0), (170, 7, 0), (305, 50, 1), (335, 90, 1)),
                *((1_025, 110, 0), (1_080, 210, 0), (1_160, 40, 0), (1_200, 9, 0), (1_405, 60, 1), (1_435, 95, 1)),
            ),
        ),
        {
            "facts": {
                "modules": 4,
                "source": "calls of nn.Module",
                "host_ns": 200 + 260,
                "device_ns": 337 + 369,
                "backward_ns": 140 + 155,
                "inside_share": 1_001 / FRAMES_DEVICE,
            },
            "Exact": {
                "path": ["Net_0", "Net_0 / Linear_1", "Net_0 / Linear_0", "Net_0 / ReLU_0"],
                "name": ["Net_0", "Linear_1", "Linear_0", "ReLU_0"],
                "level": [0, 1, 1, 1],
                "calls": [2, 2, 2, 2],
                "device_ns": [706, 410, 210, 70],
                "device_self_ns": [7 + 9, 410, 210, 70],
                "backward_ns": [295, 0, 90 + 95, 50 + 60],
                "share_of_device_time": [part / FRAMES_DEVICE for part in (1_001, 410, 395, 180)],
                "host_ns": [460, 50 + 70, 40 + 50, 30 + 20],
                "host_self_ns": [80 + 120, 120, 90, 50],
                "share_of_host_time": [1.0, 120 / 460, 90 / 460, 50 / 460],
            },
            "By class, those of one class and place together": {
                "name": ["Net", "  Linear", "  ReLU"],
                "instances": [1, 2, 1],
                "calls": [2, 4, 2],
                "device_ns": [706, 620, 70],
                "device_self_ns": [16, 620, 70],
                "backward_ns": [295, 185, 110],
                "share_of_device_time": [1_001 / FRAMES_DEVICE, 805 / FRAMES_DEVICE, 180 / FRAMES_DEVICE],
                "host_ns": [460, 210, 50],
                "host_self_ns": [200, 210, 50],
                "share_of_host_time": [1.0, 210 / 460, 50 / 460],
            },
        },
        {
            **LEVEL,
            "By class, those of one class and place together/instances": "a part is there until its last call is gone",
        },
        name="of frames",
    ),
    Literal(
        "modules",
        tables(
            run=PYTORCH,
            host_ops=[
                *((0, 50, "aten::linear"), (10, 20, "aten::addmm"), (60, 10, "aten::relu")),
                *((200, 70, "aten::linear"), (300, 15, "aten::relu"), (400, 40, "aten::linear")),
                *((500, 30, LINEAR, "op", BACK), (600, 30, LINEAR, "op", BACK)),
            ],
            op_args=[
                *(stated(0, FIRST), stated(1, FIRST), stated(2, TOP), stated(3, FIRST)),
                *(stated(4, TOP), stated(5, SECOND)),
                *(*sequence(1, 5), *sequence(3, 6), *sequence(6, 5, thread=1), *sequence(7, 6, thread=1)),
            ],
            memset=[(9_000, 20, 8)],
            **launches(
                *((12, 300, 0), (62, 20, 0), (210, 150, 0), (302, 30, 0), (410, 80, 0)),
                *((505, 45, 1), (605, 55, 1)),
            ),
        ),
        {
            "facts": {
                "modules": 4,
                "source": "the module hierarchy of operators",
                "host_ns": 120 + 40 + 25,
                "device_ns": 450 + 80 + 50,
                "backward_ns": 45 + 55,
                "inside_share": 680 / 700,
            },
            "Exact": {
                "path": [
                    "TOP(Net)",
                    "TOP(Net) / layer1(Block)",
                    "TOP(Net) / layer1(Block) / 0(Linear)",
                    "TOP(Net) / layer1(Block) / 1(Linear)",
                ],
                "name": ["TOP(Net)", "layer1(Block)", "0(Linear)", "1(Linear)"],
                "level": [0, 1, 2, 2],
                "calls": [None, None, None, None],  # operators state where they belong, not how often that was called
                "device_ns": [580, 530, 450, 80],
                "device_self_ns": [20 + 30, 0, 300 + 150, 80],
                "backward_ns": [100, 100, 100, 0],
                "share_of_device_time": [680 / 700, 630 / 700, 550 / 700, 80 / 700],
                "host_ns": [185, 160, 50 + 70, 40],
                "host_self_ns": [10 + 15, 0, 120, 40],
                "share_of_host_time": [1.0, 160 / 185, 120 / 185, 40 / 185],
            },
            "By module, numbered ones together": {
                "name": ["TOP(Net)", "  layer1(Block)", "    Linear"],
                "instances": [1, 0, 2],  # no operator belongs to the block itself
                "calls": [None, None, None],
                "device_ns": [580, 530, 530],
                "device_self_ns": [50, 0, 530],
                "backward_ns": [100, 100, 100],
                "share_of_device_time": [680 / 700, 630 / 700, 630 / 700],
                "host_ns": [185, 160, 160],
                "host_self_ns": [25, 0, 160],
                "share_of_host_time": [1.0, 160 / 185, 160 / 185],
            },
        },
        LEVEL,
        name="of the hierarchy",
    ),
    Literal(
        "modules",
        tables(
            run=PYTORCH,
            host_ops=[
                *((0, 60, "forward", "annotation"), (10, 20, "block", "annotation"), (75, 25, "loss", "annotation")),
                *((200, 80, "forward", "annotation"), (210, 30, "block", "annotation")),
                (290, 30, "loss", "annotation"),
            ],
            memset=[(9_000, 30, 8)],
            **launches(*((15, 100, 0), (50, 40, 0), (80, 10, 0), (220, 110, 0), (250, 50, 0), (300, 20, 0))),
        ),
        {
            "facts": {
                "modules": 3,
                "source": "ranges of the program",
                "host_ns": 140 + 55,
                "device_ns": 300 + 30,
                "backward_ns": 0,
                "inside_share": 330 / 360,
            },
            "Exact": {
                "path": ["forward", "forward / block", "loss"],
                "name": ["forward", "block", "loss"],
                "level": [0, 1, 0],
                "calls": [2, 2, 2],
                "device_ns": [300, 210, 30],
                "device_self_ns": [90, 210, 30],
                "backward_ns": [0, 0, 0],
                "share_of_device_time": [300 / 360, 210 / 360, 30 / 360],
                "host_ns": [140, 50, 55],
                "host_self_ns": [90, 50, 55],
                "share_of_host_time": [140 / 195, 50 / 195, 55 / 195],
            },
            "By range and what is around it": {
                "name": ["forward", "  block", "loss"],
                "instances": [1, 1, 1],
                "calls": [2, 2, 2],
                "device_ns": [300, 210, 30],
                "device_self_ns": [90, 210, 30],
                "backward_ns": [0, 0, 0],
                "share_of_device_time": [300 / 360, 210 / 360, 30 / 360],
                "host_ns": [140, 50, 55],
                "host_self_ns": [90, 50, 55],
                "share_of_host_time": [140 / 195, 50 / 195, 55 / 195],
            },
        },
        {
            **LEVEL,
            "By range and what is around it/instances": "a part is there until its last call is left out",
            **dict.fromkeys(("facts/backward_ns", "Exact/backward_ns"), "no backward operator is recorded"),
            "By range and what is around it/backward_ns": "no backward operator is recorded",
        },
        name="of ranges",
    ),
    Literal(  # a module launches a graph with named parts twice, and a kernel by itself each time
        "modules",
        tables(
            run=PYTORCH,
            host_ops=[frame(start, dur, "Net_0") for start, dur in ((200, 100), (400, 120), (600, 30), (700, 50))],
            graph_nodes=[
                (1_000, 11, None, {"thread_id": None, "part": "scores", "module": "layers.0.attention"}),
                (1_001, 12, None, {"thread_id": None, "part": "merge", "module": "layers.0.attention"}),
                (1_002, 14, None, {"thread_id": None, "part": "loss", "phase": "backward"}),
            ],
            cuda_api=[
                (210, 20, "cudaGraphLaunch", {"correlation_id": 1}),
                (250, 5, "cudaLaunchKernel", {"correlation_id": 3}),
                (410, 30, "cudaGraphLaunch", {"correlation_id": 2}),
                (450, 5, "cudaLaunchKernel", {"correlation_id": 4}),
            ],
            kernels=[
                *(node(1_000, 40, 11, 1), node(1_050, 10, 12, 1), node(1_060, 6, 13, 1), node(1_070, 7, 14, 1)),
                *(node(1_100, 30, 11, 2), node(1_150, 20, 12, 2), node(1_170, 5, 13, 2), node(1_180, 8, 14, 2)),
                *((1_200, 25, "k", {"correlation_id": 3}), (1_300, 35, "k", {"correlation_id": 4})),
                *((1_400, 4, "k"), (1_500, 9, "k")),
            ],
        ),
        {
            "facts": {
                "modules": 5,
                "source": "calls of nn.Module",
                "host_ns": 220 + 80,
                "device_ns": 100 + 11 + 60,
                "backward_ns": 7 + 8,
                "inside_share": (171 + 15) / OF_ALL,
                "graph_share": OF_GRAPH / OF_ALL,
                "graph_unknown_share": (6 + 5) / OF_GRAPH,
            },
            "Exact": {
                "path": ["Net_0", *(f"Net_0 / {part}" for part in ("layers", "layers / 0", ATTENTION, "loss"))],
                "name": ["Net_0", "layers", "0", "attention", "loss"],
                "level": [0, 1, 2, 3, 1],
                "calls": [4, None, None, None, None],
                "device_ns": [171, 100, 100, 100, 0],
                "device_self_ns": [11 + 60, 0, 0, 40 + 10 + 30 + 20, 0],
                "backward_ns": [15, 0, 0, 0, 15],
                "share_of_device_time": [186 / OF_ALL, *[100 / OF_ALL] * 3, 15 / OF_ALL],
                "host_ns": [300, 0, 0, 0, 0],
                "host_self_ns": [300, 0, 0, 0, 0],
                "share_of_host_time": [1.0, 0.0, 0.0, 0.0, 0.0],
            },
            "By class, those of one class and place together": {
                "name": ["Net", "  layers", "    0", "      attention", "  loss"],
                "instances": [1, 0, 0, 1, 1],
                "calls": [4, None, None, None, None],
                "device_ns": [171, 100, 100, 100, 0],
                "device_self_ns": [71, 0, 0, 100, 0],
                "backward_ns": [15, 0, 0, 0, 15],
                "share_of_device_time": [186 / OF_ALL, *[100 / OF_ALL] * 3, 15 / OF_ALL],
                "host_ns": [300, 0, 0, 0, 0],
                "host_self_ns": [300, 0, 0, 0, 0],
                "share_of_host_time": [1.0, 0.0, 0.0, 0.0, 0.0],
            },
        },
        {
            **LEVEL,
            "By class, those of one class and place together/instances": "a module is there until its last call is not",
            "By class, those of one class and place together/share_of_host_time": "one module has calls",
            "Exact/share_of_host_time": "one module has calls",
        },
        name="of graphs",
    ),
)
