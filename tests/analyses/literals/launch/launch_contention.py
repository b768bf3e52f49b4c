"""Three steps that launch a kernel each with the device idle, while two threads prepare input.

::

    ns        0  50  100 150  250     1000 1020 1060 1200 1520 1600   2000 2100 2120 2140 2200 2240 2300   3200
    launch    [ call ]...[kernel      [ call   ][kernel                    [ call      ]......[kernel
    input        [            ]            [ thread 1      ]          [ thread 1    ]    [ thread 2   ]
                                                     [ thread 2  ]
"""

from tests.analyses.builders import tables
from tests.analyses.literals.literal import Literal


def launched(number, start, dur):
    return (start, dur, "cuLaunchKernel", {"correlation_id": number})


def prepared(start, dur, thread):
    return (start, dur, "Iterator::Root::Map", "pipeline", {"thread_id": thread})


LITERALS = (
    Literal(
        "launch_contention",
        tables(
            steps=[(start, dur, i, {"thread_id": 0}) for i, (start, dur) in enumerate(((0, 1_000), (1_000, 1_000)))]
            + [(2_000, 1_200, 2, {"thread_id": 0})],
            cuda_api=[launched(0, 0, 100), launched(1, 1_000, 60), launched(2, 2_100, 40)],
            kernels=[
                (150, 250, "k", {"correlation_id": 0}),  # 50 after its launch returns
                (1_060, 300, "k", {"correlation_id": 1}),
                (2_240, 100, "k", {"correlation_id": 2}),  # 100 after
            ],
            host_ops=[
                prepared(50, 200, 1),
                prepared(1_020, 500, 1),
                prepared(1_200, 400, 2),
                prepared(2_000, 120, 1),
                prepared(2_200, 100, 2),
            ],
            threads=[(0, 0, "tf_gpu_private_0"), (1, 0, "tf_data_1"), (2, 0, "tf_data_2")],
        ),
        {
            "facts": {
                "launch_ns": 150 + 60 + 140,
                "launch_share": 350 / 3_200,
                "contended_ns": 100 + 40 + (20 + 40),
                "pipeline_share": (200 + 580 + 120 + 100) / 3_200,
                "private_threads": True,
            },
        },
        {"facts/private_threads": "one thread's name is enough"},
    ),
)
