"""Names of real kernels, and what may be read from them."""

import gzip
import json
import re
import sqlite3
import tomllib
from importlib import resources

import pytest

from traceviz.trace.names.kernel_names import UNKNOWN, KernelClass, catalogue, classify, family_label

CASES = {
    # matrix multiplication: what other tools take for 32-bit without tensor cores
    "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_TNN": ("gemm", "bf16", True),
    "nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_NTT": ("gemm", "f16", True),
    "nvjet_sm103_tst_8x64_64x16_4x1_v_bz_TNN": ("gemm", "bf16", True),
    "nvjet_qqtst_128x256_128x6_2x1_2cta_v_bz_TNT": ("gemm", "fp8_e4m3", True),
    "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_32x6_tn": ("gemm", "bf16", True),
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1": ("gemm", "bf16", True),
    "sm90_xmma_gemm_e4m3e4m3_e4m3f32_f32_tn_n_tilesize128x128x128": ("gemm", "fp8_e4m3", True),
    "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align4>(T1::Params)": ("gemm", "tf32", True),
    "void cutlass::Kernel<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64>(T1::Params)": ("gemm", "bf16", True),
    "cutlass3x_sm90_tensorop_s64x128x16gemm_f16_f16_f32_void_f16_128x128x64": ("gemm", "f16", True),
    "void cutlass::Kernel<cutlass_80_tensorop_d884gemm_32x32_16x5_nn_align1>(T1::Params)": ("gemm", "f64", True),
    "volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn": ("gemm", "f16", True),
    "turing_h1688gemm_128x128_ldg8_nn": ("gemm", "f16", True),
    "turing_int8_i8816gemm_int8_128x128_ldg16_mgpu_tn": ("gemm", "i8", True),
    "ampere_sgemm_128x128_tn": ("gemm", "f32", False),
    "volta_dgemm_128x64_nn": ("gemm", "f64", False),
    "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_aligna4": ("gemm", "f32", False),
    "Cijk_Ailk_Bljk_BBS_BH_MT256x128x64_MI16x16x16x1_SN_1LDSB0": ("gemm", "bf16", True),
    "Cijk_Alik_Bljk_SB_Bias_AS_SAV_UserArgs_MT64x16x32_MI16x16x1_SN": ("gemm", "f32", True),
    "void splitKreduce_kernel<float, float, float>(cublasSplitKParams<float>, float const*)": ("gemm", "f32", False),
    # narrow types: FP8, FP6, FP4 and the block-scaled (MX, NV) forms of them
    "cutlass3x_sm100_bstensorop_s128x128x64gemm_block_scaled_ue8m0xe4m3_ue8m0xe4m3_f32_bf16_bf16": (
        "gemm",
        "fp8_e4m3",
        True,
    ),
    "cutlass3x_sm100_bstensorop_s256x128x64gemm_block_scaled_ue4m3xe2m1_ue4m3xe2m1_f32_f16": ("gemm", "fp4", True),
    "cutlass3x_sm100_bstensorop_s128x128x32gemm_block_scaled_ue8m0xe3m2_ue8m0xe3m2_f32_f16": ("gemm", "fp6", True),
    "void cutlass::device_kernel<at::cuda::detail::enable_3x_kernel_for_sm9x<cutlass::gemm::kernel::GemmUniversal<"
    "cute::tuple<int, int, int>, cutlass::gemm::collective::CollectiveMma<cutlass::gemm::"
    "MainloopSm90TmaGmmaWarpSpecialized<4>, cutlass::float_e4m3_t, cutlass::bfloat16_t> > > >(P)": (
        "gemm",
        "fp8_e4m3",
        True,
    ),
    "void deep_gemm::sm90_fp8_gemm_1d2d_impl<0u, 4096u, 7168u, 1u, 128u>(float*)": ("gemm", "fp8", True),
    "_ZN5aiter28f4gemm_bf16_per1x32Fp4_BpreShuffle_128x512E": ("gemm", "fp4", None),
    "void ck::kernel_gemm_xdl_cshuffle_v3<ck::GridwiseGemm_xdl_cshuffle_v3<ck::f8_fnuz_t, ck::bhalf_t> >(P)": (
        "gemm",
        "fp8",
        True,
    ),
    "void ck::kernel_gemm_xdl_cshuffle_v3<ck::GridwiseGemm_xdl_cshuffle_v3<_Float16, _Float16, float> >(P)": (
        "gemm",
        "f16",
        True,
    ),
    "void ck::kernel_gemm_xdl_cshuffle_v3<ck::GridwiseGemm_xdl_cshuffle_v3<ushort, ushort, float> >(P)": (
        "gemm",
        "bf16",
        True,
    ),
    "nvjet_sm100_oohsh_128x256_256x4_2x1_2cta_v_bz_TNT": ("gemm", "fp4", True),
    "triton_tem_fused_mm_12": ("gemm", UNKNOWN, None),
    "gemm_fusion_dot_7": ("gemm", UNKNOWN, None),
    # host transfers of XLA
    "infeed.1": ("transfer", UNKNOWN, False),
    "outfeed": ("transfer", UNKNOWN, False),
    "send-done.4": ("transfer", UNKNOWN, False),
    # convolution
    "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize64x128x32_tensor16x8x8": (
        "convolution",
        "tf32",
        True,
    ),
    "void cutlass__5x_cudnn::Kernel<cutlass_tensorop_bf16_s16816fprop_optimized_bf16_256x64>(P)": (
        "convolution",
        "bf16",
        True,
    ),
    "void cutlass_cudnn_infer::Kernel<cutlass_tensorop_s1688dgrad_optimized_tf32_64x256>(P)": (
        "convolution",
        "tf32",
        True,
    ),
    "volta_scudnn_128x64_stridedB_interior_nn_v1": ("convolution", "f32", False),
    "void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>(P)": ("convolution", "f32", False),
    # attention
    "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 64, cutlass::bfloat16_t>>(flash::P)": (
        "attention",
        "bf16",
        True,
    ),
    "fmha_cutlassF_f16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::Params)": ("attention", "f16", True),
    "fmhaSm100aKernel_QkvE4m3OBfloat16H128PagedKvCausalP64VarSeqQ128Kv128PersistentContext": (
        "attention",
        "fp8_e4m3",
        True,
    ),
    "fmha_v2_flash_attention_bf16_64_128_S_q_paged_kv_128_causal_sm90_kernel": ("attention", "bf16", True),
    "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<"
    "2, cute::tuple<>, 128, cutlass::bfloat16_t, float> > > >(P)": ("attention", "bf16", True),
    "void flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4, cutlass::half_t> >(P)": (
        "attention",
        "f16",
        False,
    ),
    "void ck_tile::kentry<ck_tile::gfx950_t, 2, ck_tile::FmhaFwdKernel<ck_tile::BlockFmhaPipelineQRKSVSAsync<"
    "ck_tile::BlockFmhaPipelineProblem<std::bfloat16_t, float> > > >(P) [clone .kd]": ("attention", "bf16", True),
    "void ck_tile::kentry<256, 2, ck_tile::FmhaFwdKernel<ck_tile::BlockFmhaPipelineProblem<unsigned short, "
    "unsigned short, float> > >(P)": ("attention", "bf16", True),
    "void ck_tile::kentry<ck_tile::gfx950_t, 2, ck_tile::FmhaBwdOGradDotOKernel<ck_tile::BlockFmhaBwdOGradDotO<"
    "std::bfloat16_t> > >(P)": ("attention", "bf16", False),
    "void flash_bwd_dot_do_o_kernel<true, Flash_bwd_kernel_traits<64, cutlass::half_t>>(P)": (
        "attention",
        "f16",
        False,
    ),
    # the rest
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, A>(int)": (
        "elementwise",
        "f32",
        False,
    ),
    "void at::native::vectorized_elementwise_kernel<4, at::native::AbsFunctor<c10::Half>, A>(int)": (
        "elementwise",
        "f16",
        False,
    ),
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<double, at::native::MeanOps<double>>>(T)": (
        "reduction",
        "f64",
        False,
    ),
    "void (anonymous namespace)::softmax_warp_forward<c10::BFloat16, c10::BFloat16, float, 1>(P)": (
        "softmax",
        "bf16",
        False,
    ),
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int)": (
        "normalisation",
        "f32",
        False,
    ),
    "void cudnn::bn_fw_tr_1C11_singleread<float, 512, true, 1, 2, 0>(P)": ("normalisation", "f32", False),
    "void cudnn::ops::nchwToNhwcKernel<__nv_bfloat16, __nv_bfloat16, float, true, false>(P)": ("copy", "bf16", False),
    "void at::native::elementwise_kernel<128, 2, gpu_kernel_impl<direct_copy_kernel_cuda(T&)>>(int)": (
        "copy",
        UNKNOWN,
        False,
    ),
    "void split_embedding_backward_kernel_cta_per_row_1<c10::Half, float>(P, at::PhiloxCudaState)": (
        "embedding",
        "f16",
        False,
    ),
    "void split_embedding_backward_codegen_rowwise_adagrad_unweighted_kernel<c10::Half, float>(P)": (
        "embedding",
        "f16",
        False,
    ),
    "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>, float>(int)": (
        "optimizer",
        "f32",
        False,
    ),
    "void multi_tensor_apply_kernel<TensorListMetadata<2>, BinaryOpListAlphaFunctor<float>>(int)": (
        "elementwise",
        "f32",
        False,
    ),
    "void at::native::distribution_elementwise_grid_stride_kernel<float, 4, uniform>(double)": ("random", "f32", False),
    "void at::native::sbtopk::gatherTopK<c10::BFloat16, unsigned int, 2, false>(P)": ("sorting", "bf16", False),
    "void at::native::_scatter_gather_elementwise_kernel<128, 4, _cuda_scatter_gather<OpaqueType<4>>>(int)": (
        "indexing",
        UNKNOWN,
        False,
    ),
    "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<(unsigned long)4096>)": ("communication", UNKNOWN, False),
    "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)": ("communication", "f32", False),
    "ncclKernel_Broadcast_RING_LL_Sum_int8_t(ncclWorkElem)": ("communication", UNKNOWN, False),
    "triton_poi_fused_add_cos_sin_0": ("fusion", UNKNOWN, None),
    "input_transpose_fusion.1": ("fusion", UNKNOWN, None),
    "<unnamed>::nvfuser_pointwise_f0_c1_r0_g4(<unnamed>::Tensor<<unnamed>::__bfloat, 3>)": ("fusion", "bf16", None),
    # AMD: MIOpen, rocBLAS, AOTriton
    "batched_transpose_32x32_half": ("copy", "f16", False),
    "SubTensorOpWithScalar1d": ("elementwise", UNKNOWN, False),
    "Op2dTensorLite": ("elementwise", UNKNOWN, False),
    "mloPoolingG": ("pooling", UNKNOWN, False),
    "gcnAsmConv1x1WrW": ("convolution", UNKNOWN, None),
    "bwd_kernel_dk_dv": ("attention", UNKNOWN, None),
    "attn_fwd.kd": ("attention", UNKNOWN, None),
    "void rocblas_scal_kernel<int, 256>": ("elementwise", UNKNOWN, False),
    # FBGEMM, PyTorch
    "void fbgemm_gpu::(anonymous namespace)::_FP8rowwise_to_float_cuda_kernel<float>(unsigned char const*)": (
        "elementwise",
        "fp8",
        False,
    ),
    "void fbgemm_gpu::jagged_to_padded_dense_forward<int>": ("indexing", UNKNOWN, False),
    "at::cuda::(anonymous namespace)::spin_kernel(long)": ("waiting", UNKNOWN, False),
    # a float among narrower types does not hide them, a scalar of type double makes no 64-bit kernel; FBGEMM is no GEMM
    "void softmax_warp_forward<float, c10::Half, float>(P)": ("softmax", "f16", False),
    "void vectorized_elementwise_kernel<4, nan_to_num(T&, optional<double>)::{lambda(float)#1}, A>(int)": (
        "elementwise",
        "f32",
        False,
    ),
    "void fbgemm_gpu::_offsets_range_cuda_kernel<int>(long, int*)": ("indexing", UNKNOWN, False),
    # programs of their own
    "jacobi_kernel(float*, float const*, float*, int, int, int)": (UNKNOWN, "f32", None),
    "my_kernel": (UNKNOWN, UNKNOWN, None),
    "": (UNKNOWN, UNKNOWN, None),
    "void k[/x]<script>|\n\0": (UNKNOWN, UNKNOWN, None),
}


