"""Matrix products by their kernels' names and by the operations that launch them, and a kernel that is none."""

from tests.analyses.builders import tables
from tests.analyses.literals.literal import Literal

SGEMM, HGEMM = "volta_sgemm_128x64_nn", "volta_fp16_s884gemm_fp16_128x64_ldg8_f2f_nn"
MATMUL, CONVOLUTION = {"op": "model/dense/MatMul:MatMul"}, {"op": "model/conv/Conv2D:Conv2D"}

LITERALS = (
    Literal(
        "precision",
        tables(
            kernels=[
                *((0, 300, SGEMM), (300, 500, SGEMM, {"device_id": 1})),
                *((1_000, 200, HGEMM, MATMUL), (1_300, 400, HGEMM, MATMUL)),
                *((2_000, 100, "tiles", CONVOLUTION), (2_200, 60, "tiles", CONVOLUTION)),
                (3_000, 1_000, "EigenMetaKernel", {"op": "model/add:AddV2"}),
                *((4_000, 50, SGEMM, MATMUL), (4_100, 70, SGEMM, MATMUL)),
            ]
        ),
        {
            "facts": {
                "total_ns": 1_680,
                "full_share": (800 + 120) / 1_680,
                "unknown_share": 160 / 1_680,  # unknown from the name
            },
            "": {
                "type": ["gemm", "MatMul", "Conv2D", "MatMul"],  # without an operation, the family of the kernel
                "precision": ["f32", "f16", "unknown", "f32"],
                "calls": [2, 2, 2, 2],
                "total_ns": [300 + 500, 200 + 400, 100 + 60, 50 + 70],
                "share_of_matrix_time": [800 / 1_680, 600 / 1_680, 160 / 1_680, 120 / 1_680],
            },
        },
    ),
)
