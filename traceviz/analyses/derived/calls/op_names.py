"""Parser for names of framework ops: TensorFlow's ``scope/name:Type``, JAX calls, HLO instructions, PyTorch's.

::

    sequential/dense/MatMul:MatMul                    name sequential/dense/MatMul    type MatMul
    IteratorGetNext/_3:_Send#from=a,to=b#             name IteratorGetNext/_3         type _Send
    PjitFunction(train_step)                          name train_step                 type PjitFunction
    while.3::broadcast_add_fusion.12  (nested HLO)    name broadcast_add_fusion.12    type fusion
    jit(f)/jit(main)/dot_general                      name as it is                   type dot_general
    aten::addmm                                       name as it is                   type the same
"""

from __future__ import annotations

import polars as pl

from traceviz.analyses.derived.patterns import extracted, matches, replaced
from traceviz.trace.names.op_families import op_family

_TENSORFLOW = r"^(.*):([A-Z_][A-Za-z0-9_.>]*)$"
_TORCH = r"^(?:aten|prims?|torch\w*|quantized|mkldnn|fbgemm|xformers|flash_attn\w*|_?c10d\w*)::[\w:]+$"
_CALL = r"^(\w+)\(([^/]*)\)$"
_HLO_NESTING = r"^(?:[\w.\-]+::)+"
_HLO_NUMBER = r"(?:\.\d+)+$"
_HLO_FUSION = r"^.*fusion$"

MATRIX_TYPE = (
    r"(?i)^(_?(fused)?(mkl)?(depthwise)?conv[23]d|_?(fused|mkl|sparse|quantized)?(batch)?matmul|einsum|xlaeinsum|xladot"
    r"|xlaconv|cudnnrnn|depthwiseconv2dnative|dot(_general)?$|conv_general_dilated|convolution|custom-call-gemm|gemm)"
)
"""Types of ops that tensor cores can compute: matrix products and convolutions."""

_TORCH_MATRIX_OPS = (
    r"_?(?:slow_|thnn_)?conv(?:_transpose|_depthwise|_dilated)?[123]d\w*|conv_tbc|\w*convolution\w*",
    r"(?:add|badd|addb)?b?mm_?|_addmm_activation|_(?:scaled|int|grouped|scaled_grouped)_mm\w*",
    r"(?:add)?mv_?|addr_?|matmul|linear\w*|einsum|chain_matmul|linalg_(?:matmul|multi_dot)",
    r"\w*(?:scaled_dot_product|flash|efficient|cudnn)\w*attention\w*",
    r"_?(?:cudnn_|miopen_|thnn_fused_)?(?:lstm|gru|rnn(?:_tanh|_relu)?)(?:_cell)?(?:_backward)?",
)
_TORCH_MATRIX_GRADIENTS = r"(?:\w*Conv\w*|\w*[Mm]m|Addmv|Mv|Linear\w*|\w*Attention\w*)Backward\d*"

_TORCH_ENGINE = r"(?:autograd::engine::evaluate_function: )?"

TORCH_MATRIX_OP = f"^(?:aten::(?:{'|'.join(_TORCH_MATRIX_OPS)})|{_TORCH_ENGINE}{_TORCH_MATRIX_GRADIENTS})$"
"""PyTorch's operators that tensor cores can compute: matrix products, convolutions, attention, recurrent cells."""


def torch_matrix_op(column: str) -> pl.Expr:
    """Return whether the names in ``column`` are PyTorch operators that tensor cores can compute."""
    return matches(pl.col(column), TORCH_MATRIX_OP)


def parsed_ops(names: pl.Series) -> pl.DataFrame:
    """Return columns ``text`` (as given), ``op`` (its name) and ``type`` of the distinct ``names``.

    Arguments that the profiler appended (``#key=value#``) are not part of the name. A text without a name has no row.
    """
    text = names.cast(pl.String).unique(maintain_order=True).drop_nulls().rename("text")
    plain = pl.col("plain")
    unargued = replaced(pl.col("text"), r"(?s)#.*$", "").alias("plain")
    frame = pl.DataFrame({"text": text}).with_columns(unargued).filter(plain != "")
    frame = frame.with_columns(
        extracted(plain, f"({_TORCH})", 1).alias("torch"),
        # The innermost HLO instruction of a nest is the one that ran. The outer ones only contain it.
        replaced(plain, _HLO_NESTING, "").str.strip_chars_end(":").alias("instruction"),
    )
    torch, instruction = pl.col("torch"), pl.col("instruction")
    name = pl.coalesce(torch, extracted(plain, _TENSORFLOW, 1), extracted(plain, _CALL, 2), instruction)
    bare = replaced(instruction, _HLO_NUMBER, "")
    scoped = pl.when(bare.str.contains("/", literal=True)).then(extracted(bare, r"([^/]+)/*$", 1))
    fused = replaced(bare, _HLO_FUSION, "fusion")
    kind = pl.coalesce(torch, extracted(plain, _TENSORFLOW, 2), extracted(plain, _CALL, 1), scoped, fused)
    return frame.select("text", name.alias("op"), kind.alias("type"))


_MEASURED = r"_(kernel_time|fence_before|fence_after)$"
"""Suffixes that ONNX Runtime appends to operator names for what it measures."""


def op_groups(names: pl.Series) -> pl.DataFrame:
    """Return columns ``text`` (as given), ``type`` and ``family`` of the distinct operator ``names``.

    Types are those of :func:`~traceviz.analyses.derived.calls.op_names.parsed_ops`. Families are those of
    :mod:`traceviz.trace.names.op_families`.
    """
    types = parsed_ops(names).select("text", pl.col("type").str.replace(_MEASURED, ""))
    families = {kind: op_family(kind) for kind in types["type"].unique()}
    return types.with_columns(
        pl.col("type").replace_strict(families, default=None, return_dtype=pl.String).alias("family")
    )
