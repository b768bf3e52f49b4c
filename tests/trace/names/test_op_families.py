"""Names of real operators, and what they compute."""

import tomllib
from importlib import resources

import pytest

from traceviz.trace.names.op_families import UNKNOWN, catalogue, op_family, op_family_label, plain_name

CASES = {
    "convolution": (
        *("aten::mkldnn_convolution", "aten::convolution_backward", "aten::conv2d", "aten::_slow_conv2d_forward"),
        *("_FusedConv2D", "Conv2DBackpropFilter", "_MklNativeConv2DBackpropInput", "DepthwiseConv2dNative"),
        *("mkldnn::_convolution_pointwise", "ConvolutionBackward0", "quantized::conv2d_relu", "conv_general_dilated"),
        *("convolution.5", "Conv_0_kernel_time"),
    ),
    "matmul": (
        *(
            "aten::addmm",
            "aten::mm",
            "aten::bmm",
            "aten::baddbmm_",
            "aten::linear",
            "MatMul",
            "_FusedMatMul",
            "MmBackward0",
        ),
        *(
            "_MklNativeFusedMatMul",
            "BatchMatMulV2",
            "Einsum",
            "dot.2",
            "dot_general",
            "inner_product",
            "torch_ipex::ipex_linear",
        ),
        *("FullyConnected", "_backward_FullyConnected", "phi::matmul_grad"),
        *("mkldnn::_linear_pointwise", "quantized::linear_dynamic", "Gemm_kernel_time", "aten::linalg_solve"),
    ),
    "attention": ("aten::_scaled_dot_product_flash_attention_for_cpu_backward", "aten::_native_multi_head_attention"),
    "recurrent": ("aten::lstm", "aten::mkldnn_rnn_layer", "CudnnRNNV3", "aten::gru_cell", "LSTMBlockCell"),
    "normalisation": ("aten::native_batch_norm_backward", "aten::native_layer_norm", "FusedBatchNormGradV3", "LRN"),
    "pooling": ("aten::max_pool2d_with_indices", "_MklNativeMaxPoolGrad", "AvgPool", "aten::_adaptive_avg_pool2d"),
    "loss": ("aten::_log_softmax_backward_data", "aten::nll_loss_forward", "SparseSoftmaxCrossEntropyWithLogits"),
    "activation": ("aten::threshold_backward", "ReluGrad", "aten::gelu", "SigmoidBackward0", "aten::hardswish_"),
    "embedding": ("aten::embedding_dense_backward", "GatherV2", "aten::_embedding_bag", "aten::index_select"),
    "optimizer": (
        "ResourceApplyAdam",
        "adam_update",
        "phi::adam",
        "aten::_foreach_addcdiv_",
        "aten::_fused_adam_",
        "aten::addcmul_",
    ),
    "random": ("aten::native_dropout", "aten::uniform_", "RandomUniform", "aten::randperm"),
    "movement": ("aten::copy_", "aten::_to_copy", "aten::cat", "Transpose", "StridedSlice", "aten::item", "reorder"),
    "elementwise": (
        "aten::add_",
        "AddV2",
        "aten::clamp_min",
        "MulBackward0",
        "aten::masked_fill_",
        "Greater",
        "BiasAddGrad",
    ),
    "reduction": ("aten::sum", "Mean", "ArgMax", "aten::linalg_vector_norm", "aten::cumsum", "wrapped_reduce-window"),
    "fusion": ("fusion", "ynn_fusion", "loop_add_fusion.3", "triton_poi_fused_add_0", "graph_0_cpp_fused_add_1"),
    "compiled": ("PjitFunction", "CompiledFunctionBackward", "StatefulPartitionedCall"),
    "communication": ("c10d::allreduce_", "all-reduce", "record_param_comms", "CollectiveReduceV2"),
    "image": ("DecodeJpeg", "ResizeBilinear", "aten::upsample_bilinear2d", "torchvision::nms"),
    "sorting": ("aten::topk", "aten::nonzero", "TopKV2", "aten::_unique2"),
    "python": ("PyFunc", "EagerPyFunc"),
    UNKNOWN: ("lengths_range_w_truncation_size", "aten::some_new_thing", "0", ""),
}


def test_names_of_operators_show_what_they_compute():
    assert {
        family: tuple(name for name in names if op_family(name) == family) for family, names in CASES.items()
    } == CASES


@pytest.mark.parametrize("name", ["convert", "aten::converge", "fbgemm::convex_sum", "tensor_conversion"])
def test_what_begins_like_a_convolution_is_none(name):
    assert op_family(name) != "convolution"


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("autograd::engine::evaluate_function: ConvolutionBackward0", "convolution"),
        ("aten::add_", "add"),
        ("MaxPoolGrad", "max_pool"),
        ("dot.12", "dot"),
        ("conv1_kernel_time", "conv1"),
    ],
)
def test_names_are_compared_without_what_says_nothing(name, plain):
    assert plain_name(name) == plain


def test_a_long_name_is_looked_at_from_its_begin_only():
    assert (op_family("aten::mm" + "x" * 600), op_family("x" * 600 + "_mm")) == (UNKNOWN, UNKNOWN)
    assert op_family("conv" + "x" * 10_000) == "convolution"


def test_every_family_has_a_label_and_no_name_twice():
    names = [family for family, _ in catalogue().families]
    assert len(names) == len(set(names)) == 22
    assert all(op_family_label(name) for name in (*names, UNKNOWN))
    data = tomllib.loads(resources.files("traceviz").joinpath("data", "op_families.toml").read_text(encoding="utf-8"))
    assert data["version"] == catalogue().version == 2
