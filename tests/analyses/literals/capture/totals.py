"""A printed summary: rows of the device, of two APIs, of migrations of unified memory, and of something else."""

from tests.analyses.builders import tables
from tests.analyses.literals.literal import Literal


def times(mean, least, most):
    return {"mean_ns": mean, "min_ns": least, "max_ns": most}


LITERALS = (
    Literal(
        "totals",
        tables(
            devices=[(0, "V100")],
            totals=[
                ("kernel", "gemm", 3, 300, times(100.0, 50, 150)),
                ("copy", "[CUDA memcpy HtoD]", 4, 80, times(20.0, 5, 35)),
                ("kernel", "add", 2, 20, times(10.0, 9, 11)),
                ("runtime", "cudaMalloc", 2, 90, times(45.0, 30, 60)),
                ("driver", "cuInit", 1, 110, times(110.0, 110, 110)),
                ("unified_memory", "Host To Device", 7, 40, {"bytes": 4_096}),
                ("unified_memory", "Device To Host", 2, 30, {"bytes": 1_024}),
                ("other", "acc_wait", 5, 55, times(11.0, 1, 20)),
                ("other", "acc_init", 1, 45, times(45.0, 45, 45)),
            ],
        ),
        {
            "facts": {"device_total_ns": 400, "device_calls": 9, "api_total_ns": 200, "api_calls": 3},
            "GPU activities": {
                "name": ["gemm", "[CUDA memcpy HtoD]", "add"],
                "kind": ["kernel", "copy", "kernel"],
                "calls": [3, 4, 2],
                "total_ns": [300, 80, 20],
                "share": [0.75, 0.2, 0.05],
                "mean_ns": [100.0, 20.0, 10.0],
                "min_ns": [50, 5, 9],
                "max_ns": [150, 35, 11],
            },
            "API calls": {
                "name": ["cuInit", "cudaMalloc"],
                "kind": ["driver", "runtime"],
                "calls": [1, 2],
                "total_ns": [110, 90],
                "share": [0.55, 0.45],
                "mean_ns": [110.0, 45.0],
                "min_ns": [110, 30],
                "max_ns": [110, 60],
            },
            "Others": {
                "name": ["acc_wait", "acc_init"],
                "kind": ["other", "other"],
                "calls": [5, 1],
                "total_ns": [55, 45],
                "share": [0.55, 0.45],
                "mean_ns": [11.0, 45.0],
                "min_ns": [1, 45],
                "max_ns": [20, 45],
            },
            "Unified memory": {
                "name": ["Host To Device", "Device To Host"],
                "device": ["V100", "V100"],
                "calls": [7, 2],
                "bytes": [4_096, 1_024],
                "total_ns": [40, 30],
            },
        },
        dict.fromkeys(
            ("GPU activities", "API calls", "Others", "Unified memory"), "a printed row is a row of its grid"
        ),
    ),
)
