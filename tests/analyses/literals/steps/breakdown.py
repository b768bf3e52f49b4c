"""Three steps in which every class has a part: each nanosecond belongs to the first class, from the top, that holds.

::

    ns        0     300 350 370 400 430 440 480  500   700   800 840 900 910 960      985 1000
    step 0    [input][h2d][set]  [malloc]  [launch]   [sgemm][nccl][d2h][sync][load][poll][flush]
    class     input   h2d other host alloc host launch host compute comm. d2h  sync comp. blocked prof. host
"""

from tests.analyses.builders import tables
from tests.analyses.literals.literal import Literal

CLASSES = {  # ns in step 0, 1, 2
    "device_compute": (200, 350 + 40, 400),
    "communication": (100, 200, 50),  # sgemm covers the first 50 of 150, of 250, and 100 of 150
    "copy_d2h": (40, 20, 50),  # nccl covers the first 10 of the second
    "copy_h2d": (50, 100, 60),
    "other_device": (20, 30, 10),
    "input_wait": (300, 150, 100),  # the second copy to the device starts in the range: 50 are the copy's
    "synchronisation": (60, 50, 90),
    "allocation": (30, 20, 10),
    "kernel_launch": (40, 10 + 20, 10),  # the kernel starts 20 after its launch call returns
    "compilation": (10, 15, 5),
    "host_blocked": (50, 50, 25),  # of 60: the module load has 5 of them, cudaGetDevice 5
    "profiler": (25, 15, 30),  # what it takes of the load in step 0 is compilation
    "host_compute": (30 + 10 + 20 + 15, 10 + 5 + 15, 10 + 10 + 40),
}
TOTALS = [sum(of_steps) for of_steps in CLASSES.values()]

LITERALS = (
    Literal(
        "breakdown",
        tables(
            steps=[(0, 1_000, 0), (1_000, 1_100, 1), (2_100, 900, 2)],
            nvtx=[(0, 300, "data loading"), (1_000, 200, "data loading"), (2_100, 100, "data loading")],
            kernels=[
                *((500, 200, "sgemm"), (650, 150, "ncclDevKernel_AllReduce")),
                *((1_250, 300, "sgemm"), (1_500, 100, "sgemm"), (1_550, 250, "ncclDevKernel_AllReduce")),
                (1_960, 40, "sgemm", {"correlation_id": 5}),
                *((2_300, 400, "sgemm"), (2_600, 150, "ncclDevKernel_AllReduce")),
            ],
            memcpy=[
                *((300, 50, "h2d", "pinned", "device", 10), (800, 40, "d2h", "device", "pinned", 10)),
                *((1_150, 100, "h2d", "pinned", "device", 10), (1_790, 30, "d2h", "device", "pinned", 10)),
                *((2_200, 60, "h2d", "pinned", "device", 10), (2_750, 50, "d2h", "device", "pinned", 10)),
            ],
            memset=[(350, 20, 10), (1_820, 30, 10), (2_800, 10, 10)],
            cuda_api=[
                *((400, 30, "cudaMalloc"), (440, 40, "cudaLaunchKernel")),
                *((840, 60, "cudaStreamSynchronize"), (900, 10, "cuModuleLoadData")),
                *((1_850, 50, "cudaDeviceSynchronize"), (1_900, 20, "cudaFree")),
                (1_930, 10, "cuLaunchKernel", {"correlation_id": 5}),
                *((2_000, 15, "cuModuleLoadData"), (2_050, 5, "cudaGetDevice")),
                *((2_260, 10, "cudaMalloc"), (2_280, 10, "cudaLaunchKernel")),
                *((2_810, 90, "cudaStreamSynchronize"), (2_900, 5, "cuModuleLoadData")),
            ],
            os_calls=[(910, 50, "poll"), (2_010, 60, "poll"), (2_905, 25, "poll")],
            overhead=[(905, 5, "flush"), (960, 25, "flush"), (2_080, 15, "flush"), (2_950, 30, "flush")],
        ),
        {
            "facts": {"basis": "traceviz", "step_ns": 1_000 + 1_100 + 900},
            "Step time": {"key": list(CLASSES), "value": TOTALS},
            "": {
                "class": list(CLASSES),
                "total_ns": TOTALS,
                "share_of_step": [total / 3_000 for total in TOTALS],
                "per_step_ns": [330, 117, 37, 70, 20, 183, 67, 20, 27, 10, 42, 23, 55],
            },
            "By step": {
                "step": [0, 1, 2],
                "process": [0, 0, 0],
                "dur_ns": [1_000, 1_100, 900],
                **{key: list(of_steps) for key, of_steps in CLASSES.items()},
            },
        },
        {
            "By step/step": "a step's number is its own",
            "By step/process": "so is its process",
            "By step/dur_ns": "and its duration",
        },
    ),
)
