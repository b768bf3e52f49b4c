"""Precision of matrix ops, from the names of their kernels."""

import polars as pl
import pytest

from tests.analyses.builders import trace
from traceviz.analyses.device.precision import PrecisionAnalysis
from traceviz.report import Skipped

SGEMM, HGEMM, EIGEN = "volta_sgemm_128x64_nn", "volta_fp16_s884gemm_fp16_128x64_ldg8_f2f_nn", "EigenMetaKernel"


def matrix(dur, name=SGEMM, capability="7.5", op=None, product="GPU"):
    kernels = [(0, dur, name, {"op": op}), (dur, 1000 - dur, EIGEN, {"op": "a:AddV2"})]
    return trace(kernels=kernels, devices=[(0, product, {"ordinal": 0, "compute_capability": capability})])


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (matrix(102), ["TV405"]),  # at least half of it: 51 of 1000 ns
        (matrix(98), []),  # 49 ns
        (matrix(900, capability="6.1"), []),
        (matrix(900, capability="7.0"), ["TV405"]),
        (matrix(900, capability=None), ["TV405"]),  # a kernel of Volta runs
        (matrix(900, name="ampere_sgemm_32x128_tn", capability=None), ["TV405"]),
        (matrix(900, name="maxwell_sgemm_128x64_nn", capability=None), []),
        (matrix(900, name="sm61_xmma_gemm_f32f32_f32f32_f32_nn_n", capability=None), []),
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
    assert finding.cost_ns == 400
    assert {fact.key: fact.value for fact in finding.evidence}["best_case_speedup"] == pytest.approx(1000 / 600)


@pytest.mark.parametrize(
    ("product", "capability", "words"),
    [
        ("NVIDIA A100-SXM4-80GB", "8.0", "tensor cores compute 16-bit floats about 16 times as fast."),
        (None, "8.0", "tensor cores compute 16-bit floats about 16 times as fast."),
        ("NVIDIA L4", "8.9", "tensor cores compute 16-bit floats about 4 times as fast."),
        ("NVIDIA GeForce RTX 4090", "8.9", "tensor cores compute 16-bit floats about 2 times as fast."),
        (
            "NVIDIA L40",
            "8.9",
            "tensor cores compute 16-bit floats faster (counted as 2 times as fast: no data sheet is known).",
        ),
        (
            "NVIDIA H20",
            "9.0",
            "tensor cores compute 16-bit floats faster (counted as 2 times as fast: no data sheet is known).",
        ),
        ("NVIDIA H200", "9.0", "tensor cores compute 16-bit floats about 15 times as fast."),
        ("AMD Instinct MI210", "9.0", "matrix cores compute 16-bit floats about 4 times as fast."),
        ("AMD Instinct MI300X", "9.4", "matrix cores compute 16-bit floats about 8 times as fast."),
        (
            None,
            "9.0",
            "tensor cores compute 16-bit floats faster (counted as 2 times as fast: no data sheet is known).",
        ),
        (
            None,
            "12.0",
            "tensor cores compute 16-bit floats faster (counted as 2 times as fast: no data sheet is known).",
        ),
    ],
)
def test_how_much_faster_16_bits_are_is_that_of_the_product_or_is_not_said(product, capability, words):
    (finding,) = PrecisionAnalysis().judge(PrecisionAnalysis().run(matrix(800, capability=capability, product=product)))
    assert finding.message.endswith(f"on a device whose {words}")
    assert any("TensorFloat" in line for line in finding.advice) == ("tensor" in words)


@pytest.mark.parametrize(("product", "capability"), [("NVIDIA GeForce GTX 1660 Ti", "7.5"), ("AMD Radeon VII", "9.0")])
def test_products_without_tensor_cores_get_no_advice(product, capability):
    analysis = PrecisionAnalysis()
    assert analysis.judge(analysis.run(matrix(900, capability=capability, product=product))) == ()


@pytest.mark.parametrize(
    ("name", "op", "is_advised"),
    [
        ("volta_sgemm_128x64_nn", None, True),
        ("ampere_sgemm_32x32_sliced1x4_tn", None, True),
        ("void cublasLt::epilogue::impl::globalKernel<8, 32, float, float>(int)", None, True),
        ("void gemv2T_kernel_val<int, float, float, float, float>(int)", None, True),
        ("void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>(int)", None, True),
        ("Cijk_Ailk_Bljk_SB_MT64x64x8_SE_K1", None, True),
        ("matmul_k(float*, float*, float*, int, int, int)", None, False),
        ("sgemm_naive(int, int, int, float, float const*, float const*, float, float*)", None, False),
        ("void matmul_tiled<32>(float const*, float const*, float*, int)", None, False),
        ("matmul_k(float*, float*, float*, int, int, int)", "aten::mm", True),
    ],
)
def test_kernels_that_no_library_or_framework_chose_get_no_advice_on_precision(name, op, is_advised):
    result = PrecisionAnalysis().run(matrix(800, name=name, op=op))
    assert result.total_where(pl.col("precision") == "f32") == 800
    assert bool(PrecisionAnalysis().judge(result)) == is_advised


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
