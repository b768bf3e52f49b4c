"""The framework of a program, by its signs in traces."""

import pyarrow as pa
import pytest

from traceviz.parsers.shared.frameworks import identify_framework
from traceviz.trace.names.framework_signs import ALL_SIGNS, identify, library_versions, stated_versions


def named(**names):
    return identify_framework({kind: pa.array(texts, pa.string()) for kind, texts in names.items()}, {})


@pytest.mark.parametrize(
    ("kind", "name", "framework"),
    [
        ("names", "void at::native::vectorized_elementwise_kernel<4>(int)", "PyTorch"),
        ("names", "void cub::DeviceScan<at::native::Sum>(int)", "PyTorch"),
        ("names", "triton_poi_fused_add_relu_0", "PyTorch"),
        ("names", "void tensorflow::BiasNHWCKernel<float>(int)", "TensorFlow"),
        ("names", "void Eigen::internal::EigenMetaKernel<float>(float, int)", "TensorFlow"),
        ("names", "void jax::cuda::ThreeFry2x32Kernel(int)", "JAX"),
        ("names", "void phi::funcs::VectorizedElementwiseKernel<float>(int)", "PaddlePaddle"),
        ("names", "void mxnet::op::mxnet_op::mxnet_generic_kernel<float>(int)", "MXNet"),
        ("names", "void singa::cuda::KernelRelu(unsigned long, float const*, float*)", "Singa"),
        ("names", "void caffe::ReLUForward<float>(int)", "Caffe"),
        ("names", "void onnxruntime::cuda::_UnaryElementWise<float>(int)", "ONNX Runtime"),
        ("names", "void mul_mat_q<(ggml_type)8, 128>(void const*)", "ggml"),
        ("names", "void cudf::detail::valid_if_kernel<int>(int)", "RAPIDS"),
        ("names", "cupy_multiply__float32_float32_float32", "CuPy"),
        ("names", "cudapy::__main__::axpy$241(Array<float, 1>)", "Numba"),
        ("ranges", "aten::linear, op_id = 314", "PyTorch"),
        ("ranges", "XlaModule:#prefix=jit(train_step)/jit(main),hlo_module=jit_train_step,program_id=3#", "JAX"),
        ("ranges", "XlaModule:#hlo_module=a_inference_train_step_1203__.22,program_id=4#", "TensorFlow"),
        ("libraries", "/opt/conda/lib/python3.8/site-packages/torch/lib/libtorch_cuda.so", "PyTorch"),
        ("libraries", "dlopen(libmxnet.so)", "MXNet"),
        ("libraries", "/usr/lib/python3/paddle/base/libpaddle.so", "PaddlePaddle"),
        ("libraries", "/x/python3.11/site-packages/jaxlib/xla_extension.so", "JAX"),
        ("programs", "torchrun", "PyTorch"),
    ],
)
def test_each_framework_is_known_by_what_only_it_leaves(kind, name, framework):
    found = named(**{kind: [name, "something_else"]})
    assert found.framework == framework
    assert [key for key, _ in found.evidence] == [f"framework.{framework}.{kind}"]


@pytest.mark.parametrize(
    "names",
    [
        {"names": ["my_at::native::f()", "volta_sgemm_32x128_tn", "fusion_12", "my::tensorflow::f()", "kernel_0"]},
        {"libraries": ["printed /lib/libtorch.so", "a\n/lib/libtorch.so", "/lib/libtorch_notes.txt"]},
        {"libraries": ["A=1\x00LD=/lib/libtorch.so\x00B=2", "NAME=x\x00LD=/lib/libtorch.so"]},
        {"programs": ["python3.11", "my_torchrun"], "ranges": ["step", "train 1", "jit_loader"]},
        {},
    ],
)
def test_what_only_resembles_a_sign_names_no_framework(names):
    found = named(**names)
    assert (found.framework, found.evidence) == (None, ())


@pytest.mark.parametrize(
    ("names", "framework"),
    [
        # What ran counts before what was annotated, and that before what was loaded and may be unused.
        ({"names": ["void at::native::f()"], "libraries": ["/x/libtensorflow_framework.so.2"]}, "PyTorch"),
        ({"ranges": ["aten::add"], "libraries": ["/x/libmxnet.so"]}, "PyTorch"),
        ({"names": ["void at::native::f()", "void tensorflow::g()"]}, "PyTorch + TensorFlow"),
        # Libraries with a framework, and alone.
        ({"names": ["void at::native::f()", "cupy_add"]}, "PyTorch"),
        ({"names": ["cupy_add"], "libraries": ["/x/libtorch.so"]}, "PyTorch"),
        ({"names": ["cupy_add", "cudapy::f()"]}, "CuPy + Numba"),
        # PaddlePaddle has kernels of Eigen too.
        ({"names": ["void Eigen::internal::EigenMetaKernel<f>()", "void phi::g()"]}, "PaddlePaddle"),
    ],
)
def test_of_several_signs_the_most_telling_ones_name_the_framework(names, framework):
    assert named(**names).framework == framework


def test_all_that_was_seen_is_evidence_also_what_did_not_decide():
    found = named(names=["void at::native::f()", "void at::native::g()"], libraries=["/x/libtensorflow_framework.so.2"])
    assert dict(found.evidence) == {
        "framework.PyTorch.names": "names in at::native::, c10:: (2)",
        "framework.TensorFlow.libraries": "libtensorflow.so",
    }


def test_versions_are_those_that_an_image_states_or_that_a_library_is_named_after():
    variables = [("PYTORCH_VERSION", '"2.6.0a0+git45ed7c1"'), ("JAX_VERSION", "newest"), ("API_TOKEN", "1.2.3")]
    assert stated_versions(variables) == {"PyTorch": "2.6.0a0+git45ed7c1"}
    assert library_versions(["/x/libtensorflow_framework.so.2", "/x/libtorch.so"]) == {"TensorFlow": "2"}
    counts = {sign: 1 for sign in ALL_SIGNS if (sign.framework, sign.kind) == ("PyTorch", "names")}
    assert identify(counts, {"PyTorch": "2.6.0", "JAX": "0.4"}).framework == "PyTorch 2.6.0"
