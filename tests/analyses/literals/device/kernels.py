"""Kernels of two names and shapes, and one of an unknown name; the last is after the three steps.

::

    ns         0   100     400    1000     1600  2000    2050   2300  3100
    step       [ 0               ][ 1           ][ 2                 ]
    tc gemm    [100]
    tc gemm              [ 300  ]                                     [ 200 ]  (grid 4)
    sgemm                          [ 500 ]        [ 70 ]
    mystery                                             [20 ]  [40]
"""

from statistics import stdev

from tests.analyses.builders import tables
from tests.analyses.literals.literal import Literal
from traceviz.trace.names.kernel_names import catalogue

TENSOR, PLAIN, UNKNOWN = "ampere_bf16_s16816gemm_bf16_128x64", "ampere_sgemm_128x64_tn", "mystery"

LITERALS = (
    Literal(
        "kernels",
        tables(
            steps=[(0, 1_000, 0), (1_000, 1_000, 1), (2_000, 1_000, 2)],
            kernels=[
                (0, 100, TENSOR, {"grid_x": 2, "block_x": 128}),
                (400, 300, TENSOR, {"grid_x": 2, "block_x": 128}),
                (3_100, 200, TENSOR, {"grid_x": 4, "block_x": 128}),
                (1_000, 500, PLAIN, {"grid_y": 3}),
                (2_000, 70, PLAIN, {"grid_y": 3}),
                (2_100, 20, UNKNOWN),
                (2_300, 40, UNKNOWN),
            ],
        ),
        {
            "facts": {
                "total_ns": 1_230,
                "calls": 7,
                "names": 3,
                "classified_share": 1_170 / 1_230,
                "tensor_core_share": 600 / 1_230,
                "tensor_core_unknown_share": 60 / 1_230,
                "precision_known_share": 1_170 / 1_230,
                "precision_unknown_share": 60 / 1_230,
                "catalogue": catalogue().version,
            },
            "Kernel families": {"key": ["gemm", "unknown"], "value": [1_170, 60]},
            "": {
                "name": [TENSOR, PLAIN, UNKNOWN],
                "family": ["gemm", "gemm", "unknown"],
                "precision": ["bf16", "f32", "unknown"],
                "tensor_core": [True, False, None],
                "calls": [3, 2, 2],
                "total_ns": [600, 570, 60],
                "share_of_kernel_time": [600 / 1_230, 570 / 1_230, 60 / 1_230],
                "mean_ns": [200.0, 285.0, 30.0],
                "median_ns": [200.0, 285.0, 30.0],
                "min_ns": [100, 70, 20],
                "max_ns": [300, 500, 40],
                "stddev_ns": [100.0, stdev((500, 70)), stdev((20, 40))],
            },
            "By launch shape": {
                "name": [PLAIN, TENSOR, TENSOR, UNKNOWN],
                "grid": ["1x3x1", "2x1x1", "4x1x1", "1x1x1"],
                "block": ["1x1x1", "128x1x1", "128x1x1", "1x1x1"],
                "calls": [2, 2, 1, 2],
                "total_ns": [570, 400, 200, 60],
                "mean_ns": [285.0, 200.0, 200.0, 30.0],
                "median_ns": [285.0, 200.0, 200.0, 30.0],
                "min_ns": [70, 100, 200, 20],
                "max_ns": [500, 300, 200, 40],
                "stddev_ns": [stdev((500, 70)), stdev((100, 300)), 0.0, stdev((20, 40))],
            },
            "In steady steps": {
                "name": [PLAIN, TENSOR, UNKNOWN],
                "family": ["gemm", "gemm", "unknown"],
                "calls": [2, 2, 2],
                "total_ns": [570, 400, 60],
            },
        },
        {
            "facts/names": "a name goes with the last of its kernels, and each has several",
            "facts/catalogue": "the version of the patterns, and no figure of the trace",
        },
    ),
)
