"""Gaps of a device, each with what the host did most of the time; one of 9 µs is too short to be listed.

::

    µs        0    20     60      100     150     215    250 259    300     340    400     450    480  500
    device         [kernel]       [kernel]        [kernel]   [kernel]       [kernel]       [kernel]
    gap       [ 20 ]      [  40  ]        [  65  ]        [9]       [  40  ]       [  50  ]       [ 20 ]
    train     [                                                            ]
    input                 [      ]
    wait                                  [ 60  ]                   [ 30 ]
    profiler                                                                        [ 20 ][3]
"""

from tests.analyses.builders import tables
from tests.analyses.literals.literal import Literal

US = 1_000
KERNELS = ((20, 60), (100, 150), (215, 250), (259, 300), (340, 400), (450, 480))

LITERALS = (
    Literal(
        "idle_gaps",
        tables(
            span_ns=500 * US,
            nvtx=[(0, 340 * US, "train"), (60 * US, 40 * US, "input")],
            cuda_api=[(150 * US, 60 * US, "cudaStreamSynchronize"), (300 * US, 30 * US, "cudaStreamSynchronize")],
            overhead=[(410 * US, 20 * US, "flush"), (445 * US, 3 * US, "flush")],
            kernels=[(start * US, (end - start) * US, "k") for start, end in KERNELS],
        ),
        {
            "facts": {"gaps": 6, "idle_ns": 235_000},
            "Causes (number of gaps)": {
                "key": ["synchronisation", "host_compute", "input_wait", "after_last_work", "before_first_work"],
                "value": [65_000 + 40_000, 50_000, 40_000, 20_000, 20_000],  # the profiler took 23 of 50 µs
            },
            "Largest gaps": {
                "start_ns": [150_000, 400_000, 60_000, 300_000, 0, 480_000],
                "dur_ns": [65_000, 50_000, 40_000, 40_000, 20_000, 20_000],
                "device": ["GPU 0"] * 6,
                "cause": [
                    *("synchronisation", "other host time", "input wait", "synchronisation"),
                    *("before the first device work", "after the last device work"),
                ],
                "range": ["train", None, "input", "train", "train", None],
            },
        },
        {"Largest gaps/start_ns": "a gap that begins elsewhere is another gap"},
    ),
)