def test_real_names_show_family_precision_and_tensor_cores_in_their_order():
    assert dict(zip(CASES, classify(CASES), strict=True)) == {name: KernelClass(*case) for name, case in CASES.items()}


def test_of_a_name_of_a_million_characters_the_first_2000_decide():
    names = ["EigenMetaKernel<" * 60_000, "multi_tensor_apply" * 60_000, "x" * 2_000 + "nvjet_tst"]
    assert [kernel.family for kernel in classify(names)] == ["elementwise", UNKNOWN, UNKNOWN]


def test_every_pattern_of_the_data_file_compiles_and_says_something():
    data = tomllib.loads(resources.files("traceviz").joinpath("data/kernel_families.toml").read_text(encoding="utf-8"))
    patterns = [pattern for entry in (*data["family"], *data["precision"]) for pattern in entry["patterns"]]
    assert len(patterns) > 200
    assert not [pattern for pattern in patterns if re.search(pattern, "") or re.search(pattern, "k")]


def test_families_have_labels_and_the_catalogue_a_version():
    assert catalogue().version >= 1
    assert family_label(UNKNOWN) == "Unknown"
    assert all(family_label(pattern.name) for pattern in catalogue().families)


KINETO = (
    "AMD-AGI__TraceLens__Falconsai_nsfw_image_detection__1016002.json.gz",
    "AMD-AGI__TraceLens__gaunernst_bert-small-uncased__1016001.json.gz",
    "facebookresearch__HolisticTraceAnalysis__benchmark_result_2869224_1695835535_trace.json.gz",
    "facebookresearch__HolisticTraceAnalysis__nccl_data.json.gz",
    "facebookresearch__HolisticTraceAnalysis__sampled_rank-0.json.gz",
    "facebookresearch__HolisticTraceAnalysis__trace_diff_control.json.gz",
    "pytorch__kineto__worker0.1623143089861.pt.trace.json.gz",
)
KERNELS = """
    SELECT s.value, SUM(k.end - k.start) FROM CUPTI_ACTIVITY_KIND_KERNEL k
    JOIN StringIds s ON s.id = k.demangledName GROUP BY s.value
"""


def known_share(times: dict[str, float]) -> float:
    kernels = classify(times)
    known = sum(time for time, kernel in zip(times.values(), kernels, strict=True) if kernel.family != UNKNOWN)
    return known / sum(times.values())


@pytest.mark.parametrize("file", KINETO)
def test_at_least_95_percent_of_kernel_time_of_public_pytorch_traces_has_a_family(public_traces, file):
    with gzip.open(public_traces / "kineto" / file, "rt", encoding="utf-8") as stream:
        events = json.load(stream)["traceEvents"]
    times: dict[str, float] = {}
    for event in events:
        if str(event.get("cat", "")).lower() == "kernel":
            times[event["name"]] = times.get(event["name"], 0.0) + float(event.get("dur", 0))
    assert known_share(times) >= 0.95


def test_at_least_95_percent_of_kernel_time_of_a_public_nsys_training_trace_has_a_family(public_traces):
    path = public_traces / "nsys" / "GindaChen__nsys-ai__mfu_2gpu_before.sqlite"
    connection = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    try:
        times = dict(connection.execute(KERNELS).fetchall())
    finally:
        connection.close()
    assert known_share(times) >= 0.95
