"""Precision of matrix ops, from the names of their kernels."""

import pytest

from tests.analyses.builders import trace
from traceviz.analyses.device.precision import PrecisionAnalysis
from traceviz.report import Skipped

SGEMM, HGEMM, EIGEN = "volta_sgemm_128x64_nn", "volta_fp16_s884gemm_fp16_128x64_ldg8_f2f_nn", "EigenMetaKernel"


def matrix(dur, name=SGEMM, capability="7.5", op=None):
    kernels = [(0, dur, name, {"op": op}), (dur, 1000 - dur, EIGEN, {"op": "a:AddV2"})]
    return trace(kernels=kernels, devices=[(0, "GPU", {"ordinal": 0, "compute_capability": capability})])


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (matrix(58), ["TV405"]),  # 7/8 of it: 51 of 1000 ns
        (matrix(56), []),  # 49 ns
        (matrix(900, capability="6.1"), []),
        (matrix(900, capability="7.0"), ["TV405"]),
        (matrix(900, capability=None), []),
        (matrix(900, name=HGEMM), []),
        (matrix(900, name="matmul_k(float*, float*, float*, int)"), []),  # the program's own
        (matrix(900, name="void cutlass::Kernel<float>(float*)", op="m:MatMul"), ["TV405"]),
    ],
)
def test_matrix_ops_in_32_bits_are_found_where_tensor_cores_could_save_5_percent(view, expected):
    analysis = PrecisionAnalysis()
    assert [finding.code for finding in analysis.judge(analysis.run(view))] == expected


def test_the_bound_is_amdahls():
    (finding,) = PrecisionAnalysis().judge(PrecisionAnalysis().run(matrix(800)))
    assert finding.cost_ns == 700
    assert {fact.key: fact.value for fact in finding.evidence}["best_case_speedup"] == pytest.approx(1000 / 300)


@pytest.mark.parametrize(
    ("capability", "fast"), [("8.0", "about 16 times as fast."), ("8.9", "about 4 times as fast."), ("12.0", "faster.")]
)
def test_how_much_faster_tensor_cores_are_is_that_of_the_device_or_is_not_said(capability, fast):
    (finding,) = PrecisionAnalysis().judge(PrecisionAnalysis().run(matrix(800, capability=capability)))
    assert finding.message.endswith(f"tensor cores compute 16-bit floats {fast}")


@pytest.mark.parametrize(
    ("op", "matches"),
    [
        ("c/Conv2D:Conv2D", True),
        ("g/Conv2DBackpropFilter:Conv2DBackpropFilter", True),
        ("m:_MklMatMul", True),
        ("m:BatchMatMulV2", True),
        ("f:_FusedMatMul", True),
        ("e:Einsum", True),
        ("r:CudnnRNNV3", True),
        ("dot.3", True),
        ("convolution.1", True),
        ("a:AddV2", False),
        ("Iterator:MatchingFiles", False),
        ("fusion.2", False),
    ],
)
def test_ops_that_multiply_matrices_are_known_by_their_type(op, matches):
    outcome = PrecisionAnalysis().run(matrix(100, name="k_of_unknown_kind<float>", op=op))
    assert isinstance(outcome, Skipped) != matches
    if matches:
        assert outcome.by_type["total_ns"].sum() == 100


def test_a_name_that_states_no_precision_is_not_taken_for_32_bit():
    result = PrecisionAnalysis().run(matrix(900, name="some_kernel", op="m:MatMul"))
    assert result.by_type.select("type", "precision", "total_ns").rows() == [("MatMul", "unknown", 900)]
    assert PrecisionAnalysis().judge(result) == ()
