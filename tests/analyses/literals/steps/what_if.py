"""A host that loads in half of each step, launches one kernel and waits for it.

::

    us       0          500  510            905        1000
    host     |-- data --|launch|--- sync ----|            |
    device                    |kernel 520..900|
"""

from tests.analyses.builders import tables
from tests.analyses.literals.literal import Literal

US, STEPS = 1_000, 4
AT = [i * 1_000 * US for i in range(STEPS)]

LITERALS = (
    Literal(
        "what_if",
        tables(
            steps=[(at, 1_000 * US, i, {"marker": "Step"}) for i, at in enumerate(AT)],
            nvtx=[(at, 500 * US, "data loading") for at in AT],
            cuda_api=[
                call
                for i, at in enumerate(AT)
                for call in (
                    (at + 500 * US, 10 * US, "cudaLaunchKernel", {"correlation_id": i + 1}),
                    (at + 520 * US, 385 * US, "cudaStreamSynchronize"),
                )
            ],
            kernels=[(at + 520 * US, 380 * US, "k", {"correlation_id": i + 1}) for i, at in enumerate(AT)],
        ),
        {
            "facts": {"step_ns": 1_000 * US},
            "": {
                "label": ["input"],
                "step_range": ["500 µs to 575 µs"],
                "as_fast": ["1.7 to 2.0×"],
                "share_of_steps": [0.5],
                "not_proven": [None],
                "part": ["input"],
                "step_ns": [1_000 * US],
                "low_ns": [500_000],
                "high_ns": [575_000],  # 15 % of the gain are left
                "low_speedup": [1_000 / 575],
                "high_speedup": [2.0],
            },
        },
        {"facts/step_ns": "steps are equally long", "/step_ns": "steps are equally long"},
    ),
)
