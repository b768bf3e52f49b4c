"""Names of operators and kernels, as PyTorch, cuBLAS and NCCL write them."""

from __future__ import annotations

HALF = "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_tn"
FULL = "ampere_sgemm_128x64_tn"
"""The matrix product in half precision on tensor cores, and in full precision without them."""
_VECTOR = "void at::native::vectorized_elementwise_kernel<4, at::native::{0}<float>, at::detail::Array<char*, 3> >"
ADD = _VECTOR.format("AddFunctor") + "(int, at::native::AddFunctor<float>, at::detail::Array<char*, 3>)"
GELU = (
    _VECTOR.format("GeluCUDAKernelImpl") + "(int, at::native::GeluCUDAKernelImpl<float>, at::detail::Array<char*, 2>)"
)
NORM = "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int, float, float const*)"
SOFTMAX = (
    "void (anonymous namespace)::softmax_warp_forward<float, float, float, 8, false, false>(float*, float const*, int)"
)
DROPOUT = (
    "void at::native::(anonymous namespace)::fused_dropout_kernel_vec<float, float, unsigned int, 1, 4, bool>(int)"
)
OPTIMIZER = (
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::FusedAdamMathFunctor<float> >(int)"
)
_LAYOUT_TYPES = "__half, __half, float, false, true, (cudnnKernelDataType_t)2"
LAYOUT = f"void cudnn::ops::nchwToNhwcKernel<{_LAYOUT_TYPES}>(__half const*, __half*)"
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)"
SEND_RECEIVE = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"

OPERATORS = (
    ("aten::linear", HALF, "AddmmBackward0"),
    ("aten::gelu", GELU, "GeluBackward0"),
    ("aten::matmul", HALF, "MmBackward0"),
    ("aten::layer_norm", NORM, "NativeLayerNormBackward0"),
    ("aten::softmax", SOFTMAX, "SoftmaxBackward0"),
    ("aten::dropout", DROPOUT, "NativeDropoutBackward0"),
)
"""Operators of a layer in their order: name, kernel, and name of the backward function."""
