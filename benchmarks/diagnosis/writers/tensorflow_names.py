"""Names that TensorFlow's profiler gives to what PyTorch's names describe in a record."""

from __future__ import annotations

import re

from benchmarks.diagnosis.loader import MULTIPLE, SINGLE
from benchmarks.diagnosis.record import Kind, Span

CALLS = {
    "cudaLaunchKernel": "cuLaunchKernel",
    "cudaMemcpyAsync": "cuMemcpyAsync",
    "cudaStreamSynchronize": "cuStreamSynchronize",
    "cudaMalloc": "cuMemAlloc_v2",
    "cudaFree": "cuMemFree_v2",
    "cudaStreamCreateWithFlags": "cuStreamCreate",
    "cudaStreamDestroy": "cuStreamDestroy_v2",
    "cudaGraphLaunch": "cuGraphLaunch",
    "cudaStreamBeginCapture": "cuStreamBeginCapture_v2",
    "cudaStreamEndCapture": "cuStreamEndCapture",
    "cudaGraphInstantiate": "cuGraphInstantiateWithFlags",
}
OPERATORS = {
    "aten::linear": "model/dense/MatMul:MatMul",
    "aten::mm": "gradient_tape/model/dense/MatMul:MatMul",
    "aten::gelu": "model/dense/Erf:Erf",
    "aten::matmul": "model/attention/MatMul:BatchMatMulV2",
    "aten::layer_norm": "model/norm/FusedBatchNormV3:FusedBatchNormV3",
    "aten::softmax": "model/attention/Softmax:Softmax",
    "aten::dropout": "model/dropout/Mul:Mul",
    "aten::add": "model/add/AddV2:AddV2",
    "aten::cudnn_convolution": "model/Transpose:Transpose",
    "aten::_fused_adamw_": "Adam/ResourceApplyAdam:ResourceApplyAdam",
    "aten::to": "IteratorGetNext/_1:_Send",
    "aten::copy_": "model/Copy:_Send",
    "aten::_local_scalar_dense": "loss/_2:_Recv",
}
RANGES = {
    SINGLE: "IteratorGetNext:IteratorGetNext",
    MULTIPLE: "IteratorGetNext:IteratorGetNext",
    "_compile.compile_inner (dynamo_timed)": "XlaCompile",
}
FUNCTIONS = {
    "<built-in function sleep>": "$time sleep",
    "<built-in function collect>": "$gc collect",
}
"""Functions without a file; the tracer writes their module."""
STEP = "train"
_FUNCTION = re.compile(r"(.*)\((\d+)\): (.*)")


def tensorflow_name(span: Span) -> str:
    """Return the name of a host event; empty for a call of the operating system and for modules of PyTorch."""
    name = span.name
    match span.kind:
        case Kind.STEP:
            return STEP
        case Kind.API:
            return CALLS[name]
        case Kind.OPERATOR:
            return OPERATORS.get(name, f"gradient_tape/{name.rpartition(' ')[2]}:PartitionedCall")
        case Kind.RANGE:
            return RANGES.get(name, name)
        case Kind.PYTHON:
            found = _FUNCTION.match(name)
            if found:
                return f"${found[1].rpartition('/')[2]}:{found[2]} {found[3]}"
            if name.startswith("nn.Module"):
                return ""
            return FUNCTIONS.get(name, "$<unknown> acquire")
        case Kind.OS:
            return ""
