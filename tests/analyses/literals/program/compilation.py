"""A first step that compiles on two threads, and three of four steady steps that compile again.

::

    us        0    100 150  250  300  400     800    1000 1200 2000   2400   3000   3100   4000   4200   5000  5500 6000
    step      [ 0: warm-up                                    ][ 1          ][ 2          ][ 3          ][ 4         ]
    thread 0       [ trace f [g]     ]        [XlaCompile]            [f]           [Xla]         [trace f]    [load]
    thread 1                     [ XlaCompile ]
"""

from tests.analyses.builders import tables
from tests.analyses.literals.literal import Literal

US = 1_000

LITERALS = (
    Literal(
        "compilation",
        tables(
            steps=[(0, 2_000 * US, 0), *(((1 + step) * 1_000 * US, 1_000 * US, step) for step in (1, 2, 3, 4))],
            host_ops=[
                (100 * US, 300 * US, "trace f", "compile"),
                (150 * US, 100 * US, "trace g", "compile"),  # within the one before
                (300 * US, 500 * US, "XlaCompile", "compile", {"thread_id": 1}),
                (1_000 * US, 200 * US, "XlaCompile", "compile"),
                (2_400 * US, 100 * US, "f"),  # a call that traces its function first
                (3_100 * US, 250 * US, "XlaCompile", "compile"),
                (4_200 * US, 150 * US, "trace f", "compile"),
                (4_600 * US, 150 * US, "f"),  # a call of what has been traced
            ],
            op_args=[
                (4, "tf_function_call", {"text": "traced-nonXla"}),
                (7, "tf_function_call", {"text": "notTraced-nonXla"}),
            ],
            cuda_api=[(5_500 * US, 50 * US, "cuModuleLoadData")],  # less than what counts as a compiling step
        ),
        {
            "facts": {
                "total_ns": (700 + 200 + 100 + 250 + 150 + 50) * US,
                "warmup_ns": (700 + 200) * US,  # from 100 to 800 on two threads
                "steady_ns": (100 + 250 + 150 + 50) * US,
                "steady_share": 550 / 4_000,
                "steps_with": 3,
            },
            "": {
                "name": ["XlaCompile", "trace f", "f", "cuModuleLoadData"],
                "calls": [3, 2, 1, 1],
                "total_ns": [950 * US, 450 * US, 100 * US, 50 * US],
                "steady_calls": [1, 1, 1, 1],
                "steady_ns": [250 * US, 150 * US, 100 * US, 50 * US],
            },
        },
    ),
)
